package connectors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// recordMemory is what a record takes beside its key and value.
const recordMemory = 160

// spill moves what a transaction has collected into a stream of the log once it
// is large: its memory is bounded, and no entry of the log has to hold it.
func (in *Ingest) spill(ctx context.Context, p *pendingTx) error {
	if p.bytes < in.opts.StreamBytes {
		return nil
	}
	return in.spillAll(ctx, p)
}

func (in *Ingest) spillAll(ctx context.Context, p *pendingTx) error {
	if p.stream == nil {
		s, err := in.opts.Log.Stream(ctx)
		if err != nil {
			return fmt.Errorf("stream a transaction of source %q: %w", in.opts.Source, err)
		}
		p.stream, in.stream = s, s
	}
	return in.streamRecords(ctx, p, 0)
}

// streamRecords moves what a transaction has collected, of one sub-transaction, into its stream.
func (in *Ingest) streamRecords(ctx context.Context, p *pendingTx, sub uint32) error {
	err := in.whileFull(ctx, p.tx.CommitTime, func() error { return p.stream.Add(sub, p.tx.Records) })
	if err != nil {
		return fmt.Errorf("stream %d records of a transaction of source %q: %w", len(p.tx.Records), in.opts.Source, err)
	}
	clear(p.tx.Records) // the log has copies
	p.tx.Records, p.bytes = p.tx.Records[:0], 0
	return nil
}

// finish appends a transaction that spilled.
func (in *Ingest) finish(ctx context.Context, p *pendingTx) error {
	if err := in.spillAll(ctx, p); err != nil {
		return err
	}
	p.tx.Records = nil
	if err := in.whileFull(ctx, p.tx.CommitTime, func() error { return p.stream.Commit(ctx, p.tx) }); err != nil {
		return fmt.Errorf("commit a streamed transaction of source %q: %w", in.opts.Source, err)
	}
	in.rows.append()
	return in.rows.settle()
}

// discardStream gives up what was not committed: the source sends it again.
func (in *Ingest) discardStream() {
	if in.stream == nil {
		return
	}
	if err := in.stream.Discard(); err != nil {
		in.opts.Logger.Warn("discard an unfinished transaction", "source", in.opts.Source, "err", err)
	}
	in.stream = nil
}

// whileFull repeats do while the log has no space: acknowledgements stop, nothing
// is lost (C8). at is the commit time (µs) of what waits meanwhile, 0 unknown.
func (in *Ingest) whileFull(ctx context.Context, at int64, do func() error) error {
	in.waiting.Store(at)
	defer in.waiting.Store(0)
	for {
		err := do()
		if !errors.Is(err, eventlog.ErrFull) || errors.Is(err, eventlog.ErrStreamLost) {
			if in.full.Swap(false) && err == nil {
				in.opts.Logger.Info("the log has space again", "source", in.opts.Source)
			}
			return err
		}
		in.waiting.CompareAndSwap(0, time.Now().UnixMicro())
		if !in.full.Swap(true) {
			in.opts.Logger.Warn("the log has no space: the source waits", "source", in.opts.Source, "err", err)
		}
		select {
		case <-time.After(in.opts.FullRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
