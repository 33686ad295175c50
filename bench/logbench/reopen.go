package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tailwater/tailwater/bench"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

// fillAndDie fills a log and kills itself with SIGKILL in the middle of appends,
// when the newest journal file, which the next start reads, is nearly full.
func fillAndDie(ctx context.Context, p params) (bench.Sample, error) {
	if err := os.RemoveAll(p.dir); err != nil {
		return bench.Sample{}, err
	}
	l, top, err := open(p)
	if err != nil {
		return bench.Sample{}, err
	}
	go l.Run(ctx)
	if err := appendRecords(ctx, l, top, p, p.bytes/recordSize); err != nil {
		return bench.Sample{}, err
	}
	s := newSource(99, top.ID, p.group)
	for {
		if err := l.Append(ctx, s.next()); err != nil {
			return bench.Sample{}, err
		}
		if l.Stats().AppendedBytes%(64<<20) > 60<<20 {
			return bench.Sample{}, syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
}

// reopen opens a log that was not closed, and leaves it so. Rate is the inverse of the time.
func reopen(_ context.Context, p params) (bench.Sample, error) {
	began := time.Now()
	l, err := seglog.Open(p.dir, seglog.Options{})
	if err != nil {
		return bench.Sample{}, err
	}
	took := time.Since(began)
	st := l.Stats()
	if st.JournalBytes+st.SegmentBytes == 0 {
		return bench.Sample{}, fmt.Errorf("reopen: the log is empty")
	}
	return bench.Sample{Rate: 1 / took.Seconds(), Extra: map[string]float64{
		"ms": took.Seconds() * 1e3, "journal bytes": float64(st.JournalBytes), "segment bytes": float64(st.SegmentBytes),
	}}, nil
}
