package seglog

import (
	"math"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// verdict is what becomes of a record.
type verdict uint8

const (
	keep verdict = iota
	drop
	replace // by its merged form
)

// judge decides about a record of the segments that the pass covers.
func (c *compaction) judge(r *eventlog.Record) verdict {
	if r.Offset >= c.end {
		return keep
	}
	if r.Offset < c.truncate {
		return drop
	}
	if isTruncate(r) && c.removable(r) {
		return drop
	}
	if isControl(r) || len(r.Key) == 0 {
		return keep
	}
	if r.Offset >= c.clean.offset && !c.partial && len(c.held) == 0 { // it was put, and nothing is special
		if c.newest.isSuperseded(r.Offset) {
			return drop
		}
		return keep
	}
	off, partial, ok := c.newest.get(r.Key)
	switch {
	case ok && r.Offset < off:
		if _, merged := c.merged[off]; c.held[off] || partial && !merged {
			return keep
		}
		return drop
	case r.Value == nil && c.removable(r):
		return drop
	case ok && partial && c.merged[off].changed:
		return replace
	}
	return keep
}

// rewrite writes anew what holds anything superseded: newest first, so that a
// survivor has the values of the older records before those go.
func (c *compaction) rewrite() error {
	runs := c.runs()
	c.keepUnmerged()
	for _, run := range slices.Backward(runs) {
		if err := c.rewriteRun(run); err != nil {
			return err
		}
	}
	return nil
}

// keepUnmerged makes the next pass look again at what merging had no memory for.
func (c *compaction) keepUnmerged() {
	if !c.partial {
		return
	}
	c.newest.partials(func(off eventlog.Offset) {
		if _, merged := c.merged[off]; !merged {
			c.heldAt, c.unmerged = min(c.heldAt, off), true
		}
	})
}

// runs divides the segments below the pass's end into neighbours that together
// make one new segment.
func (c *compaction) runs() [][]*segment {
	var runs [][]*segment
	var size int64
	for i, s := range c.segs {
		if s.base >= c.end {
			break
		}
		if n := len(runs); n > 0 && size+s.size <= c.l.opts.SegmentBytes {
			runs[n-1] = append(runs[n-1], s)
			size += s.size
			continue
		}
		runs = append(runs, c.segs[i:i+1:i+1])
		size = s.size
	}
	return runs
}

// rewriteRun writes a run's survivors to a new segment and shows that in place of
// the old ones. A crash before the rename leaves a temporary file, one behind it
// the new segment beside those it covers: Open removes either.
func (c *compaction) rewriteRun(run []*segment) error {
	c.runKept, c.runHeld = 0, 0
	w, changed, err := c.writeSurvivors(run)
	if w == nil || err != nil || !changed {
		if w != nil {
			w.abandon()
		}
		c.sumHeld(run...)
		return err
	}
	return c.install(run, w)
}

// install makes a new segment durable and shows it in place of those of a run.
func (c *compaction) install(run []*segment, w *segWriter) error {
	if err := w.finish(); err != nil {
		w.abandon()
		return err
	}
	if err := c.l.fs().Rename(w.tmp, w.seg.path); err != nil {
		w.abandon()
		return err
	}
	if err := c.l.syncDir(w.dir); err != nil {
		return err // the new segment covers the old ones, whether it is there after a crash or not
	}
	c.l.replaceSegments(run, w.seg)
	c.sumHeld(w.seg)
	for _, s := range run {
		c.done.BytesIn += s.size
		if err := c.l.fs().Remove(s.path); err != nil && !vfs.IsNotExist(err) {
			c.l.opts.Logger.Warn("remove a segment that was compacted", "file", s.path, "err", err)
		}
	}
	c.done.BytesOut += w.seg.size
	return nil
}

// writeSurvivors copies what stays. Of a run in which nothing goes and which is
// one segment already nothing is written.
func (c *compaction) writeSurvivors(run []*segment) (w *segWriter, changed bool, err error) {
	c.runTime = 0
	for _, s := range run {
		newest, err := c.l.newestTime(s)
		if err != nil {
			return nil, false, err
		}
		c.runTime = max(c.runTime, newest.UnixMicro())
	}
	if len(run) == 1 {
		if some, err := c.anyGoes(run); err != nil || !some {
			return nil, false, err
		}
	}
	if w, err = c.newWriter(run); err != nil {
		return nil, false, err
	}
	changed = len(run) > 1
	c.runKept, c.runHeld = 0, 0
	err = c.batches(run, 0, func(b *rawBatch) error {
		rows, every, _, err := c.rows(b, 0, math.MaxInt64)
		if err != nil {
			return err
		}
		n, size, whole := 0, 0, true
		for i := range rows {
			r := &rows[i]
			switch c.judge(r) {
			case drop:
				c.done.Removed++
				whole = false
				continue
			case replace:
				m := c.merged[r.Offset]
				if r.Value, err = c.merger.value(m); err != nil {
					return err
				}
				r.Flags, r.Schema = m.flags, m.schema
				c.done.Merged++
				whole = false
			}
			c.noteTombstone(r)
			c.countHeld(r)
			size += len(r.Key) + len(r.Value) + 20
			rows[n], every[n] = *r, every[i]
			n++
		}
		changed = changed || !whole
		if err := c.limiter.spend(c.ctx, int64(len(b.bytes))); err != nil {
			return err
		}
		return w.copyRows(b, rows[:n], every[:n], whole, size)
	})
	return w, changed, err
}

// noteTombstone remembers the oldest tombstone that stays below the pass's end.
func (c *compaction) noteTombstone(r *eventlog.Record) {
	if (r.Value == nil && len(r.Key) > 0 || isTruncate(r)) && r.Offset < c.end && (c.oldest == 0 || c.timeOf(r) < c.oldest) {
		c.oldest = c.timeOf(r)
	}
}

// anyGoes reports whether some record of the run would not stay as it is.
func (c *compaction) anyGoes(run []*segment) (some bool, err error) {
	err = c.records(run, run[0].base, c.end, func(r *eventlog.Record) error {
		if c.judge(r) != keep {
			some = true
			return errEnough
		}
		c.noteTombstone(r)
		c.countHeld(r)
		return nil
	})
	return some, err
}

// newWriter returns a writer of the segment that takes a run's place.
func (c *compaction) newWriter(run []*segment) (*segWriter, error) {
	gen := uint64(0)
	for _, s := range run {
		gen = max(gen, s.gen)
	}
	w, err := c.l.segWriterOf(c.topic, c.key, "compact.tmp")
	if err != nil {
		return nil, err
	}
	w.covers, w.gen = true, gen+1
	w.base, w.next = run[0].base, run[len(run)-1].next
	return w, nil
}

// replaceSegments shows a segment in place of those that it covers.
func (l *Log) replaceSegments(old []*segment, s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	segs := l.segs[s.key]
	i := slices.Index(segs, old[0])
	l.setSegments(s.key, slices.Concat(segs[:i], []*segment{s}, segs[i+len(old):]))
}
