package seglog

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// sized is a transaction of one record whose value is size bytes of n.
func sized(top eventlog.Topic, n, size int) *eventlog.Tx {
	return &eventlog.Tx{
		Kind: eventlog.TxSource, Source: "s", Position: []byte("p"), ID: fmt.Sprint(n), CommitTime: testTime.UnixMicro(),
		Records: []eventlog.Record{{Topic: top.ID, Op: 1, Key: []byte("k"), Value: bytes.Repeat([]byte{byte(n)}, size)}},
	}
}

// TestReaderHoldsItsGroup: what a reader got from memory stays whole until its
// next call, though the tail dropped it and other entries were written meanwhile.
func TestReaderHoldsItsGroup(t *testing.T) {
	for _, size := range []int{100, 100_000, maxShared + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			opts := memOptions(vfs.NewMem())
			opts.TailBytes, opts.FileBytes = int64(3*size), 1<<30
			l := mustOpen(t, opts)
			defer l.Close()
			top := mustTopic(t, l, "s.p.t")
			r, err := l.Read(eventlog.ReadSpec{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			parts, err := l.ReadPartition(top.ID, eventlog.PartitionOf([]byte("k"), 2), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer parts.Close()
			for n := range 6 {
				if err := l.Append(context.Background(), []*eventlog.Tx{sized(top, n, size)}); err != nil {
					t.Fatal(err)
				}
				tx, err := r.Next()
				if err != nil || tx == nil {
					t.Fatalf("Next = %v, %v", tx, err)
				}
				rec, ok, err := parts.Next()
				if err != nil || !ok {
					t.Fatalf("Next of the partition = %v, %v", ok, err)
				}
				for k := range 8 { // drop it from the tail, and use again what that frees
					if err := l.Append(context.Background(), []*eventlog.Tx{sized(top, 200+k, size)}); err != nil {
						t.Fatal(err)
					}
				}
				want := bytes.Repeat([]byte{byte(n)}, size)
				if tx.ID != fmt.Sprint(n) || !bytes.Equal(tx.Records[0].Value, want) || !bytes.Equal(rec.Value, want) {
					t.Fatalf("transaction %d changed while it was held: %.20q, %.20q", n, tx.Records[0].Value, rec.Value)
				}
				for range 8 {
					if _, err := r.Next(); err != nil {
						t.Fatal(err)
					}
					if _, _, err := parts.Next(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestTailMemory: the tail's memory is bounded, and is used again.
func TestTailMemory(t *testing.T) {
	for _, size := range []int{500, 40_000, 400_000, 2 << 20} {
		opts := memOptions(vfs.NewMem())
		opts.TailBytes, opts.FileBytes = 8<<20, 1<<30
		l := mustOpen(t, opts)
		top := mustTopic(t, l, "s.p.t")
		group := []*eventlog.Tx{sized(top, 1, size)}
		seen := map[*byte]bool{}
		for range 24<<20/size + 10 {
			if err := l.Append(context.Background(), group); err != nil {
				t.Fatal(err)
			}
			for _, g := range l.tail.groups[max(0, len(l.tail.groups)-1):] {
				seen[&g.mem.b[0]] = true
			}
			if l.tail.bytes > opts.TailBytes {
				t.Fatalf("%d bytes: the tail has %d", size, l.tail.bytes)
			}
		}
		each := sharedSlab
		if size > maxShared {
			each = size
		}
		if most := 8<<20/each + 5; len(seen) > most {
			t.Errorf("%d bytes: %d slabs were made for 24 MiB, more than %d", size, len(seen), most)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAppendAllocations: an append allocates for its request and its group, not for its records.
func TestAppendAllocations(t *testing.T) {
	allocations := func(records int) float64 {
		opts := Options{TailBytes: 4 << 20}
		l, top := benchLogAt(t, opts)
		group := benchGroup(top, 1, records)
		return testing.AllocsPerRun(30, func() {
			if err := l.Append(context.Background(), group); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocations(10), allocations(5000)
	if few > 20 || many > few+5 {
		t.Errorf("%v allocations for 10 records, %v for 5000", few, many)
	}
}

// TestReplayAllocations: reading allocates for its batches at most.
func TestReplayAllocations(t *testing.T) {
	const records = 40_000
	l, top := benchLogAt(t, Options{TailBytes: 1, SealBatch: 32 << 10})
	for range records / 2000 {
		if err := l.Append(context.Background(), benchGroup(top, 2, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"journal", "segments"} {
		if n := testing.AllocsPerRun(3, func() { readPartitions(t, l, top, records) }); n > 2000 {
			t.Errorf("%s by partition: %v allocations for %d records", where, n, records)
		}
		for _, pieces := range []bool{false, true} {
			spec := eventlog.ReadSpec{Pieces: pieces}
			if n := testing.AllocsPerRun(3, func() { readTransactions(t, l, spec, records) }); n > 2000 {
				t.Errorf("%s by transaction, pieces %v: %v allocations for %d records", where, pieces, n, records)
			}
		}
		if err := l.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSeekMemory: a seek into the journal reads a group into memory that another has used.
func TestSeekMemory(t *testing.T) {
	l, top := benchLogAt(t, Options{TailBytes: 1})
	for range 3 {
		if err := l.Append(context.Background(), benchGroup(top, 8, 500)); err != nil { // 1 MB
			t.Fatal(err)
		}
	}
	seek := func(at eventlog.Offset) {
		r, err := l.ReadPartition(top.ID, 0, at)
		if err != nil {
			t.Fatal(err)
		}
		if rec, ok, err := r.Next(); !ok || err != nil || rec.Offset != at {
			t.Fatalf("from %d: offset %d, %v, %v", at, rec.Offset, ok, err)
		}
		r.Close()
	}
	const seeks = 40
	end := l.EndOffsets(top.ID)[0]
	seek(end / 2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := range eventlog.Offset(seeks) {
		seek(n * end / seeks)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / seeks; each > 100_000 {
		t.Errorf("a seek allocates %d bytes", each)
	}
}

func readPartitions(t *testing.T, l *Log, top eventlog.Topic, want int) {
	got := 0
	for p := range top.Spec.Partitions {
		r, err := l.ReadPartition(top.ID, int32(p), 0)
		if err != nil {
			t.Fatal(err)
		}
		for {
			_, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got++
		}
		r.Close()
	}
	if got != want {
		t.Fatalf("read %d records of %d", got, want)
	}
}

func readTransactions(t *testing.T, l *Log, spec eventlog.ReadSpec, want int) {
	r, err := l.Read(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := 0
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tx == nil {
			break
		}
		got += len(tx.Records)
	}
	if got != want {
		t.Fatalf("read %d records of %d", got, want)
	}
}
