package connectors

import (
	"context"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// TestRowHold: from the beginning of a snapshot run to its end, over a restart,
// the log is told to keep the rows of the transactions since.
func TestRowHold(t *testing.T) {
	log := logtest.Mem()
	tx, err := log.EnsureTopic(eventlog.TopicSpec{Name: eventlog.TopicTx, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.EnsureTopic(eventlog.TopicSpec{Name: change.TopicSnapshots + "s", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	mark := func(run uint64, state change.SnapshotState) *change.Control {
		m := change.SnapshotMark{Topic: "s.p.t", Run: run, State: state}
		return &change.Control{Topic: change.TopicSnapshots + "s", Key: m.Key(), Value: m.Append(nil)}
	}
	append := func(h *rowHold, c *change.Control) {
		t.Helper()
		if err := h.add(c); err != nil {
			t.Fatal(err)
		}
		topic, _ := log.Topic(c.Topic)
		r := eventlog.Record{Topic: topic.ID, Key: c.Key, Value: c.Value}
		if err := log.Append(context.Background(), []*eventlog.Tx{{Kind: eventlog.TxChunk, Source: "s", Records: []eventlog.Record{r}}}); err != nil {
			t.Fatal(err)
		}
		if err := h.settle(); err != nil {
			t.Fatal(err)
		}
	}
	held := func(want bool, passed eventlog.CSN) {
		t.Helper()
		c, ok := log.Cursors()["snapshots/s"]
		if ok != want || ok && (c.Passed != passed || len(c.Topics) != 1 || c.Topics[0] != tx.ID) {
			t.Fatalf("held %v: %+v, want %v at %d", ok, c, want, passed)
		}
	}
	h := &rowHold{log: log, source: "s"}
	if err := h.load(); err != nil {
		t.Fatal(err)
	}
	held(false, 0)
	before := log.Frontier()
	append(h, mark(1, change.SnapshotBegun))
	append(h, mark(1, change.SnapshotProgress))
	held(true, before)
	append(h, mark(2, change.SnapshotBegun))
	append(h, mark(1, change.SnapshotDone))
	held(true, before) // the other run is not done
	h = &rowHold{log: log, source: "s"}
	if err := h.load(); err != nil {
		t.Fatal(err)
	}
	held(true, before)
	append(h, mark(2, change.SnapshotStopped))
	held(false, 0)
	// A log of before: the run is unfinished and nobody said so.
	append(h, mark(3, change.SnapshotBegun))
	if err := log.SetCursor("snapshots/s", nil); err != nil {
		t.Fatal(err)
	}
	begun := log.Frontier()
	h = &rowHold{log: log, source: "s"}
	if err := h.load(); err != nil {
		t.Fatal(err)
	}
	held(true, begun-1)
}
