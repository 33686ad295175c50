package logtest

import (
	"context"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
)

// Backend is a kind of log under test.
type Backend struct {
	// Open makes an empty log. The suite closes what it opens.
	Open func(t *testing.T) eventlog.Log
	// Reopen closes a log and opens it again, as a restart does.
	Reopen func(t *testing.T, l eventlog.Log) eventlog.Log
	// Settle moves all that it can out of the live part (seals it); may be nil.
	Settle func(t *testing.T, l eventlog.Log)
	// Crash opens a log again after a power loss in which all that was not durable
	// is gone; may be nil.
	Crash func(t *testing.T, l eventlog.Log) eventlog.Log
	// Compact compacts a topic until nothing of it may go any more; may be nil. Such
	// a backend merges with MergeColumns.
	Compact func(t *testing.T, l eventlog.Log, topic eventlog.Topic)
}

// Run checks the contract of eventlog.Log on a backend.
func Run(t *testing.T, b Backend) {
	for _, tt := range []struct {
		name string
		test func(h *harness)
	}{
		{"Topics", testTopics},
		{"Append fills in", testAppendFills},
		{"Append refuses", testAppendRefuses},
		{"Records survive as they were", testRoundTrip},
		{"Every partition", testEveryPartition},
		{"Read by topic and CSN", testReadSpec},
		{"Read from offsets", testReadFrom},
		{"Outputs", testOutputs},
		{"Order of a key", testKeyOrder},
		{"Source states", testSources},
		{"Checkpoints", testCheckpoints},
		{"Newest by key", testNewest},
		{"Seek and read backward", testSeek},
		{"Read backward while it changes", testBackwardWhileChanging},
		{"Find transactions", testTxFinder},
		{"Skip", testSkip},
		{"Changed", testChanged},
		{"Slow reader", testSlowReader},
		{"Fan-out", testFanOut},
		{"Replay", testReplay},
		{"Whole transactions under concurrency", testConcurrent},
		{"Cancelled append", testCancelled},
		{"Streams in order", testStreamOrder},
		{"Streams that abort", testStreamAborts},
		{"Streams discarded", testStreamDiscard},
		{"Read from inside a stream", testStreamFrom},
		{"Stream in pieces", testStreamPieces},
		{"Closed", testClosed},
		{"Empty", testEmpty},
		{"Unknown", testUnknown},
		{"Start anywhere", testLookup},
		{"Start at the end", testEnds},
		{"Sizes", testSizes},
		{"Times go back", testOrderOfTimes},
		{"Order by seq", testSeqOrder},
		{"Many topics", testManyTopics},
		{"No key", testNoKey},
		{"Nothing to set aside", testSetAside},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(newHarness(t, b, false)) })
		if b.Settle != nil {
			t.Run(tt.name+", settled", func(t *testing.T) { tt.test(newHarness(t, b, true)) })
		}
	}
	if b.Compact == nil {
		return
	}
	for _, tt := range []struct {
		name string
		test func(h *harness)
	}{
		{"Compaction keeps the newest", testCompactNewest},
		{"Compaction and tombstones", testCompactTombstones},
		{"Compaction and cursors on values", testCompactValues},
		{"Compaction merges", testCompactPartial},
		{"Compaction and truncate", testCompactTruncate},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(newHarness(t, b, false)) })
	}
}

// harness is one test's log.
type harness struct {
	*testing.T
	b      Backend
	log    eventlog.Log
	settle bool
}

func newHarness(t *testing.T, b Backend, settle bool) *harness {
	h := &harness{T: t, b: b, log: b.Open(t), settle: settle}
	t.Cleanup(func() {
		if err := h.log.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return h
}

// checkpointed runs check now, after settling, after a restart, and after both.
func (h *harness) checkpointed(check func()) {
	h.Helper()
	check()
	if h.settle {
		h.b.Settle(h.T, h.log)
		check()
	}
	h.reopen()
	check()
	if h.settle {
		h.b.Settle(h.T, h.log)
		check()
	}
}

func (h *harness) reopen() {
	h.Helper()
	h.log = h.b.Reopen(h.T, h.log)
}

func (h *harness) topic(name string, partitions int) eventlog.Topic {
	h.Helper()
	t, err := h.log.EnsureTopic(eventlog.TopicSpec{Name: name, Partitions: partitions, Cleanup: eventlog.CleanupCompact})
	if err != nil {
		h.Fatalf("EnsureTopic(%q) = %v", name, err)
	}
	return t
}

// append appends one transaction of a source with these records.
func (h *harness) append(source, position string, records ...eventlog.Record) *eventlog.Tx {
	h.Helper()
	tx := &eventlog.Tx{
		Kind: eventlog.TxSource, Source: source, Position: []byte(position), ID: "x" + position,
		CommitTime: 1_700_000_000_123_456, Records: records,
	}
	h.appendTx(tx)
	return tx
}

func (h *harness) appendTx(txs ...*eventlog.Tx) {
	h.Helper()
	if err := h.log.Append(context.Background(), txs); err != nil {
		h.Fatalf("Append = %v", err)
	}
}

func rec(t eventlog.Topic, seq uint32, key, value string) eventlog.Record {
	r := eventlog.Record{Topic: t.ID, Seq: seq, Op: 1, Key: []byte(key), Value: []byte(value)}
	if value == "" {
		r.Value, r.Op = nil, 3
	}
	return r
}

// read returns all transactions that a reader shows, copied.
func (h *harness) read(spec eventlog.ReadSpec) []eventlog.Tx {
	h.Helper()
	r, err := h.log.Read(spec)
	if err != nil {
		h.Fatalf("Read(%+v) = %v", spec, err)
	}
	defer r.Close()
	return h.drain(r)
}

// drain returns what is left of a reader.
func (h *harness) drain(r eventlog.Reader) []eventlog.Tx {
	h.Helper()
	var out []eventlog.Tx
	for {
		tx, err := r.Next()
		if err != nil {
			h.Fatalf("Next = %v", err)
		}
		if tx == nil {
			return out
		}
		out = append(out, cloneTx(tx))
	}
}

// partition returns the records of a partition from an offset on, copied.
func (h *harness) partition(t eventlog.Topic, p int32, from eventlog.Offset) []eventlog.Record {
	h.Helper()
	r, err := h.log.ReadPartition(t.ID, p, from)
	if err != nil {
		h.Fatalf("ReadPartition(%d, %d, %d) = %v", t.ID, p, from, err)
	}
	defer r.Close()
	var out []eventlog.Record
	for {
		rec, ok, err := r.Next()
		if err != nil {
			h.Fatalf("partition Next = %v", err)
		}
		if !ok {
			return out
		}
		out = append(out, cloneRecord(rec))
	}
}
