package seglog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

func TestQuota(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.FileBytes, opts.Quota = 4000, 40000
	l := mustOpen(t, opts)
	ctx := context.Background()
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupCompact, Compression: "none"})
	if err != nil {
		t.Fatal(err)
	}
	one := func(n int) error {
		return l.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, n), Records: []eventlog.Record{
			{Topic: top.ID, Op: 1, Key: fmt.Append(nil, "k", n%3), Value: fmt.Appendf(nil, "%0500d", n)},
		}}})
	}
	n := 0
	for ; err == nil; n++ {
		err = one(n)
	}
	if !errors.Is(err, eventlog.ErrFull) || n < 60 {
		t.Fatalf("append %d = %v, want ErrFull when the quota is used up", n, err)
	}
	if used := l.Stats().JournalBytes; used > opts.Quota {
		t.Errorf("%d bytes are used of %d", used, opts.Quota)
	}
	// What consumers need to make room still goes in, whatever the quota.
	l.SetQuota(1)
	if err := l.SaveCheckpoint("c", []byte("m")); err != nil {
		t.Errorf("SaveCheckpoint = %v", err)
	}
	tick := &eventlog.Tx{Kind: eventlog.TxTick, Source: "s", Position: []byte("t")}
	if err := l.Append(ctx, []*eventlog.Tx{tick}); err != nil {
		t.Errorf("a tick = %v", err)
	}
	l.SetQuota(opts.Quota)
	select {
	case <-l.compactNow:
	default:
		t.Error("the background was not woken")
	}
	if err := l.Seal(ctx, 0); err != nil {
		t.Fatal(err)
	}
	l.SetQuota(l.Stats().JournalBytes + l.Stats().SegmentBytes + 100)
	if err := one(n); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("append with the quota used up by segments = %v", err)
	}
	if !l.compactDirtiest(ctx) {
		t.Error("nothing is compacted although the quota presses")
	}
	if err := one(n); err != nil {
		t.Errorf("append after compaction = %v", err)
	}
}

// TestQuotaFreesByItself appends more and more of the same keys to a log with a
// small quota and journal files that would never be closed for their size.
func TestQuotaFreesByItself(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.Quota = 100_000
	l := mustOpen(t, opts)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupCompact, Compression: "none"})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	refused := 0
	for n := range 2000 {
		for {
			err := l.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, n), Records: []eventlog.Record{
				{Topic: top.ID, Op: 1, Key: fmt.Append(nil, "k", n%3), Value: fmt.Appendf(nil, "%0500d", n)},
			}}})
			if err == nil {
				break
			}
			if !errors.Is(err, eventlog.ErrFull) {
				t.Fatal(err)
			}
			refused++
			runtime.Gosched() // the background makes room
		}
		if used := l.Stats().JournalBytes + l.Stats().SegmentBytes; used > 2*opts.Quota {
			t.Fatalf("%d bytes are used of %d", used, opts.Quota)
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if refused == 0 {
		t.Error("no append was refused: the test tests nothing")
	}
}

// TestQuotaForALargeAppend: what does not fit is far more than the tenth of the
// quota that is left; compaction makes room for it all the same.
func TestQuotaForALargeAppend(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.Quota, opts.FileBytes = 100_000, 8000
	l := mustOpen(t, opts)
	ctx := context.Background()
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupCompact, Compression: "none"})
	if err != nil {
		t.Fatal(err)
	}
	put := func(n, size int) error {
		return l.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, n), Records: []eventlog.Record{
			{Topic: top.ID, Op: 1, Key: fmt.Append(nil, "k", n%3), Value: make([]byte, size)},
		}}})
	}
	for n := range 140 {
		if err := put(n, 500); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(0, 40_000); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("an append that does not fit = %v", err)
	}
	if err := l.sealDue(ctx); err != nil {
		t.Fatal(err)
	}
	for l.compactDirtiest(ctx) {
	}
	if err := put(0, 40_000); err != nil {
		t.Errorf("after compaction: %v", err)
	}
	if l.pressed() {
		t.Error("the log is still pressed")
	}
}
