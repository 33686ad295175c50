package seglog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// shownTx is what a reader must show of a transaction whether or not its row is kept.
type shownTx struct {
	csn     eventlog.CSN
	output  bool
	records []string
}

func shownTxs(t *testing.T, l *Log, spec eventlog.ReadSpec) (out []shownTx, unnamed int) {
	t.Helper()
	r, err := l.Read(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	more := false // of the transaction at hand
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatalf("Next = %v", err)
		}
		if tx == nil {
			return byPartition(out), unnamed
		}
		if len(tx.Records) == 0 {
			continue // a tick: its row was all there was of it
		}
		if tx.Kind == eventlog.TxChunk {
			unnamed++
		}
		s := shownTx{csn: tx.CSN, output: tx.Kind == eventlog.TxOutput}
		for i := range tx.Records {
			r := &tx.Records[i]
			s.records = append(s.records, fmt.Sprintf("%d/%d@%03d.%d %q=%q nil=%v;", r.Topic, r.Partition, r.Offset, r.Seq, r.Key, r.Value, r.Value == nil))
		}
		// Outputs of one batch may come as one transaction or as several, others in pieces.
		if n := len(out); n > 0 && (s.output && out[n-1].output || more) && out[n-1].csn == s.csn {
			more = tx.More
			out[n-1].records = append(out[n-1].records, s.records...)
			continue
		}
		more = tx.More
		out = append(out, s)
	}
}

// byPartition puts outputs in order of their partitions; within one they stay as they came.
func byPartition(txs []shownTx) []shownTx {
	for i := range txs {
		if txs[i].output {
			slices.SortStableFunc(txs[i].records, func(a, b string) int { return strings.Compare(a[:3], b[:3]) })
		}
	}
	return txs
}

func TestRowsOfTxExpire(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { testRowsExpire(t, seed) })
	}
}

func rowsOptions(fs vfs.FS) Options {
	opts := memOptions(fs)
	opts.FileBytes, opts.SealBatch, opts.TailBytes, opts.StreamChunk = 700, 150, 100, 40
	return opts
}

// rowsLog is a log with rows of _tx in several segments, and topics a, b and a view's.
func rowsLog(t *testing.T, rng *rand.Rand, opts Options) (l *Log, a, b, v eventlog.Topic) {
	t.Helper()
	l = mustOpen(t, opts)
	a, b = mustTopic(t, l, "s.p.a"), mustTopic(t, l, "s.p.b")
	v = mustTopic(t, l, "view.v")
	ctx := context.Background()
	for n := range 120 {
		tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: fmt.Append(nil, n), CommitTime: testTime.UnixMicro()}
		if rng.IntN(3) == 0 && n > 0 {
			tx = &eventlog.Tx{Kind: eventlog.TxOutput, CSN: l.Frontier(), CommitTime: testTime.UnixMicro()}
		}
		for i := range 1 + rng.IntN(4) {
			r := eventlog.Record{Topic: a.ID, Seq: uint32(i), Op: 1, Key: fmt.Append(nil, "k", rng.IntN(9)), Value: fmt.Append(nil, n, i)}
			switch {
			case tx.Kind == eventlog.TxOutput:
				r.Topic = v.ID
			case rng.IntN(2) == 0:
				r.Topic = b.ID
			case rng.IntN(5) == 0:
				r.Partition, r.Key = eventlog.EveryPartition, []byte(eventlog.TruncateKey)
			}
			tx.Records = append(tx.Records, r)
		}
		if err := l.Append(ctx, []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(20) == 0 {
			if err := l.SealAll(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l, a, b, v
}

func testRowsExpire(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(11, seed))
	fs := vfs.NewMem()
	opts := rowsOptions(fs)
	l, a, b, v := rowsLog(t, rng, opts)
	ctx := context.Background()
	specs := []eventlog.ReadSpec{
		{}, {Outputs: true}, {Topics: []eventlog.TopicID{b.ID}}, {Topics: []eventlog.TopicID{a.ID, v.ID}, Outputs: true},
		{Outputs: true, Pieces: true}, {After: l.Frontier() - 70}, {After: l.Frontier() - 30, Outputs: true},
		{Topics: []eventlog.TopicID{a.ID, b.ID}, From: map[eventlog.TopicID][]eventlog.Offset{a.ID: {3, 11}}},
	}
	want := make([][]shownTx, len(specs))
	for i, spec := range specs {
		want[i], _ = shownTxs(t, l, spec)
	}
	if err := l.SealAll(ctx); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		for i, spec := range specs {
			got, _ := shownTxs(t, l, spec)
			if !reflect.DeepEqual(got, want[i]) {
				for j := range min(len(got), len(want[i])) {
					if !reflect.DeepEqual(got[j], want[i][j]) {
						t.Fatalf("%s, %+v: transaction %d is\n%+v, want\n%+v", what, spec, j, got[j], want[i][j])
					}
				}
				t.Fatalf("%s, %+v: %d transactions, want %d", what, spec, len(got), len(want[i]))
			}
		}
	}
	check("before")
	segs := l.segs[partKey{txTopic, 0}]
	if len(segs) < 3 {
		t.Fatalf("%d segments of %s: the test tests nothing", len(segs), txTopicName)
	}
	open, err := l.Read(eventlog.ReadSpec{Outputs: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Next(); err != nil {
		t.Fatal(err)
	}
	// Only some rows go: what a reader is at stays.
	var total int64
	for _, s := range segs[len(segs)/2:] {
		total += s.size
	}
	l.st.topics[0].topic.Spec.RetentionBytes = total
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if got := l.segs[partKey{txTopic, 0}]; len(got) != len(segs) {
		t.Fatalf("%d segments of %s are left of %d although a reader is at the first", len(got), txTopicName, len(segs))
	}
	open.Close()
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if got := l.segs[partKey{txTopic, 0}]; len(got) >= len(segs) || len(got) == 0 {
		t.Fatalf("%d segments of %s are left of %d", len(got), txTopicName, len(segs))
	}
	check("after some rows expired")
	if _, unnamed := shownTxs(t, l, eventlog.ReadSpec{}); unnamed == 0 {
		t.Error("no transaction has lost its row: the test tests nothing")
	}
	l.Close()
	l = mustOpen(t, opts)
	check("after a restart")
	l.st.topics[0].topic.Spec.RetentionBytes = 1
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	check("after all rows expired")
	l.Close()
	opts.FS = fs.Crash(rng)
	l = mustOpen(t, opts)
	check("after power loss")
}

// expireSome makes retention want about half of the rows of _tx.
func expireSome(t *testing.T, l *Log) {
	t.Helper()
	segs := l.segs[partKey{txTopic, 0}]
	if len(segs) < 3 {
		t.Fatalf("%d segments of %s: the test tests nothing", len(segs), txTopicName)
	}
	l.st.topics[0].topic.Spec.RetentionBytes = 1
	for _, s := range segs[len(segs)/2:] {
		l.st.topics[0].topic.Spec.RetentionBytes += s.size
	}
}

// TestRowsExpireSurvivesACrashAnywhere loses power, or is killed, at each
// operation of an expiry: every transaction is there once.
func TestRowsExpireSurvivesACrashAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 100))
	healthy := vfs.NewMem()
	l, _, _, _ := rowsLog(t, rng, rowsOptions(healthy))
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	spec := eventlog.ReadSpec{Outputs: true}
	want, _ := shownTxs(t, l, spec)
	l.Close()
	const more = 100
	for at := range more {
		fs := healthy.Clone()
		l := mustOpen(t, rowsOptions(fs))
		expireSome(t, l)
		var after []*vfs.Mem
		ops := 0
		fs.SetHook(func(op vfs.Op) (int, error) {
			if !op.Changes() {
				return 0, nil
			}
			if ops++; ops == at+1 {
				after = []*vfs.Mem{fs.Clone(), fs.Crash(nil), fs.Crash(rng)}
			}
			return 0, nil
		})
		if err := l.Expire(); err != nil {
			t.Fatal(err)
		}
		fs.SetHook(nil)
		if after == nil {
			if ops < 5 {
				t.Errorf("an expiry has %d operations: the test tests nothing", ops)
			}
			return
		}
		for i, fs := range after {
			again := mustOpen(t, rowsOptions(fs))
			for _, what := range []string{"opened", "expired again"} {
				if got, _ := shownTxs(t, again, spec); !reflect.DeepEqual(got, want) {
					t.Fatalf("crash %d at operation %d, %s: %d transactions, want %d", i, at, what, len(got), len(want))
				}
				again.st.topics[0].topic.Spec.RetentionBytes = 1
				if err := again.Expire(); err != nil {
					t.Fatal(err)
				}
			}
			again.Close()
		}
	}
	t.Errorf("an expiry has more than %d operations", more)
}

// TestRowsExpireUnderReaders starts readers at each operation of an expiry: what
// they show does not depend on when they began.
func TestRowsExpireUnderReaders(t *testing.T) {
	fs := vfs.NewMem()
	l, _, _, _ := rowsLog(t, rand.New(rand.NewPCG(11, 101)), rowsOptions(fs))
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := readersCSNs(t, mustRead(t, l))
	expireSome(t, l)
	var readers []eventlog.Reader
	busy := false
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Changes() && !busy {
			busy = true
			readers = append(readers, mustRead(t, l))
			busy = false
		}
		return 0, nil
	})
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	fs.SetHook(nil)
	if len(readers) < 2 {
		t.Fatalf("%d readers: the test tests nothing", len(readers))
	}
	for i, r := range append(readers, mustRead(t, l)) {
		if got := readersCSNs(t, r); !slices.Equal(got, want) {
			t.Errorf("reader %d shows %d transactions, want %d", i, len(got), len(want))
		}
	}
	if err := l.Expire(); err != nil { // now that nobody reads
		t.Fatal(err)
	}
	if got := readersCSNs(t, mustRead(t, l)); !slices.Equal(got, want) {
		t.Errorf("in the end %d transactions are shown, want %d", len(got), len(want))
	}
	if first := l.StartOffsets(txTopic)[0]; first == 0 {
		t.Error("no row went: the test tests nothing")
	}
}

// TestRowsOfTheJournalDoNotExpire: where sealing ended early, after the rows of
// _tx, their records are nowhere but in the journal.
func TestRowsOfTheJournalDoNotExpire(t *testing.T) {
	fs := vfs.NewMem()
	l, _, _, _ := rowsLog(t, rand.New(rand.NewPCG(11, 102)), rowsOptions(fs))
	spec := eventlog.ReadSpec{Outputs: true}
	want, _ := shownTxs(t, l, spec)
	renames := 0
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Kind != "rename" {
			return 0, nil
		}
		if renames++; renames > 1 {
			return 0, syscall.EIO
		}
		return 0, nil
	})
	if err := l.SealAll(context.Background()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("SealAll = %v", err)
	}
	fs.SetHook(nil)
	l.st.topics[0].topic.Spec.RetentionBytes = 1
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if got, _ := shownTxs(t, l, spec); !reflect.DeepEqual(got, want) {
		t.Errorf("%d transactions, want %d", len(got), len(want))
	}
	l.Close()
	if got, _ := shownTxs(t, mustOpen(t, rowsOptions(fs)), spec); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart: %d transactions, want %d", len(got), len(want))
	}
}

func mustRead(t *testing.T, l *Log) eventlog.Reader {
	t.Helper()
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readersCSNs reads to the end, closes the reader, and returns the CSNs of what has records.
func readersCSNs(t *testing.T, r eventlog.Reader) (out []eventlog.CSN) {
	t.Helper()
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tx == nil {
			return out
		}
		if len(tx.Records) > 0 {
			out = append(out, tx.CSN)
		}
	}
}

func TestRetention(t *testing.T) {
	fs := vfs.NewMem()
	now := testTime
	opts := memOptions(fs)
	opts.Clock, opts.FileBytes = func() time.Time { return now }, 600
	l := mustOpen(t, opts)
	ctx := context.Background()
	byTime, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.time", Partitions: 1, Cleanup: eventlog.CleanupDelete, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	bySize, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.size", Partitions: 1, Cleanup: eventlog.CleanupDelete, RetentionBytes: 2000, Compression: "none"})
	if err != nil {
		t.Fatal(err)
	}
	kept := mustTopic(t, l, "s.p.kept")
	for n := range 60 {
		now = now.Add(5 * time.Minute)
		tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", CommitTime: now.UnixMicro()}
		for i, top := range []eventlog.Topic{byTime, bySize, kept} {
			tx.Records = append(tx.Records, eventlog.Record{Topic: top.ID, Seq: uint32(i), Op: 1, Key: []byte("k"), Value: fmt.Appendf(nil, "%0100d", n)})
		}
		if err := l.Append(ctx, []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
		if n%5 == 4 {
			if err := l.SealAll(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		// One hour is 12 records; a segment goes when all five in it are too old.
		if got := l.StartOffsets(byTime.ID)[0]; got != 45 {
			t.Errorf("%s: by time, the first offset is %d, want 45", what, got)
		}
		if got := l.StartOffsets(bySize.ID)[0]; got != 50 {
			t.Errorf("%s: by size, the first offset is %d, want 50", what, got)
		}
		if got := slices.Max(l.EndOffsets(byTime.ID)); got != 60 {
			t.Errorf("%s: the end is %d, want 60", what, got)
		}
		if got := l.StartOffsets(kept.ID); slices.Min(got) != 0 {
			t.Errorf("%s: a topic that is kept starts at %v", what, got)
		}
		for top, first := range map[eventlog.TopicID]eventlog.Offset{byTime.ID: 45, bySize.ID: 50} {
			pr, err := l.ReadPartition(top, 0, first)
			if err != nil {
				t.Fatal(err)
			}
			for off := first; off < 60; off++ {
				if r, ok, err := pr.Next(); err != nil || !ok || r.Offset != off {
					t.Fatalf("%s: offset %d is %+v, %v, %v", what, off, r, ok, err)
				}
			}
			pr.Close()
		}
	}
	check("at once")
	l.Close()
	opts.FS = fs.Crash(nil)
	l = mustOpen(t, opts)
	check("after power loss")
	now = now.Add(100 * time.Hour)
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if got := l.StartOffsets(byTime.ID)[0]; got != 60 {
		t.Errorf("when all is too old the first offset is %d, want that of the next record, 60", got)
	}
}

// TestExpireSurvivesACrashAnywhere: what is left of a partition has no hole.
func TestExpireSurvivesACrashAnywhere(t *testing.T) {
	fs := vfs.NewMem()
	now := testTime
	opts := memOptions(fs)
	opts.Clock, opts.FileBytes = func() time.Time { return now }, 600
	l := mustOpen(t, opts)
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupDelete, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const batches, each = 6, 4
	for n := range batches {
		mustAppend(t, l, top, n*each, (n+1)*each)
		if err := l.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(2 * time.Hour)
	rng := rand.New(rand.NewPCG(11, 103))
	var after []*vfs.Mem
	fs.SetHook(func(op vfs.Op) (int, error) {
		if op.Changes() {
			after = append(after, fs.Clone(), fs.Crash(nil), fs.Crash(rng))
		}
		return 0, nil
	})
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if len(after) < 3*batches {
		t.Errorf("%d operations: the test tests nothing", len(after)/3)
	}
	for i, fs := range after {
		opts.FS = fs
		l := mustOpen(t, opts)
		first, end := l.StartOffsets(top.ID)[0], l.EndOffsets(top.ID)[0]
		pr, err := l.ReadPartition(top.ID, 0, first)
		if err != nil {
			t.Fatal(err)
		}
		for off := first; off < end; off++ {
			if r, ok, err := pr.Next(); err != nil || !ok || r.Offset != off {
				t.Fatalf("crash %d at operation %d: offset %d of [%d, %d) is %d, %v, %v", i%3, i/3, off, first, end, r.Offset, ok, err)
			}
		}
		pr.Close()
		l.Close()
	}
}

// TestCursorsHoldRows: who will ask for transactions with their rows again says so.
func TestCursorsHoldRows(t *testing.T) {
	l := mustOpen(t, memOptions(vfs.NewMem()))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 5)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	passed := l.Frontier()
	mustAppend(t, l, top, 5, 9)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 9, 10)
	if err := l.SetCursor("c", &eventlog.Cursor{Topics: []eventlog.TopicID{txTopic}, Passed: passed}); err != nil {
		t.Fatal(err)
	}
	l.st.topics[0].topic.Spec.RetentionBytes = 1
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if n := len(l.segs[partKey{txTopic, 0}]); n != 1 {
		t.Errorf("%d segments of rows are left, want the one that the cursor has not passed", n)
	}
	if err := l.SetCursor("c", nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if n := len(l.segs[partKey{txTopic, 0}]); n != 0 {
		t.Errorf("%d segments of rows are left without the cursor", n)
	}
}
