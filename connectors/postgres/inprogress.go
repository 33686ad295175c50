package postgres

import (
	"fmt"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// A large transaction comes while it is in progress (protocol 2, streaming 'on'):
// in blocks between Stream Start and Stream Stop, each of one transaction, in which
// every message about rows names its sub-transaction; blocks of several
// transactions and whole transactions take turns. Stream Commit or Stream Abort
// ends it; Stream Abort also takes back single sub-transactions.

// blockBytes is the size above which a batch of a block is handed over: ingest
// writes it at once, so that nothing is gained by larger ones but memory taken.
const blockBytes = 1 << 20

// runningTx is a transaction in progress of which blocks have come.
type runningTx struct {
	id        string                  // 64 bits, in decimal
	relations map[uint32]*relationUse // described in its blocks; for others only once it commits
	tables    map[uint32]*table       // those of them that are captured
	handed    bool                    // a batch of it was handed over
	messages  bool                    // there are logical messages among them
	signals   []signalMessage
	parted    bool // a sub-transaction was rolled back
}

// streaming takes a message about blocks.
func (a *assembler) streaming(kind byte, r *wireReader) error {
	switch kind {
	case 'S':
		xid := r.u32()
		first := r.u8() != 0
		if err := r.end(); err != nil {
			return err
		}
		return a.startBlock(xid, first)
	case 'E':
		if err := r.end(); err != nil {
			return err
		}
		return a.stopBlock()
	case 'A':
		xid, sub := r.u32(), r.u32()
		if err := r.end(); err != nil {
			return err
		}
		return a.abortStream(xid, sub)
	}
	xid := r.u32()
	m := r.commit()
	if err := r.end(); err != nil {
		return err
	}
	return a.commitStream(xid, m)
}

func (a *assembler) startBlock(xid uint32, first bool) error {
	if a.inTx {
		return fmt.Errorf("%w: a block of transaction %d begins inside another", errMessage, xid)
	}
	t := a.running[xid]
	if (t == nil) != first {
		return fmt.Errorf("%w: a block of transaction %d that says first=%v", errMessage, xid, first)
	}
	if first {
		wide := widenXID(xid, a.xid)
		a.xid = max(a.xid, wide)
		t = &runningTx{id: strconv.FormatUint(wide, 10), relations: map[uint32]*relationUse{}, tables: map[uint32]*table{}}
		if a.running == nil {
			a.running = map[uint32]*runningTx{}
		}
		a.running[xid] = t
	}
	a.block, a.inTx, a.skip, a.batch, a.last = t, true, false, nil, nil
	return nil
}

func (a *assembler) stopBlock() error {
	if a.block == nil {
		return fmt.Errorf("%w: a block ends that did not begin", errMessage)
	}
	err := a.handBlock()
	a.block, a.inTx, a.last = nil, false, nil
	return err
}

// handBlock hands over what the block has come to.
func (a *assembler) handBlock() error {
	b := a.batch
	if a.batch = nil; b == nil {
		return nil
	}
	a.block.handed = true
	return a.emit(b, 0, nil)
}

// blockEvents is events inside a block: a batch has rows of one sub-transaction.
func (a *assembler) blockEvents() (*change.Batch, error) {
	if a.batch != nil && (a.batch.Sub != a.sub || a.batch.Size() >= min(a.partBytes, blockBytes)) {
		if err := a.handBlock(); err != nil {
			return nil, err
		}
	}
	if a.batch == nil {
		a.batch = &change.Batch{Source: a.source, Kind: change.Transaction, Stage: change.InProgress, Tx: a.block.id, Sub: a.sub}
	}
	return a.batch, nil
}

func (a *assembler) abortStream(xid, sub uint32) error {
	if a.inTx {
		return fmt.Errorf("%w: transaction %d is rolled back inside a block", errMessage, xid)
	}
	t := a.running[xid]
	if t == nil { // PostgreSQL 18 tells it also of parts that it found rolled back before any block
		return nil
	}
	b := &change.Batch{Source: a.source, Kind: change.Transaction, Stage: change.RolledBack, Tx: t.id}
	if sub == xid {
		delete(a.running, xid)
	} else {
		b.Sub = sub
		t.parted = true
	}
	if !t.handed {
		return nil
	}
	return a.emit(b, 0, nil)
}

func (a *assembler) commitStream(xid uint32, m commitMessage) error {
	t := a.running[xid]
	if a.inTx || t == nil || m.end <= m.commit {
		return fmt.Errorf("%w: transaction %d commits at %s, of which no block came or one is open", errMessage, xid, m.commit)
	}
	delete(a.running, xid)
	b := &change.Batch{Source: a.source, Kind: change.Transaction, Stage: change.Adopted, Tx: t.id}
	switch {
	case !t.handed:
		return a.committedStream(t, nil, m, nil)
	case m.commit < a.held:
		b.Stage = change.RolledBack // the log has it
		return a.committedStream(t, b, m, nil)
	}
	if t.messages && t.parted {
		// In blocks all messages come under the transaction's own id, so that
		// those of a part that was rolled back are not told from the others.
		return a.whole(t.id, errMessageParts)
	}
	if err := a.unchanged(t.tables, xid); err != nil {
		return a.whole(t.id, err)
	}
	b.Pos, b.CommitTime = place{a.system, a.timeline, m.commit, m.end}.position(), change.UnixMicros(m.time)
	return a.committedStream(t, b, m, t.signals)
}

// committedStream keeps what the transaction's blocks described: the server
// describes it to nobody again. b is nil if none of its rows is captured.
func (a *assembler) committedStream(t *runningTx, b *change.Batch, m commitMessage, signals []signalMessage) error {
	if a.relations == nil {
		a.relations = map[uint32]*relationUse{}
	}
	for oid, use := range t.relations {
		a.relations[oid] = use
	}
	a.last = nil
	if b != nil && b.Stage == change.RolledBack {
		return a.emit(b, 0, nil)
	}
	return a.emit(b, m.end, signals)
}
