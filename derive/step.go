package derive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// step is one commit: a batch (a, b] of transactions, perhaps none, and what the views output at b.
type step struct {
	a, b       eventlog.CSN
	batch      *image.Batch
	out        output
	txs, bytes int
	commitTime int64
	more       bool         // roots are left that can be rebuilt at once
	passed     []*viewState // whose pass ended
	idle       bool         // the reader had caught up
	cut        bool         // the batch ends with this transaction
	built      *image.View  // the images at b
}

// images reads the images as they are at b, once all of the batch is applied.
func (s *step) images() image.Reader {
	if s.built == nil {
		s.built = s.batch.Frozen()
	}
	return s.built
}

func (s *step) closeImages() error {
	if s.built == nil {
		return nil
	}
	err := s.built.Close()
	s.built = nil
	return err
}

// step reads a batch, applies it, outputs and commits. more tells that there is work left to do at once.
func (r *Runner) step(ctx context.Context) (more bool, err error) {
	s := &step{a: r.applied, b: r.applied, batch: r.store.Batch()}
	defer func() {
		if err = errors.Join(err, s.closeImages()); s.batch != nil {
			err = errors.Join(err, s.batch.Close())
		}
	}()
	if err := r.readBatch(s); err != nil {
		return false, err
	}
	r.reached = s.b
	r.holdBehind()
	for _, v := range r.views {
		if err := r.emitView(s, v); err != nil {
			return false, fmt.Errorf("view %s: %w", v.name, err)
		}
	}
	if err := s.closeImages(); err != nil {
		return false, err
	}
	if err := r.append(ctx, s); err != nil {
		return false, err
	}
	return s.more || !s.idle, r.commit(s)
}

// readBatch applies transactions up to the limits or the frontier. A large one
// comes in pieces: its records need little memory, what it changes is all in the
// step's batch.
func (r *Runner) readBatch(s *step) error {
	frontier := r.log.Frontier()
	if err := r.follow(); err != nil {
		return err
	}
	for more := false; more || s.txs < r.opts.MaxBatchTx && s.bytes < r.opts.MaxBatchBytes && !s.cut; {
		tx, err := r.reader.Next()
		if err != nil {
			return fmt.Errorf("read the log behind %d: %w", s.b, err)
		}
		if tx == nil {
			s.b, s.idle = max(s.b, frontier), true
			return nil
		}
		if err := r.applyTx(s, tx); err != nil {
			return err
		}
		if more = tx.More; !more {
			s.txs++
		}
		s.b, s.commitTime = tx.CSN, tx.CommitTime
	}
	return nil
}

// applyTx brings the images to the state after one transaction, or a piece of one.
func (r *Runner) applyTx(s *step, tx *eventlog.Tx) error {
	for i := range tx.Records {
		rec := &tx.Records[i]
		s.bytes += len(rec.Key) + len(rec.Value)
		t := r.byTopic[rec.Topic]
		switch {
		case t != nil && t.applier != nil:
			if err := r.applyRecord(s, t, rec); err != nil {
				return err
			}
		case t == nil:
		case t.name == change.TopicSchemas:
			if err := r.newLayout(rec); err != nil {
				return err
			}
		case strings.HasPrefix(t.name, change.TopicSnapshots):
			if err := r.floors.add(rec); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			r.retryAt = time.Time{} // a run may have mended what was damaged
			r.retry.Reset()
			r.holdReaders()
		}
	}
	return nil
}

// applyRecord applies one record of a table: marks the roots that show the row
// as it was, writes the row, marks those that show it as it is.
func (r *Runner) applyRecord(s *step, t *source, rec *eventlog.Record) error {
	if kind, ok := change.Key(rec.Key).Control(); ok {
		switch kind {
		case change.ControlTruncate:
			return r.truncate(s, t, rec)
		case change.ControlSweep:
			s.cut = true // it may have deleted much
			return sweep(t, s.batch, rec, func(del *eventlog.Record) error { return r.applyRecord(s, t, del) })
		}
		return nil
	}
	if len(rec.Key) == 0 {
		return nil // a table without a key has no image that a view could use
	}
	d, err := t.applier.Prepare(s.batch, rec)
	if err != nil {
		return err
	}
	if !d.Same && d.Old != nil {
		if err := r.walk(s, t, d.Key, d.Old, d.New, rec.CSN); err != nil {
			return err
		}
	}
	if err := t.applier.Write(s.batch, &d, rec.CSN); err != nil {
		return err
	}
	if !d.Same && d.New != nil {
		return r.walk(s, t, d.Key, d.New, d.Old, rec.CSN)
	}
	return nil
}

func (r *Runner) walk(s *step, t *source, key change.Key, row, other []change.Value, cause eventlog.CSN) error {
	for _, v := range r.views {
		if !v.tracks() || !v.reads(t.name) {
			continue
		}
		err := v.current.bound.Walk(s.batch, t.applier.Table, key, row, other, func(root change.Key) error {
			return r.mark(s.batch, v, root, cause)
		})
		if err != nil {
			return fmt.Errorf("view %s: %w", v.name, err)
		}
	}
	return nil
}

// smallTable is how many rows a truncated table may have for them to be deleted
// one by one; for a larger one every root is rebuilt.
const smallTable = 1000

func (r *Runner) truncate(s *step, t *source, rec *eventlog.Record) error {
	table := t.applier.Table
	bounds := image.Prefixed(table.Prefix(nil))
	keys := []change.Key{}
	err := s.batch.Scan(bounds[0], bounds[1], func(k, _ []byte) (bool, error) {
		keys = append(keys, append(change.Key{}, table.RowKey(k)...))
		return len(keys) <= smallTable, nil
	})
	if err != nil {
		return err
	}
	if len(keys) > smallTable {
		for _, v := range r.views {
			if v.tracks() && v.reads(t.name) {
				v.restart(rec.CSN)
			}
		}
		keys = nil
	}
	if keys == nil {
		s.cut = true // a batch in which reads meet a range deletion is slow
		return t.applier.Truncate(s.batch)
	}
	for _, key := range keys {
		if err := r.applyRecord(s, t, &eventlog.Record{Topic: rec.Topic, CSN: rec.CSN, Seq: rec.Seq, Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// sweepKeys is how many rows a sweep deletes between two looks at the table.
const sweepKeys = 1000

// sweep deletes the rows that a sweep record says are no more.
func sweep(t *source, b image.Reader, rec *eventlog.Record, apply func(del *eventlog.Record) error) error {
	since, err := change.DecodeSweep(rec.Value)
	if err != nil {
		return fmt.Errorf("%s offset %d: %w", t.name, rec.Offset, err)
	}
	var after change.Key
	for more := true; more; {
		var keys []change.Key
		if keys, more, err = t.applier.Table.Older(b, eventlog.CSN(since), after, sweepKeys); err != nil {
			return err
		}
		for _, key := range keys {
			after = key
			if err := apply(&eventlog.Record{Topic: rec.Topic, CSN: rec.CSN, Seq: rec.Seq, Key: key}); err != nil {
				return err
			}
		}
	}
	return nil
}

// append makes the outputs durable. While the log has no space it waits and tries again.
func (r *Runner) append(ctx context.Context, s *step) error {
	if len(s.out.tx.Records) == 0 {
		return nil
	}
	s.out.tx.Kind, s.out.tx.CSN, s.out.tx.Since, s.out.tx.CommitTime = eventlog.TxOutput, s.b, s.a, s.commitTime
	err := r.whileFull(ctx, func() error { return r.log.Append(ctx, []*eventlog.Tx{&s.out.tx}) })
	if err != nil {
		return fmt.Errorf("append outputs of (%d, %d]: %w", s.a, s.b, err)
	}
	return nil
}

// whileFull repeats do while the log has no space (C8).
func (r *Runner) whileFull(ctx context.Context, do func() error) error {
	for attempt := 0; ; attempt++ {
		err := do()
		if !errors.Is(err, eventlog.ErrFull) {
			return err
		}
		if attempt == 0 {
			r.opts.Logger.Warn("the log has no space for what the views write, waiting", "stage", "derive", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// commit makes the step the state.
func (r *Runner) commit(s *step) error {
	r.noteOutputs(s)
	for _, v := range s.passed {
		if err := r.passEnded(s, v); err != nil {
			return err
		}
	}
	for _, v := range r.views {
		if err := r.measure(s, v); err != nil {
			return err
		}
		if state, _ := r.state(v); state != v.memory.State {
			v.memory.State, v.changed = state, true
		}
		if v.changed && v.id != 0 {
			if err := remember(s.batch, memPass+v.name, &v.memory); err != nil {
				return err
			}
			v.changed = false
		}
	}
	sync := r.opts.SyncEvery > 0 && time.Since(r.synced) >= r.opts.SyncEvery
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.batch.Size() > emptyBatch || s.txs > 0 || sync && r.applied > r.syncedAt {
		if err := s.batch.Set(image.MemoryKey(memApplied), appendUvarint(nil, uint64(s.b))); err != nil {
			return err
		}
		b := s.batch
		s.batch = nil
		if err := b.Commit(sync); err != nil {
			return err
		}
	}
	r.applied = s.b
	r.publish()
	if !sync || r.applied == r.syncedAt {
		return nil
	}
	return r.saveCursor()
}

// emptyBatch is the size of a batch without writes.
const emptyBatch = 12

// noteOutputs remembers the ends of the topics that the step wrote to.
func (r *Runner) noteOutputs(s *step) {
	for i := range s.out.tx.Records {
		v := r.byOutput[s.out.tx.Records[i].Topic]
		if v == nil {
			continue
		}
		p := int(s.out.tx.Records[i].Partition)
		for len(v.memory.Ends) <= p {
			v.memory.Ends = append(v.memory.Ends, 0)
		}
		v.memory.Ends[p] = s.out.tx.Records[i].Offset + 1
		v.changed = true
		if s.commitTime != 0 {
			v.lastCommit = s.commitTime
		}
	}
}

// measure computes how far the view is complete.
func (r *Runner) measure(s *step, v *viewState) error {
	if v.current != nil && v.next == nil && v.stopped == "" && r.behind(v) {
		return nil // what it was complete for it still shows
	}
	v.complete = 0
	if v.current == nil || v.next != nil || v.stopped != "" {
		return nil
	}
	complete := s.b
	if v.memory.Pass {
		complete = min(complete, max(v.memory.Cause, 1)-1)
	}
	least, ok, err := leastCause(s.batch, v)
	if err != nil {
		return err
	}
	if ok {
		complete = min(complete, max(least, 1)-1)
	}
	if _, below, open := r.floors.open(v.current.stage.Info().Topics); !open {
		complete = min(complete, max(below, 1)-1)
	}
	v.complete = complete
	return nil
}
