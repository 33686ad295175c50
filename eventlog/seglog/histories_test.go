package seglog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

func compactTopic(t *testing.T, l *Log) eventlog.Topic {
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupCompact, TombstoneRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func put(t *testing.T, l *Log, top eventlog.Topic, rs ...eventlog.Record) {
	t.Helper()
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: []byte("p"), CommitTime: testTime.UnixMicro()}
	for i, r := range rs {
		r.Topic, r.Seq, r.Op = top.ID, uint32(i), 1
		tx.Records = append(tx.Records, r)
	}
	if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
		t.Fatal(err)
	}
}

// TestBackwardOverAnEmptySegment: compaction may leave a segment without records.
func TestBackwardOverAnEmptySegment(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.SegmentBytes = 1
	l := mustOpen(t, opts)
	top := compactTopic(t, l)
	put(t, l, top, eventlog.Record{Key: []byte("a"), Value: []byte("1")})
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	put(t, l, top, eventlog.Record{Key: []byte("a"), Value: []byte("2")})
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Compact(context.Background(), top.ID); err != nil {
		t.Fatal(err)
	}
	r, _ := l.ReadBackward(top.ID, 0, 1<<62)
	n := 0
	for {
		_, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d records", n)
	}
}

// TestTxStartTwice: a crash between the mark of where _tx begins and the removal of its rows.
func TestTxStartTwice(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 3, 6)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	k := partKey{txTopic, 0}
	if err := l.moveTxStart(l.segs[k][:1]); err != nil {
		t.Fatal(err)
	}
	// kill -9 here
	l2 := mustOpen(t, memOptions(fs))
	r, _ := l2.Read(eventlog.ReadSpec{})
	n := map[eventlog.CSN]int{}
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tx == nil {
			break
		}
		n[tx.CSN]++
	}
	for csn, k := range n {
		if k > 1 {
			t.Errorf("CSN %d shown %d times", csn, k)
		}
	}
}

// TestTombstoneUnderPartial: a tombstone lies between an older value and the insert half of
// a key change; compaction stops between its runs. The old value must not come back.
func TestTombstoneUnderPartial(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.SegmentBytes, opts.Merge = 1, mergeTest
	l := mustOpen(t, opts)
	top := compactTopic(t, l)
	ctx := context.Background()
	seal := func() {
		t.Helper()
		if err := l.SealAll(ctx); err != nil {
			t.Fatal(err)
		}
	}
	put(t, l, top, eventlog.Record{Key: []byte("k1"), Value: []byte("old|old|old|old")})
	seal()
	put(t, l, top, eventlog.Record{Key: []byte("k1")})
	seal()
	put(t, l, top, eventlog.Record{Key: []byte("k2"), Flags: eventlog.FlagMoved},
		eventlog.Record{Key: []byte("k1"), Value: []byte("new|~|~|~"), Flags: eventlog.FlagMoved | eventlog.FlagPartial})
	seal()
	// as compaction does, but stop after the second run from the end
	c := l.newCompaction(ctx, partKey{top.ID, 0}, 0)
	if err := c.scan(); err != nil {
		t.Fatal(err)
	}
	if err := c.findHeld(); err != nil {
		t.Fatal(err)
	}
	m, err := c.newMerger()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.merge(); err != nil {
		t.Fatal(err)
	}
	c.merger, c.merged = m, m.done
	if err := c.raiseHorizon(); err != nil {
		t.Fatal(err)
	}
	runs := c.runs()
	c.keepUnmerged()
	for i := len(runs) - 1; i > 0; i-- {
		if err := c.rewriteRun(runs[i]); err != nil {
			t.Fatal(err)
		}
	}
	m.close()
	l2 := mustOpen(t, opts)
	if _, err := l2.Compact(ctx, top.ID); err != nil {
		t.Fatal(err)
	}
	pr, _ := l2.ReadPartition(top.ID, 0, 0)
	for {
		r, ok, err := pr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		t.Logf("%d %q=%q flags %d", r.Offset, r.Key, r.Value, r.Flags)
		if string(r.Key) == "k1" && string(r.Value) == "new|old|old|old" {
			t.Errorf("columns of a deleted row came back")
		}
	}
}

// TestLiveReaderPins: a reader that lives in the journal does not hold the rows of _tx for ever.
func TestLiveReaderPins(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	now := testTime
	opts.Clock = func() time.Time { return now }
	opts.Quota = 1000000
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	r, _ := l.Read(eventlog.ReadSpec{})
	drain := func() {
		for {
			tx, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if tx == nil {
				return
			}
		}
	}
	drain()
	for i := 0; i < 5; i++ {
		mustAppend(t, l, top, 10*i, 10*i+10)
		drain()
		l.SealAll(context.Background())
		drain()
	}
	now = now.Add(300 * 24 * time.Hour)
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if n := len(l.segs[partKey{txTopic, 0}]); n > 1 {
		t.Errorf("%d segments of _tx, %d days old, are kept for a reader that has caught up", n, 300)
	}
}

// TestCursorBeyondMaxCSN: a cursor that could not be read again is refused.
func TestCursorBeyondMaxCSN(t *testing.T) {
	l := mustOpen(t, memOptions(vfs.NewMem()))
	defer func() {
		if x := recover(); x != nil {
			t.Errorf("panic: %v", x)
		}
	}()
	l.SetCursor("c", &eventlog.Cursor{Passed: 1 << 60})
}

// TestStreamQuota: streamed transactions are under the quota too.
func TestStreamQuota(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.Quota = 10000
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	for i := 0; i < 10; i++ {
		s, _ := l.Stream(context.Background())
		if err := s.Add(0, []eventlog.Record{{Topic: top.ID, Key: []byte("k"), Value: make([]byte, 10000)}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(context.Background(), &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, i), CommitTime: 1}); err != nil {
			t.Logf("%v", err)
			return
		}
	}
	t.Errorf("%d bytes with a quota of 10000", l.diskBytes())
}

// TestTailBytes: what the tail forgets gives back what it took.
func TestTailBytes(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	for i := 0; i < 4; i++ {
		put(t, l, top, eventlog.Record{Key: []byte("k"), Value: make([]byte, 270<<10)})
		l.SealAll(context.Background())
	}
	t.Logf("%d groups", len(l.tail.groups))
	if len(l.tail.groups) == 0 && l.tail.bytes != 0 {
		t.Errorf("empty tail of %d bytes", l.tail.bytes)
	}
}

// TestRetentionUnderAReader: a reader hears of records that were deleted before it came to them.
func TestRetentionUnderAReader(t *testing.T) {
	now := testTime
	opts := memOptions(vfs.NewMem())
	opts.Clock = func() time.Time { return now }
	l := mustOpen(t, opts)
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupDelete, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 4; i++ {
		put(t, l, top, eventlog.Record{Key: []byte("k"), Value: fmt.Append(nil, i)})
		l.SealAll(context.Background())
	}
	pr, err := l.ReadPartition(top.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	rd, _ := l.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{top.ID}})
	r, _, _ := pr.Next()
	t.Logf("part at %d", r.Offset)
	tx, _ := rd.Next()
	t.Logf("tx csn %d rec %d", tx.CSN, tx.Records[0].Offset)
	now = now.Add(2 * time.Hour)
	tx = &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: []byte("p"), CommitTime: now.UnixMicro(), Records: []eventlog.Record{{Topic: top.ID, Op: 1, Key: []byte("k"), Value: []byte("late")}}}
	l.Append(context.Background(), []*eventlog.Tx{tx})
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	r, ok, err := pr.Next()
	t.Logf("next %d %v %v", r.Offset, ok, err)
	if err == nil && r.Offset != 1 {
		t.Errorf("part reader passed over offsets 1 to %d without an error", r.Offset)
	}
	tx, err = rd.Next()
	if err == nil && tx.Records[0].Offset != 1 {
		t.Errorf("reader passed over offsets 1 to %d without an error", tx.Records[0].Offset)
	}
}

// TestRollClosed: a closed log answers, and does not wait.
func TestRollClosed(t *testing.T) {
	l := mustOpen(t, memOptions(vfs.NewMem()))
	l.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if err := l.SealAll(ctx); err == context.DeadlineExceeded {
		t.Errorf("SealAll of a closed log waits: %v", err)
	}
}

// TestTailStaysUseful: after many rounds of sealing the tail still keeps the newest groups.
func TestTailStaysUseful(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.TailBytes = 2 << 20
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	for i := 0; i < 60; i++ {
		put(t, l, top, eventlog.Record{Key: []byte("k"), Value: make([]byte, 270<<10)})
		l.SealAll(context.Background())
	}
	put(t, l, top, eventlog.Record{Key: []byte("k"), Value: make([]byte, 270<<10)})
	if len(l.tail.groups) == 0 {
		t.Errorf("a group of 270 KiB does not stay in a tail of %d: it counts %d", opts.TailBytes, l.tail.bytes)
	}
}

// TestCancelledCompaction: as TestTombstoneUnderPartial, but compaction is only
// cancelled, as when the daemon stops.
func TestCancelledCompaction(t *testing.T) {
	bad := false
	for cut := range 40 {
		fs := vfs.NewMem()
		opts := memOptions(fs)
		opts.SegmentBytes, opts.Merge = 1, mergeTest
		l := mustOpen(t, opts)
		top := compactTopic(t, l)
		bg := context.Background()
		put(t, l, top, eventlog.Record{Key: []byte("k1"), Value: []byte("old|old|old|old")})
		l.SealAll(bg)
		put(t, l, top, eventlog.Record{Key: []byte("k1")})
		l.SealAll(bg)
		put(t, l, top, eventlog.Record{Key: []byte("k2"), Flags: eventlog.FlagMoved},
			eventlog.Record{Key: []byte("k1"), Value: []byte("new|~|~|~"), Flags: eventlog.FlagMoved | eventlog.FlagPartial})
		l.SealAll(bg)
		ctx, stop := context.WithCancel(bg)
		n := 0
		fs.SetHook(func(op vfs.Op) (int, error) {
			if op.Changes() {
				if n++; n > cut {
					stop()
				}
			}
			return op.N, nil
		})
		l.Compact(ctx, top.ID)
		fs.SetHook(nil)
		l.Close()
		l2 := mustOpen(t, opts)
		if _, err := l2.Compact(bg, top.ID); err != nil {
			t.Fatal(err)
		}
		pr, _ := l2.ReadPartition(top.ID, 0, 0)
		for {
			r, ok, err := pr.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if string(r.Value) == "new|old|old|old" {
				t.Errorf("cancelled after %d operations: columns of a deleted row came back: %q flags %d", cut, r.Value, r.Flags)
				bad = true
			}
		}
		if bad {
			return
		}
	}
}

// TestMissingSegment: a log of which any segment, or a topic's directory, is gone does not open.
func TestMissingSegment(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	for n := range 3 {
		mustAppend(t, l, top, 10*n, 10*n+10)
		if err := l.SealAll(ctx); err != nil {
			t.Fatal(err)
		}
	}
	s, err := l.Stream(ctx) // offsets that are used up and hold nothing
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint32(9) {
		if err := s.Add(1, []eventlog.Record{{Topic: top.ID, Seq: seq, Op: 1, Key: fmt.Append(nil, "k", seq), Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Abort(1); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: []byte("p")}); err != nil {
		t.Fatal(err)
	}
	if err := l.SealAll(ctx); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 30, 31)
	l.Close()
	mustOpen(t, memOptions(fs.Clone())).Close()
	gone := 0
	for name := range fs.Files() {
		if !strings.HasSuffix(name, segmentSuffix) {
			continue
		}
		disk := fs.Clone()
		if err := disk.Remove(name); err != nil {
			t.Fatal(err)
		}
		gone++
		if _, err := Open("log", memOptions(disk)); !errors.Is(err, eventlog.ErrCorrupt) && !strings.Contains(name, "-_tx") {
			t.Errorf("without %s: Open = %v", name, err)
		}
		if _, err := OpenReadOnly("log", memOptions(disk)); !errors.Is(err, eventlog.ErrCorrupt) && !strings.Contains(name, "-_tx") {
			t.Errorf("without %s: OpenReadOnly = %v", name, err)
		}
	}
	if gone < 8 {
		t.Errorf("%d segments: the test tests nothing", gone)
	}
}
