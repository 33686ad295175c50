package seglog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestMain spoils memory that is given back, so that whoever still reads it is found.
func TestMain(m *testing.M) {
	freed = func(b []byte) {
		for i := range b {
			b[i] = 0xdb
		}
	}
	goleak.VerifyTestMain(m)
}

// TestReadersWhileSealing lets readers of all kinds follow a log that is written
// and sealed at the same time: none misses a transaction or sees one twice.
func TestReadersWhileSealing(t *testing.T) {
	for _, tail := range []int64{1, 4000, 1 << 20} {
		t.Run(fmt.Sprint("tail ", tail), func(t *testing.T) {
			opts := memOptions(vfs.NewMem())
			opts.FileBytes, opts.TailBytes, opts.JournalBytes, opts.SealBatch = 2000, tail, 3000, 300
			l := mustOpen(t, opts)
			top := mustTopic(t, l, "s.p.t")
			const n = 400
			ctx, stop := context.WithCancel(context.Background())
			var background, readers sync.WaitGroup
			background.Go(func() {
				if err := l.Run(ctx); err != nil {
					t.Errorf("Run = %v", err)
				}
			})
			for range 2 {
				readers.Go(func() { followTransactions(t, l, n) })
			}
			readers.Go(func() { followPartition(t, l, top, n) })
			for k := range n {
				if err := appendN(l, top, k); err != nil {
					t.Errorf("Append = %v", err)
					break
				}
				if k%100 == 50 { // Run alone may come late on a busy machine
					if err := l.Seal(ctx, 1000); err != nil {
						t.Errorf("Seal = %v", err)
					}
				}
				if k%100 == 99 { // a bootstrapping reader
					if got := ids(t, l); !slices.Equal(got, numbers(0, k+1)) {
						t.Errorf("read from the beginning: %d transactions of %d", len(got), k+1)
					}
				}
			}
			readers.Wait()
			stop()
			background.Wait()
			if l.Stats().SegmentBytes == 0 {
				t.Error("nothing was sealed: the test tests nothing")
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func followTransactions(t *testing.T, l *Log, n int) {
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Errorf("Read = %v", err)
		return
	}
	defer r.Close()
	for k := 0; k < n; {
		changed := l.Changed()
		tx, err := r.Next()
		if err != nil {
			t.Errorf("Next = %v", err)
			return
		}
		if tx == nil {
			<-changed
			continue
		}
		if tx.ID != fmt.Sprint(k) || len(tx.Records) != 2 || tx.CSN > l.Frontier() {
			t.Errorf("transaction %q with %d records where %d was due", tx.ID, len(tx.Records), k)
			return
		}
		k++
	}
}

func followPartition(t *testing.T, l *Log, top eventlog.Topic, n int) {
	p := eventlog.PartitionOf([]byte("k"), 2)
	r, err := l.ReadPartition(top.ID, p, 0)
	if err != nil {
		t.Errorf("ReadPartition = %v", err)
		return
	}
	defer r.Close()
	next := eventlog.Offset(0)
	for k := 0; k < n; {
		changed := l.Changed()
		rec, ok, err := r.Next()
		if err != nil {
			t.Errorf("partition Next = %v", err)
			return
		}
		if !ok {
			<-changed
			continue
		}
		if rec.Offset != next {
			t.Errorf("offset %d where %d was due", rec.Offset, next)
			return
		}
		next++
		if string(rec.Key) == "k" {
			if string(rec.Value) != fmt.Sprint(k) {
				t.Errorf("record %q where %d was due", rec.Value, k)
				return
			}
			k++
		}
	}
}

// TestReadOnlyBesideWriter reads a directory in which a log is at work.
func TestReadOnlyBesideWriter(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	if _, err := OpenReadOnly("log", opts); !vfs.IsNotExist(err) {
		t.Errorf("OpenReadOnly of nothing = %v", err)
	}
	opts.FileBytes, opts.TailBytes = 1500, 1
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 20)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind != "read" && op.Kind != "readdir" && op.Kind != "open" {
			t.Errorf("a read-only log does %s of %s", op.Kind, op.Name)
		}
		return 0, nil
	})
	ro, err := OpenReadOnly("log", opts)
	if err != nil {
		t.Fatal(err)
	}
	old, err := ro.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(t, ro); !slices.Equal(got, numbers(0, 20)) {
		t.Errorf("read-only log shows %v", got)
	}
	if err := appendN(ro, top, 99); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Append to a read-only log = %v", err)
	}
	fs.SetHook(nil)
	mustAppend(t, l, top, 20, 23)
	if grown, err := ro.Refresh(); !grown || err != nil {
		t.Errorf("Refresh = %v, %v", grown, err)
	}
	if got := ids(t, ro); !slices.Equal(got, numbers(0, 23)) {
		t.Errorf("read-only log shows %v after Refresh", got)
	}
	mustAppend(t, l, top, 23, 40)
	if err := l.SealAll(context.Background()); err != nil { // its files are deleted under the reader
		t.Fatal(err)
	}
	for n := range 23 {
		tx, err := old.Next()
		if err != nil || tx == nil || tx.ID != fmt.Sprint(n) {
			t.Fatalf("reader over deleted files: %+v, %v; want %d", tx, err, n)
		}
	}
	if _, err := ro.Refresh(); err != nil {
		t.Error(err)
	}
	if got := ids(t, ro); !slices.Equal(got, numbers(0, 40)) {
		t.Errorf("read-only log shows %v after sealing", got)
	}
	mustAppend(t, l, top, 40, 42)
	torn := fs.Clone()
	name, size := newestJournal(torn)
	cut(t, torn, name, size-1)
	opts.FS = torn
	if _, err := OpenReadOnly("log", opts); err != nil {
		t.Errorf("OpenReadOnly with a torn tail = %v", err)
	}
	if got := torn.Files()[name]; got != size-1 {
		t.Errorf("a read-only log changed the torn file to %d bytes", got)
	}
}

// TestSlowReaderPinsNothing checks that the tail drops groups that a reader has not read.
func TestSlowReaderPinsNothing(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.TailBytes = 2000
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustAppend(t, l, top, 0, 500)
	if l.tail.bytes > 2000 {
		t.Errorf("tail holds %d bytes", l.tail.bytes)
	}
	for n := range 500 {
		if tx, err := r.Next(); err != nil || tx == nil || tx.ID != fmt.Sprint(n) {
			t.Fatalf("Next = %+v, %v; want %d", tx, err, n)
		}
	}
}

// TestIndexFindsPlace checks that a reader of a closed file starts near its place.
func TestIndexFindsPlace(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.TailBytes = 1
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	for n := range 40 {
		tx := transaction(top, n)
		tx.Records[0].Value = make([]byte, 200<<10)
		if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
	}
	frontier := l.Frontier()
	if err := l.Roll(context.Background()); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, opts)
	f := again.files[0]
	h, err := fs.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if f.index, _ = loadIndex(h, f, f.size); len(f.index) < 5 {
		t.Fatalf("index of %d points", len(f.index))
	}
	read := 0
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "read" {
			read += op.N
		}
		return 0, nil
	})
	r, err := again.Read(eventlog.ReadSpec{After: frontier - 1})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := r.Next()
	if err != nil || tx == nil || tx.ID != "39" {
		t.Fatalf("Next = %+v, %v", tx, err)
	}
	if read > 3<<20 {
		t.Errorf("%d bytes read of %d to find the last transaction", read, f.size)
	}
}
