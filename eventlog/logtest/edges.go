package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

func testEmpty(h *harness) {
	h.checkpointed(func() {
		h.Helper()
		if got := h.read(eventlog.ReadSpec{Outputs: true}); len(got) != 0 || h.log.Frontier() != 0 {
			h.Errorf("an empty log shows %+v, frontier %d", got, h.log.Frontier())
		}
	})
	t := h.topic("s.p.t", 2)
	h.appendTx() // an empty group
	h.checkpointed(func() {
		h.Helper()
		ends, starts := h.log.EndOffsets(t.ID), h.log.StartOffsets(t.ID)
		if !slices.Equal(ends, []eventlog.Offset{0, 0}) || !slices.Equal(starts, ends) {
			h.Errorf("a topic without records has offsets %v to %v", starts, ends)
		}
		if got := h.partition(t, 1, 0); len(got) != 0 {
			h.Errorf("a partition without records shows %+v", got)
		}
		if err := h.log.NewestByKey(t.ID, func(key []byte, _ eventlog.CSN, _ bool) error { return fmt.Errorf("key %q", key) }); err != nil {
			h.Errorf("NewestByKey of a topic without records: %v", err)
		}
	})
	h.append("s", "1")
	h.checkpointed(func() {
		h.Helper()
		if got := h.read(eventlog.ReadSpec{}); len(got) != 1 || len(got[0].Records) != 0 || string(got[0].Position) != "1" {
			h.Errorf("a transaction without records is read as %+v", got)
		}
		if got := h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{t.ID}}); len(got) != 0 {
			h.Errorf("a reader of a topic sees a transaction without records: %+v", got)
		}
	})
}

func testUnknown(h *harness) {
	t := h.topic("s.p.t", 2)
	for what, err := range map[string]error{
		"Read":                     second(h.log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{4711}})),
		"ReadPartition":            second(h.log.ReadPartition(4711, 0, 0)),
		"ReadPartition 2 of 2":     second(h.log.ReadPartition(t.ID, 2, 0)),
		"ReadPartition -1":         second(h.log.ReadPartition(t.ID, -1, 0)),
		"NewestByKey":              h.log.NewestByKey(4711, func([]byte, eventlog.CSN, bool) error { return nil }),
		"ReadPartition of topic 0": second(h.log.ReadPartition(0, 0, 0)),
	} {
		if !errors.Is(err, eventlog.ErrUnknownTopic) {
			h.Errorf("%s = %v, want ErrUnknownTopic", what, err)
		}
	}
	if e, s := h.log.EndOffsets(4711), h.log.StartOffsets(4711); e != nil || s != nil {
		h.Errorf("an unknown topic has offsets %v to %v", s, e)
	}
}

// testLookup starts at every offset and every CSN.
func testLookup(h *harness) {
	t := h.topic("s.p.t", 2)
	var csns []eventlog.CSN
	for i := range 60 {
		csns = append(csns, h.append("s", fmt.Sprint(i), rec(t, 0, fmt.Sprint("k", i%9), fmt.Sprint(i)), rec(t, 1, "k", fmt.Sprint(i))).CSN)
		if h.settle && i%25 == 20 {
			h.b.Settle(h.T, h.log)
		}
	}
	h.checkpointed(func() {
		h.Helper()
		for p, end := range h.log.EndOffsets(t.ID) {
			for off := range end {
				if got := h.partition(t, int32(p), off); len(got) != int(end-off) || got[0].Offset != off {
					h.Fatalf("partition %d from offset %d of %d: %d records", p, off, end, len(got))
				}
			}
		}
		for i, csn := range csns {
			got := h.read(eventlog.ReadSpec{After: csn - 1})
			if len(got) != len(csns)-i || got[0].CSN != csn {
				h.Fatalf("after CSN %d: %d transactions, want %d", csn-1, len(got), len(csns)-i)
			}
		}
	})
}

// testEnds starts at and behind a partition's end: what comes later is seen, from that offset on.
func testEnds(h *harness) {
	t := h.topic("s.p.t", 1)
	h.append("s", "1", rec(t, 0, "a", "0"), rec(t, 1, "b", "1"))
	var readers []eventlog.PartitionReader
	for _, from := range []eventlog.Offset{-1, 0, 1, 2, 4} {
		r, err := h.log.ReadPartition(t.ID, 0, from)
		if err != nil {
			h.Fatalf("ReadPartition from %d = %v", from, err)
		}
		defer r.Close()
		readers = append(readers, r)
	}
	want := [][]string{{"0", "1"}, {"0", "1"}, {"1"}, nil, nil}
	for i, r := range readers {
		h.want("at first", h.rest(r), want[i])
	}
	h.append("s", "2", rec(t, 0, "c", "2"), rec(t, 1, "d", "3"), rec(t, 2, "e", "4"))
	if h.settle {
		h.b.Settle(h.T, h.log)
	}
	want = [][]string{{"2", "3", "4"}, {"2", "3", "4"}, {"2", "3", "4"}, {"2", "3", "4"}, {"4"}}
	for i, r := range readers {
		h.want("later", h.rest(r), want[i])
	}
}

// rest returns the values of the records that a reader has left.
func (h *harness) rest(r eventlog.PartitionReader) (out []string) {
	h.Helper()
	for {
		rec, ok, err := r.Next()
		if err != nil {
			h.Fatalf("Next = %v", err)
		}
		if !ok {
			return out
		}
		out = append(out, string(rec.Value))
	}
}

// testSizes puts large records between small ones.
func testSizes(h *harness) {
	t := h.topic("s.p.t", 1)
	sizes := []int{0, 1, 100, 70_000, 3, 5 << 20, 2, 300_000, 1}
	for i, n := range sizes {
		h.append("s", fmt.Sprint(i), eventlog.Record{Topic: t.ID, Op: 1, Key: fmt.Append(nil, i), Value: bytes.Repeat([]byte{byte(i)}, n)})
	}
	h.checkpointed(func() {
		h.Helper()
		got := h.partition(t, 0, 0)
		if len(got) != len(sizes) {
			h.Fatalf("%d records, want %d", len(got), len(sizes))
		}
		for i, r := range got {
			if len(r.Value) != sizes[i] || r.Value == nil || !bytes.Equal(r.Value, bytes.Repeat([]byte{byte(i)}, sizes[i])) {
				h.Errorf("record %d has %d bytes, want %d", i, len(r.Value), sizes[i])
			}
		}
	})
}

// testOrderOfTimes: commit times may go back; the order is that of the appends.
func testOrderOfTimes(h *harness) {
	t := h.topic("s.p.t", 1)
	times := []int64{5_000_000, 1, 9_000_000_000, -7, 0, 1 << 50, 5_000_001}
	for i, at := range times {
		h.appendTx(&eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, i), CommitTime: at, Records: []eventlog.Record{rec(t, 0, "k", fmt.Sprint(i))}})
	}
	h.checkpointed(func() {
		h.Helper()
		for i, r := range h.partition(t, 0, 0) {
			if string(r.Value) != fmt.Sprint(i) || r.Time != times[i] {
				h.Errorf("record %d is %q of %d, want time %d", i, r.Value, r.Time, times[i])
			}
		}
		for i, tx := range h.read(eventlog.ReadSpec{}) {
			if tx.CommitTime != times[i] {
				h.Errorf("transaction %d is of %d, want %d", i, tx.CommitTime, times[i])
			}
		}
	})
}

// testSeqOrder: records are shown by seq, whatever partitions they are in.
func testSeqOrder(h *harness) {
	a, b := h.topic("s.p.a", 4), h.topic("s.p.b", 4)
	var records []eventlog.Record
	var want string
	for i := range uint32(50) {
		records = append(records, rec([]eventlog.Topic{a, b}[i%2], i, fmt.Sprint("k", i*7%11), fmt.Sprint(i)))
		want += fmt.Sprint(i, " ")
	}
	h.append("s", "1", records...)
	h.checkpointed(func() {
		h.Helper()
		h.want("by seq", values(h.read(eventlog.ReadSpec{})), []string{want})
	})
}

// testManyTopics touches many topics with one transaction, which is seen whole.
func testManyTopics(h *harness) {
	const n = 40
	var topics []eventlog.Topic
	var records []eventlog.Record
	for i := range n {
		topics = append(topics, h.topic(fmt.Sprint("s.p.t", i), 2))
		records = append(records, rec(topics[i], uint32(i), "k", fmt.Sprint(i)))
	}
	h.append("s", "1", records...)
	h.append("s", "2", records[7], records[n-1])
	h.checkpointed(func() {
		h.Helper()
		got := h.read(eventlog.ReadSpec{})
		if len(got) != 2 || len(got[0].Records) != n || len(got[1].Records) != 2 {
			h.Fatalf("%d transactions", len(got))
		}
		for i, r := range got[0].Records {
			if r.Topic != topics[i].ID || string(r.Value) != fmt.Sprint(i) {
				h.Errorf("record %d is %+v", i, r)
			}
		}
		if len(h.log.Topics()) < n {
			h.Errorf("%d topics", len(h.log.Topics()))
		}
	})
}

// testNoKey: records without a key go to the first partition, in order, and are no key of NewestByKey.
func testNoKey(h *harness) {
	t := h.topic("s.p.t", 3)
	for i := range 5 {
		h.append("s", fmt.Sprint(i), eventlog.Record{Topic: t.ID, Op: 1, Value: fmt.Append(nil, i)}, rec(t, 1, "k", fmt.Sprint("k", i)))
	}
	h.checkpointed(func() {
		h.Helper()
		n := 0
		for _, r := range h.partition(t, 0, 0) {
			if r.Key == nil {
				if string(r.Value) != fmt.Sprint(n) {
					h.Errorf("record %d without a key is %q", n, r.Value)
				}
				n++
			}
		}
		if n != 5 {
			h.Errorf("%d records without a key in the first partition, want 5", n)
		}
		var keys []string
		if err := h.log.NewestByKey(t.ID, func(key []byte, _ eventlog.CSN, _ bool) error {
			keys = append(keys, string(key))
			return nil
		}); err != nil || !slices.Equal(keys, []string{"k"}) {
			h.Errorf("NewestByKey has keys %q, %v", keys, err)
		}
	})
}

// testSetAside: where nothing is damaged, nothing is found and nothing goes.
func testSetAside(h *harness) {
	t := h.topic("s.p.t", 2)
	for i := range 20 {
		h.append("s", fmt.Sprint(i), rec(t, 0, fmt.Sprint("k", i%7), fmt.Sprint(i)))
	}
	h.checkpointed(func() {
		h.Helper()
		horizon := h.log.Horizon(t.ID)
		want := [][]eventlog.Record{h.partition(t, 0, 0), h.partition(t, 1, 0)}
		if err := h.log.SealedDamage(context.Background(), t.ID); err != nil {
			h.Errorf("SealedDamage = %v", err)
		}
		if n, err := h.log.SetAside(context.Background(), t.ID, h.log.EndOffsets(t.ID)); n != 0 || err != nil {
			h.Errorf("SetAside = %d, %v", n, err)
		}
		if got := [][]eventlog.Record{h.partition(t, 0, 0), h.partition(t, 1, 0)}; !reflect.DeepEqual(got, want) {
			h.Errorf("SetAside leaves %v, want %v", got, want)
		}
		if h.log.Horizon(t.ID) != horizon {
			h.Errorf("SetAside raises the horizon from %d to %d", horizon, h.log.Horizon(t.ID))
		}
	})
}
