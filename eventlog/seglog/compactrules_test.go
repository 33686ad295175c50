package seglog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// cleaned is a log with one compacted topic of one partition, whose clock a test moves.
type cleaned struct {
	t    *testing.T
	opts Options
	now  time.Time
	log  *Log
	top  eventlog.Topic
}

func newCleaned(t *testing.T) *cleaned {
	c := &cleaned{t: t, now: testTime}
	c.opts = memOptions(vfs.NewMem())
	c.opts.Clock, c.opts.Merge = func() time.Time { return c.now }, mergeTest
	c.open()
	return c
}

func (c *cleaned) open() {
	c.t.Helper()
	c.log = mustOpen(c.t, c.opts)
	var err error
	c.top, err = c.log.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupCompact, TombstoneRetention: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
}

// crash loses power.
func (c *cleaned) crash() {
	c.t.Helper()
	c.opts.FS = c.opts.FS.(*vfs.Mem).Crash(nil)
	c.open()
}

// put appends transactions of one record, "key=value" or "key" for a tombstone.
func (c *cleaned) put(records ...string) {
	c.t.Helper()
	for _, kv := range records {
		key, value, ok := strings.Cut(kv, "=")
		r := eventlog.Record{Topic: c.top.ID, Op: testUpdate, Key: []byte(key), Value: []byte(value)}
		if !ok {
			r.Op, r.Value = testDelete, nil
		}
		tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", CommitTime: c.now.UnixMicro(), Records: []eventlog.Record{r}}
		if err := c.log.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cleaned) seal() {
	c.t.Helper()
	if err := c.log.SealAll(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

// compact runs enough passes: a tombstone goes in the one behind that which
// removed what it hides.
func (c *cleaned) compact() {
	c.t.Helper()
	for range 4 {
		if _, err := c.log.Compact(context.Background(), c.top.ID); err != nil {
			c.t.Fatal(err)
		}
	}
}

// from lists what a reader sees from an offset on, as "offset:key=value".
func (c *cleaned) from(off eventlog.Offset) (out []string) {
	c.t.Helper()
	pr, err := c.log.ReadPartition(c.top.ID, 0, off)
	if err != nil {
		c.t.Fatal(err)
	}
	defer pr.Close()
	for {
		r, ok, err := pr.Next()
		if err != nil {
			c.t.Fatal(err)
		}
		if !ok {
			return out
		}
		s := fmt.Sprintf("%d:%s", r.Offset, r.Key)
		if r.Value != nil {
			s += "=" + string(r.Value)
		}
		out = append(out, s)
	}
}

func (c *cleaned) want(off eventlog.Offset, want ...string) {
	c.t.Helper()
	if got := c.from(off); !slices.Equal(got, want) {
		c.t.Errorf("from offset %d: %q, want %q", off, got, want)
	}
}

// TestAT07Compaction: the newest value of a key stays with its offset, a tombstone
// as long as its retention, the cursors and the readers that start want it.
func TestAT07Compaction(t *testing.T) {
	c := newCleaned(t)
	for n := range 36 {
		c.put(fmt.Sprintf("k=old%d", n))
	}
	c.put("k=v1", "k=v2", "k=v3", "j=v", "k")
	c.seal()
	c.compact()
	for _, off := range []eventlog.Offset{0, 36, 37, 38, 39} {
		c.want(off, "39:j=v", "40:k")
	}
	if end := c.log.EndOffsets(c.top.ID)[0]; end != 41 {
		t.Errorf("the end is %d, want 41", end)
	}
	c.now = c.now.Add(59 * time.Minute)
	c.compact()
	c.want(40, "40:k")

	if err := c.log.SetCursor("view", &eventlog.Cursor{Topics: []eventlog.TopicID{c.top.ID}, Passed: c.log.Frontier() - 1}); err != nil {
		t.Fatal(err)
	}
	release := c.log.Pin([]eventlog.TopicID{c.top.ID}, c.log.Frontier())
	c.now = c.now.Add(2 * time.Minute)
	c.compact()
	c.want(30, "39:j=v", "40:k") // old enough, but a reader starts, and one has not passed it
	release()
	c.compact()
	c.want(30, "39:j=v", "40:k") // one has not passed it
	release = c.log.Pin([]eventlog.TopicID{c.top.ID}, c.log.Frontier())
	if err := c.log.SetCursor("view", &eventlog.Cursor{Topics: []eventlog.TopicID{c.top.ID}, Passed: c.log.Frontier()}); err != nil {
		t.Fatal(err)
	}
	c.compact()
	c.want(30, "39:j=v", "40:k") // a reader starts
	release()
	c.compact()
	c.want(30, "39:j=v")
	c.crash()
	c.want(0, "39:j=v")
	c.put("k=again")
	c.want(0, "39:j=v", "41:k=again")
}

// TestAT07History: a consumer that needs each version keeps those that it has not passed.
func TestAT07History(t *testing.T) {
	c := newCleaned(t)
	c.put("k=1", "k=2")
	passed := c.log.Frontier()
	c.put("k=3", "k=4", "k")
	if err := c.log.SetCursor("history", &eventlog.Cursor{Topics: []eventlog.TopicID{c.top.ID}, Passed: passed, Values: true}); err != nil {
		t.Fatal(err)
	}
	c.seal()
	c.now = c.now.Add(90 * 24 * time.Hour)
	c.compact()
	c.want(0, "1:k=2", "2:k=3", "3:k=4", "4:k")
	c.crash()
	c.compact()
	c.want(0, "1:k=2", "2:k=3", "3:k=4", "4:k")
	if err := c.log.SetCursor("history", nil); err != nil {
		t.Fatal(err)
	}
	c.compact()
	c.want(0)
}

// TestPinHoldsValues: a reader that starts finds each value up to where it pinned.
func TestPinHoldsValues(t *testing.T) {
	c := newCleaned(t)
	c.put("k=1", "k=2")
	release := c.log.Pin([]eventlog.TopicID{c.top.ID}, c.log.Frontier())
	c.put("k=3", "k")
	c.seal()
	c.compact()
	c.want(0, "1:k=2", "2:k=3", "3:k")
	release()
	c.compact()
	c.want(0, "3:k")
}

// TestTailForgetsWhatIsSealed: transactions that compaction may have changed are
// not read from memory any more.
func TestTailForgetsWhatIsSealed(t *testing.T) {
	c := newCleaned(t)
	c.put("k=1")
	first := c.log.Frontier()
	c.put("k=2", "k=3")
	c.seal()
	c.compact()
	r, err := c.log.Read(eventlog.ReadSpec{After: first})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tx == nil {
			break
		}
		if len(tx.Records) > 0 && string(tx.Records[0].Value) != "3" {
			t.Errorf("a reader sees %q, which compaction has removed", tx.Records[0].Value)
		}
	}
}

// TestB089StaleVersionStaysAway: a value must not come back when its tombstone
// goes, whichever part of the partition was compacted, at any crash, and a slow
// consumer still learns of the delete.
func TestB089StaleVersionStaysAway(t *testing.T) {
	for _, slow := range []bool{false, true} {
		t.Run(fmt.Sprint("slow consumer ", slow), func(t *testing.T) { testStaleVersion(t, slow) })
	}
}

func testStaleVersion(t *testing.T, slow bool) {
	healthy := newCleaned(t)
	healthy.put("k=v1")
	healthy.seal()
	healthy.compact() // the first segment is clean
	healthy.put("k=v2")
	healthy.seal()
	passed := healthy.log.Frontier()
	healthy.put("k")
	healthy.seal()
	if slow { // it stopped between v2 and the delete
		if err := healthy.log.SetCursor("view", &eventlog.Cursor{Topics: []eventlog.TopicID{healthy.top.ID}, Passed: passed}); err != nil {
			t.Fatal(err)
		}
	}
	healthy.log.Close()
	for at := range 200 {
		c := &cleaned{t: t, opts: healthy.opts, now: healthy.now.Add(1000 * time.Hour)}
		c.opts.Clock = func() time.Time { return c.now }
		fs := healthy.opts.FS.(*vfs.Mem).Clone()
		c.opts.FS = fs
		c.open()
		ops, after := 0, (*vfs.Mem)(nil)
		fs.SetHook(func(op vfs.Op) (int, error) {
			if ops++; op.Changes() && ops > at && after == nil {
				after = fs.Crash(nil)
			}
			return 0, nil
		})
		c.compact()
		fs.SetHook(nil)
		last := after == nil
		if !last {
			c.opts.FS = after
		}
		c.open()
		c.absent(at, slow)
		c.compact()
		c.absent(at, slow)
		if got := c.from(0); slow && !slices.Equal(got, []string{"2:k"}) || !slow && len(got) > 0 {
			t.Fatalf("crash at operation %d: in the end %q is left", at, got)
		}
		if last {
			if at < 10 {
				t.Errorf("%d operations: the test tests nothing", at)
			}
			return
		}
	}
	t.Error("compaction has more than 200 operations")
}

// absent checks that a fold has no k, from nothing and, for a slow consumer, from v2.
func (c *cleaned) absent(at int, slow bool) {
	c.t.Helper()
	got := c.from(0)
	if n := len(got); n > 0 && got[n-1] != "2:k" {
		c.t.Fatalf("crash at operation %d: k is back: %q", at, got)
	}
	if slow && len(got) == 0 {
		c.t.Fatalf("crash at operation %d: the slow consumer never learns of the delete", at)
	}
}

// TestCompactionLeavesWhatTheJournalMayHold: a journal file that could not be
// deleted is there again after a restart, with partial records that nothing merged.
func TestCompactionLeavesWhatTheJournalMayHold(t *testing.T) {
	c := newCleaned(t)
	c.put("k=1a|1b|1c|1d")
	c.seal()
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Records: []eventlog.Record{
		{Topic: c.top.ID, Op: testUpdate, Flags: eventlog.FlagPartial, Key: []byte("k"), Value: []byte("2a|2b|2c|~")},
	}}
	if err := c.log.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
		t.Fatal(err)
	}
	fs := c.opts.FS.(*vfs.Mem)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "remove" && strings.HasSuffix(op.Name, ".journal") {
			return 0, syscall.EIO
		}
		return 0, nil
	})
	if err := c.log.SealAll(context.Background()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("SealAll = %v", err)
	}
	fs.SetHook(nil)
	want := table{"k": "2a|2b|2c|1d"}
	check := func(when string) {
		t.Helper()
		m := compactModel{t: t, log: c.log, top: c.top}
		if got := fold(table{}, m.readWhole(), 0, eventlog.MaxCSN); !maps.Equal(got, want) {
			t.Errorf("%s: %s", when, difference(got, want))
		}
	}
	c.compact()
	check("at once")
	c.crash()
	check("after power loss")
	c.compact()
	check("and compaction")
	c.seal()
	c.compact()
	check("when it has gone")
	c.want(0, "1:k=2a|2b|2c|1d")
}

// TestV23OffsetsContinue: a topic that is captured again under its name, with
// nothing of it left, goes on with its offsets.
func TestV23OffsetsContinue(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	now := testTime
	opts.Clock = func() time.Time { return now }
	spec := eventlog.TopicSpec{Name: "s.p.t", Partitions: 2, Cleanup: eventlog.CleanupDelete, Retention: time.Hour}
	l := mustOpen(t, opts)
	top, err := l.EnsureTopic(spec)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 0, 20)
	want := l.EndOffsets(top.ID)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Hour)
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if got := l.StartOffsets(top.ID); !slices.Equal(got, want) {
		t.Fatalf("records from %v on are left, want none below %v", got, want)
	}
	for _, how := range []string{"at once", "after power loss", "with another cleanup"} {
		if how == "after power loss" {
			opts.FS = opts.FS.(*vfs.Mem).Crash(nil)
			l = mustOpen(t, opts)
		}
		if how == "with another cleanup" {
			spec.Cleanup, spec.Retention = eventlog.CleanupCompact, 0
		}
		again, err := l.EnsureTopic(spec)
		if err != nil || again.ID != top.ID {
			t.Fatalf("%s: topic %d, %v; want %d", how, again.ID, err, top.ID)
		}
		tx := transaction(again, 100)
		if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
		for _, r := range tx.Records {
			if r.Offset != want[r.Partition] {
				t.Errorf("%s: offset %d of partition %d, want %d", how, r.Offset, r.Partition, want[r.Partition])
			}
			want[r.Partition]++
		}
	}
}
