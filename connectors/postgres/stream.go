package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/snapshot"
)

// source is an open stream.
type source struct {
	o           *Options
	connector   *Connector
	history     connectors.History
	server      *server
	catalog     *catalog
	coordinator coordinator
	wire        *wire
	queue       *queue
	meta        *sharedSession    // for the reader's questions to the catalogue
	watch       *sharedSession    // for the watcher
	known       map[uint32]string // names of the captured tables, by oid
	published   map[uint32]string // how they are published, by oid
	shapes      map[uint32]shape  // of their types, by oid
	user        string

	cancel  context.CancelFunc
	work    sync.WaitGroup
	closing sync.Once

	wake      chan struct{} // capacity 1: the keeper has something to send
	flush     chan struct{} // capacity 1: the watcher is to make the server flush
	confirmed atomic.Uint64 // end LSN that is durable in the log
	received  atomic.Uint64
	passed    atomic.Uint64 // what the coordinator was told
	returned  atomic.Uint64 // end LSN of what Next returned
	urgent    atomic.Bool   // the server waits for the next confirmation

	// Of the goroutine that calls Next.
	running  map[string]*snapshot.Streamed // transactions in progress, by their ids
	inTx     bool                          // between the parts of a transaction
	idle     LSN                           // the stream has nothing up to here that was not returned
	tickNow  bool
	lastTick time.Time
	// Of the watcher: for which transaction this connection brings all only at their
	// commit ("": it does not), and where it had ended (0: not known yet).
	whole      string
	wholeUntil LSN

	noteIntent bool // the note of the slot is to be removed once the first tick is durable

	stats sourceStats
}

// Next implements connectors.Source.
func (s *source) Next(ctx context.Context) (*change.Batch, error) {
	for {
		b, err := s.ready()
		if b != nil || err != nil {
			return b, err
		}
		it, ok, err := s.queue.take()
		if ok {
			if b, err := s.accept(it); b != nil || err != nil {
				return b, err
			}
			continue
		}
		if err != nil {
			s.stats.state.Store("stopped")
			return nil, err
		}
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// ready returns what can be handed over before the stream's next item.
func (s *source) ready() (*change.Batch, error) {
	if s.inTx {
		return nil, nil
	}
	if s.noteIntent && s.confirmed.Load() != 0 {
		if err := s.history.SetIntent(nil); err != nil {
			return nil, fmt.Errorf("remove the note of slot %s: %w", s.o.Slot, err)
		}
		s.noteIntent = false
	}
	if s.idle > LSN(s.returned.Load()) && s.tickDue() <= 0 {
		return s.tick(), nil
	}
	b, err := s.coordinator.Chunk()
	if err != nil {
		return nil, fmt.Errorf("source %s: snapshot: %w", s.o.Source, err)
	}
	return b, nil
}

// tickRetained is how much log the server may keep for an idle source before a tick.
const tickRetained = 64 << 20

// tickDue returns how long an idle position may wait to be handed over.
func (s *source) tickDue() time.Duration {
	returned := LSN(s.returned.Load())
	wanted := s.connector.wanted()
	if s.tickNow || s.idle-returned > tickRetained || wanted > returned && wanted <= s.idle {
		return 0
	}
	return s.o.TickInterval - s.o.Clock().Sub(s.lastTick)
}

// tick tells the log how far the stream has come without rows.
func (s *source) tick() *change.Batch {
	s.tickNow, s.lastTick = false, s.o.Clock()
	s.returned.Store(uint64(s.idle))
	at := place{s.server.system, s.server.timeline, s.idle, s.idle}
	return &change.Batch{Source: s.o.Source, Kind: change.Tick, Pos: at.position(), CommitTime: s.lastTick.UnixMicro()}
}

// accept passes an item through the coordinator; the batch is nil if it has none.
func (s *source) accept(it item) (*change.Batch, error) {
	if it.layout != nil {
		s.coordinator.Layout(it.layout.was, it.layout.now, it.layout.retyped)
		return nil, nil
	}
	s.tickNow = s.tickNow || it.urgent
	if it.batch == nil {
		s.pass(it.passed)
		s.idle = max(s.idle, it.passed)
		return nil, nil
	}
	switch it.batch.Stage {
	case change.InProgress:
		t := s.running[it.batch.Tx]
		if t == nil {
			t = &snapshot.Streamed{}
			s.running[it.batch.Tx] = t
		}
		t.Add(s.o.Source, it.batch)
		return it.batch, nil
	case change.RolledBack:
		s.rolledBack(it.batch)
		return it.batch, nil
	}
	if err := s.observe(it.batch); err != nil {
		return nil, fmt.Errorf("source %s: snapshot: %w", s.o.Source, err)
	}
	for i := range it.signals {
		s.obey(it.batch, &it.signals[i])
	}
	s.stats.count(it.batch)
	s.inTx = it.batch.More
	if !s.inTx {
		s.pass(it.passed)
		s.idle = max(s.idle, it.passed)
		s.returned.Store(uint64(it.passed))
	}
	return it.batch, nil
}

// observe tells the coordinator of a transaction that has committed.
func (s *source) observe(b *change.Batch) error {
	t := s.running[b.Tx]
	if b.Stage != change.Adopted || t == nil {
		return s.coordinator.Transaction(b)
	}
	delete(s.running, b.Tx)
	s.stats.add(t.Rows())
	return s.coordinator.Streamed(b, t)
}

// rolledBack forgets a transaction in progress, or one of its sub-transactions.
func (s *source) rolledBack(b *change.Batch) {
	switch t := s.running[b.Tx]; {
	case b.Sub == 0:
		delete(s.running, b.Tx)
	case t != nil:
		t.Rollback(b.Sub)
	}
}

func (s *source) pass(lsn LSN) {
	if lsn > LSN(s.passed.Load()) {
		s.passed.Store(uint64(lsn))
		s.coordinator.Passed(lsn)
	}
}

// wait returns when there may be something for Next.
func (s *source) wait(ctx context.Context) error {
	var due <-chan time.Time
	if !s.inTx && s.idle > LSN(s.returned.Load()) {
		t := time.NewTimer(s.tickDue())
		defer t.Stop()
		due = t.C
	}
	select {
	case <-s.queue.ready:
	case <-s.coordinator.Ready():
	case <-due:
	case <-s.connector.asked: // End wants a tick
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Confirm implements connectors.Source.
func (s *source) Confirm(pos change.Position) {
	at, err := parsePosition(pos)
	if err != nil || at.system != s.server.system {
		return
	}
	for {
		old := s.confirmed.Load()
		if uint64(at.end) <= old {
			return
		}
		if s.confirmed.CompareAndSwap(old, uint64(at.end)) {
			break
		}
	}
	if s.urgent.Load() {
		signal(s.wake)
	}
}

// Close implements connectors.Source.
func (s *source) Close() error {
	s.closing.Do(func() {
		s.queue.end(errClosed)
		s.connector.closed(s)
		if lsn := LSN(s.confirmed.Load()); lsn != 0 {
			_ = s.wire.status(lsn, false)
		}
		s.cancel()
		_ = s.wire.close()
		s.work.Wait()
		s.meta.close()
		s.watch.close()
	})
	return nil
}

// run starts the goroutines; Close ends them.
func (s *source) run(ctx context.Context, a *assembler) {
	start := func(what string, f func(context.Context) error) {
		s.work.Go(func() {
			err := f(ctx)
			if ctx.Err() != nil {
				err = errClosed
			} else if err == nil {
				err = fmt.Errorf("source %s: the %s ended", s.o.Source, what)
			}
			s.queue.end(err)
		})
	}
	start("stream", func(ctx context.Context) error { return s.read(ctx, a) })
	start("keeper", s.keep)
	start("watcher", s.watchServer)
	start("snapshot", s.runCoordinator)
}

// Snapshot begins an ad-hoc run of a captured table, named by its topic; where
// is an SQL condition on its rows, or empty.
func (s *source) Snapshot(topic, where string) error {
	c, ok := s.coordinator.(interface {
		Snapshot(topic, where string) error
	})
	if !ok {
		return errors.New("this source reads no tables")
	}
	return c.Snapshot(topic, where)
}

// runCoordinator runs the coordinator, which may be done before the source is.
func (s *source) runCoordinator(ctx context.Context) error {
	if err := s.coordinator.Run(ctx); err != nil {
		return fmt.Errorf("source %s: snapshot: %w", s.o.Source, err)
	}
	<-ctx.Done()
	return nil
}

// read takes messages off the connection until it ends.
func (s *source) read(ctx context.Context, a *assembler) error {
	for {
		kind, body, err := s.wire.next()
		if err != nil {
			if errors.Is(err, errMessage) {
				return fmt.Errorf("source %s: %w", s.o.Source, err)
			}
			return fmt.Errorf("source %s: the replication connection broke: %w", s.o.Source, err)
		}
		switch kind {
		case 'd':
			err = s.copyData(ctx, a, body)
		case 'E':
			err = streamError(s.o, serverError(body))
		case 'c', 'C':
			err = fmt.Errorf("source %s: the server ended the stream", s.o.Source)
		case 'N', 'S':
		default:
			err = fmt.Errorf("source %s: %w: of kind %q", s.o.Source, errMessage, kind)
		}
		if err != nil {
			return err
		}
	}
}

// copyData takes a part of the replication stream: rows or a keepalive.
func (s *source) copyData(ctx context.Context, a *assembler, body []byte) error {
	r := wireReader{b: body}
	switch kind := r.u8(); kind {
	case 'w':
		start := r.u64() // where the message's record is
		r.u64()
		a.sent = int64(r.u64())
		if r.err != nil {
			return r.err
		}
		if start > s.received.Load() {
			s.received.Store(start)
		}
		if err := a.message(r.b); err != nil {
			return fmt.Errorf("source %s: at %s: %w", s.o.Source, LSN(s.received.Load()), err) // start is 0 for what describes a table
		}
		return nil
	case 'k':
		return s.keepalive(ctx, a, &r)
	default:
		return fmt.Errorf("%w: of kind %q in the stream", errMessage, kind)
	}
}

// keepalive tells how far the server has read its log: whatever committed
// before it has come, since it is sent between two records.
func (s *source) keepalive(ctx context.Context, a *assembler, r *wireReader) error {
	sent := LSN(r.u64())
	r.u64()
	reply := r.u8() != 0
	if err := r.end(); err != nil {
		return err
	}
	if reply {
		s.urgent.Store(true)
		signal(s.wake)
	}
	if uint64(sent) > s.received.Load() {
		s.received.Store(uint64(sent))
	}
	if a.inTx {
		return nil
	}
	return s.queue.put(ctx, item{passed: sent, urgent: reply})
}

// deliver is the assembler's emit.
func (s *source) deliver(ctx context.Context, b *change.Batch, end LSN, signals []signalMessage) error {
	return s.queue.put(ctx, item{batch: b, passed: end, signals: signals})
}
