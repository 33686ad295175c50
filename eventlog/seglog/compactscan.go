package seglog

import (
	"errors"
	"maps"
	"math"

	"github.com/tailwater/tailwater/eventlog"
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// rawBatch is a batch of a segment as it is in the file.
type rawBatch struct {
	seg   *segment
	pos   int64
	bytes []byte
	eventlog.Batch
}

// batches calls fn for each batch of the segments that may hold offsets at or
// above from. The bytes are valid until fn returns.
func (c *compaction) batches(segs []*segment, from eventlog.Offset, fn func(b *rawBatch) error) error {
	for _, s := range segs {
		if s.next <= from {
			continue
		}
		if err := c.segmentBatches(s, from, fn); err != nil {
			return err
		}
	}
	return nil
}

func (c *compaction) segmentBatches(s *segment, from eventlog.Offset, fn func(b *rawBatch) error) error {
	idx, err := s.index(c.l.fs())
	if err != nil {
		return err
	}
	f, err := c.l.fs().Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	var raw []byte // fn keeps nothing of it
	for i := idx.find(from); i < len(idx.batches); i++ {
		var h eventlog.Batch
		h, raw, err = s.rawBatch(f, idx, i, raw)
		if err != nil {
			return err
		}
		if err := c.limiter.spend(c.ctx, int64(len(raw))); err != nil {
			return err
		}
		if err := fn(&rawBatch{s, idx.batches[i].pos, raw, h}); err != nil {
			return err
		}
	}
	return nil
}

// rows decodes the batch's records with from <= offset < end; more tells that
// there are none at or beyond end. They are valid until the next call.
func (c *compaction) rows(b *rawBatch, from, end eventlog.Offset) (rows []eventlog.Record, every []bool, more bool, err error) {
	c.buf, c.every = c.buf[:0], c.every[:0]
	if b.Base >= end {
		return nil, nil, false, nil
	}
	if err := c.it.Reset(b.Batch); err != nil {
		return nil, nil, false, b.damaged(err)
	}
	for {
		r := eventlog.Record{Topic: c.key.topic, Partition: c.key.partition}
		ok, err := c.it.Next(&r)
		switch {
		case err != nil:
			return nil, nil, false, b.damaged(err)
		case !ok, r.Offset >= end:
			c.done.Read += int64(len(c.buf))
			return c.buf, c.every, !ok, nil
		case r.Offset >= from:
			c.buf, c.every = append(c.buf, r), append(c.every, c.it.Every)
		}
	}
}

// records calls fn for each record of the segments with from <= offset < end.
func (c *compaction) records(segs []*segment, from, end eventlog.Offset, fn func(r *eventlog.Record) error) error {
	err := c.batches(segs, from, func(b *rawBatch) error {
		rows, _, more, err := c.rows(b, from, end)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := fn(&rows[i]); err != nil {
				return err
			}
		}
		if !more {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (b *rawBatch) damaged(err error) error {
	return b.seg.corrupt(b.pos, "%v", err)
}

// isControl reports whether a record is a control record; they have no key of a row.
func isControl(r *eventlog.Record) bool { return len(r.Key) > 0 && r.Key[0] == 0 }

func isTruncate(r *eventlog.Record) bool { return string(r.Key) == eventlog.TruncateKey }

func isPartial(r *eventlog.Record) bool { return r.Value != nil && r.Flags&eventlog.FlagPartial != 0 }

// scan notes the newest record of each key from clean.offset on, as far as the
// limits, the map and its span let it.
func (c *compaction) scan() error {
	limit := min(c.segs[len(c.segs)-1].next, c.limit)
	c.end, c.heldAt = limit, math.MaxInt64
	var keys int64
	for _, s := range c.segs {
		if s.next <= c.clean.offset {
			continue
		}
		idx, err := s.index(c.l.fs())
		if err != nil {
			return err
		}
		keys += idx.records
	}
	c.newest = newNewestMap(c.l.seeds, c.clean.offset, keys, c.l.opts.CompactBytes)
	var hashes []keyHash
	err := c.batches(c.segs, c.clean.offset, func(b *rawBatch) error {
		rows, _, more, err := c.rows(b, c.clean.offset, limit)
		if err != nil {
			return err
		}
		hashes = hashes[:0]
		for i := range rows {
			hashes = append(hashes, c.newest.hash(rows[i].Key))
		}
		c.touched += c.newest.touch(hashes)
		for i := range rows {
			r := &rows[i]
			c.full = r.CSN <= c.limits.values && !c.note(r, hashes[i])
			if c.full || r.CSN > c.limits.values {
				c.end = r.Offset
				return errEnough
			}
			c.lastCSN = r.CSN
		}
		if !more {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// note takes a record into the map; false if there is no room.
func (c *compaction) note(r *eventlog.Record, k keyHash) bool {
	switch {
	case isTruncate(r):
		c.truncate = r.Offset
		return true
	case isControl(r), len(r.Key) == 0:
		return true
	}
	partial := isPartial(r)
	c.partial = c.partial || partial
	c.moved = c.moved || r.Value == nil && r.Flags&eventlog.FlagMoved != 0
	return c.newest.put(k, r.Offset, partial)
}

// heldRecords are the newest records, by offset, of keys of which all older
// records stay: a key change took the row away, and its insert half still lacks
// columns that only those records have.
type heldRecords map[eventlog.Offset]bool

// findHeld looks through the whole topic for insert halves that were never
// filled, and holds the delete halves of the same transactions.
func (c *compaction) findHeld() error {
	unfilled := map[eventlog.CSN]bool{}
	for p := range c.topic.Spec.Partitions {
		if err := c.unfilledIn(partKey{c.key.topic, int32(p)}, unfilled); err != nil {
			return err
		}
	}
	if len(unfilled) == 0 {
		return nil
	}
	c.held = heldRecords{}
	return c.records(c.segs, c.clean.offset, c.end, func(r *eventlog.Record) error {
		if r.Value != nil || r.Flags&eventlog.FlagMoved == 0 || !unfilled[r.CSN] {
			return nil
		}
		if off, _, ok := c.newest.get(r.Key); ok { // not always r: the key may have come back
			c.held[off] = true
			c.heldAt = min(c.heldAt, r.Offset)
		}
		return nil
	})
}

// unfilledIn adds the CSNs of a partition's moved inserts that no whole record or
// tombstone of their key followed, as of the last CSN that the pass covers: that
// becomes the horizon, and as of there the topic must say everything.
func (c *compaction) unfilledIn(k partKey, unfilled map[eventlog.CSN]bool) error {
	open := map[string][]eventlog.CSN{}
	pr, err := c.l.ReadPartition(k.topic, k.partition, 0)
	if err != nil {
		return err
	}
	defer pr.Close()
	for n := 0; ; n++ {
		r, ok, err := pr.Next()
		if err == nil && n%1024 == 0 {
			err = c.ctx.Err()
		}
		if err != nil {
			return err
		}
		if !ok || r.CSN > c.lastCSN {
			break
		}
		switch partial := isPartial(&r); {
		case isTruncate(&r):
			clear(open)
		case partial && r.Flags&eventlog.FlagMoved != 0:
			open[string(r.Key)] = append(open[string(r.Key)], r.CSN)
		case !partial:
			delete(open, string(r.Key))
		}
	}
	for csns := range maps.Values(open) {
		for _, csn := range csns {
			unfilled[csn] = true
		}
	}
	return nil
}
