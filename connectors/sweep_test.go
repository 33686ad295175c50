package connectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// refillTest is a log with the rows 1 to 40, some of them deleted, sealed; and a
// run of the table that found the rows of live.
type refillTest struct {
	t     *testing.T
	disk  *vfs.Mem
	log   *seglog.Log
	a     *change.Schema
	ticks int
}

func newRefillTest(t *testing.T) *refillTest {
	r := &refillTest{t: t, disk: vfs.NewMem(), a: testSchema("shop.public.a", "id", "v")}
	r.open()
	r.run(nil, tx("0/1", func(b *change.Batch) {
		for id := range int64(40) {
			b.Add(r.a, change.OpInsert, 0, key(id+1), nil, row(id+1, 0))
		}
	}))
	r.seal()
	r.run(nil, tx("0/2", func(b *change.Batch) {
		for id := int64(5); id <= 40; id += 5 {
			b.Add(r.a, change.OpDelete, 0, key(id), nil, nil)
		}
	}))
	r.seal()
	return r
}

func (r *refillTest) open() {
	r.t.Helper()
	var err error
	if r.log, err = seglog.Open("log", seglog.Options{FS: r.disk}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *refillTest) seal() {
	r.t.Helper()
	if err := r.log.SealAll(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// flip damages the n-th segment of each of the topic's partitions, and opens the log anew.
func (r *refillTest) flip(n int) {
	r.t.Helper()
	var names []string
	for name := range r.disk.Files() {
		if strings.Contains(name, "shop.public.a/") && strings.HasSuffix(name, ".seg") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		if i%(len(names)/4) == n {
			r.disk.Flip(name, 8*80)
		}
	}
	if err := r.log.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.open()
}

// run copies batches until the last is in the log, or the source ends with an error of that kind.
func (r *refillTest) run(want error, batches ...*change.Batch) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	r.ticks++
	last := fmt.Sprint("9/", r.ticks)
	src := &scripted{log: r.log, batches: append(batches, &change.Batch{Source: "shop", Kind: change.Tick, Pos: change.Position{Name: last, Resume: "x"}})}
	in := NewIngest(IngestOptions{Log: r.log, Source: "shop"})
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, src) }()
	for {
		changed := r.log.Changed()
		if st, ok := r.log.SourceState("shop"); ok {
			if p, _ := change.DecodePosition(st.Position); p.Name == last {
				break
			}
		}
		select {
		case err := <-done:
			if want == nil || !errors.Is(err, want) {
				r.t.Fatalf("Run = %v, want %v", err, want)
			}
			return
		case <-changed:
		}
	}
	cancel()
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
}

// rerun is a run of the table that finds all rows but those deleted and 7, whose delete never came.
func (r *refillTest) rerun() []*change.Batch {
	control := func(s change.SnapshotState) []change.Control {
		m := change.SnapshotMark{Topic: r.a.Topic, Run: 2, State: s}
		return []change.Control{{Topic: "_snapshots.shop", Key: m.Key(), Value: m.Append(nil)}}
	}
	begun := change.SnapshotMark{Topic: r.a.Topic, Run: 2, State: change.SnapshotBegun}
	chunk := &change.Batch{Source: "shop", Kind: change.Chunk}
	for _, id := range r.live() {
		if id != 50 {
			chunk.Add(r.a, change.OpRead, change.FlagSnapshot, key(id), nil, row(id, 1))
		}
	}
	return []*change.Batch{
		{Source: "shop", Kind: change.Chunk, Controls: control(change.SnapshotBegun)},
		chunk,
		tx("0/3", func(b *change.Batch) { b.Add(r.a, change.OpInsert, 0, key(50), nil, row(50, 50)) }),
		{Source: "shop", Kind: change.Chunk, Sweep: &change.Sweep{Topic: r.a.Topic, Since: begun.Key()}, Controls: control(change.SnapshotDone)},
	}
}

func (r *refillTest) live() (ids []int64) {
	for id := range int64(40) {
		if id+1 != 7 && (id+1)%5 != 0 {
			ids = append(ids, id+1)
		}
	}
	return append(ids, 50)
}

// check compares the newest rows of the topic with what the run found.
func (r *refillTest) check() {
	r.t.Helper()
	var got []int64
	err := (&LogHistory{Log: r.log, Source: "shop"}).ReadNewest(r.a.Topic, func(_ change.Key, row change.Row, _ bool) error {
		values, err := row.Values(nil)
		if err == nil {
			got = append(got, values[0].Int64())
		}
		return err
	})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, r.live()) {
		r.t.Errorf("the topic has the rows %v, %v; want %v", got, err, r.live())
	}
}

// TestSweepMendsItsTopic: a run of a table whose topic is damaged ends with the
// damage set aside and the topic right, whichever of its segments it was.
func TestSweepMendsItsTopic(t *testing.T) {
	for segment := range 2 {
		r := newRefillTest(t)
		r.flip(segment)
		topic, _ := r.log.Topic(r.a.Topic)
		if err := r.log.SealedDamage(t.Context(), topic.ID); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Fatalf("segment %d: SealedDamage = %v", segment, err)
		}
		r.run(nil, r.rerun()...)
		if err := r.log.SealedDamage(t.Context(), topic.ID); err != nil {
			t.Errorf("segment %d: SealedDamage = %v", segment, err)
		}
		r.check()
		r.seal()
		if _, err := r.log.Compact(t.Context(), topic.ID); err != nil {
			t.Errorf("segment %d: Compact = %v", segment, err)
		}
		r.check()
	}
}

// TestSweepTellsOfLostKeys: whoever had passed a damaged place learns of rows
// whose keys it held, too: here all records of the table are damaged.
func TestSweepTellsOfLostKeys(t *testing.T) {
	r := newRefillTest(t)
	r.flip(0)
	r.flip(1)
	r.run(nil, r.rerun()...)
	r.check()
	topic, _ := r.log.Topic(r.a.Topic)
	for p := range int32(topic.Spec.Partitions) {
		rd, err := r.log.ReadPartition(topic.ID, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for {
			rec, ok, err := rd.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			found = found || string(rec.Key) == string(change.SweepKey) && rec.Op == uint8(change.OpSweep)
		}
		if !found {
			t.Errorf("partition %d has no sweep record", p)
		}
		rd.Close()
	}
}

// TestSweepCannotMendItself: damage in what the run appended is an error with the way out, and nothing is removed.
func TestSweepCannotMendItself(t *testing.T) {
	r := newRefillTest(t)
	batches := r.rerun()
	r.run(nil, batches[:3]...)
	r.seal()
	r.flip(2)
	before := len(r.disk.Files())
	r.run(ErrBeyondRefill, batches[3])
	if after := len(r.disk.Files()); after != before {
		t.Errorf("%d files, there were %d", after, before)
	}
	topic, _ := r.log.Topic(r.a.Topic)
	if err := r.log.SealedDamage(t.Context(), topic.ID); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("SealedDamage = %v", err)
	}
}
