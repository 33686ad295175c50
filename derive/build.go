package derive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// build makes images from the beginning of their topics, beside what runs. It
// reads no further than the applied position; when it is there, they are exact,
// or behind a horizon that the main reader has to pass, and become live. A restart begins anew.
type build struct {
	tables map[eventlog.TopicID]*source
	reader eventlog.Reader
	peeked *eventlog.Tx // read, but beyond the applied position; perhaps a first piece
	// release ends the pin on the topics.
	release func()
}

func (g *build) close() error {
	if g.release != nil {
		g.release()
		g.release = nil
	}
	if g.reader == nil {
		return nil
	}
	err := g.reader.Close()
	g.reader = nil
	return err
}

// Sizes of a build's commits and of its turn between two steps.
const (
	buildCommit = 4 << 20
	buildTurn   = 32 << 20
)

// buildImages takes each build a piece further; more tells that one is not done.
func (r *Runner) buildImages(ctx context.Context) (more bool, err error) {
	for i := 0; i < len(r.builds); i++ {
		g := r.builds[i]
		done, err := r.buildSome(ctx, g)
		if errors.Is(err, eventlog.ErrCorrupt) {
			r.builds = append(r.builds[:i], r.builds[i+1:]...)
			i--
			if err := r.giveUp(g, err); err != nil {
				return false, err
			}
			continue
		}
		if err != nil {
			return false, fmt.Errorf("build images: %w", err)
		}
		if !done {
			more = true
			continue
		}
		r.builds = append(r.builds[:i], r.builds[i+1:]...)
		i--
		if err := errors.Join(r.adopt(g), r.unpin(g), g.close()); err != nil {
			return false, err
		}
		more = true
	}
	return more, nil
}

// buildSome reads until the applied position, the turn's size or the end of ctx.
func (r *Runner) buildSome(ctx context.Context, g *build) (done bool, err error) {
	if g.reader == nil {
		ids := make([]eventlog.TopicID, 0, len(g.tables))
		for id := range g.tables {
			ids = append(ids, id)
		}
		if g.reader, err = r.log.Read(eventlog.ReadSpec{Topics: ids, Pieces: true}); err != nil {
			return false, err
		}
	}
	for turn := 0; ; {
		size, end, err := r.buildBatch(g)
		if err != nil || end {
			return end, err
		}
		if turn += size; turn >= buildTurn || ctx.Err() != nil {
			return false, nil
		}
	}
}

// buildBatch applies transactions in one commit; end tells that none is left at or
// below the applied position. Nobody sees an image before that, so a commit may
// end with a piece of a large transaction.
func (r *Runner) buildBatch(g *build) (size int, end bool, err error) {
	b := r.store.Batch()
	for b.Size() < buildCommit && !end {
		tx := g.peeked
		g.peeked = nil
		if tx == nil {
			if tx, err = g.reader.Next(); err != nil {
				return 0, false, errors.Join(err, b.Close())
			}
		}
		if tx == nil || tx.CSN > r.applied {
			g.peeked, end = tx, true
			break
		}
		truncated, err := g.apply(b, tx)
		if err != nil {
			return 0, false, errors.Join(err, b.Close())
		}
		if truncated {
			break // a batch in which reads meet a range deletion is slow
		}
	}
	size = b.Size()
	return size, end, b.Commit(false)
}

func (g *build) apply(b *image.Batch, tx *eventlog.Tx) (truncated bool, err error) {
	for i := range tx.Records {
		rec := &tx.Records[i]
		t := g.tables[rec.Topic]
		if t == nil || len(rec.Key) == 0 {
			continue
		}
		if kind, ok := change.Key(rec.Key).Control(); ok {
			switch kind {
			case change.ControlTruncate:
				truncated = true
				err = t.applier.Truncate(b)
			case change.ControlSweep:
				err = sweep(t, b, rec, func(del *eventlog.Record) error { return t.write(b, del) })
			}
		} else {
			err = t.write(b, rec)
		}
		if err != nil {
			return truncated, err
		}
	}
	return truncated, nil
}

func (t *source) write(b *image.Batch, rec *eventlog.Record) error {
	d, err := t.applier.Prepare(b, rec)
	if err != nil {
		return err
	}
	return t.applier.Write(b, &d, rec.CSN)
}

// adopt makes finished images live.
func (r *Runner) adopt(g *build) error {
	b := r.store.Batch()
	for _, s := range g.tables {
		if err := r.replaceImage(b, s.applier.Table); err != nil {
			return err
		}
		if err := remember(b, tableName(s.applier.Table), &tableRecord{Table: s.applier.Table, Live: true}); err != nil {
			return err
		}
	}
	if err := b.Set(image.MemoryKey(memApplied), appendUvarint(nil, uint64(r.applied))); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := b.Commit(false); err != nil {
		return err
	}
	if err := r.bindAll(); err != nil {
		return err
	}
	if err := r.takeOver(); err != nil {
		return err
	}
	r.publish()
	return nil
}

// giveUp ends a build that met damage. What runs goes on without it. Of several
// topics each is then built by itself, which tells the damaged one from the
// others; that is tried again from time to time, until it has been mended.
func (r *Runner) giveUp(g *build, damage error) error {
	b := r.store.Batch()
	for _, s := range g.tables {
		if err := dropTable(b, s.applier.Table); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if err := b.Commit(false); err != nil {
		return err
	}
	if err := errors.Join(r.unpin(g), g.close()); err != nil {
		return err
	}
	if len(g.tables) > 1 {
		r.apart, r.replan = true, true
		return nil
	}
	for _, s := range g.tables {
		wait := r.retry.Next()
		r.damaged[s.name], r.retryAt = damage, time.Now().Add(wait)
		r.opts.Logger.Error("an image cannot be built from its damaged topic; 'tailwater log check' tells the way out", "stage", "derive", "topic", s.name, "retry", wait, "err", damage)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish()
	return nil
}

// retryDamaged plans again what was given up, once it is time.
func (r *Runner) retryDamaged() {
	if len(r.damaged) > 0 && !time.Now().Before(r.retryAt) {
		clear(r.damaged)
		r.replan = true
	}
}

// damageOf returns the damage that keeps an image of the unit from being built.
func (r *Runner) damageOf(u *unit) error {
	if u == nil || u.bound != nil {
		return nil
	}
	for topic := range u.needs {
		if err := r.damaged[topic]; err != nil {
			return err
		}
	}
	return nil
}

// beingBuilt reports whether an image under construction will serve the needs.
func (r *Runner) beingBuilt(topic string, needs []image.Need) bool {
	for _, g := range r.builds {
		for _, s := range g.tables {
			if s.name == topic && servesAll(s.applier.Table, needs) {
				return true
			}
		}
	}
	return false
}

// abandon drops an image under construction that will not do.
func (r *Runner) abandon(topic string) error {
	for _, g := range r.builds {
		for id, s := range g.tables {
			if s.name != topic {
				continue
			}
			delete(g.tables, id)
			b := r.store.Batch()
			if err := dropTable(b, s.applier.Table); err != nil {
				return errors.Join(err, b.Close())
			}
			if err := b.Commit(false); err != nil {
				return err
			}
		}
	}
	return nil
}
