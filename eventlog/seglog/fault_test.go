package seglog

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestFailNthOperation fails the Nth operation for N = 0, 1, 2 ... until none
// fails, loses power, and finds every acknowledged transaction once.
func TestFailNthOperation(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 0; ; n++ {
			if !failNth(t, n, fault) {
				if n < 30 {
					t.Errorf("only %d operations", n)
				}
				break
			}
			if t.Failed() {
				t.Fatalf("with operation %d failing by %v", n, fault)
			}
		}
	}
}

// failNth runs a log's life with one failing operation; false if there were fewer.
func failNth(t *testing.T, n int, fault error) (struck bool) {
	t.Helper()
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	seen := 0
	fs.SetHook(func(op vfs.Op) (int, error) {
		if !op.Changes() {
			return 0, nil
		}
		seen++
		if seen-1 == n {
			struck = true
			return op.N / 2, fault
		}
		return 0, nil
	})
	opts := memOptions(fs)
	opts.FileBytes = 800
	var acked, refused []string
	if l, err := Open("log", opts); err == nil {
		acked, refused = failingLife(l)
	}
	fs.SetHook(nil)
	for _, disk := range []*vfs.Mem{fs.Crash(nil), fs.Crash(rng), fs.Clone()} {
		opts.FS = disk
		got := ids(t, mustOpen(t, opts))
		if !contains(got, acked) {
			t.Errorf("log holds %v, acknowledged were %v", got, acked)
		}
		for _, id := range refused {
			if slices.Contains(got, id) {
				t.Errorf("log holds %s, whose append was refused", id)
			}
		}
	}
	return struck
}

// failingLife appends and seals whatever fails; after a failed sync it stops, as the daemon does.
func failingLife(l *Log) (acked, refused []string) {
	var top eventlog.Topic
	for n := range 12 {
		var err error
		if top.ID == 0 {
			top, err = l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 2})
		}
		if err == nil {
			tx := transaction(top, n)
			err = l.Append(context.Background(), []*eventlog.Tx{tx})
			switch {
			case err == nil:
				acked = append(acked, tx.ID)
			case !errors.Is(err, ErrSync):
				refused = append(refused, tx.ID)
			}
		}
		if n%5 == 4 && err == nil {
			err = l.SealAll(context.Background())
		}
		if errors.Is(err, ErrSync) {
			break
		}
	}
	return acked, refused
}

// contains reports whether all of want are in got, in order.
func contains(got, want []string) bool {
	for _, g := range got {
		if len(want) > 0 && g == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func TestFullDisk(t *testing.T) {
	for _, kind := range []string{"write", "sync", "create"} {
		fs := vfs.NewMem()
		opts := memOptions(fs)
		opts.FileBytes = 1500
		l := mustOpen(t, opts)
		top := mustTopic(t, l, "s.p.t")
		mustAppend(t, l, top, 0, 3)
		fs.SetHook(func(op vfs.Op) (int, error) {
			if op.Kind == kind {
				return op.N / 2, syscall.ENOSPC
			}
			return 0, nil
		})
		frontier, n := l.Frontier(), 3
		for range 20 { // "create" fails only when the file is full
			err := appendN(l, top, n)
			if err == nil && kind == "create" {
				n++
				frontier = l.Frontier()
				continue
			}
			if !errors.Is(err, eventlog.ErrFull) || errors.Is(err, ErrSync) {
				t.Fatalf("%s without space: Append = %v, want ErrFull", kind, err)
			}
			if l.Frontier() != frontier {
				t.Fatalf("%s without space: frontier moved", kind)
			}
		}
		if got := ids(t, l); !slices.Equal(got, numbers(0, n)) {
			t.Errorf("%s without space: readers see %v, want 0 to %d", kind, got, n-1)
		}
		fs.SetHook(nil) // space again: it resumes by itself
		mustAppend(t, l, top, n, n+5)
		if got := ids(t, l); !slices.Equal(got, numbers(0, n+5)) {
			t.Errorf("%s with space again: %v", kind, got)
		}
		opts.FS = fs.Crash(nil)
		if got := ids(t, mustOpen(t, opts)); !slices.Equal(got, numbers(0, n+5)) {
			t.Errorf("%s with space again, after power loss: %v", kind, got)
		}
	}
}

func TestFailedSyncIsTheEnd(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "sync" {
			return 0, syscall.EIO
		}
		return 0, nil
	})
	if err := appendN(l, top, 3); !errors.Is(err, ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("Append with a failing sync = %v, want ErrSync", err)
	}
	fs.SetHook(nil) // the next sync would succeed, and would mean nothing
	if err := appendN(l, top, 4); !errors.Is(err, ErrSync) {
		t.Errorf("Append afterwards = %v, want ErrSync", err)
	}
	if err := l.SaveCheckpoint("c", []byte("x")); !errors.Is(err, ErrSync) {
		t.Errorf("SaveCheckpoint afterwards = %v, want ErrSync", err)
	}
	if got := ids(t, l); !slices.Equal(got, numbers(0, 3)) {
		t.Errorf("readers see %v, want what was acknowledged", got)
	}
}

func TestMissingFileIsDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	for n := range 4 {
		mustAppend(t, l, top, n, n+1)
		if err := l.Roll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	hole := fs.Clone()
	if err := hole.Remove("log/journal/" + journalName(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("log", memOptions(hole)); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("Open with a missing journal file = %v", err)
	}
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	gone := fs.Clone()
	name, _ := newestJournal(gone)
	if err := gone.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("log", memOptions(gone)); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("Open without a journal but with segments = %v", err)
	}
}

// TestHalfSealedRound stops a round of sealing between two renames: the rows of
// _tx are sealed, the records that they name are not. Readers go by the journal.
func TestHalfSealedRound(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 5)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 5, 10)
	renames := 0
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "rename" {
			if renames++; renames > 1 {
				return 0, syscall.EIO
			}
		}
		return 0, nil
	})
	if err := l.SealAll(context.Background()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("SealAll = %v", err)
	}
	fs.SetHook(nil)
	if got := ids(t, l); !slices.Equal(got, numbers(0, 10)) {
		t.Errorf("after half a round: %v", got)
	}
	again := mustOpen(t, memOptions(fs))
	if got := ids(t, again); !slices.Equal(got, numbers(0, 10)) {
		t.Errorf("after half a round and a restart: %v", got)
	}
	mustAppend(t, again, top, 10, 12)
	if err := again.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, mustOpen(t, memOptions(fs.Crash(nil)))); !slices.Equal(got, numbers(0, 12)) {
		t.Errorf("after the round was done again: %v", got)
	}
}

// TestRenamedSegmentIsSyncedBeforeTheJournalGoes fails the sync of a topic's
// directory behind its rename, which is the log's end. The next process finds the
// records sealed, and must sync that directory before it deletes the journal (V17).
func TestRenamedSegmentIsSyncedBeforeTheJournalGoes(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 5)
	renamed := false
	fs.SetHook(func(op vfs.Op) (int, error) {
		renamed = renamed || op.Kind == "rename" && !strings.Contains(op.Name, "/meta")
		if renamed && op.Kind == "syncdir" {
			return 0, syscall.EIO
		}
		return 0, nil
	})
	if err := l.SealAll(context.Background()); !errors.Is(err, syscall.EIO) || !errors.Is(err, ErrSync) {
		t.Fatalf("SealAll = %v", err)
	}
	fs.SetHook(nil)
	if err := appendN(l, top, 5); !errors.Is(err, ErrSync) {
		t.Fatalf("Append after a failed sync = %v", err)
	}
	l = mustOpen(t, memOptions(fs))
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, mustOpen(t, memOptions(fs.Crash(nil)))); !slices.Equal(got, numbers(0, 5)) {
		t.Errorf("after power loss: %v", got)
	}
}

// TestShownAtOpenIsDurable fails a sync, whose process then exits: what the next
// one finds in the cache and shows must survive a power loss after that, although
// the system takes it for written and a sync alone would do nothing.
func TestShownAtOpenIsDurable(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "sync" {
			return 0, syscall.EIO // the process dies here
		}
		return 0, nil
	})
	if err := appendN(l, top, 3); err == nil {
		t.Fatal("Append without a sync = nil")
	}
	fs.SetHook(nil)
	shown := ids(t, mustOpen(t, memOptions(fs)))
	if !slices.Equal(shown, numbers(0, 4)) {
		t.Fatalf("the cache holds %v", shown)
	}
	if got := ids(t, mustOpen(t, memOptions(fs.Crash(nil)))); !slices.Equal(got, shown) {
		t.Errorf("after power loss the log holds %v, shown was %v", got, shown)
	}
}

// TestSealingSurvivesACrashAnywhere takes what the disk may hold at every
// operation of a round of sealing: no image has a hole or misses a transaction.
func TestSealingSurvivesACrashAnywhere(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	for n := range 4 {
		mustAppend(t, l, top, 2*n, 2*n+2)
		if err := l.Roll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var images []*vfs.Mem
	take := func() {
		images = append(images, fs.Crash(nil), fs.Clone())
		for range 4 {
			images = append(images, fs.Crash(rng))
		}
	}
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Changes() {
			take()
		}
		return 0, nil
	})
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	fs.SetHook(nil)
	take()
	if len(images) < 100 {
		t.Errorf("only %d images", len(images))
	}
	for i, disk := range images {
		again, err := Open("log", memOptions(disk))
		if err != nil {
			t.Fatalf("image %d: Open = %v", i, err)
		}
		if got := ids(t, again); !slices.Equal(got, numbers(0, 8)) {
			t.Fatalf("image %d: %v", i, got)
		}
		if err := again.SealAll(context.Background()); err != nil {
			t.Fatalf("image %d: SealAll = %v", i, err)
		}
		if got := ids(t, mustOpen(t, memOptions(disk.Crash(nil)))); !slices.Equal(got, numbers(0, 8)) {
			t.Fatalf("image %d, sealed: %v", i, got)
		}
	}
}

// TestRefusedStaysAway refuses an append for want of space when its entry is
// written whole: no restart shows it, and it leaves no trace behind the next one.
func TestRefusedStaysAway(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 2)
	isSync := func(op vfs.Op) bool { return op.Kind == "sync" }
	fs.SetHook(vfs.FailNth(0, isSync, syscall.ENOSPC))
	if err := appendN(l, top, 1000); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Append = %v", err)
	}
	fs.SetHook(nil)
	for what, disk := range map[string]*vfs.Mem{"kill": fs.Clone(), "power loss": fs.Crash(nil)} {
		if got := ids(t, mustOpen(t, memOptions(disk))); !slices.Equal(got, numbers(0, 2)) {
			t.Errorf("after a %s: %v", what, got)
		}
	}

	syncs := vfs.FailNth(0, isSync, syscall.ENOSPC) // this time cutting fails too
	cuts := vfs.FailNth(0, func(op vfs.Op) bool { return op.Kind == "truncate" }, syscall.EIO)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if n, err := syncs(op); err != nil {
			return n, err
		}
		return cuts(op)
	})
	if err := appendN(l, top, 1000); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Append = %v", err)
	}
	fs.SetHook(nil)
	mustAppend(t, l, top, 2, 3) // a shorter entry
	for what, disk := range map[string]*vfs.Mem{"kill": fs.Clone(), "power loss": fs.Crash(nil)} {
		again := mustOpen(t, memOptions(disk))
		if got := ids(t, again); !slices.Equal(got, numbers(0, 3)) {
			t.Errorf("after the next append and a %s: %v", what, got)
		}
		if ends := again.EndOffsets(top.ID); ends[0]+ends[1] != 6 {
			t.Errorf("after the next append and a %s something was cut: end offsets %v", what, ends)
		}
	}
}

// TestRefusedWithoutSpaceForTheCut: where not even the cut can be made durable, a
// power loss may show the refused transaction, but only whole; the kill of the
// process does not.
func TestRefusedWithoutSpaceForTheCut(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 2)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "sync" {
			return 0, syscall.ENOSPC
		}
		return 0, nil
	})
	if err := appendN(l, top, 2); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Append = %v", err)
	}
	fs.SetHook(nil)
	if got := ids(t, mustOpen(t, memOptions(fs.Clone()))); !slices.Equal(got, numbers(0, 2)) {
		t.Errorf("after a kill: %v", got)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	whole := 0
	for range 200 {
		switch got := ids(t, mustOpen(t, memOptions(fs.Crash(rng)))); len(got) {
		case 3:
			whole++
			fallthrough
		case 2:
			if !slices.Equal(got, numbers(0, len(got))) {
				t.Fatalf("after power loss: %v", got)
			}
		default:
			t.Fatalf("after power loss: %v", got)
		}
	}
	if whole == 0 {
		t.Error("never whole: say so where ErrFull is described")
	}
}

// TestUnfinishedFileIsRemoved fails a roll when the new file is written whole,
// then appends: the file before grows only once the new one, which says where it
// ends, is gone for good.
func TestUnfinishedFileIsRemoved(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 2)
	fs.SetHook(vfs.FailNth(0, func(op vfs.Op) bool { return op.Kind == "sync" }, syscall.ENOSPC))
	if err := l.Roll(context.Background()); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Roll = %v", err)
	}
	fs.SetHook(nil)
	mustAppend(t, l, top, 2, 4)
	for what, disk := range map[string]*vfs.Mem{"kill": fs.Clone(), "power loss": fs.Crash(nil)} {
		if got := ids(t, mustOpen(t, memOptions(disk))); !slices.Equal(got, numbers(0, 4)) {
			t.Errorf("after a %s: %v", what, got)
		}
	}
}
