package seglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// Compacted says what a compaction did.
type Compacted struct {
	Read     int64 // records, over all passes
	Removed  int64 // records
	Merged   int64 // partial records that took older values
	BytesIn  int64 // of the segments that were written anew
	BytesOut int64
}

func (c *Compacted) add(o Compacted) {
	c.Read += o.Read
	c.Removed += o.Removed
	c.Merged += o.Merged
	c.BytesIn += o.BytesIn
	c.BytesOut += o.BytesOut
}

// Compact compacts what is sealed of a topic, whatever its share of dirty bytes
// and without a limit of the rate.
// Topics that are not kept by compaction are refused.
func (l *Log) Compact(ctx context.Context, topic eventlog.TopicID) (Compacted, error) {
	t, ok := l.topicByID(topic)
	if !ok {
		return Compacted{}, fmt.Errorf("compact topic %d: %w", topic, eventlog.ErrUnknownTopic)
	}
	if t.Spec.Cleanup != eventlog.CleanupCompact {
		return Compacted{}, fmt.Errorf("compact topic %q: its cleanup is %s, not compact", t.Spec.Name, t.Spec.Cleanup)
	}
	var all Compacted
	for p := range t.Spec.Partitions {
		done, err := l.compactPartition(ctx, partKey{topic, int32(p)}, 0)
		all.add(done)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// compactPartition runs passes over a partition until all of it that may be is clean.
func (l *Log) compactPartition(ctx context.Context, k partKey, rate int64) (all Compacted, err error) {
	l.compactMu.Lock()
	defer l.compactMu.Unlock()
	for {
		if err := l.writable(); err != nil {
			return all, err
		}
		c := l.newCompaction(ctx, k, rate)
		more, err := c.pass()
		all.add(c.done)
		l.mu.Lock()
		l.counts.compactions++
		l.counts.removed += c.done.Removed
		l.mu.Unlock()
		if err == nil {
			l.noteBack(k, c.back)
		}
		if err != nil || !more {
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("compact topic %q partition %d: %w", c.topic.Spec.Name, k.partition, err)
			}
			return all, err
		}
	}
}

// writable reports why the log's files must not be changed.
func (l *Log) writable() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case l.closed:
		return eventlog.ErrClosed
	case l.readOnly:
		return ErrReadOnly
	}
	return l.fatal
}

// compaction is one pass over a partition.
//
// Below clean.offset each key has one record. The pass notes the newest record of
// each key from there on, sets the horizon, and then writes segments anew without
// what is superseded. It works on a fixed list of segments; sealing may add to
// the partition meanwhile.
type compaction struct {
	l      *Log
	ctx    context.Context
	key    partKey
	topic  eventlog.Topic
	segs   []*segment
	clean  cleanState
	limit  eventlog.Offset // where the journal begins, also after a crash
	limits limits
	now    int64 // µs

	newest   *newestMap
	end      eventlog.Offset // the pass does not look at what is there or beyond
	lastCSN  eventlog.CSN    // of the records below end
	truncate eventlog.Offset // of the last truncate below end; -1: none
	full     bool            // the map was: what is behind end wants another pass
	unmerged bool            // merging had no memory for some keys
	moved    bool            // some record is the delete half of a key change
	partial  bool            // some key's newest record is partial

	held    heldRecords
	merger  *merger
	merged  map[eventlog.Offset]spot // survivors of partial records, by offset
	oldest  int64                    // commit time of the oldest tombstone kept below end
	heldAt  eventlog.Offset          // the next pass must see everything from here on
	done    Compacted
	limiter *limiter
	runTime int64 // largest commit time, µs, of the run at hand
	// What stays of the run at hand, and what of it cursors keep; bytes of records.
	runKept, runHeld int64
	back             heldBack

	it      eventlog.RecordIter // of the batch at hand, as what follows
	buf     []eventlog.Record
	every   []bool
	touched uint32 // keeps the compiler from leaving the touching out
}

func (l *Log) newCompaction(ctx context.Context, k partKey, rate int64) *compaction {
	t, _ := l.topicByID(k.topic)
	c := &compaction{
		l: l, ctx: ctx, key: k, topic: t, limits: l.limitsOf(k.topic), now: l.opts.Clock().UnixMicro(),
		truncate: -1, limiter: newLimiter(rate),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.dirty, k)
	c.segs = l.segs[k] // replaced, never changed
	c.clean = l.st.clean(k)
	// Only what has left the journal, durably, makes older records go: a reader that
	// finds them gone must not read on in the journal, where nothing was merged.
	c.limit = l.oldestFile().start(k.topic, k.partition)
	return c
}

// pass takes the partition one piece further; more tells that records were left for another.
func (c *compaction) pass() (more bool, err error) {
	if len(c.segs) == 0 {
		return false, nil
	}
	if err := c.scan(); err != nil {
		return false, err
	}
	if c.moved {
		if err := c.findHeld(); err != nil {
			return false, err
		}
	}
	if c.partial {
		m, err := c.newMerger()
		if err != nil {
			return false, err
		}
		defer m.close()
		if err := m.merge(); err != nil {
			return false, err
		}
		c.merger, c.merged = m, m.done
	}
	if err := c.raiseHorizon(); err != nil {
		return false, err
	}
	if err := c.rewrite(); err != nil {
		return false, err
	}
	next := cleanState{offset: min(c.end, c.heldAt), tombstone: c.oldest}
	switch {
	case c.end < c.clean.covers:
		next.covers = c.clean.covers // it knows nothing of what is held there
	case c.heldAt < c.end:
		next.covers = c.end
	}
	if next != c.clean {
		if err := c.l.saveOwn(next.mark(c.key)); err != nil {
			return false, err
		}
	}
	return (c.full || c.unmerged) && next.offset > c.clean.offset, nil
}

// raiseHorizon makes the horizon durable before anything is removed (V21).
func (c *compaction) raiseHorizon() error {
	if c.lastCSN <= c.l.Horizon(c.key.topic) || c.newest.used == 0 && c.truncate < 0 {
		return nil
	}
	return c.l.saveOwn(horizonMarkOf(c.key.topic, c.lastCSN))
}

// removable reports whether a tombstone may go: nothing older is left that it
// hides, it is old enough and every cursor has passed it.
func (c *compaction) removable(r *eventlog.Record) bool {
	return r.CSN <= c.limits.tombstones && c.due(r)
}

// due reports whether nothing but a cursor could keep a tombstone.
func (c *compaction) due(r *eventlog.Record) bool {
	return r.Offset < c.clean.offset && c.end >= c.clean.covers &&
		c.now-c.timeOf(r) >= c.topic.Spec.TombstoneRetention.Microseconds()
}

// timeOf is a record's commit time; of one without, the largest of its run.
func (c *compaction) timeOf(r *eventlog.Record) int64 {
	switch {
	case r.Time > 0:
		return r.Time
	case c.runTime > 0:
		return c.runTime
	}
	return c.now
}

// Share of dirty bytes from which a partition is compacted, and how often that is looked at.
const (
	dirtyShare   = 0.5
	compactEvery = 15 * time.Second
)

// compactLoop compacts and expires in the background until ctx ends.
func (l *Log) compactLoop(ctx context.Context) {
	for ctx.Err() == nil {
		if err := l.Expire(); err != nil && ctx.Err() == nil && !errors.Is(err, eventlog.ErrClosed) {
			l.opts.Logger.Warn("retention is tried again", "in", compactEvery, "err", err)
		}
		if l.compactDirtiest(ctx) || l.relieve() {
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.compactNow:
		case <-time.After(compactEvery):
		}
	}
}

// compactDirtiest compacts the partition with the largest share of dirty bytes;
// false if none is due.
func (l *Log) compactDirtiest(ctx context.Context) bool {
	k, ok := l.dirtiest()
	if !ok {
		return false
	}
	done, err := l.compactPartition(ctx, k, l.opts.CompactRate)
	l.mu.Lock()
	l.compacted[k] = l.opts.Clock()
	if errors.Is(err, eventlog.ErrCorrupt) {
		l.damaged[k] = err
		delete(l.back, k) // nothing goes from there any more
	}
	l.mu.Unlock()
	t, _ := l.topicByID(k.topic)
	switch {
	case ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed):
		return false
	case errors.Is(err, eventlog.ErrCorrupt):
		l.opts.Logger.Error("a damaged partition is not compacted any more; 'tailwater log check' tells the way out",
			"topic", t.Spec.Name, "partition", k.partition, "err", err)
	case err != nil:
		l.opts.Logger.Warn("compaction is tried again", "err", err)
		return false
	default:
		l.opts.Logger.Debug("compacted", "topic", t.Spec.Name, "partition", k.partition,
			"read", done.Read, "removed", done.Removed, "bytes_in", done.BytesIn, "bytes_out", done.BytesOut)
	}
	return true
}

// dirtiest returns the partition that is most worth compacting.
func (l *Log) dirtiest() (best partKey, ok bool) {
	now := l.opts.Clock()
	pressed, stuck := l.pressed(), l.stuck()
	l.mu.RLock()
	defer l.mu.RUnlock()
	share := 0.0
	for k, segs := range l.segs {
		t := l.st.topic(k.topic)
		if l.damaged[k] != nil || t == nil || t.topic.Spec.Cleanup != eventlog.CleanupCompact {
			continue
		}
		clean := l.st.clean(k)
		dirty, total := dirtyBytes(segs, clean.offset)
		s := float64(dirty) / float64(max(total, 1))
		due := s >= dirtyShare && dirty >= l.opts.CompactLeast || pressed && dirty > 0
		if !due && clean.tombstone > 0 {
			age := now.Sub(time.UnixMicro(clean.tombstone))
			// Not for each one that gets old enough: what there is by then goes at once.
			due = age > t.topic.Spec.TombstoneRetention*5/4 && now.Sub(l.compacted[k]) > t.topic.Spec.TombstoneRetention/4 ||
				pressed && age >= t.topic.Spec.TombstoneRetention && !stuck[k]
		}
		if _, fresh := l.dirty[k]; due && !fresh && now.Sub(l.compacted[k]) < compactEvery {
			due = false // something held what was left
		}
		if due && (!ok || s > share) {
			best, share, ok = k, s, true
		}
	}
	return best, ok
}

func dirtyBytes(segs []*segment, clean eventlog.Offset) (dirty, total int64) {
	for _, s := range segs {
		total += s.size
		if s.next > clean {
			dirty += s.size
		}
	}
	return dirty, total
}
