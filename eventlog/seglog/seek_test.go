package seglog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// partition returns all records of a partition, read forward.
func partition(t *testing.T, l *Log, k partKey) []eventlog.Record {
	t.Helper()
	r, err := l.ReadPartition(k.topic, k.partition, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return drain(t, r)
}

func drain(t *testing.T, r eventlog.PartitionReader) []eventlog.Record {
	t.Helper()
	var out []eventlog.Record
	for {
		rec, ok, err := r.Next()
		if err != nil {
			t.Fatalf("Next = %v", err)
		}
		if !ok {
			return out
		}
		rec.Key, rec.Value = slices.Clone(rec.Key), slices.Clone(rec.Value)
		out = append(out, rec)
	}
}

// checkSeeks compares the seeks and the reading backward with all records.
func checkSeeks(t *testing.T, l *Log, k partKey, rng *rand.Rand) {
	t.Helper()
	all := partition(t, l, k)
	end := l.EndOffsets(k.topic)[k.partition]
	find := func(what string, got eventlog.Offset, err error, matches func(r eventlog.Record) bool) {
		t.Helper()
		want := end
		if i := slices.IndexFunc(all, matches); i >= 0 {
			want = all[i].Offset
		}
		if err != nil || got != want {
			t.Fatalf("%s in partition %d = %d, %v; want %d", what, k.partition, got, err, want)
		}
	}
	for range 8 {
		var near eventlog.Record
		if len(all) > 0 {
			near = all[rng.IntN(len(all))]
		}
		csn, micros := near.CSN+eventlog.CSN(rng.IntN(3)), near.Time+int64(rng.IntN(1500))-700
		off, err := l.SeekCSN(k.topic, k.partition, csn)
		find(fmt.Sprint("SeekCSN ", csn), off, err, func(r eventlog.Record) bool { return r.CSN >= csn })
		off, err = l.SeekTime(k.topic, k.partition, micros)
		find(fmt.Sprint("SeekTime ", micros), off, err, func(r eventlog.Record) bool { return r.Time >= micros })
	}
	before := eventlog.Offset(rng.Int64N(int64(end) + 2))
	r, err := l.ReadBackward(k.topic, k.partition, before)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := drain(t, r)
	slices.Reverse(got)
	want := slices.DeleteFunc(slices.Clone(all), func(r eventlog.Record) bool { return r.Offset >= before })
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("partition %d backward from %d: %d records, want %d", k.partition, before, len(got), len(want))
	}
}

// TestSeekModel seeks in a log that is appended to, rolled, sealed, torn, opened
// again and read by another process, at random.
func TestSeekModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			opts := memOptions(vfs.NewMem())
			opts.FileBytes, opts.SealBatch, opts.TailBytes = 1500+rng.Int64N(3000), 100+rng.IntN(400), 1+rng.Int64N(3000)
			l := mustOpen(t, opts)
			top := mustTopic(t, l, "s.p.t")
			for n := range 150 {
				tx := transaction(top, n)
				tx.CommitTime = 1_000_000 + int64(n)*300 + rng.Int64N(3000) - 1500
				tx.Records = tx.Records[:rng.IntN(3)]
				if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(8) > 0 {
					continue
				}
				l = disturb(t, l, opts, rng)
				reader := l
				if rng.IntN(3) == 0 {
					var err error
					if reader, err = OpenReadOnly("log", l.opts); err != nil {
						t.Fatal(err)
					}
				}
				for _, k := range []partKey{{top.ID, 0}, {top.ID, 1}, {txTopic, 0}} {
					checkSeeks(t, reader, k, rng)
				}
			}
		})
	}
}

// disturb does one of the things that move records about, or loses the tail.
func disturb(t *testing.T, l *Log, opts Options, rng *rand.Rand) *Log {
	t.Helper()
	var err error
	switch rng.IntN(5) {
	case 0:
		err = l.SealAll(context.Background())
	case 1:
		err = l.Seal(context.Background(), rng.Int64N(4000))
	case 2:
		err = l.Roll(context.Background())
	case 3:
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if name, size := newestJournal(opts.FS.(*vfs.Mem)); rng.IntN(2) == 0 && size > 1000 {
			cut(t, opts.FS.(*vfs.Mem), name, size-1)
		}
		return mustOpen(t, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSeekReadsLittle counts what is read to find a place in a large log.
func TestSeekReadsLittle(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		t.Run(fmt.Sprint("sealed ", sealed), func(t *testing.T) {
			fs := vfs.NewMem()
			opts := memOptions(fs)
			opts.TailBytes = 1
			l := mustOpen(t, opts)
			top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Compression: "none"})
			if err != nil {
				t.Fatal(err)
			}
			const n = 200
			var csns []eventlog.CSN
			for i := range n {
				tx := &eventlog.Tx{Kind: eventlog.TxSource, CommitTime: int64(i) * 1_000_000}
				for range 8 {
					tx.Records = append(tx.Records, eventlog.Record{Topic: top.ID, Key: []byte("k"), Value: make([]byte, 10<<10)})
				}
				if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
					t.Fatal(err)
				}
				csns = append(csns, tx.CSN)
			}
			limit := 3 << 20 // two distances of index points, and a read ahead
			if sealed {
				limit = 120 << 10 // one batch, and the footer
				err = l.SealAll(context.Background())
			} else {
				err = l.Roll(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			again := mustOpen(t, opts)
			read := 0
			fs.SetHook(func(op vfs.Op) (int, error) {
				if op.Kind == "read" {
					read += op.N
				}
				return 0, nil
			})
			check := func(what string, got, want eventlog.Offset, err error) {
				t.Helper()
				if err != nil || got != want || read > limit {
					t.Errorf("%s = %d, %v with %d bytes read; want %d with at most %d", what, got, err, read, want, limit)
				}
				read = 0
			}
			for _, i := range []int{150, 3, n - 1, 77} {
				off, err := again.SeekCSN(top.ID, 0, csns[i])
				check("SeekCSN", off, eventlog.Offset(i*8), err)
				off, err = again.SeekTime(top.ID, 0, int64(i)*1_000_000-5)
				check("SeekTime", off, eventlog.Offset(i*8), err)
			}
			b, err := again.ReadBackward(top.ID, 0, n*8)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for i := range 8 {
				r, _, err := b.Next()
				check("backward", r.Offset, eventlog.Offset(n*8-1-i), err)
			}
		})
	}
}

// TestIndexOfVersion1 reads an index without times: a time is then looked for from the file's start.
func TestIndexOfVersion1(t *testing.T) {
	// version, 2 points: (100, 1, 5) and 50, 2, 3 further, size
	points, maxTime, err := decodeIndex([]byte{1, 2, 100, 1, 5, 50, 2, 3, 17, 0, 0, 0})
	want := []indexPoint{{100, 1, 5, anyTime}, {150, 3, 8, anyTime}}
	if err != nil || maxTime != anyTime || !slices.Equal(points, want) {
		t.Errorf("decodeIndex = %v, %d, %v; want %v", points, maxTime, err, want)
	}
	f := &journalFile{ordinal: 7, index: points}
	if got := f.seekTime(12); got != 7 {
		t.Errorf("seekTime = %d, want the file's start", got)
	}
	f = &journalFile{number: 3, maxTime: 70, index: []indexPoint{{100, 1, 5, noTime}, {150, 3, 8, -4}}}
	points, maxTime, err = decodeIndex(appendIndexEntry(nil, f)[entryHeaderSize:])
	if err != nil || maxTime != 70 || !slices.Equal(points, f.index) {
		t.Errorf("decodeIndex of what was written = %v, %d, %v", points, maxTime, err)
	}
}

// gapped replaces the first segment of a partition by one without the records
// that left says, as compaction does: base and next stay.
func gapped(t *testing.T, l *Log, k partKey, left func(r eventlog.Record) bool) {
	t.Helper()
	old := l.segs[k][0]
	all := partition(t, l, k)
	w, err := l.newSegWriter(k)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Offset < old.next && !left(r) {
			if err := w.add(&r, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if err := l.fs().Rename(w.tmp, old.path); err != nil {
		t.Fatal(err)
	}
	w.seg.path, w.seg.base, w.seg.next = old.path, old.base, old.next
	l.segs[k] = append([]*segment{w.seg}, l.segs[k][1:]...)
}

// TestSeekOverGaps seeks where compaction has left records out, the first and the last ones too.
func TestSeekOverGaps(t *testing.T) {
	for name, left := range map[string]func(r eventlog.Record) bool{
		"the first":       func(r eventlog.Record) bool { return r.Offset < 9 },
		"the last":        func(r eventlog.Record) bool { return r.Offset > 9 },
		"most":            func(r eventlog.Record) bool { return r.Offset%7 != 3 },
		"all but one":     func(r eventlog.Record) bool { return r.Offset != 11 },
		"in the middle":   func(r eventlog.Record) bool { return r.Offset > 5 && r.Offset < 15 },
		"whole stretches": func(r eventlog.Record) bool { return r.Offset/6%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			opts := memOptions(vfs.NewMem())
			opts.SealBatch = 100
			l := mustOpen(t, opts)
			top := mustTopic(t, l, "s.p.t")
			for round := range 2 { // two segments and a journal
				mustAppend(t, l, top, round*30, round*30+30)
				if err := l.SealAll(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			mustAppend(t, l, top, 60, 70)
			for p := range int32(2) {
				gapped(t, l, partKey{top.ID, p}, left)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 30 {
				checkSeeks(t, l, partKey{top.ID, 0}, rng)
				checkSeeks(t, l, partKey{top.ID, 1}, rng)
			}
		})
	}
}

// overlapping is a log whose journal still holds what was sealed: the machine
// died between the two.
func overlapping(t *testing.T) (*Log, Options, eventlog.Topic) {
	t.Helper()
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.SealBatch, opts.FileBytes, opts.TailBytes = 200, 1500, 1
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 41)
	name, size := newestJournal(fs)
	cut(t, fs, name, size-1) // offsets skip behind transaction 39
	l = mustOpen(t, opts)
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind == "remove" {
			return 0, errors.New("the machine died")
		}
		return 0, nil
	})
	if err := l.Seal(context.Background(), 0); err == nil {
		t.Fatal("nothing was deleted, nothing is tested")
	}
	fs.SetHook(nil)
	l = mustOpen(t, opts)
	if k := (partKey{top.ID, 0}); l.files[0].start(top.ID, 0) >= l.sealedEnd(k) {
		t.Fatal("journal and segments do not overlap")
	}
	mustAppend(t, l, top, 40, 45)
	return l, opts, top
}

func TestSeekWhereJournalAndSegmentsOverlap(t *testing.T) {
	l, _, top := overlapping(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		for p := range int32(2) {
			checkSeeks(t, l, partKey{top.ID, p}, rng)
		}
	}
	infos, err := l.Inspect(context.Background(), false)
	if i := infos[top.ID-1]; err != nil || i.SegmentRecords+i.JournalRecords != 90 {
		t.Errorf("%d sealed and %d other records, %v; there are 90", i.SegmentRecords, i.JournalRecords, err)
	}
}

// TestOutOfRange reads below what retention has kept, which is an error, and
// below what compaction has left out, which is none.
func TestOutOfRange(t *testing.T) {
	for _, cleanup := range []eventlog.Cleanup{eventlog.CleanupDelete, eventlog.CleanupCompact} {
		opts := memOptions(vfs.NewMem())
		l := mustOpen(t, opts)
		top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: cleanup})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			mustAppend(t, l, top, round*5, round*5+5)
			if err := l.SealAll(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		k := partKey{top.ID, 0}
		l.segs[k] = l.segs[k][1:] // the first ten records are gone
		_, perr := l.ReadPartition(top.ID, 0, 9)
		_, rerr := l.Read(eventlog.ReadSpec{From: map[eventlog.TopicID][]eventlog.Offset{top.ID: {0}}})
		for _, err := range []error{perr, rerr} {
			switch {
			case cleanup == eventlog.CleanupCompact && err != nil:
				t.Errorf("a gap of compaction: %v", err)
			case cleanup == eventlog.CleanupDelete && (!errors.Is(err, eventlog.ErrOutOfRange) ||
				!strings.Contains(err.Error(), `topic "s.p.t" partition 0`) || !strings.Contains(err.Error(), "first kept offset is 10")):
				t.Errorf("an offset that retention has deleted: %v", err)
			}
		}
		for _, from := range []eventlog.Offset{10, 15, 20, 99} {
			if _, err := l.ReadPartition(top.ID, 0, from); err != nil {
				t.Errorf("ReadPartition from %d = %v", from, err)
			}
		}
		if err := l.NewestByKey(top.ID, func([]byte, eventlog.CSN, bool) error { return nil }); err != nil {
			t.Errorf("NewestByKey = %v", err)
		}
	}
}

// TestBackwardOverSealing reads backward, here and in a read-only log, while the
// journal's files are sealed and deleted.
func TestBackwardOverSealing(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.FileBytes, opts.TailBytes = 900, 1
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 80)
	ro, err := OpenReadOnly("log", opts)
	if err != nil {
		t.Fatal(err)
	}
	k := partKey{top.ID, eventlog.PartitionOf([]byte("k"), 2)}
	want := partition(t, l, k)
	slices.Reverse(want)
	for _, log := range []*Log{l, ro} {
		r, err := log.ReadBackward(k.topic, k.partition, 1<<40)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for i, w := range want {
			if i == 20 || i == 60 {
				mustAppend(t, l, top, 80, 85)
				if err := l.SealAll(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			got, ok, err := r.Next()
			if err != nil || !ok || fmt.Sprint(got) != fmt.Sprint(w) {
				t.Fatalf("record %d from the end: %v, %v, %v; want %v", i, got, ok, err, w)
			}
		}
	}
}

// TestSeeksNameDamage finds damage in what they read, and names it.
func TestSeeksNameDamage(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.SealBatch = 200
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 60)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	seg := l.segs[partKey{top.ID, 1}][0]
	last := seg.idx.batches[len(seg.idx.batches)-1]
	fs.Flip(seg.path, (last.pos+70)*8)
	_, e1 := l.SeekCSN(top.ID, 1, last.before+1)
	r, err := l.ReadBackward(top.ID, 1, seg.next)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _, e2 := r.Next()
	for _, err := range []error{e1, e2} {
		var bad *CorruptError
		if !errors.As(err, &bad) || bad.Path != seg.path || bad.Pos != last.pos {
			t.Errorf("damage at byte %d of %s: %v", last.pos, seg.path, err)
		}
	}
}
