package main

import (
	"context"
	"os"
	"time"

	"github.com/tailwater/tailwater/bench"
)

// compact compacts a copy of a sealed log, whose records are of 500,000 keys,
// and leaves it beside. Rate is records read a second.
func compact(ctx context.Context, p params) (bench.Sample, error) {
	p, err := copied(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer os.RemoveAll(p.dir)
	l, top, err := open(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer l.Close()
	records := l.EndOffsets(top.ID)[0]
	before := l.Stats().SegmentBytes
	began := time.Now()
	if _, err := l.Compact(ctx, top.ID); err != nil {
		return bench.Sample{}, err
	}
	took := time.Since(began).Seconds()
	return bench.Sample{Rate: float64(records) / took, Extra: map[string]float64{
		"records": float64(records), "seconds": took, "bytes before": float64(before), "bytes after": float64(l.Stats().SegmentBytes),
	}}, nil
}

// appendBeside appends to a copy of a sealed log, while whatever the log does in the
// background runs (p.seal) or not. Rate is as appendBulk's.
func appendBeside(ctx context.Context, p params) (bench.Sample, error) {
	p, err := copied(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer os.RemoveAll(p.dir)
	l, top, err := open(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer l.Close()
	if p.seal {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		defer func() { cancel(); <-done }()
	}
	records := p.bytes / recordSize / int64(p.group) * int64(p.group)
	began := time.Now()
	if err := appendRecords(ctx, l, top, p, records); err != nil {
		return bench.Sample{}, err
	}
	took := time.Since(began).Seconds()
	return bench.Sample{Rate: float64(records*recordSize) / took, Extra: map[string]float64{
		"records/s": float64(records) / took, "seconds": took, "journal bytes": float64(l.Stats().AppendedBytes),
	}}, nil
}

// copied copies the log and returns where.
func copied(p params) (params, error) {
	from := p.dir
	p.dir += ".copy"
	if err := os.RemoveAll(p.dir); err != nil {
		return p, err
	}
	return p, os.CopyFS(p.dir, os.DirFS(from))
}
