package seglog

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tailwater/tailwater/eventlog"
)

// reader reads whole transactions by ordinal: from segments as far as those
// reach, then from the journal. Where it is depends on the ordinal alone, so
// that sealing under it neither hides a transaction nor shows one twice.
type reader struct {
	l       *Log
	spec    eventlog.ReadSpec
	wanted  map[eventlog.TopicID]bool // nil: all
	ordinal uint64                    // of the next transaction

	rowless *rowlessReader // nil once it is done, or was not needed
	journal journalCursor
	group   groupReader
	sealed  *sealedReader
	rest    pieces // of the transaction at hand; nil: it came whole
	tx      eventlog.Tx
	records []eventlog.Record
	held    []byte        // bytes of records that were copied
	pinned  atomic.Uint64 // rows of _tx from here on must stay
	closed  bool
}

// Read starts a reader.
func (l *Log) Read(spec eventlog.ReadSpec) (eventlog.Reader, error) {
	r := &reader{l: l, spec: spec, journal: journalCursor{l: l}}
	if spec.Topics != nil {
		r.wanted = map[eventlog.TopicID]bool{}
	}
	for _, t := range spec.Topics {
		if _, ok := l.topicByID(t); !ok {
			return nil, fmt.Errorf("read topic %d: %w", t, eventlog.ErrUnknownTopic)
		}
		r.wanted[t] = true
	}
	if err := l.checkFrom(r); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.readers[r] = struct{}{} // pins all rows until it knows where it starts
	l.mu.Unlock()
	err := r.start()
	if err == nil {
		err = r.startAtTime()
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start reader after CSN %d: %w", spec.After, err)
	}
	return r, nil
}

// Next returns the next transaction, nil at the frontier.
func (r *reader) Next() (*eventlog.Tx, error) {
	for {
		if r.closed {
			return nil, eventlog.ErrClosed
		}
		more, err := r.step()
		if err != nil || !more {
			return nil, err
		}
		if r.show() {
			return &r.tx, nil
		}
	}
}

// step reads the next transaction into r.tx and r.records; false at the frontier.
func (r *reader) step() (bool, error) {
	if r.rest != nil {
		return r.nextPiece()
	}
	if r.rowless != nil {
		if ok, err := r.rowless.next(r); ok || err != nil {
			return ok, err
		}
		r.rowless.close()
		r.rowless = nil
	}
	for !r.group.more() {
		ok, err := r.fill()
		if errors.Is(err, errSealed) {
			if ok, err = r.stepSealed(); err == nil && !ok {
				continue // over a gap to where the journal begins
			}
			return ok, err
		}
		if err != nil || !ok {
			return false, err
		}
	}
	if a := r.group.g.stream; a != nil {
		return r.stepStream(a)
	}
	err := r.group.next(r)
	if err == nil {
		r.ordinal++
	}
	return true, err
}

// fill takes the next group of the journal and goes to r.ordinal in it; false at the frontier.
func (r *reader) fill() (bool, error) {
	r.journal.ordinal, r.group.g = r.ordinal, nil // the cursor uses its memory again
	r.pinned.Store(r.ordinal)
	g, err := r.journal.next()
	if err != nil || g == nil {
		return false, err
	}
	r.closeSealed()
	r.ordinal = r.journal.ordinal
	r.group.reset(g)
	for g.first+uint64(r.group.row) < r.ordinal {
		if err := r.group.next(nil); err != nil {
			return false, err
		}
	}
	return true, nil
}

// firstRow returns the ordinal behind the rows of _tx that this process deleted.
// The caller holds the lock.
func (l *Log) firstRow() uint64 { return uint64(l.deleted[partKey{txTopic, 0}]) }

// stepSealed reads the next sealed transaction before the journal; where there
// is none it goes to the journal's beginning and returns false.
func (r *reader) stepSealed() (bool, error) {
	r.l.mu.RLock()
	begin, first := r.l.files[0].ordinal, r.l.firstRow() // all before begin is in segments
	r.l.mu.RUnlock()
	if r.ordinal < first {
		return false, fmt.Errorf("transactions up to CSN %d: %w; start again behind the last one read", r.tx.CSN, eventlog.ErrOutOfRange)
	}
	r.pinned.Store(r.ordinal)
	if r.sealed == nil {
		r.sealed = newSealedReader(r.l, r.ordinal)
	}
	ok, err := r.sealed.next(r, begin)
	if err == nil && !ok {
		r.ordinal = max(r.ordinal, begin)
	}
	return ok, err
}

// shows reports whether a record of a topic may be shown at all.
func (r *reader) shows(topic eventlog.TopicID) bool { return r.wanted == nil || r.wanted[topic] }

// skips reports that a record is one of those before the reader's start.
func (r *reader) skips(rec *eventlog.Record) bool {
	if from, ok := r.spec.From[rec.Topic]; ok {
		return int(rec.Partition) < len(from) && rec.Offset < from[rec.Partition]
	}
	return rec.CSN <= r.spec.After
}

// show completes r.tx and tells whether the caller sees it.
func (r *reader) show() bool {
	if r.tx.Kind == eventlog.TxOutput && !r.spec.Outputs || r.spec.FromTime != 0 && r.tx.CommitTime < r.spec.FromTime {
		return false
	}
	if len(r.records) == 0 && (r.wanted != nil || r.tx.CSN <= r.spec.After) {
		return false
	}
	sortBySeq(r.records)
	r.tx.Records = r.records
	return true
}

func (r *reader) closeSealed() {
	if r.sealed != nil {
		r.sealed.close()
		r.sealed = nil
	}
}

// Close ends the reader.
func (r *reader) Close() error {
	r.closed = true
	r.endPieces()
	r.journal.close()
	r.closeSealed()
	if r.rowless != nil {
		r.rowless.close()
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	delete(r.l.readers, r)
	return nil
}

// groupReader walks over the transactions of a group.
type groupReader struct {
	g     *group
	row   int // of the next transaction
	iters []batchIter
}

type batchIter struct {
	it      eventlog.RecordIter
	started bool
}

func (gr *groupReader) reset(g *group) {
	gr.g, gr.row = g, 0
	gr.iters = slices.Grow(gr.iters[:0], len(g.batches))[:len(g.batches)]
	for i := range gr.iters {
		gr.iters[i].started = false
	}
}

func (gr *groupReader) more() bool { return gr.g != nil && gr.row < len(gr.g.rows) }

// next reads the next transaction into r; with a nil r it is passed over.
func (gr *groupReader) next(r *reader) error {
	row, runs := &gr.g.rows[gr.row], gr.g.runsOf(gr.row)
	gr.row++
	if r != nil {
		r.tx, r.records = row.tx, r.records[:0]
	}
	for _, run := range runs {
		ref := gr.g.batches[run.batch]
		if r == nil || r.shows(ref.topic) {
			if err := gr.take(r, run, ref); err != nil {
				return fmt.Errorf("transaction with CSN %d: %w", row.tx.CSN, err)
			}
		}
	}
	return nil
}

// take reads a run's records.
func (gr *groupReader) take(r *reader, run run, ref batchRef) error {
	bi := &gr.iters[run.batch]
	if !bi.started {
		b, err := eventlog.DecodeBatchHeader(ref.data)
		if err != nil {
			return err
		}
		if err := bi.it.Reset(b); err != nil {
			return err
		}
		bi.started = true
	}
	for range run.count {
		rec := eventlog.Record{Topic: ref.topic, Partition: ref.partition}
		ok, err := bi.it.Next(&rec)
		if err != nil {
			return err
		}
		if !ok {
			return &eventlog.BatchError{Reason: "fewer records than its transactions have"}
		}
		if r == nil || bi.it.Every && ref.partition != 0 || r.skips(&rec) {
			continue
		}
		r.records = append(r.records, rec)
	}
	return nil
}
