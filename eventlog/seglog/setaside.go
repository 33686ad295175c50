package seglog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// SealedDamage returns the first damage among a topic's segments; nil if there is none.
func (l *Log) SealedDamage(ctx context.Context, topic eventlog.TopicID) error {
	t, ok := l.topicByID(topic)
	if !ok {
		return fmt.Errorf("look for damage in topic %d: %w", topic, eventlog.ErrUnknownTopic)
	}
	for p := range t.Spec.Partitions {
		for _, s := range l.segmentsOf(partKey{topic, int32(p)}) {
			d, err := l.damageIn(ctx, s)
			if err != nil {
				return err
			}
			if d != nil {
				return d.first
			}
		}
	}
	return nil
}

// segmentsOf returns a partition's segments. The slice is never changed.
func (l *Log) segmentsOf(k partKey) []*segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.segs[k]
}

// damage is what of a segment is not as it was written.
type damage struct {
	seg   *segment
	first *CorruptError
	idx   *segmentIndex // nil: the footer is damaged, and with it the whole segment
	bad   []bool        // batches
	end   eventlog.Offset
	count int
}

// damageIn reads a segment; nil if it is whole, or no longer there.
func (l *Log) damageIn(ctx context.Context, s *segment) (*damage, error) {
	f, err := l.fs().Open(s.path)
	if vfs.IsNotExist(err) && l.segmentAt(s.key, s.base) != s {
		return nil, nil // compacted meanwhile
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &damage{seg: s}
	if d.idx, err = s.readIndex(f); err != nil {
		d.end, d.count = s.next, 1
		return d.found(err)
	}
	d.bad = make([]bool, len(d.idx.batches))
	c := checker{l: l}
	var csn eventlog.CSN
	for i := range d.bad {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, most, err := c.batch(s, f, d.idx, i, csn)
		csn = max(csn, most)
		if err == nil {
			continue
		}
		if _, err := d.found(err); err != nil {
			return nil, err
		}
		d.bad[i], d.end = true, s.next
		d.count++
		if i+1 < len(d.bad) {
			d.end = d.idx.batches[i+1].base
		}
	}
	if d.first == nil {
		return nil, nil
	}
	return d, nil
}

// found notes damage; other errors are returned.
func (d *damage) found(err error) (*damage, error) {
	var bad *CorruptError
	if !errors.As(err, &bad) {
		return nil, err
	}
	if d.first == nil {
		d.first = bad
	}
	return d, nil
}

// SetAside removes the damaged batches of a topic that lie below the offsets. A
// segment is written anew without them, as by a compaction: a crash leaves the old
// one, the new one, or both, of which the new one counts.
func (l *Log) SetAside(ctx context.Context, topic eventlog.TopicID, below []eventlog.Offset) (batches int, err error) {
	t, ok := l.topicByID(topic)
	if !ok || topic == txTopic || len(below) != t.Spec.Partitions {
		return 0, fmt.Errorf("set damage of topic %d aside: %w", topic, eventlog.ErrUnknownTopic)
	}
	l.compactMu.Lock()
	defer l.compactMu.Unlock()
	if err := l.writable(); err != nil {
		return 0, err
	}
	list, err := l.damageBelow(ctx, topic, below)
	if err == nil && len(list) > 0 {
		batches, err = l.rewriteAll(ctx, t, list)
	}
	if err != nil {
		return batches, err
	}
	l.mu.Lock()
	for p := range below {
		k := partKey{topic, int32(p)}
		if l.damaged[k] != nil { // by a try before this one, perhaps
			delete(l.damaged, k)
			l.markDirty(k)
		}
	}
	l.mu.Unlock()
	wake(l.compactNow)
	return batches, nil
}

// rewriteAll puts segments without their damaged batches in place, behind a horizon.
func (l *Log) rewriteAll(ctx context.Context, t eventlog.Topic, list []*damage) (batches int, err error) {
	l.mu.RLock()
	frontier := l.st.frontier
	l.mu.RUnlock()
	if err := l.saveOwn(horizonMarkOf(t.ID, frontier)); err != nil { // before anything goes (V21)
		return 0, err
	}
	for _, d := range list {
		if err := l.rewriteWithout(ctx, t, d); err != nil {
			return batches, fmt.Errorf("set damage of topic %q aside: %w", t.Spec.Name, l.failed("write anew", d.seg.path, err))
		}
		batches += d.count
	}
	return batches, nil
}

// damageBelow returns a topic's damaged segments, the newest of a partition first.
func (l *Log) damageBelow(ctx context.Context, topic eventlog.TopicID, below []eventlog.Offset) (list []*damage, err error) {
	for p, end := range below {
		for _, s := range slices.Backward(l.segmentsOf(partKey{topic, int32(p)})) {
			d, err := l.damageIn(ctx, s)
			if err != nil {
				return nil, err
			}
			if d == nil {
				continue
			}
			if d.end > end {
				return nil, fmt.Errorf("%w; offsets up to %d are damaged, those from %d on are needed", d.first, d.end-1, end)
			}
			list = append(list, d)
		}
	}
	return list, nil
}

// rewriteWithout puts a segment without its damaged batches in the place of d's.
func (l *Log) rewriteWithout(ctx context.Context, t eventlog.Topic, d *damage) error {
	c := &compaction{l: l, ctx: ctx, key: d.seg.key, topic: t, limiter: newLimiter(0)}
	run := []*segment{d.seg}
	w, err := c.newWriter(run)
	if err == nil {
		err = c.copyWhole(w, d)
	}
	if err == nil {
		err = c.install(run, w)
	} else if w != nil {
		w.abandon()
	}
	return err
}

// copyWhole copies the batches that are not damaged.
func (c *compaction) copyWhole(w *segWriter, d *damage) error {
	if d.idx == nil {
		return nil
	}
	f, err := c.l.fs().Open(d.seg.path)
	if err != nil {
		return err
	}
	defer f.Close()
	for i, bad := range d.bad {
		if bad {
			continue
		}
		h, raw, err := d.seg.rawBatch(f, d.idx, i, nil)
		if err != nil {
			return err
		}
		b := &rawBatch{d.seg, d.idx.batches[i].pos, raw, h}
		rows, _, _, err := c.rows(b, 0, d.seg.next)
		if err != nil {
			return err
		}
		if err := w.addRaw(b, rows); err != nil {
			return err
		}
	}
	return nil
}
