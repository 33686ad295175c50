package connectors

import (
	"errors"
	"fmt"
	"sync"

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

	ending map[string]uint64 // runs by topic whose end is about to be appended
	mu     sync.Mutex
	ended  map[string]uint64 // newest run by topic whose end the log has
}

// append notes that what add took is in the log.
func (h *rowHold) append() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = map[string]uint64{}
	}
	for topic, run := range h.ending {
		h.ended[topic] = max(h.ended[topic], run)
	}
	clear(h.ending)
}

// endedRun returns the newest run of a topic whose end the log has; 0: none.
func (h *rowHold) endedRun(topic string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended[topic]
}

func (h *rowHold) cursor() string { return "snapshots/" + h.source }

// load finds the unfinished runs; a cursor of an earlier process stays where it is.
func (h *rowHold) load() error {
	marks, err := (&LogHistory{Log: h.log, Source: h.source}).marks()
	if err != nil {
		return err
	}
	h.open, h.ending = map[string]bool{}, map[string]uint64{}
	for _, m := range marks {
		h.note(m.mark)
	}
	h.append()
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
		h.ending[m.Topic] = max(h.ending[m.Topic], m.Run)
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
