package logtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// seekTopic fills a topic of two partitions whose commit times go up and down,
// several transactions a millisecond, beside another topic.
func (h *harness) seekTopic() eventlog.Topic {
	h.Helper()
	t, other := h.topic("s.p.t", 2), h.topic("s.p.other", 1)
	times := []int64{5_000, 5_300, 5_300, 4_999, 9_000, 9_001, 8_000, 12_700, 12_100, -40, 12_900, 30_000, 29_999, 31_500}
	for i := range 3 * len(times) {
		tx := &eventlog.Tx{
			Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, i), ID: fmt.Sprint("x", i),
			CommitTime: times[i%len(times)] + int64(i/len(times))*1_000_000, Records: []eventlog.Record{rec(other, 9, "o", "o")},
		}
		for k := range i % 4 { // some have none
			tx.Records = append(tx.Records, rec(t, uint32(k), fmt.Sprint("k", i*k), fmt.Sprint(i, ".", k)))
		}
		h.appendTx(tx)
	}
	return t
}

func testSeek(h *harness) {
	t := h.seekTopic()
	h.checkpointed(func() {
		h.Helper()
		for p := range int32(2) {
			all := h.partition(t, p, 0)
			h.seeks(t, p, all)
			for before := range eventlog.Offset(len(all) + 2) {
				h.backward(t, p, before, all)
			}
		}
	})
	h.checkpointed(func() {
		h.Helper()
		all := h.read(eventlog.ReadSpec{})
		for _, tx := range all {
			for _, micros := range []int64{tx.CommitTime, tx.CommitTime + 1, 1 << 60} {
				var want []eventlog.Tx
				for _, w := range all {
					if w.CommitTime >= micros {
						want = append(want, w)
					}
				}
				if got := h.read(eventlog.ReadSpec{FromTime: micros}); fmt.Sprint(got) != fmt.Sprint(want) {
					h.Errorf("read from time %d: %d transactions, want %d", micros, len(got), len(want))
				}
			}
		}
	})
	for _, err := range []error{
		second(h.log.SeekCSN(4711, 0, 1)), second(h.log.SeekTime(t.ID, 2, 1)), second(h.log.SeekCSN(t.ID, -1, 1)), second(h.log.ReadBackward(t.ID, 9, 1)),
	} {
		if !errors.Is(err, eventlog.ErrUnknownTopic) {
			h.Errorf("a seek where there is no partition = %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// seeks compares SeekCSN and SeekTime with a search of all records.
func (h *harness) seeks(t eventlog.Topic, p int32, all []eventlog.Record) {
	h.Helper()
	first := func(matches func(r eventlog.Record) bool) eventlog.Offset {
		if i := slices.IndexFunc(all, matches); i >= 0 {
			return all[i].Offset
		}
		return h.log.EndOffsets(t.ID)[p]
	}
	for _, r := range append(all, eventlog.Record{}, eventlog.Record{CSN: eventlog.MaxCSN, Time: 1 << 60}) {
		for d := range int64(3) {
			csn := eventlog.CSN(max(0, int64(r.CSN)+d-1))
			got, err := h.log.SeekCSN(t.ID, p, csn)
			if want := first(func(r eventlog.Record) bool { return r.CSN >= csn }); err != nil || got != want {
				h.Errorf("SeekCSN(%d, %d) = %d, %v; want %d", p, csn, got, err, want)
			}
			micros := r.Time + d - 1
			got, err = h.log.SeekTime(t.ID, p, micros)
			if want := first(func(r eventlog.Record) bool { return r.Time >= micros }); err != nil || got != want {
				h.Errorf("SeekTime(%d, %d) = %d, %v; want %d", p, micros, got, err, want)
			}
		}
	}
}

// backward compares ReadBackward with the records read forward.
func (h *harness) backward(t eventlog.Topic, p int32, before eventlog.Offset, all []eventlog.Record) {
	h.Helper()
	r, err := h.log.ReadBackward(t.ID, p, before)
	if err != nil {
		h.Fatalf("ReadBackward = %v", err)
	}
	defer r.Close()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Offset < before {
			h.same(r, all[i])
		}
	}
	if rec, ok, err := r.Next(); ok || err != nil {
		h.Errorf("backward beyond the start: %s, %v, %v", describe(rec), ok, err)
	}
}

// same takes the next record of a reader, which must be want.
func (h *harness) same(r eventlog.PartitionReader, want eventlog.Record) {
	h.Helper()
	rec, ok, err := r.Next()
	if err != nil || !ok || describe(rec) != describe(want) {
		h.Fatalf("Next = %s, %v, %v; want %s", describe(rec), ok, err, describe(want))
	}
}

// testBackwardWhileChanging reads backward while records come and are settled:
// the reader shows what was there at its start, once and in order.
func testBackwardWhileChanging(h *harness) {
	t := h.topic("s.p.t", 1)
	for i := range 60 {
		h.append("s", fmt.Sprint(i), rec(t, 0, fmt.Sprint("k", i), fmt.Sprint(i)))
	}
	all := h.partition(t, 0, 0)
	r, err := h.log.ReadBackward(t.ID, 0, 1<<40)
	if err != nil {
		h.Fatalf("ReadBackward = %v", err)
	}
	defer r.Close()
	for i := len(all) - 1; i >= 0; i-- {
		h.same(r, all[i])
		h.append("s", fmt.Sprint("later", i), rec(t, 0, "later", fmt.Sprint(i)))
		if h.settle && i%7 == 0 {
			h.b.Settle(h.T, h.log)
		}
	}
	if _, ok, err := r.Next(); ok || err != nil {
		h.Errorf("backward beyond the start = %v, %v", ok, err)
	}
}

func testTxFinder(h *harness) {
	t := h.seekTopic()
	chunk := &eventlog.Tx{Kind: eventlog.TxChunk, Source: "s", CommitTime: 77, Records: []eventlog.Record{rec(t, 0, "k", "chunk")}}
	h.appendTx(chunk)
	h.checkpointed(func() {
		h.Helper()
		want := map[eventlog.CSN]eventlog.Tx{}
		for _, tx := range h.read(eventlog.ReadSpec{}) {
			tx.Records = nil
			want[tx.CSN] = tx
		}
		f := h.log.TxFinder()
		defer f.Close()
		find := func(r eventlog.Record) {
			h.Helper()
			tx, ok, err := f.Find(&r)
			if err != nil || !ok || fmt.Sprintf("%+v", tx) != fmt.Sprintf("%+v", want[r.CSN]) {
				h.Fatalf("Find(%d) = %+v, %v, %v; want %+v", r.CSN, tx, ok, err, want[r.CSN])
			}
		}
		for p := range int32(2) {
			all := h.partition(t, p, 0)
			for _, r := range all {
				find(r)
			}
			slices.Reverse(all)
			for _, r := range all {
				find(r)
			}
		}
		if tx, ok, err := f.Find(&eventlog.Record{CSN: h.log.Frontier() + 1}); ok || err != nil {
			h.Errorf("Find of nothing = %+v, %v, %v", tx, ok, err)
		}
	})
}
