package connectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// scripted is a Source that hands out batches and then waits.
type scripted struct {
	batches   []*change.Batch
	mu        sync.Mutex
	confirmed []string
	log       eventlog.Log
	unsafe    error
}

func (s *scripted) Next(ctx context.Context) (*change.Batch, error) {
	if len(s.batches) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b := s.batches[0]
	s.batches = s.batches[1:]
	return b, nil
}

// Confirm checks C2: the position must be in the log already.
func (s *scripted) Confirm(pos change.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = append(s.confirmed, pos.Name)
	st, ok := s.log.SourceState("shop")
	if got, err := change.DecodePosition(st.Position); !ok || err != nil || got.Name < pos.Name {
		s.unsafe = fmt.Errorf("confirmed %s while the log has %s", pos.Name, got.Name)
	}
}

// count returns how many positions were confirmed.
func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.confirmed)
}

func (s *scripted) Stats() SourceStats { return SourceStats{} }
func (s *scripted) Close() error       { return nil }

func testSchema(topic string, columns ...string) *change.Schema {
	s := &change.Schema{Topic: topic, Key: []int{0}}
	for i, c := range columns {
		s.Columns = append(s.Columns, change.Column{Number: uint32(i + 1), Name: c, Kind: change.KindInt, SourceType: "bigint"})
	}
	return s
}

func key(id int64) change.Key { return change.AppendKeyPart(nil, change.Int(id), false) }

func row(vs ...int64) []byte {
	var values []change.Value
	for _, v := range vs {
		values = append(values, change.Int(v))
	}
	return change.AppendRow(nil, values)
}

func tx(name string, add func(b *change.Batch)) *change.Batch {
	b := &change.Batch{Source: "shop", Tx: name, Pos: change.Position{Name: name, Resume: "r" + name}, CommitTime: 1700000000000000}
	add(b)
	return b
}

// runIngest copies the batches and returns once all are in the log.
func runIngest(t *testing.T, log eventlog.Log, batches ...*change.Batch) *scripted {
	t.Helper()
	src := &scripted{batches: batches, log: log}
	want := len(dump(t, log))
	for _, b := range batches {
		if !b.More {
			want++
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in := NewIngest(IngestOptions{Log: log, Source: "shop"})
	done := make(chan error)
	go func() { done <- in.Run(ctx, src) }()
	for {
		changed := log.Changed()
		if len(dump(t, log)) >= want {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d transactions in the log after a minute, want %d", len(dump(t, log)), want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if src.unsafe != nil {
		t.Error(src.unsafe)
	}
	return src
}

// dump renders the log, a transaction a line.
func dump(t *testing.T, log eventlog.Log) []string {
	t.Helper()
	rd, err := log.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	names := map[eventlog.TopicID]string{}
	for _, tp := range log.Topics() {
		names[tp.ID] = tp.Spec.Name
	}
	var lines []string
	for {
		tx, err := rd.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tx == nil {
			return lines
		}
		line := fmt.Sprintf("%d %s:", tx.Kind, tx.ID)
		for _, r := range tx.Records {
			id, _ := change.DocumentID(r.Key)
			line += fmt.Sprintf(" %s/%d/%s/%s", names[r.Topic], r.Seq, change.Op(r.Op), id)
			if r.Schema != 0 {
				line += fmt.Sprintf("/s%d", r.Schema)
			}
			if r.Value == nil {
				line += "/-"
			}
		}
		lines = append(lines, line)
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%q, want\n%q", got, want)
	}
}

func TestIngestSchemasAndConfirm(t *testing.T) {
	log := logtest.Mem()
	a, a2 := testSchema("shop.public.a", "id", "v"), testSchema("shop.public.a", "id", "v")
	wide := testSchema("shop.public.a", "id", "v", "w")
	src := runIngest(t, log,
		tx("0/1", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(1), nil, row(1, 2)) }),
		tx("0/2", func(b *change.Batch) { b.Add(a2, change.OpUpdate, 0, key(1), row(1, 2), row(1, 3)) }),
		tx("0/3", func(b *change.Batch) {
			b.Add(wide, change.OpInsert, 0, key(2), nil, row(2, 3, 4))
			b.Add(wide, change.OpDelete, 0, key(1), nil, nil)
		}))
	expect(t, dump(t, log),
		"0 0/1: _schemas/0/schema/shop.public.a|1 shop.public.a/1/insert/1/s1",
		"0 0/2: shop.public.a/0/update/1/s1",
		"0 0/3: _schemas/0/schema/shop.public.a|2 shop.public.a/1/insert/2/s2 shop.public.a/2/delete/1/s2/-")
	if len(src.confirmed) == 0 || src.confirmed[len(src.confirmed)-1] != "0/3" {
		t.Errorf("confirmed %v", src.confirmed)
	}
	// Another run finds the same ids.
	runIngest(t, log, tx("0/4", func(b *change.Batch) {
		b.Add(testSchema("shop.public.a", "id", "v", "w"), change.OpInsert, 0, key(9), nil, row(9, 9, 9))
	}))
	if lines := dump(t, log); lines[len(lines)-1] != "0 0/4: shop.public.a/0/insert/9/s2" {
		t.Errorf("after a restart: %q", lines[len(lines)-1])
	}
}

func TestIngestParts(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	first := tx("", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(1), nil, row(1, 2)) })
	first.More, first.Pos = true, change.Position{}
	runIngest(t, log, first, tx("0/5", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(2), nil, row(2, 2)) }))
	expect(t, dump(t, log), "0 0/5: _schemas/0/schema/shop.public.a|1 shop.public.a/1/insert/1/s1 shop.public.a/2/insert/2/s1")
	// A transaction whose end never comes leaves nothing, not even its schema's id.
	open := tx("", func(b *change.Batch) {
		b.Add(testSchema("shop.public.a", "id", "x"), change.OpInsert, 0, key(3), nil, row(3, 3))
	})
	open.More, open.Pos = true, change.Position{}
	runIngest(t, log, open)
	runIngest(t, log, tx("0/6", func(b *change.Batch) {
		b.Add(testSchema("shop.public.a", "id", "y"), change.OpInsert, 0, key(3), nil, row(3, 3))
	}))
	if lines := dump(t, log); len(lines) != 2 || lines[1] != "0 0/6: _schemas/0/schema/shop.public.a|2 shop.public.a/1/insert/3/s2" {
		t.Errorf("%q", lines)
	}
}

// TestIngestLayoutReturns: a layout that comes back keeps its id, and is the newest record again.
func TestIngestLayoutReturns(t *testing.T) {
	log := logtest.Mem()
	v, w, back := testSchema("shop.public.a", "id", "v"), testSchema("shop.public.a", "id", "v", "w"), testSchema("shop.public.a", "id", "v")
	runIngest(t, log,
		tx("0/1", func(b *change.Batch) { b.Add(v, change.OpInsert, 0, key(1), nil, row(1, 1)) }),
		tx("0/2", func(b *change.Batch) { b.Add(w, change.OpInsert, 0, key(2), nil, row(2, 2, 2)) }),
		tx("0/3", func(b *change.Batch) { b.Add(back, change.OpInsert, 0, key(3), nil, row(3, 3)) }))
	if lines := dump(t, log); lines[2] != "0 0/3: _schemas/0/schema/shop.public.a|1 shop.public.a/1/insert/3/s1" {
		t.Errorf("%q", lines[2])
	}
	newest, err := (&LogHistory{Log: log, Source: "shop"}).Schemas()
	if err != nil || len(newest["shop.public.a"].Columns) != 2 {
		t.Errorf("newest %v, %v", newest["shop.public.a"], err)
	}
}

// TestIngestAnnouncesSchemas: an empty table's layout and topic are in the log.
func TestIngestAnnouncesSchemas(t *testing.T) {
	log := logtest.Mem()
	empty := testSchema("shop.public.empty", "id")
	runIngest(t, log, &change.Batch{Source: "shop", Kind: change.Chunk, Schemas: []*change.Schema{empty}})
	expect(t, dump(t, log), "1 : _schemas/0/schema/shop.public.empty|1")
	if _, ok := log.Topic(empty.Topic); !ok {
		t.Error("the empty table has no topic")
	}
}

func TestIngestControlsAndTruncate(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	m := change.SnapshotMark{Topic: a.Topic, Run: 1, State: change.SnapshotBegun, Floor: true}
	chunk := &change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{{Topic: "_snapshots.shop", Key: m.Key(), Value: m.Append(nil)}}}
	chunk.Add(a, change.OpRead, change.FlagSnapshot, key(1), nil, row(1, 1))
	runIngest(t, log, chunk, tx("0/1", func(b *change.Batch) { b.Add(a, change.OpTruncate, 0, nil, nil, nil) }))
	lines := dump(t, log)
	if len(lines) != 2 || lines[0] != "1 : _schemas/0/schema/shop.public.a|1 shop.public.a/1/read/1/s1 _snapshots.shop/2/schema/shop.public.a|1|0" {
		t.Errorf("%q", lines)
	}
	tp, _ := log.Topic(a.Topic)
	for p, end := range log.EndOffsets(tp.ID) {
		if end == 0 {
			t.Errorf("partition %d has no truncate record", p)
		}
	}
}

// TestTruncateGolden pins the control record of a truncate.
func TestTruncateGolden(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	runIngest(t, log, tx("0/1", func(b *change.Batch) { b.Add(a, change.OpTruncate, 0, nil, nil, nil) }))
	tp, _ := log.Topic(a.Topic)
	for p := range int32(4) {
		rd, err := log.ReadPartition(tp.ID, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, ok, err := rd.Next()
		if err != nil || !ok || fmt.Sprintf("%x=%x op=%d", r.Key, r.Value, r.Op) != "0001=01 op=4" || string(r.Key) != eventlog.TruncateKey {
			t.Errorf("partition %d: %x=%x op=%d, %v %v", p, r.Key, r.Value, r.Op, ok, err)
		}
		rd.Close()
	}
}

// TestV9SweepDecidesAtTheAppend: an insert that was appended after the run's
// beginning is not swept, however the source saw it; older keys and only those are.
func TestV9SweepDecidesAtTheAppend(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	begun := change.SnapshotMark{Topic: a.Topic, Run: 2, State: change.SnapshotBegun}
	done := change.SnapshotMark{Topic: a.Topic, Run: 2, State: change.SnapshotDone}
	control := func(m change.SnapshotMark) []change.Control {
		return []change.Control{{Topic: "_snapshots.shop", Key: m.Key(), Value: m.Append(nil)}}
	}
	chunk := &change.Batch{Source: "shop", Kind: change.Chunk}
	chunk.Add(a, change.OpRead, change.FlagSnapshot, key(2), nil, row(2, 2))
	runIngest(t, log,
		tx("0/1", func(b *change.Batch) {
			for id := range int64(3) {
				b.Add(a, change.OpInsert, 0, key(id+1), nil, row(id+1, 0))
			}
		}),
		tx("0/2", func(b *change.Batch) { b.Add(a, change.OpDelete, 0, key(3), nil, nil) }),
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: control(begun)},
		chunk,
		tx("0/3", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(7), nil, row(7, 7)) }),
		&change.Batch{Source: "shop", Kind: change.Chunk, Sweep: &change.Sweep{Topic: a.Topic, Since: begun.Key()}, Controls: control(done)})
	lines := dump(t, log)
	if want := "1 : shop.public.a/0/delete/1/s1/- _snapshots.shop/1/schema/shop.public.a|2|2"; lines[len(lines)-1] != want {
		t.Errorf("the sweep appended %q, want %q", lines[len(lines)-1], want)
	}
}

func TestHistory(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	mark := func(run uint64, s change.SnapshotState) change.Control {
		m := change.SnapshotMark{Topic: a.Topic, Run: run, State: s}
		return change.Control{Topic: "_snapshots.shop", Key: m.Key(), Value: m.Append(nil)}
	}
	old := tx("0/1", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(1), nil, row(1, 1)) })
	runIngest(t, log, old,
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{mark(1, change.SnapshotBegun)}},
		tx("0/2", func(b *change.Batch) {
			b.Add(a, change.OpUpdate, change.FlagPartial, key(1), nil, change.AppendRow(nil, []change.Value{change.Int(1), change.UnchangedValue}))
		}),
		&change.Batch{Source: "shop", Kind: change.Tick, Pos: change.Position{Name: "0/9", Resume: "x"}})
	h := &LogHistory{Log: log, Source: "shop"}
	if pos, ok := h.Last(); !ok || pos.Name != "0/9" {
		t.Errorf("last position %v, %v", pos, ok)
	}
	marks, err := h.Marks()
	if err != nil || len(marks) != 1 || marks[0].State != change.SnapshotBegun {
		t.Errorf("marks %v, %v", marks, err)
	}
	var recent []string
	if err := h.Recent(func(r RecentTx) error { recent = append(recent, r.Tx); return nil }); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(recent, "0/1") || !slices.Contains(recent, "0/2") {
		t.Errorf("recent transactions %q: want those since the run began", recent)
	}
	n := 0
	err = h.ReadNewest(a.Topic, func(_ change.Key, r change.Row, partial bool) error {
		n++
		if v, err := r.Value(1); partial || err != nil || v.Int64() != 1 {
			t.Errorf("newest row: %v %v partial=%v", v, err, partial)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := h.SetIntent([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if note, err := h.Intent(); err != nil || string(note) != "x" {
		t.Errorf("intent %q, %v", note, err)
	}
}

// TestForget: after it the source starts anew, and every run from before is stopped.
func TestForget(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	mark := func(run uint64, s change.SnapshotState) change.Control {
		m := change.SnapshotMark{Topic: a.Topic, Run: run, State: s}
		return change.Control{Topic: "_snapshots.shop", Key: m.Key(), Value: m.Append(nil)}
	}
	runIngest(t, log,
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{mark(1, change.SnapshotBegun)}},
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{mark(1, change.SnapshotDone)}},
		tx("0/1", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(1), nil, row(1, 1)) }))
	h := &LogHistory{Log: log, Source: "shop"}
	if err := h.Forget(); err != nil {
		t.Fatal(err)
	}
	if pos, ok := h.Last(); ok {
		t.Errorf("the position %v still counts", pos)
	}
	marks, err := h.Marks()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range marks {
		if m.State == change.SnapshotDone {
			t.Errorf("run %d is still done", m.Run)
		}
	}
	runIngest(t, log,
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{mark(2, change.SnapshotBegun)}},
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{mark(2, change.SnapshotDone)}},
		tx("0/2", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(2), nil, row(2, 1)) }))
	if pos, ok := h.Last(); !ok || pos.Name != "0/2" {
		t.Errorf("position %v, %v", pos, ok)
	}
	if marks, err = h.Marks(); err != nil || marks[len(marks)-1].Run != 1 && marks[len(marks)-1].State != change.SnapshotDone {
		t.Errorf("marks %+v, %v", marks, err)
	}
}

// fullLog answers ErrFull to its first appends.
type fullLog struct {
	eventlog.Log
	refuse int
}

func (l *fullLog) Append(ctx context.Context, g []*eventlog.Tx) error {
	if l.refuse > 0 {
		l.refuse--
		return fmt.Errorf("append: %w", eventlog.ErrFull)
	}
	return l.Log.Append(ctx, g)
}

// TestFullLogOnlyWaits: no space stops acknowledgements, not the daemon (C8).
func TestFullLogOnlyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fullLog{Log: logtest.Mem(), refuse: 3}
		a := testSchema("shop.public.a", "id", "v")
		src := &scripted{log: log, batches: []*change.Batch{tx("0/1", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(1), nil, row(1, 1)) })}}
		ctx, cancel := context.WithCancel(t.Context())
		in := NewIngest(IngestOptions{Log: log, Source: "shop"})
		done := make(chan error)
		go func() { done <- in.Run(ctx, src) }()
		synctest.Wait()
		if !in.Full() || src.count() != 0 {
			t.Errorf("full=%v confirmed=%d", in.Full(), src.count())
		}
		if at := in.Waiting().UnixMicro(); at != 1700000000000000 {
			t.Errorf("what waits was committed at %d", at)
		}
		time.Sleep(10 * time.Second) // of the bubble's clock
		synctest.Wait()
		if in.Full() || !in.Waiting().IsZero() || src.count() != 1 {
			t.Errorf("after there is space: full=%v confirmed=%d", in.Full(), src.count())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestIngestEndsWithItsSource(t *testing.T) {
	log := logtest.Mem()
	in := NewIngest(IngestOptions{Log: log, Source: "shop"})
	broken := errors.New("connection reset")
	if err := in.Run(t.Context(), failing{broken}); !errors.Is(err, broken) {
		t.Errorf("Run = %v", err)
	}
}

type failing struct{ err error }

func (f failing) Next(context.Context) (*change.Batch, error) { return nil, f.err }
func (failing) Confirm(change.Position)                       {}
func (failing) Stats() SourceStats                            { return SourceStats{} }
func (failing) Close() error                                  { return nil }

// TestIngestEnded: a run has ended once its end is in the log, and not before.
func TestIngestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logtest.Mem()
		var space atomic.Bool
		log.FailAppend = func() error {
			if space.Load() {
				return nil
			}
			return eventlog.ErrFull
		}
		mark := func(run uint64, s change.SnapshotState) *change.Batch {
			m := change.SnapshotMark{Topic: "shop.public.a", Run: run, State: s}
			return &change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{{Topic: "_snapshots.shop", Key: m.Key(), Value: m.Append(nil)}}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		in := NewIngest(IngestOptions{Log: log, Source: "shop"})
		done := make(chan error)
		go func() {
			done <- in.Run(ctx, &scripted{log: log, batches: []*change.Batch{mark(1, change.SnapshotBegun), mark(1, change.SnapshotDone)}})
		}()
		synctest.Wait()
		if in.Ended("shop.public.a", 1) {
			t.Error("a run whose end waits for space has ended")
		}
		space.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !in.Ended("shop.public.a", 1) || in.Ended("shop.public.a", 2) {
			t.Errorf("run 1 ended: %v, run 2: %v", in.Ended("shop.public.a", 1), in.Ended("shop.public.a", 2))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
