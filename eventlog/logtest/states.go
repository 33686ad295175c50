package logtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/tailwater/tailwater/eventlog"
)

func testSources(h *harness) {
	t := h.topic("a.p.t", 1)
	if _, ok := h.log.SourceState("a"); ok {
		h.Error("a source that never appended has a state")
	}
	h.append("a", "1", rec(t, 0, "k", "1"))
	second := h.append("b", "9", rec(t, 0, "k", "2"))
	h.appendTx(&eventlog.Tx{Kind: eventlog.TxChunk, Source: "a", CommitTime: 5, Records: []eventlog.Record{rec(t, 0, "c", "chunk")}})
	tick := &eventlog.Tx{Kind: eventlog.TxTick, Source: "a", Position: []byte("2"), CommitTime: 77}
	h.appendTx(tick)
	h.checkpointed(func() {
		h.Helper()
		if s, ok := h.log.SourceState("a"); !ok || string(s.Position) != "2" || s.CSN != tick.CSN || s.CommitTime != 77 {
			h.Errorf("state of a is %+v, %v", s, ok)
		}
		if s, ok := h.log.SourceState("b"); !ok || string(s.Position) != "9" || s.CSN != second.CSN {
			h.Errorf("state of b is %+v, %v", s, ok)
		}
		if h.log.Frontier() != tick.CSN {
			h.Errorf("frontier %d, want %d", h.log.Frontier(), tick.CSN)
		}
	})
	next := h.append("a", "3", rec(t, 0, "k", "3"))
	if next.CSN <= tick.CSN {
		h.Errorf("CSN %d behind %d after a restart", next.CSN, tick.CSN)
	}
}

func testCheckpoints(h *harness) {
	save := func(c string, v []byte) {
		h.Helper()
		if err := h.log.SaveCheckpoint(c, v); err != nil {
			h.Fatalf("SaveCheckpoint = %v", err)
		}
	}
	save("gone", []byte("x"))
	save("sink", []byte("1"))
	save("empty", []byte{})
	save("sink", []byte("2"))
	save("gone", nil)
	h.checkpointed(func() {
		h.Helper()
		c, err := h.log.Checkpoint("sink")
		if err != nil || string(c) != "2" {
			h.Errorf("Checkpoint = %q, %v", c, err)
		}
		if c, err := h.log.Checkpoint("gone"); err != nil || c != nil {
			h.Errorf("removed Checkpoint = %q, %v", c, err)
		}
		if c, err := h.log.Checkpoint("empty"); err != nil || c == nil || len(c) != 0 {
			h.Errorf("empty Checkpoint = %q, %v", c, err)
		}
		if all, err := h.log.Checkpoints(); err != nil || len(all) != 2 {
			h.Errorf("Checkpoints = %v, %v", all, err)
		}
	})
}

func testSkip(h *harness) {
	t := h.topic("s.p.t", 1)
	h.append("s", "1", rec(t, 0, "k", "1"))
	target := h.log.Frontier() + eventlog.ForeignSkip
	if err := h.log.Skip(context.Background(), target); err != nil {
		h.Fatalf("Skip = %v", err)
	}
	h.checkpointed(func() {
		h.Helper()
		if f := h.log.Frontier(); f < target {
			h.Errorf("frontier %d after Skip to %d", f, target)
		}
	})
	if tx := h.append("s", "2", rec(t, 0, "k", "2")); tx.CSN <= target {
		h.Errorf("CSN %d after Skip to %d", tx.CSN, target)
	}
}

func testChanged(h *harness) {
	t := h.topic("s.p.t", 1)
	ch := h.log.Changed()
	select {
	case <-ch:
		h.Error("Changed before an append")
	default:
	}
	h.append("s", "1", rec(t, 0, "k", "1"))
	<-ch
	ch = h.log.Changed()
	h.appendTx(&eventlog.Tx{Kind: eventlog.TxOutput, CSN: h.log.Frontier()})
	<-ch
}

func testSlowReader(h *harness) {
	t := h.topic("s.p.t", 2)
	h.append("s", "0", rec(t, 0, "k", "0"))
	r, err := h.log.Read(eventlog.ReadSpec{})
	if err != nil {
		h.Fatalf("Read = %v", err)
	}
	pr, err := h.log.ReadPartition(t.ID, eventlog.PartitionOf([]byte("k"), 2), 0)
	if err != nil {
		h.Fatalf("ReadPartition = %v", err)
	}
	defer func() { r.Close(); pr.Close() }()
	next := func(i int) {
		h.Helper()
		tx, err := r.Next()
		if err != nil || tx == nil || string(tx.Records[0].Value) != fmt.Sprint(i) {
			h.Fatalf("Next = %+v, %v; want %d", tx, err, i)
		}
		if rec, ok, err := pr.Next(); err != nil || !ok || string(rec.Value) != fmt.Sprint(i) {
			h.Fatalf("partition Next = %+v, %v, %v; want %d", rec, ok, err, i)
		}
	}
	next(0)
	if tx, err := r.Next(); tx != nil || err != nil {
		h.Fatalf("Next at the end = %+v, %v", tx, err)
	}
	for i := 1; i <= 60; i++ { // the reader falls behind, things are sealed under it, it goes on
		h.append("s", fmt.Sprint(i), rec(t, 0, "k", fmt.Sprint(i)))
		if i%3 == 0 {
			next(i / 3)
		}
		if h.settle && i%10 == 0 {
			h.b.Settle(h.T, h.log)
		}
	}
	for i := 21; i <= 60; i++ {
		next(i)
	}
	if tx, err := r.Next(); tx != nil || err != nil {
		h.Fatalf("Next at the end = %+v, %v", tx, err)
	}
}

func testConcurrent(h *harness) {
	t := h.topic("s.p.t", 4)
	const writers, each = 4, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: fmt.Sprint("s", w), Position: fmt.Append(nil, i)}
				for k := range uint32(5) {
					tx.Records = append(tx.Records, rec(t, k, fmt.Sprint(w, "-", k), fmt.Sprint(i)))
				}
				if err := h.log.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
					h.Errorf("Append = %v", err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	h.follow(writers*each, done)
	if h.settle {
		h.b.Settle(h.T, h.log)
	}
	h.reopen()
	if got := h.read(eventlog.ReadSpec{}); len(got) != writers*each {
		h.Errorf("%d transactions after a restart, want %d", len(got), writers*each)
	}
}

// follow reads n transactions while they are appended, checking that each is whole and in order.
func (h *harness) follow(n int, done <-chan struct{}) {
	h.Helper()
	defer func() { <-done }()
	r, err := h.log.Read(eventlog.ReadSpec{})
	if err != nil {
		h.Errorf("Read = %v", err)
		return
	}
	defer r.Close()
	next := map[string]int{}
	var last eventlog.CSN
	for n > 0 {
		changed := h.log.Changed()
		tx, err := r.Next()
		if err != nil {
			h.Errorf("Next = %v", err)
			return
		}
		if tx == nil {
			<-changed
			continue
		}
		n--
		if tx.CSN <= last || tx.CSN > h.log.Frontier() || len(tx.Records) != 5 || string(tx.Position) != fmt.Sprint(next[tx.Source]) {
			h.Errorf("transaction %s of %s with CSN %d behind %d, frontier %d, has %d records",
				tx.Position, tx.Source, tx.CSN, last, h.log.Frontier(), len(tx.Records))
			return
		}
		last = tx.CSN
		next[tx.Source]++
	}
}

func testCancelled(h *harness) {
	t := h.topic("s.p.t", 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := h.log.Append(ctx, []*eventlog.Tx{{Records: []eventlog.Record{rec(t, 0, "k", "1")}}})
	if err == nil {
		h.Error("Append with a context that has ended = nil")
	}
	h.append("s", "1", rec(t, 0, "k", "2"))
	h.checkpointed(func() {
		h.Helper()
		h.want("read", values(h.read(eventlog.ReadSpec{})), []string{"2 "})
	})
}
