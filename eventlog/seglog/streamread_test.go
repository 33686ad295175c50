package seglog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestStreamReadOnly reads beside a writer that streams and seals.
func TestStreamReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	opts := streamOptions(fs)
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustStreamed(t, l, top, 0)
	left := mustStream(t, l)
	if err := addStreamed(left, top, "2", 8); err != nil {
		t.Fatal(err)
	}
	ro, err := OpenReadOnly("log", opts)
	if err != nil {
		t.Fatal(err)
	}
	wantStreamFiles(t, "beside a reader", fs, streamTmpName(2), streamName(1, 1))
	if _, err := ro.Stream(context.Background()); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Stream = %v", err)
	}
	old, err := ro.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := ro.ReadPartition(top.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustStreamed(t, l, top, 1)
	if grown, err := ro.Refresh(); !grown || err != nil {
		t.Errorf("Refresh = %v, %v", grown, err)
	}
	if got := shown(t, ro); !slices.Equal(got, numbers(0, 2)) {
		t.Errorf("read-only log shows %v", got)
	}
	if err := left.Commit(context.Background(), streamedTx(2)); err != nil {
		t.Fatal(err)
	}
	if err := l.SealAll(context.Background()); err != nil { // the files go before the readers come
		t.Fatal(err)
	}
	wantStreamFiles(t, "sealed", fs)
	for n := range 2 {
		tx, err := old.Next()
		if err != nil || tx == nil || tx.ID != fmt.Sprint(n) || len(tx.Records) != 4 {
			t.Fatalf("reader over deleted files: %+v, %v; want %d", tx, err, n)
		}
	}
	if _, ok, err := part.Next(); !ok || err != nil {
		t.Errorf("partition reader over deleted files: %v, %v", ok, err)
	}
	if _, err := ro.Refresh(); err != nil {
		t.Error(err)
	}
	if got := shown(t, ro); !slices.Equal(got, numbers(0, 3)) {
		t.Errorf("read-only log shows %v after sealing", got)
	}
}

// TestRefreshWhileSealed seals a transaction while a read-only log is at the entry that adopted it.
func TestRefreshWhileSealed(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 1)
	ro, err := OpenReadOnly("log", streamOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	mustStreamed(t, l, top, 1)
	sealed := false
	fs.SetHook(func(op vfs.Op) (int, error) {
		if !sealed && op.Kind == "open" && strings.HasSuffix(op.Name, streamSuffix) {
			sealed = true
			if err := l.SealAll(context.Background()); err != nil {
				t.Error(err)
			}
		}
		return 0, nil
	})
	if grown, err := ro.Refresh(); !sealed || !grown || err != nil {
		t.Errorf("Refresh = %v, %v", grown, err)
	}
	if got := shown(t, ro); !slices.Equal(got, numbers(0, 2)) {
		t.Errorf("read-only log shows %v", got)
	}
}

// TestStreamOfOtherTopicsIsNotRead: a reader opens only what may show it something.
func TestStreamOfOtherTopicsIsNotRead(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top, other := mustTopic(t, l, "s.p.t"), mustTopic(t, l, "s.p.other")
	mustStreamed(t, l, top, 0)
	frontier := l.Frontier()
	mustAppend(t, l, other, 1, 2)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "open" && strings.HasSuffix(op.Name, streamSuffix) {
			t.Errorf("%s is opened", op.Name)
		}
		return 0, nil
	})
	for _, spec := range []eventlog.ReadSpec{
		{Topics: []eventlog.TopicID{other.ID}},
		{After: frontier},
		{Topics: []eventlog.TopicID{top.ID, other.ID}, From: map[eventlog.TopicID][]eventlog.Offset{top.ID: l.EndOffsets(top.ID)}},
	} {
		r, err := l.Read(spec)
		if err != nil {
			t.Fatal(err)
		}
		if tx, err := r.Next(); err != nil || tx == nil || tx.ID != "1" {
			t.Errorf("Next = %+v, %v", tx, err)
		}
		r.Close()
	}
	r, err := l.ReadPartition(other.ID, 0, 0)
	if err == nil {
		_, _, err = r.Next()
	}
	if err != nil {
		t.Errorf("ReadPartition = %v", err)
	}
}

// TestStreamMemory streams far more than it may hold, and reads it back in
// pieces, from the journal and from segments, and by partition.
func TestStreamMemory(t *testing.T) {
	const total, most = 64 << 20, 12 << 20
	l, err := Open(t.TempDir()+"/log", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	top := mustTopic(t, l, "s.p.t")
	base := int64(heapBytes())
	peak := int64(0)
	watch := func(i int) {
		if i%256 == 0 {
			peak = max(peak, int64(heapBytes())-base)
		}
	}
	s := mustStream(t, l)
	value := make([]byte, 8<<10)
	n := total / len(value)
	rng := rand.NewChaCha8([32]byte{1})
	for i := range n {
		if i%64 == 0 {
			rng.Read(value)
		}
		r := eventlog.Record{Topic: top.ID, Seq: uint32(i), Op: 1, Key: fmt.Append(nil, i), Value: value}
		if err := s.Add(uint32(i/100), []eventlog.Record{r}); err != nil {
			t.Fatal(err)
		}
		watch(i)
	}
	if err := s.Commit(context.Background(), streamedTx(0)); err != nil {
		t.Fatal(err)
	}
	readAll := func(what string) {
		t.Helper()
		r, err := l.Read(eventlog.ReadSpec{Pieces: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		seen := 0
		for k := 0; ; k++ {
			tx, err := r.Next()
			if err != nil || tx == nil {
				t.Fatalf("%s: piece %d: %v, %v", what, k, tx, err)
			}
			seen += len(tx.Records)
			watch(k * 64)
			if !tx.More {
				break
			}
		}
		if seen != n {
			t.Errorf("%s: %d records of %d", what, seen, n)
		}
	}
	readAll("journal")
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	readAll("sealed")
	if peak > most {
		t.Errorf("%d bytes of heap for a transaction of %d, want at most %d", peak, total, most)
	}
	t.Logf("peak of the heap %d KiB", peak>>10)
}

// heapBytes returns the bytes in use after a collection.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestSortBySeq(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 63, 64, 1000} {
		records := make([]eventlog.Record, n)
		for i := range records {
			records[i] = eventlog.Record{Seq: uint32(rng.IntN(n)) << 22, Offset: eventlog.Offset(i)}
		}
		sortBySeq(records)
		for i := 1; i < n; i++ {
			if a, b := records[i-1], records[i]; a.Seq > b.Seq || a.Seq == b.Seq && a.Offset >= b.Offset {
				t.Fatalf("of %d records, %d: seq %d of place %d before seq %d of place %d", n, i, a.Seq, a.Offset, b.Seq, b.Offset)
			}
		}
	}
}
