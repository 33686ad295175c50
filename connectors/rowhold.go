package connectors

import (
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// rowHold keeps the rows of _tx from before the beginning of the oldest
// unfinished snapshot run: at a restart the transactions since then are read again
// with their ids, which only those rows have (Recent).
type rowHold struct {
	log    eventlog.Log
	source string
	open   map[string]bool // unfinished runs
	held   bool
}

func (h *rowHold) cursor() string { return "snapshots/" + h.source }

// load finds the unfinished runs; a cursor of an earlier process stays where it is.
func (h *rowHold) load() error {
	marks, err := (&LogHistory{Log: h.log, Source: h.source}).marks()
	if err != nil {
		return err
	}
	h.open = map[string]bool{}
	for _, m := range marks {
		h.note(m.mark)
	}
	_, h.held = h.log.Cursors()[h.cursor()]
	if len(h.open) > 0 && !h.held {
		return h.set(oldestUnfinished(marks) - 1)
	}
	return h.settle()
}

func (h *rowHold) note(m *change.SnapshotMark) {
	run := fmt.Sprintf("%s\x00%d", m.Topic, m.Run)
	switch m.State {
	case change.SnapshotBegun:
		h.open[run] = true
	case change.SnapshotDone, change.SnapshotStopped:
		delete(h.open, run)
	}
}

// add takes a record of a control topic that is about to be appended.
func (h *rowHold) add(c *change.Control) error {
	if c.Topic != change.TopicSnapshots+h.source || c.Value == nil || !change.IsSnapshotMark(c.Key) {
		return nil
	}
	m, err := change.DecodeSnapshotMark(c.Key, c.Value)
	if err != nil {
		return err
	}
	if m.State == change.SnapshotBegun && !h.held {
		if err := h.set(h.log.Frontier()); err != nil {
			return err
		}
	}
	h.note(m)
	return nil
}

// settle lets the rows go when no run is unfinished; what says so is appended.
func (h *rowHold) settle() error {
	if len(h.open) > 0 || !h.held {
		return nil
	}
	err := h.log.SetCursor(h.cursor(), nil)
	if errors.Is(err, eventlog.ErrFull) {
		return nil // later
	}
	h.held = err != nil
	return err
}

// set begins to hold. A full disk deletes no rows soon: the next mark tries again.
func (h *rowHold) set(passed eventlog.CSN) error {
	t, ok := h.log.Topic(eventlog.TopicTx)
	if !ok {
		return nil // a log without such rows
	}
	err := h.log.SetCursor(h.cursor(), &eventlog.Cursor{Topics: []eventlog.TopicID{t.ID}, Passed: passed})
	if errors.Is(err, eventlog.ErrFull) {
		return nil
	}
	h.held = err == nil
	return err
}
