package seglog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// The rules of CORRECTNESS.md, section 3, each by its id.

func TestV17DirectorySyncedBeforeAck(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.FileBytes = 1000 // many files
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	for n := range 60 {
		mustAppend(t, l, top, n, n+1)
		after := opts
		after.FS = fs.Crash(nil) // all that was not synced is gone
		if got := ids(t, mustOpen(t, after)); !slices.Equal(got, numbers(0, n+1)) {
			t.Fatalf("after power loss the log holds %v, acknowledged were 0 to %d", got, n)
		}
	}
	if n := len(l.files); n < 5 {
		t.Fatalf("only %d journal files: the test tests nothing", n)
	}
}

func TestV18EntryWrittenOnlyAfterSync(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.FileBytes = 3000
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	unsynced := map[string]int{}
	writes := 0
	fs.SetHook(func(op vfs.Op) (int, error) {
		if !strings.HasPrefix(op.Name, "log/journal/") {
			return 0, nil
		}
		switch op.Kind {
		case "write":
			writes++
			if unsynced[op.Name]++; unsynced[op.Name] > 1 {
				t.Errorf("%s: written again before the sync of what was there returned", op.Name)
			}
		case "sync":
			unsynced[op.Name] = 0
		}
		return 0, nil
	})
	done := make(chan struct{})
	for w := range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range 30 {
				if err := appendN(l, top, w*100+n); err != nil {
					t.Errorf("Append = %v", err)
				}
				if err := l.SaveCheckpoint("c", []byte("m")); err != nil {
					t.Errorf("SaveCheckpoint = %v", err)
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
	if writes < 30 {
		t.Errorf("%d writes seen", writes)
	}
}

func TestV18BadEntryWithGoodBehindIsDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	name, size := newestJournal(fs)
	mustAppend(t, l, top, 3, 5)
	_, end := newestJournal(fs)
	for bit := size * 8; bit < end*8; bit += 7 {
		disk := fs.Clone()
		disk.Flip(name, bit)
		_, err := Open("log", memOptions(disk))
		last := bit >= (size+(end-size)/2)*8 // in the last entry: it may have been torn
		var bad *CorruptError
		switch {
		case last && err != nil:
			t.Fatalf("bit %d in the last entry: Open = %v", bit, err)
		case !last && (!errors.As(err, &bad) || bad.Path != name || bad.Pos != size || !errors.Is(err, eventlog.ErrCorrupt)):
			t.Fatalf("bit %d in an entry at byte %d with a good one behind it: Open = %v", bit, size, err)
		}
	}
}

func TestV19NewestFileWithoutCheckpointIsDropped(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 4)
	if err := l.Roll(context.Background()); err != nil {
		t.Fatal(err)
	}
	name, size := newestJournal(fs)
	for keep := int64(0); keep < size; keep++ {
		disk := fs.Clone()
		cut(t, disk, name, keep)
		again := mustOpen(t, memOptions(disk))
		if got := ids(t, again); !slices.Equal(got, numbers(0, 4)) {
			t.Fatalf("with %d bytes of the newest file: %v", keep, got)
		}
		mustAppend(t, again, top, 4, 5)
		if got := again.EndOffsets(top.ID); got[0]+got[1] != 10 {
			t.Fatalf("with %d bytes of the newest file: end offsets %v after five transactions of two", keep, got)
		}
	}
	for bit := int64(0); bit < size*8; bit += 5 { // a checkpoint with an entry behind it is damage
		disk := fs.Clone()
		o := mustOpen(t, memOptions(disk))
		mustAppend(t, o, top, 4, 5)
		disk.Flip(name, bit)
		if _, err := Open("log", memOptions(disk)); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Fatalf("bit %d of a used file's checkpoint: Open = %v", bit, err)
		}
	}
}

func TestV19SealedRowsAreNotWrittenAgain(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 10)
	dead := errors.New("dead")
	fs.SetHook(func(op vfs.Op) (int, error) { // segments are there, the journal file stays
		if op.Kind == "remove" && strings.HasSuffix(op.Name, journalSuffix) {
			return 0, dead
		}
		return 0, nil
	})
	if err := l.SealAll(context.Background()); !errors.Is(err, dead) {
		t.Fatalf("SealAll = %v", err)
	}
	fs.SetHook(nil)
	fs = fs.Crash(nil)
	again := mustOpen(t, memOptions(fs))
	mustAppend(t, again, top, 10, 15)
	if err := again.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, again); !slices.Equal(got, numbers(0, 15)) {
		t.Errorf("transactions %v", got)
	}
	for k, segs := range again.segs {
		for i := 1; i < len(segs); i++ {
			if segs[i].base < segs[i-1].next {
				t.Errorf("topic %d partition %d: segment from %d behind one to %d", k.topic, k.partition, segs[i].base, segs[i-1].next)
			}
		}
	}
	again = mustOpen(t, memOptions(fs.Crash(nil))) // segments that overlap would be refused
	if again.Stats().SegmentBytes == 0 {
		t.Error("nothing was sealed")
	}
	r, err := again.ReadPartition(txTopic, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 16 {
		row, ok, err := r.Next()
		if err != nil || ok != (n < 15) || ok && row.Offset != eventlog.Offset(n) {
			t.Fatalf("row %d of _tx is %+v, %v, %v", n, row, ok, err)
		}
	}
}

func TestV20CutSkipsOffsetsAndCSN(t *testing.T) {
	for _, lost := range []int64{1, 30, 100} {
		fs := vfs.NewMem()
		l := mustOpen(t, memOptions(fs))
		top := mustTopic(t, l, "s.p.t")
		mustAppend(t, l, top, 0, 5)
		ends, frontier := l.EndOffsets(top.ID), l.Frontier() // acknowledged, and then lost
		name, size := newestJournal(fs)
		cut(t, fs, name, size-lost)
		opts := memOptions(fs)
		opts.Clock = func() time.Time { return testTime.Add(-time.Hour) } // and the clock went back
		again := mustOpen(t, opts)
		if got := ids(t, again); !slices.Equal(got, numbers(0, 4)) {
			t.Fatalf("cut by %d: %v", lost, got)
		}
		if again.Frontier() >= frontier {
			t.Errorf("frontier %d covers the lost transaction %d", again.Frontier(), frontier)
		}
		tx := transaction(top, 99)
		if err := again.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
		if tx.CSN < frontier+eventlog.ForeignSkip-1 {
			t.Errorf("CSN %d behind the lost %d: want a skip of 2^32", tx.CSN, frontier)
		}
		for _, r := range tx.Records {
			if r.Offset < ends[r.Partition]+eventlog.ForeignSkip-2 {
				t.Errorf("offset %d behind the lost end %d: want a skip of 2^32", r.Offset, ends[r.Partition])
			}
		}
		// Readers cross the gap, in the journal and sealed, also after another restart.
		want := append(numbers(0, 4), "99")
		if got := ids(t, again); !slices.Equal(got, want) {
			t.Errorf("over the gap: %v", got)
		}
		if err := again.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, again); !slices.Equal(got, want) {
			t.Errorf("over the sealed gap: %v", got)
		}
		if got := ids(t, mustOpen(t, memOptions(fs))); !slices.Equal(got, want) {
			t.Errorf("over the gap after a restart: %v", got)
		}
	}
}

func TestV20CleanEndSkipsNothing(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 5)
	again := mustOpen(t, memOptions(fs.Crash(nil)))
	if got := again.EndOffsets(top.ID); got[0]+got[1] != 10 {
		t.Errorf("end offsets %v after a clean end", got)
	}
	if len(again.files) != 1 {
		t.Errorf("%d journal files after a clean end", len(again.files))
	}
}

func TestV20ClockIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	mustAppend(t, l, mustTopic(t, l, "s.p.t"), 0, 1)
	for _, tt := range []struct {
		name  string
		now   time.Time
		trust bool
		want  error
	}{
		{"two years on", testTime.AddDate(2, 0, 0), false, ErrClock},
		{"two years on, confirmed", testTime.AddDate(2, 0, 0), true, nil},
		{"beyond 2080", time.Date(2081, 1, 1, 0, 0, 0, 0, time.UTC), true, ErrClock},
		{"eleven months on", testTime.AddDate(0, 11, 0), false, nil},
		{"backwards", testTime.AddDate(-3, 0, 0), false, nil},
	} {
		opts := memOptions(fs.Clone())
		opts.Clock, opts.TrustClock = func() time.Time { return tt.now }, tt.trust
		o, err := Open("log", opts)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Open = %v, want %v", tt.name, err, tt.want)
		}
		if err != nil {
			continue
		}
		tx := transaction(eventlog.Topic{ID: 2}, 2)
		if err := o.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
		if tx.CSN <= l.Frontier() || tx.CSN < eventlog.ClockCSN(tt.now) || tx.IngestTime < testTime.UnixMicro() {
			t.Errorf("%s: CSN %d at %d behind %d", tt.name, tx.CSN, tx.IngestTime, l.Frontier())
		}
	}
}

// V22: a mark counts as passed only when it is synced.
func TestV22MarkIsSyncedBeforeItIsSaid(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	for _, v := range []string{"1", "2", "3"} {
		if err := l.SaveCheckpoint("sink", []byte(v)); err != nil {
			t.Fatal(err)
		}
		c, err := mustOpen(t, memOptions(fs.Crash(nil))).Checkpoint("sink")
		if err != nil || string(c) != v {
			t.Errorf("mark after power loss is %q, %v; want %q", c, err, v)
		}
	}
}

// TestTooLargeFailsAlone appends what no entry can hold beside others: those go
// through, in order, and no place is left for it.
func TestTooLargeFailsAlone(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	for n := range 9 {
		mustAppend(t, l, top, n, n+1)
		if n != 4 {
			continue
		}
		tx := transaction(top, 1000)
		tx.Records[0].Value = make([]byte, eventlog.MaxRecord+1) // never touched, so it takes no memory
		if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err == nil || errors.Is(err, eventlog.ErrFull) {
			t.Errorf("Append of a record of %d bytes = %v", len(tx.Records[0].Value), err)
		}
		tx.Records[0].Value = tx.Records[0].Value[:1<<29]
		for range 4 { // together they are too large
			tx.Records = append(tx.Records, tx.Records[0])
		}
		if err := l.Append(context.Background(), []*eventlog.Tx{tx}); !errors.Is(err, eventlog.ErrTooLarge) {
			t.Errorf("Append of %d records of 512 MiB = %v, want ErrTooLarge", len(tx.Records), err)
		}
	}
	again := mustOpen(t, memOptions(fs.Crash(nil)))
	if got := ids(t, again); !slices.Equal(got, numbers(0, 9)) {
		t.Errorf("the log holds %v", got)
	}
	if ends := again.EndOffsets(top.ID); ends[0]+ends[1] != 18 {
		t.Errorf("end offsets %v after nine transactions of two records", ends)
	}
}

// TestReadAtGap starts in the gap that a cut leaves: the next record behind it comes.
func TestReadAtGap(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 5)
	name, size := newestJournal(fs)
	cut(t, fs, name, size-1)
	l = mustOpen(t, memOptions(fs))
	p := eventlog.PartitionOf([]byte("k"), 2)
	gap := l.EndOffsets(top.ID)[p] - eventlog.ForeignSkip
	mustAppend(t, l, top, 5, 7)
	for _, when := range []string{"in the journal", "sealed", "after a restart"} {
		for _, ts := range l.Stats().Topics { // of at most 7 transactions with 2 records
			if ts.Records > 2*7 {
				t.Errorf("%s: %d records in %s: the gap is counted", when, ts.Records, ts.Name)
			}
		}
		for _, from := range []eventlog.Offset{gap, gap + 1, gap + 1<<31, gap + eventlog.ForeignSkip - 1, gap + eventlog.ForeignSkip} {
			r, err := l.ReadPartition(top.ID, p, from)
			if err != nil {
				t.Fatal(err)
			}
			if rec, ok, err := r.Next(); !ok || err != nil || rec.Offset != gap+eventlog.ForeignSkip || string(rec.Value) != "5" {
				t.Errorf("%s, from %d: %+v, %v, %v", when, from, rec, ok, err)
			}
			r.Close()
			reader, err := l.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{top.ID}, From: map[eventlog.TopicID][]eventlog.Offset{top.ID: {from, from}}})
			if err != nil {
				t.Fatal(err)
			}
			if tx, err := reader.Next(); err != nil || tx == nil || tx.ID != "5" {
				t.Errorf("%s, from offsets %d: %+v, %v", when, from, tx, err)
			}
			reader.Close()
		}
		if err := l.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
		if when == "sealed" {
			l = mustOpen(t, memOptions(fs.Crash(nil)))
		}
	}
}
