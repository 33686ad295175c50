package snapshot

import (
	"fmt"

	"github.com/tailwater/tailwater/change"
)

// Restore takes the marks of the log, in its order, into a new Machine: runs
// that did not end go on from their last chunk. Call it first, then Recall for
// each transaction since the oldest of them began, then Request. end is the end
// of the source's log now (see Start.After).
func (m *Machine) Restore(marks []*change.SnapshotMark, end Place) error {
	for _, mark := range marks {
		c, err := decodeCursor(mark.Cursor)
		if err != nil {
			return fmt.Errorf("run %d of %s: %w", mark.Run, mark.Topic, err)
		}
		m.restore(m.table(mark.Topic), mark, c)
	}
	m.sortOrder(marks, end)
	return nil
}

func (m *Machine) restore(t *table, mark *change.SnapshotMark, c cursor) {
	if mark.Run < t.last {
		return // another run took its place
	}
	switch mark.State {
	case change.SnapshotBegun:
		t.last = mark.Run
		t.due = t.due && mark.Where != ""
		t.run = &tableRun{mark: *mark, inner: c.inner, owed: map[string]struct{}{}, sweep: c.sweep, reading: true}
		for _, tx := range c.pending {
			m.recent[tx] = struct{}{}
		}
	case change.SnapshotProgress:
		if t.run == nil {
			t.base.Cursor = mark.Cursor // written after the run's end: a truncate exchanged the storage
			return
		}
		t.run.mark, t.run.inner, t.run.complete = *mark, c.inner, c.complete
	case change.SnapshotDone:
		t.last, t.run, t.base, t.due = mark.Run, nil, *mark, t.due && mark.Where != ""
	case change.SnapshotStopped:
		if t.last, t.run, t.due = mark.Run, nil, t.due || mark.Floor; t.base.Run == mark.Run {
			t.base = change.SnapshotMark{} // captured no more after it was finished
		}
	}
}

// sortOrder puts the unfinished runs into the order in which they began.
func (m *Machine) sortOrder(marks []*change.SnapshotMark, end Place) {
	m.order = m.order[:0]
	for _, mark := range marks {
		if t := m.table(mark.Topic); mark.State == change.SnapshotBegun && t.run != nil && t.run.mark.Run == mark.Run {
			t.run.after = end
			m.order = append(m.order, mark.Topic)
		}
	}
}

// Recall tells of a transaction, "" for a chunk, that the log holds.
func (m *Machine) Recall(tx string) {
	if tx != "" {
		m.recent[tx] = struct{}{}
	}
}

// RecallEvent tells of one of its rows, in log order.
func (m *Machine) RecallEvent(tx, topic string, op change.Op, flags change.Flags, key change.Key) {
	t := m.table(topic)
	switch {
	case op == change.OpTruncate:
		if t.run != nil {
			clear(t.run.owed)
		}
		if len(m.order) > 0 && m.order[0] == topic { // else it may precede the run
			t.truncates = append(t.truncates, tx)
		}
	case t.run == nil || key == nil:
	case op == change.OpDelete || flags&change.FlagPartial == 0:
		delete(t.run.owed, string(key))
	case op != change.OpInsert && t.run.mark.Where == "": // an insert has a request
		t.run.owed[string(key)] = struct{}{}
	}
}

// Request tells of an open re-read request of the log.
func (m *Machine) Request(topic string, key change.Key) {
	m.table(topic).requests[string(key)] = struct{}{}
}

// Status is what a table's snapshot has come to.
type Status struct {
	Topic   string
	Run     uint64 // of the newest run; 0: there was none
	Running bool
	// Read: a chunk of the running run was appended.
	Read     bool
	Complete bool // only re-reads and the end are missing
	// Due: the newest run was given up although views need it, or the table was
	// captured no more since its last.
	Due     bool
	GivenUp bool // its newest run
	Paused  bool
	Owed    int // keys to read again, requests included
	Mark    change.SnapshotMark
	Cursor  []byte // the connector's state: of the running run, else of the last finished one
}

// Table returns the status of a table.
func (m *Machine) Table(topic string) Status {
	s := Status{Topic: topic}
	t := m.tables[topic]
	if t == nil {
		return s
	}
	s.Run, s.Owed, s.Paused = t.last, len(t.requests), t.paused
	s.Due = t.run == nil && t.last > 0 && (t.due || t.base.Run == 0)
	s.GivenUp = t.run == nil && t.last > t.base.Run
	if t.run == nil {
		s.Mark = t.base
		if c, err := decodeCursor(t.base.Cursor); err == nil {
			s.Cursor = c.inner
		}
		return s
	}
	s.Running, s.Complete, s.Mark, s.Cursor = true, t.run.complete, t.run.mark, t.run.inner
	s.Read = t.run.mark.State == change.SnapshotProgress
	s.Owed += len(t.run.owed)
	return s
}

// Tables returns the topics that the Machine knows of.
func (m *Machine) Tables() []string {
	list := make([]string, 0, len(m.tables))
	for topic := range m.tables {
		list = append(list, topic)
	}
	return list
}
