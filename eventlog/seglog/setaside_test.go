package seglog

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// asideLog is a log with a topic of one partition, sealed in three segments of several batches: records 0 to 59.
func asideLog(t *testing.T) (*vfs.Mem, *Log, eventlog.Topic) {
	t.Helper()
	fs := vfs.NewMem()
	l := mustOpen(t, asideOptions(fs))
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupCompact, Compression: "none"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		r := eventlog.Record{Topic: top.ID, Key: fmt.Append(nil, "key", n), Value: fmt.Appendf(nil, "%060d", n)}
		if err := l.Append(context.Background(), []*eventlog.Tx{{Source: "s", Records: []eventlog.Record{r}}}); err != nil {
			t.Fatal(err)
		}
		if n%20 == 19 {
			if err := l.SealAll(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return fs, l, top
}

func asideOptions(fs vfs.FS) Options {
	o := memOptions(fs)
	o.SealBatch = 400
	return o
}

// offsetsOf reads the topic's offsets until its end or an error.
func offsetsOf(t *testing.T, l *Log, top eventlog.Topic) (offsets []eventlog.Offset, err error) {
	t.Helper()
	r, err := l.ReadPartition(top.ID, 0, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return offsets, err
		}
		offsets = append(offsets, rec.Offset)
	}
}

// TestSetAside removes damaged batches and nothing else: a batch, or all of a
// segment whose footer is damaged, unless they reach to what is still needed.
func TestSetAside(t *testing.T) {
	whole, l, top := asideLog(t)
	seg := l.segs[partKey{top.ID, 0}][1]
	idx, err := seg.index(l.fs())
	if err != nil || len(idx.batches) < 4 {
		t.Fatalf("index %+v, %v", idx, err)
	}
	first, next := idx.batches[2].base, idx.batches[3].base
	frontier := l.Frontier()
	for _, c := range []struct {
		name       string
		bit        int64
		from, upTo eventlog.Offset
	}{
		{"batch", 8 * (idx.batches[2].pos + 70), first, next},
		{"footer", 8 * (idx.end + 2), seg.base, seg.next},
		{"header", 8 * 5, seg.base, seg.next},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := whole.Clone()
			fs.Flip(seg.path, c.bit)
			l := mustOpen(t, asideOptions(fs))
			ctx := context.Background()
			if err := l.SealedDamage(ctx, top.ID); !errors.Is(err, eventlog.ErrCorrupt) {
				t.Fatalf("SealedDamage = %v", err)
			}
			if _, err := offsetsOf(t, l, top); !errors.Is(err, eventlog.ErrCorrupt) {
				t.Fatalf("the damaged topic is read: %v", err)
			}
			if _, err := l.Compact(ctx, top.ID); !errors.Is(err, eventlog.ErrCorrupt) {
				t.Fatalf("Compact = %v", err)
			}
			before := fs.Files()
			if n, err := l.SetAside(ctx, top.ID, []eventlog.Offset{c.upTo - 1}); n != 0 || !errors.Is(err, eventlog.ErrCorrupt) {
				t.Errorf("SetAside below %d = %d, %v", c.upTo-1, n, err)
			}
			if after := fs.Files(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("a refused SetAside changes files: %v, before %v", after, before)
			}
			if n, err := l.SetAside(ctx, top.ID, []eventlog.Offset{c.upTo}); n != 1 || err != nil {
				t.Fatalf("SetAside = %d, %v", n, err)
			}
			for _, l := range []*Log{l, mustOpen(t, asideOptions(fs.Crash(nil)))} {
				wantAside(t, l, top, c.from, c.upTo)
				if h := l.Horizon(top.ID); h != frontier {
					t.Errorf("horizon %d, want the frontier %d", h, frontier)
				}
			}
			if _, err := l.Compact(ctx, top.ID); err != nil {
				t.Errorf("Compact afterwards = %v", err)
			}
			wantAside(t, l, top, c.from, c.upTo)
		})
	}
}

// wantAside checks that the records in [from, upTo) are gone, and no others, and that nothing is damaged.
func wantAside(t *testing.T, l *Log, top eventlog.Topic, from, upTo eventlog.Offset) {
	t.Helper()
	var want []eventlog.Offset
	for o := range eventlog.Offset(60) {
		if o < from || o >= upTo {
			want = append(want, o)
		}
	}
	if got, err := offsetsOf(t, l, top); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("offsets %v, %v; want %v", got, err, want)
	}
	if err := l.SealedDamage(context.Background(), top.ID); err != nil {
		t.Errorf("SealedDamage = %v", err)
	}
	if _, err := l.Check(context.Background(), func(err error) { t.Errorf("damage: %v", err) }); err != nil {
		t.Error(err)
	}
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatalf("transactions: %v", err)
		}
		if tx == nil {
			break
		}
		n += len(tx.Records)
	}
	if n != len(want) {
		t.Errorf("%d records in transactions, want %d", n, len(want))
	}
}

// TestSetAsideCrash ends the process, or the power, at every operation of SetAside:
// afterwards the damage is there as before or gone, and a repetition ends it. The
// horizon is never below what was removed.
func TestSetAsideCrash(t *testing.T) {
	whole, l, top := asideLog(t)
	seg := l.segs[partKey{top.ID, 0}][1]
	frontier := l.Frontier()
	whole.Flip(seg.path, 8*(segmentHeaderSize+70))
	idx, err := seg.index(l.fs())
	if err != nil {
		t.Fatal(err)
	}
	upTo := idx.batches[1].base
	steps := 0
	for n := 0; ; n++ {
		fs := whole.Clone()
		l := mustOpen(t, asideOptions(fs))
		struck := false
		var crashed, killed *vfs.Mem
		fs.SetHook(vfs.AtNth(n, func(op vfs.Op) bool { return op.Changes() }, func(vfs.Op) (int, error) {
			struck = true
			killed, crashed = fs.Clone(), fs.Crash(nil)
			return 0, nil
		}))
		_, err := l.SetAside(context.Background(), top.ID, []eventlog.Offset{upTo})
		fs.SetHook(nil)
		if !struck {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		steps++
		for what, disk := range map[string]*vfs.Mem{"kill": killed, "power loss": crashed} {
			again := mustOpen(t, asideOptions(disk))
			if again.SealedDamage(context.Background(), top.ID) == nil && again.Horizon(top.ID) != frontier {
				t.Errorf("%s at step %d: the damage is gone and the horizon is %d", what, n, again.Horizon(top.ID))
			}
			if _, err := again.SetAside(context.Background(), top.ID, []eventlog.Offset{upTo}); err != nil {
				t.Errorf("%s at step %d: SetAside again = %v", what, n, err)
			}
			wantAside(t, again, top, seg.base, upTo)
		}
	}
	if steps < 5 {
		t.Errorf("only %d operations change anything", steps)
	}
}

// TestSetAsideWithoutSpace: a full disk delays it, and says so. Then partitions
// that an earlier try has mended are compacted again, too.
func TestSetAsideWithoutSpace(t *testing.T) {
	whole, l, top := asideLog(t)
	k := partKey{top.ID, 0}
	seg := l.segs[k][1]
	whole.Flip(seg.path, 8*5)
	below := []eventlog.Offset{seg.next}
	for n := 0; ; n++ {
		fs := whole.Clone()
		l := mustOpen(t, asideOptions(fs))
		if _, err := l.Compact(t.Context(), top.ID); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Fatalf("Compact = %v", err)
		}
		l.damaged[k] = eventlog.ErrCorrupt // as the background notes it
		struck := false
		fs.SetHook(vfs.AtNth(n, vfs.Op.Grows, func(vfs.Op) (int, error) {
			struck = true
			return 0, syscall.ENOSPC
		}))
		_, err := l.SetAside(t.Context(), top.ID, below)
		fs.SetHook(nil)
		if struck != errors.Is(err, eventlog.ErrFull) || !struck && err != nil {
			t.Errorf("no space at write %d: SetAside = %v", n, err)
		}
		for range 2 { // the second time there is nothing to mend
			l.damaged[k] = eventlog.ErrCorrupt
			if _, err := l.SetAside(t.Context(), top.ID, below); err != nil || l.damaged[k] != nil {
				t.Errorf("with space again SetAside = %v; %v", err, l.damaged[k])
			}
		}
		wantAside(t, l, top, seg.base, seg.next)
		if !struck {
			break
		}
	}
}
