package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/tailwater/tailwater/change"
)

// assembler turns the messages of pgoutput into batches. One goroutine.
type assembler struct {
	source    string
	system    string
	timeline  uint32
	partBytes int
	xid       uint64 // a recent transaction id, 64 bits, to widen those of 32

	// held is where the log ends: a transaction whose commit record begins
	// below it was appended before.
	held LSN
	// relation makes the table of a relation message, nil for one that is not captured.
	relation func(m relationMessage) (*relationUse, error)
	// stale, set by others, says that types of columns were altered; retype
	// returns a table with its types as they are now.
	stale  atomic.Bool
	retype func(t *table) (*table, error)
	// known makes the table of a relation message inside a block, whose transaction
	// is in progress; unchanged tells, when it commits, that it changed none of them.
	known     func(m relationMessage) (*relationUse, error)
	unchanged func(tables map[uint32]*table, xid uint32) error
	// whole makes the error of a transaction that is to come at its commit instead.
	whole func(tx string, err error) error
	// emit takes each batch, with the last of a transaction the signals in it.
	emit func(b *change.Batch, end LSN, signals []signalMessage) error
	// messages says what becomes of logical messages.
	messages messageRules

	relations map[uint32]*relationUse
	lastOID   uint32
	last      *relationUse // of lastOID

	inTx  bool
	skip  bool // this transaction is held already
	begin beginMessage
	id    string
	batch *change.Batch // nil until the transaction's first row

	running map[uint32]*runningTx // transactions in progress, see inprogress.go
	block   *runningTx            // whose block it is; nil outside of blocks
	sub     uint32                // the sub-transaction of the message at hand, inside a block

	sent    int64           // µs since 2000, when the server sent the message at hand
	signals []signalMessage // of this transaction

	newRow, oldRow []field
	key            []byte
}

// relationUse is a relation as the stream's messages refer to it.
type relationUse struct {
	table   *table // nil: not captured
	wire    int    // columns that a tuple has
	columns []int  // for each column of the table its place in a tuple
}

// message takes one message.
func (a *assembler) message(b []byte) error {
	r := wireReader{b: b}
	kind := r.u8()
	if a.block != nil && kind != 'E' && kind != 'O' {
		a.sub = r.u32()
	}
	switch kind {
	case 'I', 'U', 'D':
		return a.row(kind, &r)
	case 'B':
		return a.beginTx(r.begin(), &r)
	case 'C':
		return a.commitTx(r.commit(), &r)
	case 'R':
		return a.describe(r.relation(), &r)
	case 'T':
		return a.truncate(r.truncate(), &r)
	case 'M':
		return a.logical(r.message(), &r)
	case 'S', 'E', 'A', 'c':
		return a.streaming(kind, &r)
	case 'Y', 'O': // types are looked up, origins left out
		return nil
	default:
		r.fail(fmt.Sprintf("of kind %q", kind))
		return r.err
	}
}

func (a *assembler) beginTx(m beginMessage, r *wireReader) error {
	if err := r.end(); err != nil {
		return err
	}
	if a.inTx {
		return fmt.Errorf("%w: a transaction begins inside another", errMessage)
	}
	a.begin, a.inTx, a.batch, a.signals = m, true, nil, nil
	a.skip = m.commit < a.held
	xid := widenXID(m.xid, a.xid)
	a.xid = max(a.xid, xid)
	a.id = strconv.FormatUint(xid, 10)
	return nil
}

func (a *assembler) commitTx(m commitMessage, r *wireReader) error {
	if err := r.end(); err != nil {
		return err
	}
	if !a.inTx || a.block != nil || m.commit != a.begin.commit || m.end <= m.commit {
		return fmt.Errorf("%w: a commit at %s of a transaction that began for %s", errMessage, m.commit, a.begin.commit)
	}
	a.inTx = false
	b := a.batch
	a.batch = nil
	if b != nil {
		b.Pos = place{a.system, a.timeline, m.commit, m.end}.position()
	}
	return a.emit(b, m.end, a.signals)
}

// events returns the batch that the transaction's rows go to; a full one is handed over first.
func (a *assembler) events() (*change.Batch, error) {
	if a.block != nil {
		return a.blockEvents()
	}
	if a.batch != nil && a.batch.Size() >= a.partBytes {
		a.batch.More = true
		if err := a.emit(a.batch, 0, nil); err != nil {
			return nil, err
		}
		a.batch = nil
	}
	if a.batch == nil {
		a.batch = &change.Batch{Source: a.source, Kind: change.Transaction, Tx: a.id,
			Pos: change.Position{Name: a.begin.commit.String()}, CommitTime: change.UnixMicros(a.begin.time)}
	}
	return a.batch, nil
}

func (a *assembler) describe(m relationMessage, r *wireReader) error {
	if err := r.end(); err != nil {
		return err
	}
	if a.block != nil {
		use, err := a.known(m)
		if err != nil {
			return a.whole(a.block.id, err)
		}
		if a.block.relations[m.oid] = use; use.table != nil {
			a.block.tables[m.oid] = use.table
		}
		a.lastOID, a.last = m.oid, use
		return nil
	}
	use, err := a.relation(m)
	if err != nil {
		return err
	}
	if a.relations == nil {
		a.relations = map[uint32]*relationUse{}
	}
	a.relations[m.oid], a.lastOID, a.last = use, m.oid, use
	return nil
}

// use returns the relation of an oid.
func (a *assembler) use(oid uint32) (*relationUse, error) {
	if a.last != nil && a.lastOID == oid {
		return a.last, nil
	}
	use := a.relations[oid]
	if a.block != nil {
		use = a.block.relations[oid]
	}
	if use == nil {
		return nil, fmt.Errorf("%w: a row of relation %d before its description", errMessage, oid)
	}
	a.lastOID, a.last = oid, use
	return use, nil
}

func (a *assembler) row(kind byte, r *wireReader) error {
	use, err := a.use(r.u32())
	if err != nil {
		return err
	}
	if !a.inTx {
		return fmt.Errorf("%w: a row outside a transaction", errMessage)
	}
	if a.skip || use.table == nil {
		return nil
	}
	oldKind := byte(0)
	part := r.u8()
	if kind != 'I' && (part == 'K' || part == 'O') {
		oldKind = part
		a.oldRow = r.tuple(a.oldRow)
		if kind == 'U' {
			part = r.u8()
		}
	}
	if kind != 'D' {
		if part != 'N' {
			r.fail("a row without its new values")
		}
		a.newRow = r.tuple(a.newRow)
	} else if oldKind == 0 {
		r.fail("a delete without a key")
	}
	if err := r.end(); err != nil {
		return err
	}
	if kind != 'D' && len(a.newRow) != use.wire || oldKind != 0 && len(a.oldRow) != use.wire {
		return fmt.Errorf("%w: a row of table %s with another number of columns than its description", errMessage, use.table)
	}
	b, err := a.events()
	if err != nil {
		return err
	}
	if a.stale.Load() && a.stale.CompareAndSwap(true, false) {
		if err := a.retypeAll(); err != nil {
			return err
		}
	}
	n := len(b.Events)
	err = a.change(b, use, kind, oldKind)
	if err == nil || !errors.Is(err, errShape) {
		return err
	}
	// A composite type was altered: perhaps it is known otherwise by now, else the row is of before.
	if use.table, err = a.retype(use.table); err != nil {
		return err
	}
	b.Events = b.Events[:n]
	if err = a.change(b, use, kind, oldKind); errors.Is(err, errShape) {
		use.table.loose = true
		b.Events = b.Events[:n]
		err = a.change(b, use, kind, oldKind)
	}
	return err
}

// retypeAll looks up the types of the tables with composite ones that the stream has described.
func (a *assembler) retypeAll() error {
	for _, use := range a.relations {
		if use.table == nil || !slices.ContainsFunc(use.table.columns, func(c column) bool { return c.typ.shaped }) {
			continue
		}
		var err error
		if use.table, err = a.retype(use.table); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembler) change(b *change.Batch, use *relationUse, kind, oldKind byte) error {
	switch kind {
	case 'I':
		return a.insert(b, use)
	case 'U':
		return a.update(b, use, oldKind)
	}
	return a.delete(b, use, oldKind)
}

func (a *assembler) insert(b *change.Batch, use *relationUse) error {
	buf := b.Buffer()
	start := len(buf)
	buf, err := use.appendKey(buf, a.newRow)
	if err != nil {
		return err
	}
	keyEnd := len(buf)
	buf, partial, err := use.appendRow(buf, a.newRow, nil)
	if err != nil {
		return err
	}
	if partial {
		return fmt.Errorf("%w: an insert into table %s with unchanged columns", errMessage, use.table)
	}
	b.AddInPlace(buf, use.table.layout, change.OpInsert, 0, start, keyEnd, keyEnd, len(buf))
	return nil
}

// delete takes the old row, whole under REPLICA IDENTITY FULL, else its key.
func (a *assembler) delete(b *change.Batch, use *relationUse, oldKind byte) error {
	buf := b.Buffer()
	start := len(buf)
	buf, err := use.appendKey(buf, a.oldRow)
	if err != nil {
		return err
	}
	keyEnd := len(buf)
	if buf, err = use.appendBefore(buf, a.oldRow, oldKind); err != nil {
		return err
	}
	b.AddInPlace(buf, use.table.layout, change.OpDelete, 0, start, keyEnd, len(buf), len(buf))
	return nil
}

// update is an update, or if the key changed a delete and an insert.
func (a *assembler) update(b *change.Batch, use *relationUse, oldKind byte) error {
	moved := false
	if oldKind != 0 {
		use.keepKey(a.newRow, a.oldRow)
		var err error
		if moved, err = a.keyChanged(use); err != nil {
			return err
		}
	}
	if moved {
		return a.move(b, use, oldKind)
	}
	buf := b.Buffer()
	start := len(buf)
	buf, err := use.appendKey(buf, a.newRow)
	if err != nil {
		return err
	}
	keyEnd := len(buf)
	if buf, err = use.appendBefore(buf, a.oldRow, oldKind); err != nil {
		return err
	}
	beforeEnd := len(buf)
	buf, partial, err := use.appendRow(buf, a.newRow, use.fill(a.oldRow, oldKind))
	if err != nil {
		return err
	}
	b.AddInPlace(buf, use.table.layout, change.OpUpdate, partialFlag(partial), start, keyEnd, beforeEnd, len(buf))
	return nil
}

// move is a change of the key: a delete of the old one and an insert of the new.
func (a *assembler) move(b *change.Batch, use *relationUse, oldKind byte) error {
	if err := a.delete(b, use, oldKind); err != nil {
		return err
	}
	b.Events[len(b.Events)-1].Flags |= change.FlagMoved
	buf := b.Buffer()
	start := len(buf)
	buf, err := use.appendKey(buf, a.newRow)
	if err != nil {
		return err
	}
	keyEnd := len(buf)
	buf, partial, err := use.appendRow(buf, a.newRow, use.fill(a.oldRow, oldKind))
	if err != nil {
		return err
	}
	b.AddInPlace(buf, use.table.layout, change.OpInsert, change.FlagMoved|partialFlag(partial), start, keyEnd, keyEnd, len(buf))
	return nil
}

func partialFlag(partial bool) change.Flags {
	if partial {
		return change.FlagPartial
	}
	return 0
}

// keyChanged compares the keys as they will be in the log: the server also
// sends an old key when a part of it is stored out of line.
func (a *assembler) keyChanged(use *relationUse) (bool, error) {
	key, err := use.appendKey(a.key[:0], a.oldRow)
	if err != nil {
		return false, err
	}
	n := len(key)
	if key, err = use.appendKey(key, a.newRow); err != nil {
		return false, err
	}
	a.key = key
	return !bytes.Equal(key[:n], key[n:]), nil
}

func (a *assembler) truncate(m truncateMessage, r *wireReader) error {
	if err := r.end(); err != nil {
		return err
	}
	if a.skip || !a.inTx {
		return nil
	}
	for _, oid := range m.oids {
		use, err := a.use(oid)
		if err != nil {
			return err
		}
		if use.table == nil {
			continue
		}
		b, err := a.events()
		if err != nil {
			return err
		}
		b.Add(use.table.layout, change.OpTruncate, 0, nil, nil, nil)
	}
	return nil
}

// appendKey appends the key of a tuple.
func (u *relationUse) appendKey(dst []byte, row []field) ([]byte, error) {
	for _, i := range u.table.layout.Key {
		f := &row[u.columns[i]]
		if f.kind == 'u' {
			return nil, fmt.Errorf("%w: a row of table %s without a part of its key", errMessage, u.table)
		}
		var err error
		if dst, err = u.table.appendKeyPart(dst, i, f.text); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// keepKey fills unchanged columns of the key from the old key (V13).
func (u *relationUse) keepKey(row, old []field) {
	for _, i := range u.table.layout.Key {
		if at := u.columns[i]; row[at].kind == 'u' {
			row[at] = old[at]
		}
	}
}

// fill returns the tuple from which unchanged columns are filled: a whole old row.
func (u *relationUse) fill(old []field, oldKind byte) []field {
	if oldKind == 'O' {
		return old
	}
	return nil
}

// appendBefore appends the old row if it is whole.
func (u *relationUse) appendBefore(dst []byte, old []field, oldKind byte) ([]byte, error) {
	if oldKind != 'O' {
		return dst, nil
	}
	dst, _, err := u.appendRow(dst, old, nil)
	return dst, err
}

// appendRow appends a row; unchanged columns are taken from old where it is
// there and has them. partial tells that some are left.
func (u *relationUse) appendRow(dst []byte, row, old []field) (out []byte, partial bool, err error) {
	var w change.RowWriter
	w.Begin(dst, len(u.columns))
	for i, at := range u.columns {
		f := row[at]
		if f.kind == 'u' && old != nil {
			f = old[at]
		}
		switch f.kind {
		case 'n':
			w.Null()
		case 'u':
			w.Unchanged()
		default:
			if err := u.table.writeText(&w, i, f.text); err != nil {
				return nil, false, err
			}
		}
	}
	return w.End(), w.Partial(), nil
}
