package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/tailwater/tailwater/bench"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

// replay reads all records, by partition or as transactions. Rate is records a second.
func replay(ctx context.Context, p params) (bench.Sample, error) {
	l, top, err := open(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer l.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var t tally
	switch p.mode {
	case "partition":
		err = t.partitions(l, top)
	case "transactions":
		err = t.transactions(l)
	default:
		err = fmt.Errorf("mode %q; it is partition or transactions", p.mode)
	}
	if err != nil {
		return bench.Sample{}, err
	}
	took := time.Since(began).Seconds()
	runtime.ReadMemStats(&after)
	return bench.Sample{Rate: float64(t.records) / took, Extra: map[string]float64{
		"records": float64(t.records), "bytes": float64(t.bytes), "seconds": took,
		"allocations": float64(after.Mallocs - before.Mallocs),
	}}, nil
}

// tally counts what was read, and touches each key.
type tally struct {
	records, bytes int64
	sum            uint64
}

func (t *tally) add(r *eventlog.Record) {
	t.records++
	t.bytes += int64(len(r.Key) + len(r.Value))
	t.sum += uint64(r.CSN) + uint64(r.Key[len(r.Key)-1])
}

func (t *tally) partitions(l *seglog.Log, top eventlog.Topic) error {
	for p := range top.Spec.Partitions {
		r, err := l.ReadPartition(top.ID, int32(p), 0)
		if err != nil {
			return err
		}
		for {
			rec, ok, err := r.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			t.add(&rec)
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) transactions(l *seglog.Log) error {
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil || tx == nil {
			return err
		}
		for i := range tx.Records {
			t.add(&tx.Records[i])
		}
	}
}

// seeks is how many places a seek workload goes to.
const seeks = 400

// seek opens readers at random offsets and reads one record each. Rate is the
// inverse of the 99th percentile of the time that this takes.
func seek(ctx context.Context, p params) (bench.Sample, error) {
	l, top, err := open(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer l.Close()
	end := l.EndOffsets(top.ID)[0]
	rng := rand.New(rand.NewPCG(3, 3))
	var took []time.Duration
	for range seeks {
		at := eventlog.Offset(rng.Int64N(int64(end)))
		began := time.Now()
		r, err := l.ReadPartition(top.ID, 0, at)
		if err != nil {
			return bench.Sample{}, err
		}
		rec, ok, err := r.Next()
		took = append(took, time.Since(began))
		if err != nil || !ok || rec.Offset != at {
			return bench.Sample{}, fmt.Errorf("seek to offset %d of %d: offset %d, %v, %v", at, end, rec.Offset, ok, err)
		}
		if err := r.Close(); err != nil {
			return bench.Sample{}, err
		}
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	return bench.Sample{Rate: 1 / p99.Seconds(), Extra: map[string]float64{
		"p50 ms": took[len(took)/2].Seconds() * 1e3, "p99 ms": p99.Seconds() * 1e3, "max ms": took[len(took)-1].Seconds() * 1e3,
	}}, nil
}
