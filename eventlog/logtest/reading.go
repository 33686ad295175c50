package logtest

import (
	"fmt"
	"reflect"

	"github.com/tailwater/tailwater/eventlog"
)

// values lists what a read shows, for comparison.
func values(txs []eventlog.Tx) []string {
	out := []string{}
	for _, tx := range txs {
		s := ""
		for _, r := range tx.Records {
			s += string(r.Value) + " "
		}
		out = append(out, s)
	}
	return out
}

func (h *harness) want(what string, got, want any) {
	h.Helper()
	if !reflect.DeepEqual(got, want) {
		h.Errorf("%s: %q, want %q", what, got, want)
	}
}

func testReadSpec(h *harness) {
	a, b := h.topic("s.p.a", 3), h.topic("s.p.b", 2)
	var csns []eventlog.CSN
	for i := range 6 {
		records := []eventlog.Record{rec(a, 0, fmt.Sprint("k", i), fmt.Sprint("a", i))}
		if i%2 == 0 {
			records = append(records, rec(b, 1, "k", fmt.Sprint("b", i)), rec(a, 2, "z", fmt.Sprint("z", i)))
		}
		csns = append(csns, h.append("s", fmt.Sprint(i), records...).CSN)
	}
	h.appendTx(&eventlog.Tx{Kind: eventlog.TxTick, Source: "s", Position: []byte("tick")})
	h.checkpointed(func() {
		h.Helper()
		h.want("all", values(h.read(eventlog.ReadSpec{})),
			[]string{"a0 b0 z0 ", "a1 ", "a2 b2 z2 ", "a3 ", "a4 b4 z4 ", "a5 ", ""})
		h.want("topic b", values(h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{b.ID}})), []string{"b0 ", "b2 ", "b4 "})
		h.want("both, after the third", values(h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{a.ID, b.ID}, After: csns[2]})),
			[]string{"a3 ", "a4 b4 z4 ", "a5 "})
		h.want("between two", values(h.read(eventlog.ReadSpec{After: csns[5]})), []string{""})
		h.want("after the end", values(h.read(eventlog.ReadSpec{After: h.log.Frontier()})), []string{})
		h.want("no topic", values(h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{}})), []string{})
	})
}

func testReadFrom(h *harness) {
	a, b := h.topic("s.p.a", 2), h.topic("s.p.b", 1)
	for i := range 4 {
		h.append("s", fmt.Sprint(i), rec(a, 0, fmt.Sprint("k", i), fmt.Sprint("a", i)), rec(b, 1, "k", fmt.Sprint("b", i)))
	}
	from := h.log.EndOffsets(a.ID)
	after := h.log.Frontier()
	for i := 4; i < 8; i++ {
		h.append("s", fmt.Sprint(i), rec(a, 0, fmt.Sprint("k", i), fmt.Sprint("a", i)), rec(b, 1, "k", fmt.Sprint("b", i)))
	}
	end := h.log.Frontier()
	h.checkpointed(func() {
		h.Helper()
		h.want("from offsets", values(h.read(eventlog.ReadSpec{
			Topics: []eventlog.TopicID{a.ID}, From: map[eventlog.TopicID][]eventlog.Offset{a.ID: from}, After: end,
		})), []string{"a4 ", "a5 ", "a6 ", "a7 "})
		h.want("a from offsets, b after the end", values(h.read(eventlog.ReadSpec{
			Topics: []eventlog.TopicID{a.ID, b.ID}, From: map[eventlog.TopicID][]eventlog.Offset{a.ID: from}, After: end,
		})), []string{"a4 ", "a5 ", "a6 ", "a7 "})
		h.want("a from the start, b after the middle", values(h.read(eventlog.ReadSpec{
			Topics: []eventlog.TopicID{a.ID, b.ID}, From: map[eventlog.TopicID][]eventlog.Offset{a.ID: {0, 0}}, After: after,
		})), []string{"a0 ", "a1 ", "a2 ", "a3 ", "a4 b4 ", "a5 b5 ", "a6 b6 ", "a7 b7 "})
		h.want("from the ends", values(h.read(eventlog.ReadSpec{
			Topics: []eventlog.TopicID{a.ID}, From: map[eventlog.TopicID][]eventlog.Offset{a.ID: h.log.EndOffsets(a.ID)},
		})), []string{})
		var records []string
		for p := range int32(2) {
			for _, r := range h.partition(a, p, from[p]) {
				if r.Offset < from[p] {
					h.Errorf("offset %d below %d", r.Offset, from[p])
				}
				records = append(records, string(r.Value))
			}
		}
		if len(records) != 4 {
			h.Errorf("partitions from %v have %q", from, records)
		}
	})
}

func testOutputs(h *harness) {
	a, v := h.topic("s.p.a", 2), h.topic("view.v", 2)
	first := h.append("s", "1", rec(a, 0, "k", "a1")).CSN
	second := h.append("s", "2", rec(a, 0, "k", "a2")).CSN
	frontier := h.log.Frontier()
	out1 := &eventlog.Tx{Kind: eventlog.TxOutput, CSN: first, Since: 0, Records: []eventlog.Record{rec(v, 0, "k", "v1"), rec(v, 1, "l", "w1")}}
	out2 := &eventlog.Tx{Kind: eventlog.TxOutput, CSN: second, Since: first, Note: []byte("n"), Records: []eventlog.Record{rec(v, 0, "k", "v2")}}
	h.appendTx(out1)
	h.appendTx(out2)
	if h.log.Frontier() != frontier || out1.CSN != first || out2.CSN != second {
		h.Errorf("outputs moved the frontier to %d or lost their CSN %d, %d", h.log.Frontier(), out1.CSN, out2.CSN)
	}
	third := h.append("s", "3", rec(a, 0, "k", "a3")).CSN
	if third <= second {
		h.Errorf("CSN %d behind %d", third, second)
	}
	h.checkpointed(func() {
		h.Helper()
		h.want("without outputs", values(h.read(eventlog.ReadSpec{})), []string{"a1 ", "a2 ", "a3 "})
		h.want("outputs of the view", values(h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{v.ID}, Outputs: true})), []string{"v1 w1 ", "v2 "})
		got := h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{v.ID}, Outputs: true, After: first})
		h.want("outputs after the first", values(got), []string{"v2 "})
		if tx := got[0]; tx.Since != first || tx.CSN != second || string(tx.Note) != "n" || tx.Records[0].CSN != second {
			h.Errorf("outputs are %+v", tx)
		}
		h.want("outputs from offsets", values(h.read(eventlog.ReadSpec{
			Topics: []eventlog.TopicID{v.ID}, Outputs: true, After: third,
			From: map[eventlog.TopicID][]eventlog.Offset{v.ID: {0, 0}},
		})), []string{"v1 w1 ", "v2 "})
	})
}

func testKeyOrder(h *harness) {
	t := h.topic("s.p.t", 4)
	for i := range 200 {
		h.append("s", fmt.Sprint(i), rec(t, 0, fmt.Sprint("k", i%7), fmt.Sprint(i)))
	}
	h.checkpointed(func() {
		h.Helper()
		last := map[string]int{}
		n := 0
		for p := range int32(4) {
			next := eventlog.Offset(0)
			for _, r := range h.partition(t, p, 0) {
				if r.Offset != next {
					h.Errorf("partition %d: offset %d, want %d", p, r.Offset, next)
				}
				next++
				n++
				var i int
				fmt.Sscan(string(r.Value), &i)
				if old, ok := last[string(r.Key)]; ok && i != old+7 {
					h.Errorf("key %s: %d behind %d", r.Key, i, old)
				}
				last[string(r.Key)] = i
			}
			if end := h.log.EndOffsets(t.ID)[p]; end != next {
				h.Errorf("partition %d ends at %d, read to %d", p, end, next)
			}
		}
		if n != 200 {
			h.Errorf("%d records, want 200", n)
		}
	})
}

func testNewest(h *harness) {
	t := h.topic("s.p.t", 3)
	h.append("s", "1", rec(t, 0, "a", "1"), rec(t, 1, "b", "1"))
	deleted := h.append("s", "2", rec(t, 0, "b", ""), eventlog.Record{Topic: t.ID, Seq: 1, Op: 4, Partition: eventlog.EveryPartition, Key: []byte(eventlog.TruncateKey)}).CSN
	newest := h.append("s", "3", rec(t, 0, "a", "2"), rec(t, 1, "c", "1"), rec(t, 2, "c", "2")).CSN
	h.checkpointed(func() {
		h.Helper()
		got := map[string]string{}
		err := h.log.NewestByKey(t.ID, func(key []byte, csn eventlog.CSN, tombstone bool) error {
			got[string(key)] = fmt.Sprint(csn, tombstone)
			return nil
		})
		want := map[string]string{"a": fmt.Sprint(newest, false), "b": fmt.Sprint(deleted, true), "c": fmt.Sprint(newest, false)}
		if err != nil || !reflect.DeepEqual(got, want) {
			h.Errorf("NewestByKey = %v, %v; want %v", got, err, want)
		}
	})
}

// testFanOut: each reader has a place of its own. One that is slow delays none,
// and one that joins late sees all.
func testFanOut(h *harness) {
	t := h.topic("s.p.t", 2)
	open := func() eventlog.Reader {
		r, err := h.log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{t.ID}})
		if err != nil {
			h.Fatalf("Read = %v", err)
		}
		return r
	}
	fast, slow := open(), open()
	defer func() { fast.Close(); slow.Close() }()
	const n = 300
	var want, fromFast, fromSlow []string
	for i := range n {
		h.append("s", fmt.Sprint(i), rec(t, 0, fmt.Sprint("k", i%7), fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i, " "))
		fromFast = append(fromFast, values(h.drain(fast))...)
		if len(fromFast) != i+1 {
			h.Fatalf("the fast reader has %d transactions of %d", len(fromFast), i+1)
		}
		if i%100 == 0 {
			tx, err := slow.Next()
			if err != nil || tx == nil {
				h.Fatalf("Next = %v, %v", tx, err)
			}
			fromSlow = append(fromSlow, values([]eventlog.Tx{*tx})...)
		}
		if h.settle && i%120 == 60 {
			h.b.Settle(h.T, h.log)
		}
	}
	late := open()
	defer late.Close()
	h.want("fast", fromFast, want)
	h.want("late", values(h.drain(late)), want)
	h.want("slow", append(fromSlow, values(h.drain(slow))...), want)
}

// testReplay: reading from a CSN again gives the same, byte for byte, also sealed and after a restart.
func testReplay(h *harness) {
	a, b := h.topic("s.p.a", 2), h.topic("s.p.b", 1)
	var from eventlog.CSN
	for i := range 40 {
		tx := h.append("s", fmt.Sprint(i), rec(a, 0, fmt.Sprint("k", i%5), fmt.Sprint("a", i)), rec(b, 1, "k", fmt.Sprint("b", i)))
		if i == 14 {
			from = tx.CSN
		}
	}
	specs := []eventlog.ReadSpec{
		{After: from}, {After: from, Topics: []eventlog.TopicID{b.ID}}, {From: map[eventlog.TopicID][]eventlog.Offset{a.ID: {3, 5}}, Topics: []eventlog.TopicID{a.ID}},
	}
	var first [][]eventlog.Tx
	for _, spec := range specs {
		first = append(first, h.read(spec))
	}
	if len(first[0]) != 25 || len(first[1]) != 25 {
		h.Fatalf("%d and %d transactions after number 14 of 40", len(first[0]), len(first[1]))
	}
	h.checkpointed(func() {
		h.Helper()
		for i, spec := range specs {
			if got := h.read(spec); !reflect.DeepEqual(got, first[i]) {
				h.Errorf("replay %d gives %d transactions, other than the %d at first", i, len(got), len(first[i]))
			}
		}
	})
}
