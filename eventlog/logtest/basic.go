package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

func testTopics(h *harness) {
	a := h.topic("shop.public.products", 0)
	if a.Spec.Partitions != eventlog.DefaultPartitions {
		h.Errorf("topic has %d partitions, want %d", a.Spec.Partitions, eventlog.DefaultPartitions)
	}
	c := h.topic("_schemas", 0)
	if c.Spec.Partitions != 1 {
		h.Errorf("control topic has %d partitions, want 1", c.Spec.Partitions)
	}
	if again := h.topic("shop.public.products", 4); again.ID != a.ID {
		h.Errorf("the same topic has ids %d and %d", a.ID, again.ID)
	}
	if _, err := h.log.EnsureTopic(eventlog.TopicSpec{Name: "shop.public.products", Partitions: 8}); !errors.Is(err, eventlog.ErrPartitionCount) {
		h.Errorf("EnsureTopic with another count = %v, want ErrPartitionCount", err)
	}
	h.checkpointed(func() {
		h.Helper()
		got, ok := h.log.Topic("shop.public.products")
		if !ok || got.ID != a.ID || got.Spec.Name != a.Spec.Name || got.Spec.Partitions != 4 || got.Spec.Cleanup != eventlog.CleanupCompact {
			h.Errorf("Topic = %+v, %v; want %+v", got, ok, a)
		}
		if _, ok := h.log.Topic("shop.public"); ok {
			h.Error("Topic finds a name that nobody made")
		}
		if got := h.log.EndOffsets(a.ID); !reflect.DeepEqual(got, make([]eventlog.Offset, 4)) {
			h.Errorf("EndOffsets = %v, want zeros", got)
		}
	})
}

func testAppendFills(h *harness) {
	t := h.topic("s.p.t", 3)
	before := h.log.Frontier()
	tx := h.append("s", "1", rec(t, 0, "a", "1"), rec(t, 1, "b", "2"), rec(t, 2, "a", "3"))
	if tx.CSN <= before || h.log.Frontier() != tx.CSN || tx.IngestTime == 0 {
		h.Errorf("CSN %d, frontier %d (was %d), ingest time %d", tx.CSN, h.log.Frontier(), before, tx.IngestTime)
	}
	for i, r := range tx.Records {
		if r.CSN != tx.CSN || r.Time != tx.CommitTime || r.Partition != eventlog.PartitionOf(r.Key, 3) {
			h.Errorf("record %d is %+v", i, r)
		}
	}
	if tx.Records[2].Offset != tx.Records[0].Offset+1 && tx.Records[1].Partition != tx.Records[0].Partition {
		h.Errorf("offsets of one key are %d and %d", tx.Records[0].Offset, tx.Records[2].Offset)
	}
	two := []*eventlog.Tx{
		{Kind: eventlog.TxSource, Source: "s", Position: []byte("2"), Records: []eventlog.Record{rec(t, 0, "a", "4")}},
		{Kind: eventlog.TxChunk, Records: []eventlog.Record{rec(t, 0, "a", "5")}},
	}
	h.appendTx(two...)
	if two[0].CSN <= tx.CSN || two[1].CSN <= two[0].CSN || h.log.Frontier() != two[1].CSN {
		h.Errorf("CSNs %d, %d behind %d", two[0].CSN, two[1].CSN, tx.CSN)
	}
}

func testAppendRefuses(h *harness) {
	t := h.topic("s.p.t", 1)
	h.append("s", "1", rec(t, 0, "a", "1"))
	for name, tx := range map[string]*eventlog.Tx{
		"unknown topic":            {Records: []eventlog.Record{{Topic: 4711}}},
		"tick with records":        {Kind: eventlog.TxTick, Records: []eventlog.Record{rec(t, 0, "a", "1")}},
		"outputs of the future":    {Kind: eventlog.TxOutput, CSN: h.log.Frontier() + 1},
		"outputs that go back":     {Kind: eventlog.TxOutput, CSN: 1, Since: 2},
		"note too long":            {Note: make([]byte, eventlog.MaxNote+1)},
		"kind that does not exist": {Kind: 9},
	} {
		good := &eventlog.Tx{Kind: eventlog.TxChunk, Records: []eventlog.Record{rec(t, 0, "b", "1")}}
		if err := h.log.Append(context.Background(), []*eventlog.Tx{good, tx}); err == nil {
			h.Errorf("Append of %s = nil", name)
		}
	}
	h.checkpointed(func() {
		h.Helper()
		if got := h.partition(t, 0, 0); len(got) != 1 {
			h.Errorf("%d records, want the first one only", len(got))
		}
	})
	if err := h.log.Append(context.Background(), []*eventlog.Tx{{Records: []eventlog.Record{{Topic: 4711}}}}); !errors.Is(err, eventlog.ErrUnknownTopic) {
		h.Errorf("Append to an unknown topic = %v", err)
	}
}

func testRoundTrip(h *harness) {
	t := h.topic("s.p.t", 2)
	want := &eventlog.Tx{
		Kind: eventlog.TxSource, Source: "s", Position: []byte("0/16B3748"), ID: "731", CommitTime: -5, Note: []byte("note"),
		Records: []eventlog.Record{
			{Topic: t.ID, Seq: 0, Op: 1, Flags: 5, Schema: 4_000_000_000, Key: []byte("k"), Value: []byte{}},
			{Topic: t.ID, Seq: 1, Op: 2, Flags: 1, Schema: 7, Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 100_000)},
			{Topic: t.ID, Seq: 2, Op: 3, Key: []byte("k")},
			{Topic: t.ID, Seq: 1 << 31, Op: 5, Value: []byte("no key")},
			{Topic: t.ID, Seq: 1<<31 + 1, Op: 5, Key: []byte{}, Value: []byte("empty key")},
		},
	}
	h.appendTx(want)
	h.checkpointed(func() {
		h.Helper()
		got := h.read(eventlog.ReadSpec{Topics: []eventlog.TopicID{t.ID}})
		if len(got) != 1 {
			h.Fatalf("%d transactions, want 1", len(got))
		}
		h.sameTx(&got[0], want)
	})
}

// sameTx reports in what two transactions differ.
func (h *harness) sameTx(got, want *eventlog.Tx) {
	h.Helper()
	g, w := *got, *want
	g.Records, w.Records = nil, nil
	if fmt.Sprintf("%+v", g) != fmt.Sprintf("%+v", w) {
		h.Errorf("transaction is %+v, want %+v", g, w)
	}
	if len(got.Records) != len(want.Records) {
		h.Fatalf("%d records, want %d", len(got.Records), len(want.Records))
	}
	for i := range want.Records {
		a, b := got.Records[i], want.Records[i]
		if (a.Key == nil) != (b.Key == nil) || (a.Value == nil) != (b.Value == nil) || describe(a) != describe(b) {
			h.Errorf("record %d is %s, want %s", i, describe(a), describe(b))
		}
	}
}

func describe(r eventlog.Record) string {
	s := fmt.Sprintf("%+v", r)
	if len(s) > 400 {
		return fmt.Sprintf("%s… of %d bytes, sum %x", s[:200], len(r.Value), sum(r.Value))
	}
	return s
}

func sum(b []byte) (s uint32) {
	for _, c := range b {
		s = s*31 + uint32(c)
	}
	return s
}

func testEveryPartition(h *harness) {
	t := h.topic("s.p.t", 4)
	h.append("s", "1", rec(t, 0, "a", "1"))
	truncate := eventlog.Record{Topic: t.ID, Seq: 0, Op: 4, Partition: eventlog.EveryPartition, Key: []byte(eventlog.TruncateKey), Value: []byte("t")}
	tx := h.append("s", "2", truncate, rec(t, 1, "b", "2"))
	if tx.Records[0].Partition != 0 {
		h.Errorf("partition of a record in every partition is %d, want 0", tx.Records[0].Partition)
	}
	h.checkpointed(func() {
		h.Helper()
		got := h.read(eventlog.ReadSpec{})
		if n := len(got); n != 2 || len(got[1].Records) != 2 || got[1].Records[0].Op != 4 || got[1].Records[0].Partition != 0 {
			h.Errorf("a truncate is read as %+v", got[1:])
		}
		for p := range int32(4) {
			var seen int
			for _, r := range h.partition(t, p, 0) {
				if r.Op == 4 && r.CSN == tx.CSN && r.Seq == 0 && string(r.Value) == "t" && r.Flags == 0 {
					seen++
				}
			}
			if seen != 1 {
				h.Errorf("partition %d has %d truncates", p, seen)
			}
		}
	})
}

func testClosed(h *harness) {
	t := h.topic("s.p.t", 1)
	if err := h.log.Close(); err != nil {
		h.Fatalf("Close = %v", err)
	}
	if err := h.log.Close(); err != nil {
		h.Errorf("second Close = %v", err)
	}
	err := h.log.Append(context.Background(), []*eventlog.Tx{{Records: []eventlog.Record{rec(t, 0, "a", "1")}}})
	if !errors.Is(err, eventlog.ErrClosed) {
		h.Errorf("Append after Close = %v", err)
	}
	if err := h.log.SaveCheckpoint("c", []byte("x")); !errors.Is(err, eventlog.ErrClosed) {
		h.Errorf("SaveCheckpoint after Close = %v", err)
	}
	if _, err := h.log.EnsureTopic(eventlog.TopicSpec{Name: "new"}); err == nil || !strings.Contains(err.Error(), "closed") {
		h.Errorf("EnsureTopic after Close = %v", err)
	}
}
