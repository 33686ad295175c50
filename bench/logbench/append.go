package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/bench"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

func options(p params) (seglog.Options, error) {
	c, err := eventlog.ParseCompression(p.journal)
	return seglog.Options{Compression: c}, err
}

func open(p params) (*seglog.Log, eventlog.Topic, error) { return openOn(vfs.OS, p) }

func openOn(fs vfs.FS, p params) (*seglog.Log, eventlog.Topic, error) {
	o, err := options(p)
	if err != nil {
		return nil, eventlog.Topic{}, err
	}
	o.FS = fs
	l, err := seglog.Open(p.dir, o)
	if err != nil {
		return nil, eventlog.Topic{}, err
	}
	t, err := l.EnsureTopic(eventlog.TopicSpec{
		Name: "shop.public.orders", Partitions: p.partitions, Cleanup: eventlog.CleanupCompact, Compression: p.sealed,
	})
	return l, t, err
}

// recordSize is what a record of the bulk workloads takes in the journal, uncompressed.
const recordSize = keySize + valueSize + 21

// appendBulk appends until the journal has taken p.bytes, or their like where it is compressed. Rate is
// bytes a second, as uncompressed.
func appendBulk(ctx context.Context, p params) (bench.Sample, error) {
	if err := os.RemoveAll(p.dir); err != nil {
		return bench.Sample{}, err
	}
	var writing atomic.Int64
	l, top, err := openOn(busyFS{vfs.OS, &writing}, p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer l.Close()
	stop := background(ctx, l, p.seal)
	records := p.bytes / recordSize / int64(p.group) * int64(p.group)
	writing.Store(0)
	began := time.Now()
	if err := appendRecords(ctx, l, top, p, records); err != nil {
		return bench.Sample{}, err
	}
	took, written := time.Since(began).Seconds(), time.Duration(writing.Load()).Seconds()
	if err := stop(); err != nil {
		return bench.Sample{}, err
	}
	st := l.Stats()
	extra := map[string]float64{
		"records/s": float64(records) / took, "journal bytes": float64(st.AppendedBytes), "syncs": float64(st.Syncs), "seconds": took,
		"sealed seconds": time.Since(began).Seconds(),
	}
	if !p.seal {
		extra["writing"] = written / took
	}
	return bench.Sample{Rate: float64(records*recordSize) / took, Extra: extra}, nil
}

// appendRecords appends so many records, whole groups, through p.appenders, each of which
// waits for its group before it makes the next.
func appendRecords(ctx context.Context, l *seglog.Log, top eventlog.Topic, p params, records int64) error {
	var taken atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for i := range p.appenders {
		g.Go(func() error {
			s := newSource(uint64(i+1), top.ID, p.group)
			for taken.Add(int64(p.group)) <= records {
				if err := l.Append(ctx, s.next()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// background seals while others append; stop waits until sealing has caught up.
func background(ctx context.Context, l *seglog.Log, seal bool) (stop func() error) {
	if !seal {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return func() error {
		cancel()
		if err := <-done; err != nil {
			return err
		}
		return l.Seal(context.WithoutCancel(ctx), 1<<30)
	}
}

// fill makes the log that the reading workloads read: everything is sealed, or nothing where p.seal is not set.
func fill(ctx context.Context, p params) (bench.Sample, error) {
	s, err := appendBulk(ctx, params{dir: p.dir, bytes: p.bytes, partitions: p.partitions, appenders: 1, group: p.group, journal: p.journal, sealed: p.sealed})
	if err != nil || !p.seal {
		return s, err
	}
	l, _, err := open(p)
	if err != nil {
		return s, err
	}
	defer l.Close()
	return s, l.SealAll(ctx)
}
