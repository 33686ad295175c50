package connectors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// IngestOptions of an Ingest. The zero value of every field but Log and Source works.
type IngestOptions struct {
	Log    eventlog.Log
	Source string // the source's name
	Logger *slog.Logger
	// Spec returns how a topic is made; default: four partitions, compacted.
	Spec func(topic string) eventlog.TopicSpec
	// QueueLen and QueueBytes bound the batches waiting for the log; default 64 and 64 MiB.
	QueueLen   int
	QueueBytes int64
	// GroupBytes bounds a group appended at once; default 4 MiB.
	GroupBytes int
	// StreamBytes is the size from which on a transaction that comes in parts is
	// streamed to the log instead of collected; default 16 MiB.
	StreamBytes int
	// FullRetry is the pause before a full log is tried again; default 1s.
	FullRetry time.Duration
}

// Ingest copies one Source into the log. It is the only writer of the
// source's topics.
type Ingest struct {
	opts    IngestOptions
	schemas *schemaRegistry
	topics  map[string]eventlog.Topic
	open    *pendingTx            // a transaction of which more batches follow
	stream  eventlog.Stream       // the last one begun, or adopted
	running map[string]*pendingTx // transactions in progress, by their ids
	arena   []byte                // of the batch of one of them
	full    atomic.Bool
	waiting atomic.Int64 // see Waiting; µs since 1970, 0: nothing waits
	rows    rowHold
}

// NewIngest returns an Ingest; it does no I/O.
func NewIngest(opts IngestOptions) *Ingest {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.QueueLen <= 0 {
		opts.QueueLen = 64
	}
	if opts.QueueBytes <= 0 {
		opts.QueueBytes = 64 << 20
	}
	if opts.GroupBytes <= 0 {
		opts.GroupBytes = 4 << 20
	}
	if opts.StreamBytes <= 0 {
		opts.StreamBytes = 16 << 20
	}
	if opts.FullRetry <= 0 {
		opts.FullRetry = time.Second
	}
	if opts.Spec == nil {
		opts.Spec = func(topic string) eventlog.TopicSpec {
			return eventlog.TopicSpec{Name: topic, Cleanup: eventlog.CleanupCompact}
		}
	}
	return &Ingest{opts: opts, topics: map[string]eventlog.Topic{}, rows: rowHold{log: opts.Log, source: opts.Source}}
}

// Ended reports whether the log has the end of a table's snapshot run.
func (in *Ingest) Ended(topic string, run uint64) bool { return in.rows.endedRun(topic) >= run }

// Full reports whether appends wait for space.
func (in *Ingest) Full() bool { return in.full.Load() }

// Waiting returns the commit time of the oldest transaction that has come and is
// not durable yet, or since when it waits where that is not known. Zero: none waits.
func (in *Ingest) Waiting() time.Time {
	if at := in.waiting.Load(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}

// Run copies src into the log until ctx ends or one side fails. It owns the
// goroutines it starts and returns after both have; nil means ctx ended it.
// Whatever was not confirmed is sent again by the next Source.
func (in *Ingest) Run(ctx context.Context, src Source) error {
	in.open, in.running = nil, map[string]*pendingTx{}
	in.full.Store(false) // of an earlier Source
	defer in.discardStream()
	defer in.discardRunning()
	var err error
	if in.schemas, err = openSchemas(in.opts.Log); err != nil {
		return fmt.Errorf("read the schemas of source %q: %w", in.opts.Source, err)
	}
	if err := in.rows.load(); err != nil {
		return fmt.Errorf("read the snapshots of source %q: %w", in.opts.Source, err)
	}
	queue := make(chan *change.Batch, in.opts.QueueLen) // bounded: a slow log slows the source
	room := semaphore.NewWeighted(in.opts.QueueBytes)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(queue) // its only sender
		return in.receive(gctx, src, queue, room)
	})
	g.Go(func() error { return in.store(gctx, src, queue, room) })
	err = g.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// weight is what a batch takes of the queue's room; one batch always fits.
func (in *Ingest) weight(b *change.Batch) int64 { return min(int64(b.Size())+1, in.opts.QueueBytes) }

func (in *Ingest) receive(ctx context.Context, src Source, queue chan<- *change.Batch, room *semaphore.Weighted) error {
	for {
		b, err := src.Next(ctx)
		if err != nil {
			return err
		}
		if err := room.Acquire(ctx, in.weight(b)); err != nil {
			return err
		}
		select {
		case queue <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// store appends what has come, as much at once as is waiting.
func (in *Ingest) store(ctx context.Context, src Source, queue <-chan *change.Batch, room *semaphore.Weighted) error {
	for {
		var g group
		b, ok := <-queue
		if !ok {
			return ctx.Err()
		}
		for ok {
			room.Release(in.weight(b))
			if b.Sweep != nil {
				if err := in.flush(ctx, src, &g); err != nil {
					return err
				}
				if err := in.sweep(ctx, b); err != nil {
					return err
				}
			} else if err := in.add(ctx, &g, b); err != nil {
				return err
			}
			if g.bytes >= in.opts.GroupBytes || g.streamed != nil {
				break
			}
			select {
			case b, ok = <-queue:
			default:
				ok = false
			}
		}
		if err := in.flush(ctx, src, &g); err != nil {
			return err
		}
	}
}

// group is what one append takes.
type group struct {
	txs      []*eventlog.Tx
	streamed *pendingTx      // behind them: complete, but for its commit
	pos      change.Position // last one, to confirm
	bytes    int
	arena    []byte
}

// pendingTx is a transaction being put together.
type pendingTx struct {
	tx     *eventlog.Tx
	seq    uint32
	bytes  int             // of the records collected
	stream eventlog.Stream // that took the records before them; nil: none yet
}

func (in *Ingest) flush(ctx context.Context, src Source, g *group) error {
	if len(g.txs) > 0 {
		if err := in.append(ctx, g.txs); err != nil {
			return err
		}
	}
	if g.streamed != nil {
		if err := in.finish(ctx, g.streamed); err != nil {
			return err
		}
	}
	if !g.pos.IsZero() {
		src.Confirm(g.pos)
	}
	if len(g.txs) > 0 || g.streamed != nil {
		*g = group{}
	}
	return nil
}

// append appends transactions, waiting while the log has no space.
func (in *Ingest) append(ctx context.Context, txs []*eventlog.Tx) error {
	if err := in.whileFull(ctx, txs[0].CommitTime, func() error { return in.opts.Log.Append(ctx, txs) }); err != nil {
		return fmt.Errorf("append %d transactions of source %q: %w", len(txs), in.opts.Source, err)
	}
	in.rows.append()
	return in.rows.settle()
}

// add encodes one batch into the group.
func (in *Ingest) add(ctx context.Context, g *group, b *change.Batch) error {
	if b.Stage != change.Ended {
		return in.progress(ctx, g, b)
	}
	if in.open == nil {
		in.open = &pendingTx{tx: &eventlog.Tx{Kind: txKind(b.Kind), Source: in.opts.Source}}
	}
	p := in.open
	if err := in.addSchemas(p, b); err != nil {
		return err
	}
	if err := in.addRecords(g, p, b); err != nil {
		return err
	}
	if b.More {
		return in.spill(ctx, p)
	}
	in.open = nil
	in.complete(g, p, b)
	return nil
}

// addRecords encodes what a batch holds; its layouts are known.
func (in *Ingest) addRecords(g *group, p *pendingTx, b *change.Batch) error {
	for i := range b.Events {
		if err := in.addEvent(g, p, b, &b.Events[i]); err != nil {
			return err
		}
	}
	for i := range b.Controls {
		if err := in.addControl(p, &b.Controls[i]); err != nil {
			return err
		}
	}
	g.bytes += b.Size()
	return nil
}

// complete puts a transaction into the group whose last batch is b.
func (in *Ingest) complete(g *group, p *pendingTx, b *change.Batch) {
	p.tx.ID, p.tx.CommitTime = b.Tx, b.CommitTime
	if !b.Pos.IsZero() {
		p.tx.Position = b.Pos.Append(nil)
		g.pos = b.Pos
	}
	if p.stream != nil {
		g.streamed = p
	} else {
		g.txs = append(g.txs, p.tx)
	}
}

func txKind(k change.BatchKind) eventlog.TxKind {
	switch k {
	case change.Chunk:
		return eventlog.TxChunk
	case change.Tick:
		return eventlog.TxTick
	}
	return eventlog.TxSource
}

func (p *pendingTx) add(r eventlog.Record) {
	r.Seq = p.seq
	p.seq++
	p.bytes += len(r.Key) + len(r.Value) + recordMemory
	p.tx.Records = append(p.tx.Records, r)
}

// addSchemas adds a record for each layout that its topic has not had.
func (in *Ingest) addSchemas(p *pendingTx, b *change.Batch) error {
	for _, s := range b.Schemas {
		if _, err := in.topic(s.Topic); err != nil {
			return err
		}
		if err := in.addSchema(p, s); err != nil {
			return err
		}
	}
	var last *change.Schema
	for i := range b.Events {
		if s := b.Events[i].Schema; s != last {
			if err := in.addSchema(p, s); err != nil {
				return err
			}
			last = s
		}
	}
	return nil
}

func (in *Ingest) addSchema(p *pendingTx, s *change.Schema) error {
	if in.schemas.known(s) {
		return nil
	}
	id, layout, fresh := in.schemas.assign(s)
	if !fresh {
		return nil
	}
	t, err := in.topic(change.TopicSchemas)
	if err != nil {
		return err
	}
	p.add(eventlog.Record{Topic: t.ID, Op: uint8(change.OpSchema), Key: change.SchemaKey(s.Topic, id), Value: layout})
	return nil
}

var truncateKey = change.Key{change.ControlKey, change.ControlTruncate}

func (in *Ingest) addEvent(g *group, p *pendingTx, b *change.Batch, e *change.Event) error {
	t, err := in.topic(e.Schema.Topic)
	if err != nil {
		return err
	}
	r := eventlog.Record{Topic: t.ID, Op: uint8(e.Op), Flags: uint8(e.Flags), Schema: in.schemas.id(e.Schema)}
	if e.Op == change.OpTruncate {
		r.Partition, r.Key, r.Value = eventlog.EveryPartition, truncateKey, []byte{1}
		p.add(r)
		return nil
	}
	if len(e.Schema.Key) > 0 {
		r.Key = b.Key(e)
	}
	if after, ok := b.After(e); ok {
		before, _ := b.Before(e)
		start := len(g.arena)
		g.arena = change.AppendRecordValue(g.arena, before.Data, after.Data)
		r.Value = g.arena[start:len(g.arena):len(g.arena)]
	}
	p.add(r)
	return nil
}

func (in *Ingest) addControl(p *pendingTx, c *change.Control) error {
	if err := in.rows.add(c); err != nil {
		return err
	}
	t, err := in.topic(c.Topic)
	if err != nil {
		return err
	}
	p.add(eventlog.Record{Topic: t.ID, Op: uint8(change.OpSchema), Key: c.Key, Value: c.Value})
	return nil
}

// topic returns the topic of that name, making it at its first use.
func (in *Ingest) topic(name string) (eventlog.Topic, error) {
	if t, ok := in.topics[name]; ok {
		return t, nil
	}
	spec := eventlog.TopicSpec{Name: name, Partitions: 1, Cleanup: eventlog.CleanupCompact}
	switch {
	case name == change.TopicSchemas:
		// An id may be written again when its layout comes back: readers need it
		// before its first use, so nothing of it may go.
		spec.Cleanup = eventlog.CleanupNone
	case strings.HasPrefix(name, change.TopicMessages):
		spec = MessageSpec(in.opts.Spec(name))
	case name[0] != '_':
		spec = in.opts.Spec(name)
	}
	t, err := in.opts.Log.EnsureTopic(spec)
	if err != nil {
		return t, fmt.Errorf("make the topic %s: %w", name, err)
	}
	in.topics[name] = t
	return t, nil
}

// messageRetention is how long messages are kept where nothing else is said.
const messageRetention = 7 * 24 * time.Hour

// MessageSpec makes of what is said of a _messages topic what it is made with.
// Messages of one prefix do not replace each other: they go by their age.
func MessageSpec(spec eventlog.TopicSpec) eventlog.TopicSpec {
	spec.Partitions = 1 // they have one order
	if spec.Cleanup != eventlog.CleanupNone {
		spec.Cleanup = eventlog.CleanupDelete
		if spec.Retention == 0 && spec.RetentionBytes == 0 {
			spec.Retention = messageRetention
		}
	}
	return spec
}
