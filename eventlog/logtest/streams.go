package logtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

func (h *harness) stream() eventlog.Stream {
	h.Helper()
	s, err := h.log.Stream(context.Background())
	if err != nil {
		h.Fatalf("Stream = %v", err)
	}
	return s
}

func (h *harness) add(s eventlog.Stream, sub uint32, records ...eventlog.Record) {
	h.Helper()
	if err := s.Add(sub, records); err != nil {
		h.Fatalf("Add = %v", err)
	}
}

func (h *harness) commit(s eventlog.Stream, source, position string) *eventlog.Tx {
	h.Helper()
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: source, Position: []byte(position), ID: "x" + position, CommitTime: 1_700_000_000_123_456}
	if err := s.Commit(context.Background(), tx); err != nil {
		h.Fatalf("Commit = %v", err)
	}
	return tx
}

// testStreamOrder: a streamed transaction takes its place at its commit, whenever it began.
func testStreamOrder(h *harness) {
	t := h.topic("s.p.t", 3)
	a, b := h.stream(), h.stream()
	h.add(a, 0, rec(t, 0, "k", "a0"), rec(t, 5, "l", "a1"))
	h.append("s", "1", rec(t, 0, "k", "one"))
	h.add(b, 0, rec(t, 0, "k", "b0"))
	h.add(a, 0, rec(t, 6, "k", "a2"))
	if got := values(h.read(eventlog.ReadSpec{})); len(got) != 1 {
		h.Errorf("before the commit %q is seen", got)
	}
	if n, bytes := a.Size(); n != 3 || bytes < 9 {
		h.Errorf("Size = %d, %d", n, bytes)
	}
	changed, frontier := h.log.Changed(), h.log.Frontier()
	second := h.commit(b, "s", "2")
	<-changed
	if second.CSN <= frontier || h.log.Frontier() != second.CSN || second.IngestTime == 0 || second.Records != nil {
		h.Errorf("committed %+v, frontier %d behind %d", second, h.log.Frontier(), frontier)
	}
	h.append("s", "3", rec(t, 0, "k", "three"))
	if st, _ := h.log.SourceState("s"); string(st.Position) != "3" {
		h.Errorf("position %q before the commit", st.Position)
	}
	fourth := h.commit(a, "s", "4")
	h.append("s", "5", rec(t, 0, "k", "five"))
	h.checkpointed(func() {
		h.Helper()
		got := h.read(eventlog.ReadSpec{})
		h.want("all", values(got), []string{"one ", "b0 ", "three ", "a0 a1 a2 ", "five "})
		for i := 1; i < len(got); i++ {
			if got[i].CSN <= got[i-1].CSN {
				h.Errorf("CSN %d behind %d", got[i].CSN, got[i-1].CSN)
			}
		}
		want := *fourth
		for _, r := range []eventlog.Record{rec(t, 0, "k", "a0"), rec(t, 5, "l", "a1"), rec(t, 6, "k", "a2")} {
			r.CSN, r.Time, r.Partition = fourth.CSN, fourth.CommitTime, eventlog.PartitionOf(r.Key, 3)
			r.Offset = got[3].Records[len(want.Records)].Offset
			want.Records = append(want.Records, r)
		}
		h.sameTx(&got[3], &want)
		h.want("after the second", values(h.read(eventlog.ReadSpec{After: second.CSN})), []string{"three ", "a0 a1 a2 ", "five "})
		var order []string
		for _, r := range h.partition(t, eventlog.PartitionOf([]byte("k"), 3), 0) {
			if string(r.Key) == "k" {
				order = append(order, string(r.Value))
			}
		}
		h.want("key k in its partition", order, []string{"one", "b0", "three", "a0", "a2", "five"})
		if st, _ := h.log.SourceState("s"); string(st.Position) != "5" {
			h.Errorf("position %q", st.Position)
		}
	})
}

// testStreamAborts: what a sub-transaction added is not shown once it was taken back.
func testStreamAborts(h *harness) {
	t := h.topic("s.p.t", 2)
	h.append("s", "1", rec(t, 0, "k", "one"))
	s := h.stream()
	abort := func(sub uint32) {
		if err := s.Abort(sub); err != nil {
			h.Fatalf("Abort = %v", err)
		}
	}
	h.add(s, 7, rec(t, 0, "k", "top0"))
	h.add(s, 1<<32-1, rec(t, 1, "k", "gone1"), rec(t, 2, "only", "gone2"))
	h.add(s, 7, rec(t, 3, "k", "top3"))
	h.add(s, 9, rec(t, 4, "k", "kept4"))
	h.add(s, 1<<32-1, rec(t, 5, "k", "gone5"))
	abort(1<<32 - 1)
	abort(4711) // added nothing
	h.add(s, 1<<32-1, rec(t, 6, "k", "gone6"))
	h.add(s, 7, rec(t, 7, "k", "top7"))
	tx := h.commit(s, "s", "2")
	all := h.stream()
	h.add(all, 1, rec(t, 0, "k", "never"))
	if err := all.Abort(1); err != nil {
		h.Fatalf("Abort = %v", err)
	}
	h.commit(all, "s", "3")
	h.commit(h.stream(), "s", "4")
	h.append("s", "5", rec(t, 0, "k", "five"))
	h.checkpointed(func() {
		h.Helper()
		h.want("all", values(h.read(eventlog.ReadSpec{})), []string{"one ", "top0 top3 kept4 top7 ", "", "", "five "})
		h.want("in pieces", h.pieces(eventlog.ReadSpec{Pieces: true, Topics: []eventlog.TopicID{t.ID}}),
			[]string{"one ", "top0 top3 kept4 top7 ", "five "})
		var order []string
		last := eventlog.Offset(-1)
		for _, r := range h.partition(t, eventlog.PartitionOf([]byte("k"), 2), 0) {
			if order = append(order, string(r.Value)); r.Offset <= last {
				h.Errorf("offset %d behind %d", r.Offset, last)
			}
			last = r.Offset
		}
		h.want("partition", order, []string{"one", "top0", "top3", "kept4", "top7", "five"})
		if end := h.log.EndOffsets(t.ID)[eventlog.PartitionOf([]byte("k"), 2)]; end != last+1 {
			h.Errorf("partition ends at %d behind offset %d", end, last)
		}
		err := h.log.NewestByKey(t.ID, func(key []byte, csn eventlog.CSN, tombstone bool) error {
			if string(key) != "k" || csn <= tx.CSN {
				h.Errorf("newest of %s is of CSN %d", key, csn)
			}
			return nil
		})
		if err != nil {
			h.Errorf("NewestByKey = %v", err)
		}
	})
}

// pieces returns what a read shows, a transaction's pieces joined, and checks that they fit.
func (h *harness) pieces(spec eventlog.ReadSpec) []string {
	h.Helper()
	out := []string{}
	var before eventlog.Tx
	for _, tx := range h.read(spec) {
		s := values([]eventlog.Tx{tx})[0]
		if before.More {
			n, m := len(before.Records), len(tx.Records)
			if tx.CSN != before.CSN || tx.ID != before.ID || m == 0 || n == 0 || before.Records[n-1].Seq >= tx.Records[0].Seq {
				h.Errorf("piece of %d records of %q behind one of %d of %q", m, tx.ID, n, before.ID)
			}
			s = out[len(out)-1] + s
			out = out[:len(out)-1]
		}
		before = tx
		out = append(out, s)
	}
	if before.More {
		h.Errorf("the last piece of %q does not come", before.ID)
	}
	return out
}

// testStreamDiscard: what was not committed leaves no trace, not over a restart either.
func testStreamDiscard(h *harness) {
	t := h.topic("s.p.t", 2)
	h.append("s", "1", rec(t, 0, "k", "one"))
	s, left := h.stream(), h.stream()
	h.add(s, 0, rec(t, 0, "k", "never"))
	h.add(left, 0, rec(t, 0, "k", strings.Repeat("never", 500_000)), rec(t, 1, "k", "never"))
	for name, tx := range map[string]*eventlog.Tx{
		"records":               {Kind: eventlog.TxSource, Records: []eventlog.Record{rec(t, 9, "k", "x")}},
		"a tick":                {Kind: eventlog.TxTick},
		"outputs of the future": {Kind: eventlog.TxOutput, CSN: h.log.Frontier() + 1},
	} {
		if err := s.Commit(context.Background(), tx); err == nil {
			h.Errorf("Commit as %s = nil", name)
		}
	}
	for name, r := range map[string]eventlog.Record{"seq that does not increase": rec(t, 0, "k", "x"), "unknown topic": {Topic: 4711, Seq: 9}} {
		if err := s.Add(0, []eventlog.Record{r}); err == nil {
			h.Errorf("Add of %s = nil", name)
		}
	}
	for range 2 {
		if err := s.Discard(); err != nil {
			h.Errorf("Discard = %v", err)
		}
	}
	if err := s.Add(0, []eventlog.Record{rec(t, 1, "k", "x")}); !errors.Is(err, eventlog.ErrStreamEnded) {
		h.Errorf("Add after Discard = %v", err)
	}
	if err := s.Commit(context.Background(), &eventlog.Tx{}); !errors.Is(err, eventlog.ErrStreamEnded) {
		h.Errorf("Commit after Discard = %v", err)
	}
	done := h.stream()
	h.add(done, 0, rec(t, 0, "k", "two"))
	h.commit(done, "s", "2")
	if err := done.Discard(); err != nil {
		h.Errorf("Discard after Commit = %v", err)
	}
	seq := uint32(1)
	h.checkpointed(func() {
		h.Helper()
		h.want("all", values(h.read(eventlog.ReadSpec{})), []string{"one ", "two "})
		seq++
		if err := left.Add(0, []eventlog.Record{rec(t, seq, "k", "x")}); err != nil && !errors.Is(err, eventlog.ErrClosed) {
			h.Errorf("Add = %v", err)
		}
	})
	if err := left.Commit(context.Background(), &eventlog.Tx{}); !errors.Is(err, eventlog.ErrClosed) {
		h.Errorf("Commit after the log was closed = %v", err)
	}
	if err := left.Discard(); err != nil {
		h.Errorf("Discard after the log was closed = %v", err)
	}
	h.append("s", "3", rec(t, 0, "k", "three"))
	h.want("all", values(h.read(eventlog.ReadSpec{})), []string{"one ", "two ", "three "})
}

// testStreamFrom: readers that start inside a streamed transaction, and a truncate in it.
func testStreamFrom(h *harness) {
	a, b := h.topic("s.p.a", 2), h.topic("s.p.b", 1)
	h.append("s", "1", rec(a, 0, "k", "a1"), rec(b, 1, "k", "b1"))
	s := h.stream()
	h.add(s, 0, rec(a, 0, "k", "old"))
	h.add(s, 1, eventlog.Record{Topic: a.ID, Seq: 1, Op: 4, Partition: eventlog.EveryPartition, Key: []byte(eventlog.TruncateKey), Value: []byte("t")})
	for i := range uint32(6) {
		h.add(s, 2, rec(a, 2+2*i, "k", fmt.Sprint("a", i)), rec(b, 3+2*i, "k", fmt.Sprint("b", i)))
	}
	tx := h.commit(s, "s", "2")
	h.append("s", "3", rec(a, 0, "k", "a3"), rec(b, 1, "k", "b3"))
	p := eventlog.PartitionOf([]byte("k"), 2)
	from := make([]eventlog.Offset, 2)
	for _, r := range h.partition(a, p, 0) {
		if string(r.Value) == "a4" {
			from[p] = r.Offset
		}
	}
	from[1-p] = h.log.EndOffsets(a.ID)[1-p]
	h.checkpointed(func() {
		h.Helper()
		for _, pieces := range []bool{false, true} {
			h.want("all", h.pieces(eventlog.ReadSpec{Pieces: pieces}),
				[]string{"a1 b1 ", "old t a0 b0 a1 b1 a2 b2 a3 b3 a4 b4 a5 b5 ", "a3 b3 "})
			h.want("topic b", h.pieces(eventlog.ReadSpec{Pieces: pieces, Topics: []eventlog.TopicID{b.ID}}),
				[]string{"b1 ", "b0 b1 b2 b3 b4 b5 ", "b3 "})
			h.want("a from the middle, b after all", h.pieces(eventlog.ReadSpec{
				Pieces: pieces, Topics: []eventlog.TopicID{a.ID, b.ID}, From: map[eventlog.TopicID][]eventlog.Offset{a.ID: from}, After: tx.CSN,
			}), []string{"a4 a5 ", "a3 b3 "})
			h.want("after it", h.pieces(eventlog.ReadSpec{Pieces: pieces, After: tx.CSN}), []string{"a3 b3 "})
		}
		for q := range int32(2) {
			truncates := 0
			for _, r := range h.partition(a, q, 0) {
				if r.Op == 4 && r.CSN == tx.CSN && r.Time == tx.CommitTime && r.Flags == 0 {
					truncates++
				}
			}
			if truncates != 1 {
				h.Errorf("partition %d has %d truncates", q, truncates)
			}
		}
		h.want("partition from the middle", len(h.partition(a, p, from[p])), 3)
	})
}

// testStreamPieces: a transaction that no piece holds comes in pieces of bounded
// memory, whole to those who do not ask for them, and readers may go on in it
// while it moves under them.
func testStreamPieces(h *harness) {
	const n, size, most = 800, 20_000, 4 << 20
	t := h.topic("s.p.t", 3)
	s := h.stream()
	value := func(i uint32) string { return fmt.Sprintf("%06d%s", i, strings.Repeat("v", size)) }
	for i := range uint32(n) {
		h.add(s, i%5, rec(t, i, fmt.Sprint("k", i), value(i)))
	}
	if err := s.Abort(3); err != nil {
		h.Fatalf("Abort = %v", err)
	}
	if _, bytes := s.Size(); bytes < n*size {
		h.Errorf("Size says %d bytes", bytes)
	}
	h.commit(s, "s", "1")
	h.append("s", "2", rec(t, 0, "k", "two"))
	r, err := h.log.Read(eventlog.ReadSpec{Pieces: true})
	if err != nil {
		h.Fatalf("Read = %v", err)
	}
	defer r.Close()
	moved := func() {
		if h.settle {
			h.b.Settle(h.T, h.log)
		}
	}
	h.readPieces(r, n, most, value, moved)
	h.checkpointed(func() {
		h.Helper()
		again, err := h.log.Read(eventlog.ReadSpec{Pieces: true})
		if err != nil {
			h.Fatalf("Read = %v", err)
		}
		defer again.Close()
		h.readPieces(again, n, most, value, func() {})
		got := h.read(eventlog.ReadSpec{})
		if len(got) != 2 || len(got[0].Records) != n/5*4 || got[0].More {
			h.Fatalf("read whole it is %d transactions, the first with %d records", len(got), len(got[0].Records))
		}
		for i, r := range got[0].Records {
			if want := uint32(i/4*5 + i%4); i%4 < 3 && (r.Seq != want || string(r.Value) != value(want)) {
				h.Fatalf("read whole, record %d is %s", i, describe(r))
			}
		}
	})
}

// readPieces reads the transaction of testStreamPieces and the one behind it;
// after the first piece it calls moved.
func (h *harness) readPieces(r eventlog.Reader, n uint32, most int, value func(uint32) string, moved func()) {
	h.Helper()
	next, pieces, more := uint32(0), 0, true
	for more {
		tx, err := r.Next()
		if err != nil || tx == nil || tx.ID != "x1" || tx.CSN == 0 {
			h.Fatalf("piece %d: Next = %v, %v", pieces, tx, err)
		}
		size := 0
		for _, rec := range tx.Records {
			if next%5 == 3 {
				next++
			}
			if rec.Seq != next || string(rec.Value) != value(next) || rec.CSN != tx.CSN {
				h.Fatalf("record %s where %d was due", describe(rec), next)
			}
			next++
			size += len(rec.Key) + len(rec.Value)
		}
		if size == 0 || size > most {
			h.Fatalf("piece %d has %d bytes", pieces, size)
		}
		if pieces++; pieces == 1 {
			moved()
		}
		more = tx.More
	}
	if next != n || pieces < 3 {
		h.Errorf("%d pieces up to record %d of %d", pieces, next, n)
	}
	if tx, err := r.Next(); err != nil || tx == nil || tx.ID != "x2" || tx.More {
		h.Fatalf("behind the pieces: Next = %v, %v", tx, err)
	}
}
