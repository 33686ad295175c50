package derive

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// ask is a request that Run answers between two turns.
type ask struct {
	do   func(ctx context.Context) error
	done chan error
}

// Refill mends the topic of a view if it is damaged: every document is output
// again, what is damaged is removed, and keys that the view no longer has get
// tombstones. The outputs follow within Run; ViewStats.Pending counts them. It may
// be called from any goroutine while Run runs.
func (r *Runner) Refill(ctx context.Context, view string) (damaged bool, err error) {
	t, ok := r.log.Topic(change.TopicView + change.EscapeName(view))
	if !ok {
		return false, nil // nothing was ever output
	}
	found := r.log.SealedDamage(ctx, t.ID)
	if !errors.Is(found, eventlog.ErrCorrupt) {
		return false, found
	}
	a := &ask{done: make(chan error, 1), do: func(ctx context.Context) error {
		v := r.byName[view]
		if v == nil || v.wanted == nil {
			return fmt.Errorf("%w: %s", ErrUnknownView, view)
		}
		r.opts.Logger.Warn("the topic of a view is damaged: its documents are output again", "stage", "derive", "view", view, "damage", found)
		var err error
		if v.id == 0 {
			err = r.mendUnread(ctx, v, t)
		} else {
			err = r.refill(ctx, v)
		}
		r.mu.Lock()
		r.publish()
		r.mu.Unlock()
		return err
	}}
	select {
	case r.asks <- a:
	case <-r.over:
		return true, fmt.Errorf("view %s: %w: the state is closed", view, ErrNotReady)
	case <-ctx.Done():
		return true, ctx.Err()
	}
	select {
	case err := <-a.done:
		return true, err
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// answer does what was asked meanwhile; asked tells whether anything was.
func (r *Runner) answer(ctx context.Context) (asked bool, err error) {
	for {
		select {
		case a := <-r.asks:
			asked = true
			if err := a.run(ctx); err != nil {
				return asked, err
			}
		default:
			return asked, nil
		}
	}
}

// run returns the errors that end Run.
func (a *ask) run(ctx context.Context) error {
	err := a.do(ctx)
	a.done <- err
	if errors.Is(err, ErrUnknownView) {
		return nil
	}
	return err
}

// refill queues all documents that were output, durably and with a note that a
// restart goes by, before it removes what is damaged.
func (r *Runner) refill(ctx context.Context, v *viewState) error {
	v.memory.Refill, v.memory.Fresh = true, false
	w := &queueWriter{r: r, v: v, b: r.store.Batch()}
	defer w.close()
	bounds := image.Prefixed(image.HashKey(nil, v.id, nil))
	var after []byte
	for {
		roots, err := r.outputRoots(bounds, after)
		if err != nil {
			return err
		}
		if len(roots) == 0 {
			break
		}
		for _, root := range roots {
			if err := w.add(root); err != nil {
				return err
			}
		}
		after = roots[len(roots)-1]
	}
	if err := w.commit(true); err != nil {
		return err
	}
	n, err := r.setAside(ctx, v, v.topic)
	if err != nil {
		return err
	}
	if err := r.queueGhosts(v, w); err != nil {
		return err
	}
	r.opts.Logger.Warn("damaged records of a view's topic were set aside", "stage", "derive", "view", v.name, "batches", n, "documents", v.memory.Pending)
	if err := w.commit(true); err != nil {
		return err
	}
	v.refilled = true
	return nil
}

// endRefills lets the consumers of mended topics go once everything is output:
// deletes that they had not seen may have been lost, and only by beginning anew do
// they find out. Until the end of it is remembered a restart does all of it again.
func (r *Runner) endRefills(ctx context.Context) error {
	for _, v := range r.views {
		if !v.refilled || v.memory.Pass {
			continue
		}
		b := r.store.Batch()
		left, err := r.ready(b, v, 1)
		if err = errors.Join(err, b.Close()); err != nil {
			return err
		}
		if len(left) > 0 {
			continue
		}
		if err := r.whileFull(ctx, func() error { return r.log.LetGoAll(v.topic.ID) }); err != nil {
			return fmt.Errorf("view %s: %w", v.name, err)
		}
		v.memory.Refill, v.refilled = false, false
		b = r.store.Batch()
		if err := remember(b, memPass+v.name, &v.memory); err != nil {
			return errors.Join(err, b.Close())
		}
		if err := b.Commit(true); err != nil {
			return err
		}
	}
	return nil
}

// mendUnread removes what is damaged of a topic that a view without state could
// not read: all its documents are output anyway, above what they were before.
// Its consumers begin anew, which they cannot before the view is live.
func (r *Runner) mendUnread(ctx context.Context, v *viewState, t eventlog.Topic) error {
	if err := r.whileFull(ctx, func() error { return r.log.LetGoAll(t.ID) }); err != nil {
		return fmt.Errorf("view %s: %w", v.name, err)
	}
	n, err := r.setAside(ctx, v, t)
	if err != nil {
		return err
	}
	v.unread, v.memory.Floor, r.replan = nil, r.log.Frontier(), true
	r.opts.Logger.Warn("damaged records of a view's topic were set aside", "stage", "derive", "view", v.name, "batches", n)
	return nil
}

// setAside removes what is damaged of a view's topic; n counts the batches.
func (r *Runner) setAside(ctx context.Context, v *viewState, t eventlog.Topic) (n int, err error) {
	err = r.whileFull(ctx, func() error {
		some, err := r.log.SetAside(ctx, t.ID, r.log.EndOffsets(t.ID))
		n += some
		return err
	})
	if err != nil {
		return n, fmt.Errorf("view %s: %w", v.name, err)
	}
	return n, nil
}

// resumeRefills mends the topics of the views that were being mended when the state was closed.
func (r *Runner) resumeRefills(ctx context.Context) error {
	for _, v := range r.views {
		if v.memory.Refill && !v.refilled && v.id != 0 && v.wanted != nil {
			if err := r.refill(ctx, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveUnread keeps a view without state from taking over while its topic is
// damaged: which documents it must take back, only that tells. Others go on.
func (r *Runner) leaveUnread(v *viewState, damage error) {
	v.id, v.memory, v.unread = 0, progress{}, damage
	r.opts.Logger.Error("a view without state cannot read its damaged topic", "stage", "derive", "view", v.name, "err", damage)
}

// refillRoots is how many roots are collected at once.
const refillRoots = 10000

func (r *Runner) outputRoots(bounds [2][]byte, after []byte) (roots [][]byte, err error) {
	b := r.store.Batch()
	defer func() { err = errors.Join(err, b.Close()) }()
	lower := bounds[0]
	if after != nil {
		lower = append(append(bytes.Clone(bounds[0]), after...), 0)
	}
	err = b.Scan(lower, bounds[1], func(k, _ []byte) (bool, error) {
		roots = append(roots, bytes.Clone(image.RootOf(k)))
		return len(roots) < refillRoots, nil
	})
	return roots, err
}

// queueGhosts queues the keys that the topic has a document of and the view has
// not: their tombstones were lost.
func (r *Runner) queueGhosts(v *viewState, w *queueWriter) error {
	err := r.log.NewestByKey(v.topic.ID, func(key []byte, _ eventlog.CSN, tombstone bool) error {
		if tombstone {
			return nil
		}
		_, has, err := w.b.Get(nil, image.HashKey(nil, v.id, key))
		if err != nil || has {
			return err
		}
		return w.add(key)
	})
	if err != nil {
		return fmt.Errorf("view %s: read its topic: %w", v.name, err)
	}
	return nil
}

// queueWriter queues roots that must be sent, in commits of bounded size.
type queueWriter struct {
	r *Runner
	v *viewState
	b *image.Batch
}

func (w *queueWriter) add(root []byte) error {
	if err := w.r.enqueue(w.b, w.v, root, w.r.applied+1, mustSend); err != nil {
		return err
	}
	if w.b.Size() < adoptBatch {
		return nil
	}
	return w.commit(false)
}

func (w *queueWriter) commit(sync bool) error {
	if err := remember(w.b, memPass+w.v.name, &w.v.memory); err != nil {
		return err
	}
	b := w.b
	w.b = w.r.store.Batch()
	return b.Commit(sync)
}

func (w *queueWriter) close() {
	if err := w.b.Close(); err != nil {
		w.r.opts.Logger.Warn("close a batch", "stage", "derive", "err", err)
	}
}
