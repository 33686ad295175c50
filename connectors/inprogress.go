package connectors

import (
	"context"
	"fmt"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// progress takes a batch of a transaction that comes while it is in progress: its
// records go into a stream of the log at once, beside what is appended meanwhile.
func (in *Ingest) progress(ctx context.Context, g *group, b *change.Batch) error {
	p := in.running[b.Tx]
	switch b.Stage {
	case change.InProgress:
		if p == nil {
			s, err := in.opts.Log.Stream(ctx)
			if err != nil {
				return fmt.Errorf("stream a transaction of source %q: %w", in.opts.Source, err)
			}
			p = &pendingTx{tx: &eventlog.Tx{Kind: eventlog.TxSource, Source: in.opts.Source}, stream: s}
			in.running[b.Tx] = p
		}
		return in.addRunning(ctx, g, p, b)
	case change.RolledBack:
		if p == nil {
			return nil
		}
		if b.Sub != 0 {
			return p.stream.Abort(b.Sub)
		}
		delete(in.running, b.Tx)
		return p.stream.Discard()
	}
	if p == nil { // nothing of it came
		p = &pendingTx{tx: &eventlog.Tx{Kind: eventlog.TxSource, Source: in.opts.Source}}
	}
	delete(in.running, b.Tx)
	in.stream = p.stream
	if err := in.addLayouts(g, b); err != nil {
		return err
	}
	if err := in.addRecords(g, p, b); err != nil {
		return err
	}
	in.complete(g, p, b)
	return nil
}

// addRunning streams what a batch holds.
func (in *Ingest) addRunning(ctx context.Context, g *group, p *pendingTx, b *change.Batch) error {
	if err := in.addLayouts(g, b); err != nil {
		return err
	}
	own := group{arena: in.arena[:0]} // the log copies
	if err := in.addRecords(&own, p, b); err != nil {
		return err
	}
	in.arena = own.arena
	return in.streamRecords(ctx, p, b.Sub)
}

// addLayouts puts the layouts that are new into a transaction of their own, since
// others may use them before this one is committed, or after it is rolled back.
func (in *Ingest) addLayouts(g *group, b *change.Batch) error {
	p := &pendingTx{tx: &eventlog.Tx{Kind: eventlog.TxChunk, Source: in.opts.Source, CommitTime: time.Now().UnixMicro()}}
	if err := in.addSchemas(p, b); err != nil {
		return err
	}
	if len(p.tx.Records) > 0 {
		g.txs = append(g.txs, p.tx)
	}
	return nil
}

// discardRunning gives up the transactions in progress: the source sends them again.
func (in *Ingest) discardRunning() {
	for _, p := range in.running {
		if err := p.stream.Discard(); err != nil {
			in.opts.Logger.Warn("discard a transaction in progress", "source", in.opts.Source, "err", err)
		}
	}
	in.running = nil
}
