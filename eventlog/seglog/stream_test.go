package seglog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// streamOptions makes chunks small.
func streamOptions(fs vfs.FS) Options {
	opts := memOptions(fs)
	opts.StreamChunk = 300
	return opts
}

func mustStream(t *testing.T, l eventlog.Log) eventlog.Stream {
	t.Helper()
	s, err := l.Stream(context.Background())
	if err != nil {
		t.Fatalf("Stream = %v", err)
	}
	return s
}

// addStreamed adds n records with value v and keys k0, k1 ...; those of odd seq
// belong to a sub-transaction that is aborted.
func addStreamed(s eventlog.Stream, top eventlog.Topic, v string, n int) error {
	for i := range n {
		sub, value := uint32(0), v
		if i%2 == 1 {
			sub, value = 9, "aborted"
		}
		r := eventlog.Record{Topic: top.ID, Seq: uint32(i), Op: 1, Key: fmt.Append(nil, "k", i), Value: []byte(value)}
		if err := s.Add(sub, []eventlog.Record{r}); err != nil {
			return err
		}
	}
	return s.Abort(9)
}

// streamed makes the n-th transaction out of a stream; readers see four records of it.
func streamed(l eventlog.Log, top eventlog.Topic, n int) (*stream, error) {
	s, err := l.Stream(context.Background())
	if err != nil {
		return nil, err
	}
	if err := addStreamed(s, top, fmt.Sprint(n), 8); err != nil {
		return s.(*stream), err
	}
	return s.(*stream), s.Commit(context.Background(), streamedTx(n))
}

func streamedTx(n int) *eventlog.Tx {
	tx := transaction(eventlog.Topic{}, n)
	tx.Records = nil
	return tx
}

func mustStreamed(t *testing.T, l eventlog.Log, top eventlog.Topic, n int) *stream {
	t.Helper()
	s, err := streamed(l, top, n)
	if err != nil {
		t.Fatalf("streamed transaction %d: %v", n, err)
	}
	return s
}

// shown returns the ids of all transactions, whether ordinary or streamed,
// checking that each has all its records and nothing else.
func shown(t *testing.T, l eventlog.Log) []string {
	t.Helper()
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatalf("Read = %v", err)
	}
	defer r.Close()
	out := []string{}
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatalf("Next = %v", err)
		}
		if tx == nil {
			return out
		}
		for _, rec := range tx.Records {
			if string(rec.Value) != tx.ID || rec.CSN != tx.CSN || rec.Time != tx.CommitTime {
				t.Errorf("transaction %q has a record %+v", tx.ID, rec)
			}
		}
		if n := len(tx.Records); n != 2 && n != 4 {
			t.Errorf("transaction %q has %d records", tx.ID, n)
		}
		out = append(out, tx.ID)
	}
}

// streamFiles returns the streamed files in a directory.
func streamFiles(fs *vfs.Mem) (names []string) {
	for name := range fs.Files() {
		if _, _, ok := parseStreamName(strings.TrimPrefix(name, "log/journal/")); ok {
			names = append(names, strings.TrimPrefix(name, "log/journal/"))
		}
	}
	slices.Sort(names)
	return names
}

func wantStreamFiles(t *testing.T, what string, fs *vfs.Mem, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := streamFiles(fs); !slices.Equal(got, want) {
		t.Errorf("%s: streamed files %q, want %q", what, got, want)
	}
}

// V17: an adopted file and its name are durable before the commit returns.
func TestV17StreamedFileSyncedBeforeAck(t *testing.T) {
	fs := vfs.NewMem()
	opts := streamOptions(fs)
	opts.FileBytes = 3000
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	for n := range 12 {
		mustStreamed(t, l, top, n)
		after := opts
		after.FS = fs.Crash(nil) // all that was not synced is gone
		if got := shown(t, mustOpen(t, after)); !slices.Equal(got, numbers(0, n+1)) {
			t.Fatalf("after power loss the log holds %v, acknowledged were 0 to %d", got, n)
		}
	}
	if n := len(l.files); n < 3 {
		t.Errorf("%d journal files: adopted bytes do not count", n)
	}
}

// TestStreamLosesPowerAnywhere loses power at each operation of a life with
// streams: every acknowledged transaction is there, no other but one in doubt,
// and after a start no file is left that nothing names.
func TestStreamLosesPowerAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		fs := vfs.NewMem()
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		var disks []*vfs.Mem
		seen := 0
		fs.SetHook(func(op vfs.Op) (int, error) {
			if disks == nil && op.Changes() {
				if seen++; seen-1 == n {
					disks = []*vfs.Mem{fs.Crash(nil), fs.Crash(rng), fs.Clone()}
				}
			}
			if disks != nil {
				return 0, errors.New("no power")
			}
			return 0, nil
		})
		acked, doubt := streamingLife(fs)
		if disks == nil {
			if n < 60 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		for i, disk := range disks {
			l := mustOpen(t, streamOptions(disk))
			got := shown(t, l)
			if !slices.Equal(got, acked) && !slices.Equal(got, append(slices.Clone(acked), doubt)) {
				t.Fatalf("power lost at operation %d, disk %d: log holds %v, acknowledged were %v, in doubt %s", n, i, got, acked, doubt)
			}
			named := 0
			for _, f := range l.files {
				named += len(f.streams)
			}
			if files := streamFiles(disk); len(files) != named {
				t.Fatalf("power lost at operation %d, disk %d: files %v, %d are named", n, i, files, named)
			}
			if err := l.SealAll(context.Background()); err != nil {
				t.Fatalf("power lost at operation %d, disk %d: SealAll = %v", n, i, err)
			}
			if again := shown(t, l); !slices.Equal(again, got) {
				t.Fatalf("power lost at operation %d, disk %d: sealed %v, was %v", n, i, again, got)
			}
			wantStreamFiles(t, "sealed", disk)
		}
	}
}

// streamingLife streams, appends, discards and seals until something fails.
func streamingLife(fs *vfs.Mem) (acked []string, doubt string) {
	opts := streamOptions(fs)
	opts.FileBytes = 4000
	l, err := Open("log", opts)
	if err != nil {
		return nil, ""
	}
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 2})
	for n := 0; n < 9 && err == nil; n++ {
		doubt = fmt.Sprint(n)
		switch n % 3 {
		case 0:
			_, err = streamed(l, top, n)
		case 1:
			err = appendN(l, top, n)
		case 2:
			open, _ := l.Stream(context.Background())
			if err = addStreamed(open, top, "never", 8); err == nil {
				if err = open.Discard(); err == nil {
					_, err = streamed(l, top, n)
				}
			}
		}
		if err != nil {
			return acked, doubt
		}
		acked = append(acked, doubt)
		if n == 5 {
			err = l.SealAll(context.Background())
		}
	}
	return acked, doubt
}

// TestStreamWithoutSpace fails each kind of operation for want of space, again
// and again: the stream goes on where it was, and nothing else is harmed.
func TestStreamWithoutSpace(t *testing.T) {
	for _, kind := range []string{"create", "write", "rename", "syncdir", "sync of the journal"} {
		for n := range 12 {
			fs := vfs.NewMem()
			l := mustOpen(t, streamOptions(fs))
			top := mustTopic(t, l, "s.p.t")
			mustAppend(t, l, top, 0, 1)
			seen := 0
			fs.SetHook(func(op vfs.Op) (int, error) {
				is := op.Kind == kind
				if kind == "sync of the journal" {
					is = op.Kind == "sync" && strings.HasSuffix(op.Name, journalSuffix)
				}
				if is {
					if seen++; seen >= n && seen < n+3 {
						return op.N / 2, syscall.ENOSPC
					}
				}
				return 0, nil
			})
			s := mustStream(t, l)
			tries := func(what string, do func() error) {
				t.Helper()
				for range 4 {
					err := do()
					if err == nil {
						return
					}
					if !errors.Is(err, eventlog.ErrFull) || errors.Is(err, eventlog.ErrStreamLost) || errors.Is(err, ErrSync) {
						t.Fatalf("%s of %q without space = %v", what, kind, err)
					}
					if got := shown(t, l); !slices.Equal(got, numbers(0, 1)) {
						t.Fatalf("without space %v is seen", got)
					}
				}
				t.Fatalf("%s of %q never succeeds", what, kind)
			}
			var records []eventlog.Record
			for i := range uint32(4) {
				records = append(records, eventlog.Record{Topic: top.ID, Seq: i, Key: fmt.Append(nil, i), Value: []byte("1")})
				records[i].Key = append(records[i].Key, make([]byte, 200)...)
			}
			tries("Add", func() error { return s.Add(0, records) })
			tries("Commit", func() error { return s.Commit(context.Background(), streamedTx(1)) })
			if seen < 1 {
				t.Fatalf("no %s", kind)
			}
			fs.SetHook(nil)
			mustAppend(t, l, top, 2, 3)
			if got := shown(t, mustOpen(t, streamOptions(fs.Crash(nil)))); !slices.Equal(got, numbers(0, 3)) {
				t.Errorf("%s %d without space: %v", kind, n, got)
			}
		}
	}
}

// TestStreamSyncWithoutSpace: what a failed sync left is not known, a later one would mean nothing.
func TestStreamSyncWithoutSpace(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, streamTmpSuffix) {
			return 0, syscall.ENOSPC
		}
		return 0, nil
	})
	s, err := streamed(l, top, 0)
	if !errors.Is(err, eventlog.ErrFull) || !errors.Is(err, eventlog.ErrStreamLost) {
		t.Fatalf("Commit = %v", err)
	}
	fs.SetHook(nil)
	if err := s.Commit(context.Background(), streamedTx(0)); !errors.Is(err, eventlog.ErrStreamLost) {
		t.Errorf("Commit again = %v", err)
	}
	if err := s.Add(0, nil); !errors.Is(err, eventlog.ErrStreamLost) {
		t.Errorf("Add = %v", err)
	}
	if err := s.Discard(); err != nil {
		t.Errorf("Discard = %v", err)
	}
	wantStreamFiles(t, "discarded", fs)
	mustStreamed(t, l, top, 0)
	if got := shown(t, l); !slices.Equal(got, numbers(0, 1)) {
		t.Errorf("log holds %v", got)
	}
}

func TestStreamFailedSyncIsTheEnd(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, streamTmpSuffix) {
			return 0, syscall.EIO
		}
		return 0, nil
	})
	if _, err := streamed(l, top, 0); !errors.Is(err, ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("Commit = %v", err)
	}
	fs.SetHook(nil)
	if err := appendN(l, top, 1); !errors.Is(err, ErrSync) {
		t.Errorf("Append afterwards = %v", err)
	}
}

// TestDoubtfulStreamIsNotDeleted discards a stream whose adopting entry may be on
// the disk: a file that an entry may name is not removed before the entry is known to be cut.
func TestDoubtfulStreamIsNotDeleted(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 1)
	full := true
	fs.SetHook(func(op vfs.Op) (int, error) { // written whole, and neither synced nor cut
		if full && strings.HasSuffix(op.Name, journalSuffix) && (op.Kind == "sync" || op.Kind == "truncate") {
			return 0, syscall.ENOSPC
		}
		return 0, nil
	})
	s, err := streamed(l, top, 1)
	if !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Commit = %v", err)
	}
	doubtful := fs.Clone()
	gone := mustStream(t, l) // another, that was never in doubt
	if err := addStreamed(gone, top, "never", 8); err != nil {
		t.Fatal(err)
	}
	if err := gone.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(); err != nil {
		t.Errorf("Discard = %v", err)
	}
	if got := shown(t, mustOpen(t, streamOptions(fs.Clone()))); !slices.Equal(got, numbers(0, 2)) {
		t.Errorf("killed in doubt, after Discard: %v", got)
	}
	if got := shown(t, mustOpen(t, streamOptions(doubtful))); !slices.Equal(got, numbers(0, 2)) {
		t.Errorf("killed in doubt: %v", got)
	}
	full = false
	mustAppend(t, l, top, 2, 3) // which cuts the entry
	disk := fs.Crash(nil)
	if got := shown(t, mustOpen(t, streamOptions(disk))); !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("after Discard: %v", got)
	}
	wantStreamFiles(t, "after the next start", disk)
	full = true
	if s, err = streamed(l, top, 3); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Commit = %v", err)
	}
	full = false
	if err := s.Discard(); err != nil { // the entry is cut first
		t.Errorf("Discard = %v", err)
	}
	wantStreamFiles(t, "with space again", fs, streamName(1, 1))
	if got := shown(t, mustOpen(t, streamOptions(fs.Crash(nil)))); !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("after Discard: %v", got)
	}
}

// TestStreamedFilesGoWithTheirJournalFile looks at the names, and stops sealing
// between the removal of a journal file and that of what it adopted.
func TestStreamedFilesGoWithTheirJournalFile(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	open := mustStream(t, l).(*stream)
	if err := addStreamed(open, top, "0", 8); err != nil {
		t.Fatal(err)
	}
	wantStreamFiles(t, "in progress", fs, streamTmpName(1))
	mustStreamed(t, l, top, 1)
	wantStreamFiles(t, "one committed", fs, streamName(1, 2), streamTmpName(1))
	before := l.Stats()
	if err := open.Commit(context.Background(), streamedTx(0)); err != nil {
		t.Fatal(err)
	}
	size := fs.Files()["log/journal/"+streamName(1, 1)]
	if after := l.Stats(); after.JournalBytes-before.JournalBytes < size || after.AppendedBytes-before.AppendedBytes < size {
		t.Errorf("stats %+v, then %+v, with %d bytes more", before, after, size)
	}
	again := mustOpen(t, streamOptions(fs.Clone()))
	if a, b := again.Stats().JournalBytes, l.Stats().JournalBytes; a != b {
		t.Errorf("journal has %d bytes after a start, had %d", a, b)
	}
	dead := errors.New("dead")
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "remove" && strings.HasSuffix(op.Name, streamSuffix) {
			return 0, dead
		}
		return 0, nil
	})
	if err := l.SealAll(context.Background()); !errors.Is(err, dead) {
		t.Fatalf("SealAll = %v", err)
	}
	if got := shown(t, l); !slices.Equal(got, []string{"1", "0"}) {
		t.Errorf("sealed: %v", got)
	}
	fs.SetHook(nil)
	disk := fs.Crash(nil)
	wantStreamFiles(t, "sealed, not removed", disk, streamName(1, 1), streamName(1, 2))
	again = mustOpen(t, streamOptions(disk))
	wantStreamFiles(t, "after a start", disk)
	mustStreamed(t, again, top, 2)
	wantStreamFiles(t, "another", disk, streamName(2, 3))
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantStreamFiles(t, "sealed again", fs)
}

// TestStreamAmongQueuedAppends lets a commit wait between two appends: its entry is its own.
func TestStreamAmongQueuedAppends(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	<-l.token // as one who writes
	done := make(chan error)
	for n, do := range []func() error{
		func() error { return appendN(l, top, 0) },
		func() error { _, err := streamed(l, top, 1); return err },
		func() error { _, err := streamed(l, top, 2); return err },
		func() error { return appendN(l, top, 3) },
	} {
		go func() { done <- do() }()
		for queued := 0; queued <= n; runtime.Gosched() {
			l.queueMu.Lock()
			queued = len(l.queue)
			l.queueMu.Unlock()
		}
	}
	l.token <- struct{}{}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := shown(t, l); !slices.Equal(got, numbers(0, 4)) {
		t.Errorf("log holds %v", got)
	}
	if got := shown(t, mustOpen(t, streamOptions(fs.Crash(nil)))); !slices.Equal(got, numbers(0, 4)) {
		t.Errorf("after power loss the log holds %v", got)
	}
}

// TestCloseEndsStreams: a closed log leaves no file of what was in progress.
func TestCloseEndsStreams(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	s := mustStream(t, l)
	if err := addStreamed(s, top, "0", 8); err != nil {
		t.Fatal(err)
	}
	wantStreamFiles(t, "in progress", fs, streamTmpName(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wantStreamFiles(t, "closed", fs)
	again := mustOpen(t, streamOptions(fs))
	mustStreamed(t, again, top, 0)
	other := mustStream(t, again)
	if err := addStreamed(other, top, "1", 8); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(); err != nil {
		t.Errorf("Discard after Close = %v", err)
	}
	if err := s.Commit(context.Background(), streamedTx(0)); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("Commit after Close = %v", err)
	}
	wantStreamFiles(t, "another log's", fs, streamName(1, 1), streamTmpName(2))
}

func TestStreamTooLarge(t *testing.T) {
	l := mustOpen(t, streamOptions(vfs.NewMem()))
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: eventlog.MaxPartitions})
	if err != nil {
		t.Fatal(err)
	}
	s := mustStream(t, l)
	r := eventlog.Record{Topic: top.ID, Partition: eventlog.EveryPartition, Value: make([]byte, 1<<20)}
	if err := s.Add(0, []eventlog.Record{r}); !errors.Is(err, eventlog.ErrTooLarge) {
		t.Errorf("Add of 1 MiB in %d partitions = %v", eventlog.MaxPartitions, err)
	}
	if err := s.Add(0, []eventlog.Record{{Topic: txTopic}}); err == nil {
		t.Error("Add to _tx = nil")
	}
	if n, size := s.Size(); n != 0 || size != 0 {
		t.Errorf("Size = %d, %d", n, size)
	}
}
