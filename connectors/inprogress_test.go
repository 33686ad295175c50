package connectors

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// running makes a batch of a transaction in progress, with inserts of these keys.
func running(s *change.Schema, tx string, sub uint32, keys ...int64) *change.Batch {
	b := &change.Batch{Source: "shop", Tx: tx, Stage: change.InProgress, Sub: sub}
	for _, k := range keys {
		b.Add(s, change.OpInsert, 0, key(k), nil, row(k, 0))
	}
	return b
}

func rolledBack(tx string, sub uint32) *change.Batch {
	return &change.Batch{Source: "shop", Tx: tx, Stage: change.RolledBack, Sub: sub}
}

func adopted(id, at string) *change.Batch {
	b := tx(at, func(*change.Batch) {})
	b.Tx, b.Stage = id, change.Adopted
	return b
}

// interleaved are two transactions in progress, of which one is rolled back, among whole ones.
func interleaved() []*change.Batch {
	a, wide := testSchema("shop.public.a", "id", "v"), testSchema("shop.public.b", "id", "v")
	last := adopted("7", "0/3")
	last.Controls = []change.Control{{Topic: "_snapshots.shop", Key: key(1), Value: []byte{1}}}
	return []*change.Batch{
		running(a, "7", 7, 1, 2),
		running(wide, "8", 8, 20),
		running(a, "7", 70, 3),
		tx("0/1", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(10), nil, row(10, 1)) }),
		rolledBack("7", 70),
		running(a, "7", 71, 4),
		rolledBack("8", 0),
		rolledBack("9", 0), // of which nothing came
		tx("0/2", func(b *change.Batch) { b.Add(wide, change.OpInsert, 0, key(11), nil, row(11, 1)) }),
		last,
		adopted("6", "0/4"), // of which nothing came either
	}
}

// TestInProgress: transactions in progress come to the log at their commit, without
// what was rolled back; the layouts that they use are there before them.
func TestInProgress(t *testing.T) {
	log := &streamLog{Log: logtest.Mem(), refuse: 3}
	synctest.Test(t, func(t *testing.T) {
		end := errors.New("the source ends")
		src := &breaking{scripted{log: log, batches: interleaved()}, end}
		in := NewIngest(IngestOptions{Log: log, Source: "shop", FullRetry: time.Millisecond})
		if err := in.Run(t.Context(), src); !errors.Is(err, end) || len(src.confirmed) == 0 {
			t.Fatalf("Run = %v, confirmed %v", err, src.confirmed)
		}
		if src.unsafe != nil || !slices.Equal(src.confirmed[len(src.confirmed)-1:], []string{"0/4"}) {
			t.Errorf("confirmed %v, %v", src.confirmed, src.unsafe)
		}
	})
	expect(t, dump(t, log),
		"1 : _schemas/0/schema/shop.public.a|1", "1 : _schemas/0/schema/shop.public.b|1",
		"0 0/1: shop.public.a/0/insert/10/s1",
		"0 0/2: shop.public.b/0/insert/11/s1",
		"0 7: shop.public.a/0/insert/1/s1 shop.public.a/1/insert/2/s1 shop.public.a/3/insert/4/s1 _snapshots.shop/4/schema/1",
		"0 6:")
	if log.begun != 2 || log.committed != 1 || log.refuse != 0 {
		t.Errorf("%d streams begun, %d committed", log.begun, log.committed)
	}
}

// TestInProgressDiscarded: a source that breaks, or a log that loses what it took,
// leaves nothing of transactions in progress, wherever it happens.
func TestInProgressDiscarded(t *testing.T) {
	for n := range len(interleaved()) {
		log := &streamLog{Log: logtest.Mem()}
		synctest.Test(t, func(t *testing.T) {
			end := errors.New("connection reset")
			in := NewIngest(IngestOptions{Log: log, Source: "shop"})
			if err := in.Run(t.Context(), &breaking{scripted{log: log, batches: interleaved()[:n]}, end}); !errors.Is(err, end) {
				t.Errorf("Run = %v", err)
			}
			if len(in.running) != 0 || log.discarded < log.begun-log.committed {
				t.Errorf("after %d batches: %d streams begun, %d discarded, %d kept", n, log.begun, log.discarded, len(in.running))
			}
			// All of it comes again.
			src := &breaking{scripted{log: log, batches: interleaved()}, end}
			if err := in.Run(t.Context(), src); !errors.Is(err, end) {
				t.Errorf("Run = %v", err)
			}
		})
		lines := dump(t, log)
		if got := lines[len(lines)-2]; got != "0 7: shop.public.a/0/insert/1/s1 shop.public.a/1/insert/2/s1 shop.public.a/3/insert/4/s1 _snapshots.shop/4/schema/1" {
			t.Errorf("after %d batches and once more: %q", n, lines)
		}
	}
	log := &streamLog{Log: logtest.Mem(), lose: true}
	in := NewIngest(IngestOptions{Log: log, Source: "shop"})
	if err := in.Run(t.Context(), &scripted{log: log, batches: interleaved()}); !errors.Is(err, eventlog.ErrStreamLost) || log.discarded != log.begun {
		t.Errorf("Run = %v, %d streams begun, %d discarded", err, log.begun, log.discarded)
	}
}
