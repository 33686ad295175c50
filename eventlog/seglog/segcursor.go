package seglog

import (
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// segCursor reads a partition's sealed records in offset order. It keeps one
// file open and one batch in memory.
type segCursor struct {
	l    *Log
	key  partKey
	next eventlog.Offset // nothing below it is returned

	seg   *segment
	f     vfs.File
	idx   *segmentIndex
	batch int // the next to read
	it    eventlog.RecordIter
	live  bool // it has a batch
	every bool // of the record returned last
	at    int64
	held  eventlog.Record
	holds bool // held was read but not taken
}

func newSegCursor(l *Log, key partKey, from eventlog.Offset) *segCursor {
	return &segCursor{l: l, key: key, next: from}
}

// seek goes to an offset; going forward inside the batch at hand costs nothing.
func (c *segCursor) seek(off eventlog.Offset) {
	if off < c.next {
		c.live, c.holds = false, false
		c.close()
	}
	c.next = off
}

// nextBelow returns the next record below end; ok is false if there is none
// among what is sealed. The record is valid until the next call.
func (c *segCursor) nextBelow(end eventlog.Offset, r *eventlog.Record) (ok bool, err error) {
	for {
		if c.holds && c.held.Offset >= c.next {
			if c.held.Offset >= end {
				return false, nil
			}
			*r, c.holds, c.next = c.held, false, c.held.Offset+1
			return true, nil
		}
		c.holds = false
		if !c.live {
			if more, err := c.nextBatch(); err != nil || !more {
				return false, err
			}
		}
		ok, err := c.it.Next(&c.held)
		if err != nil {
			return false, c.seg.corrupt(c.at, "%v", err)
		}
		c.held.Topic, c.held.Partition = c.key.topic, c.key.partition
		c.live, c.holds, c.every = ok, ok, c.it.Every
	}
}

// nextBatch reads the batch in which c.next lies.
func (c *segCursor) nextBatch() (bool, error) {
	if c.f == nil {
		c.close() // parked: found again by c.next
	}
	for c.seg == nil || c.next >= c.seg.next || c.batch >= len(c.idx.batches) {
		from := c.next
		if c.seg != nil {
			from = max(from, c.seg.next)
		}
		if more, err := c.openSegment(from); err != nil || !more {
			return false, err
		}
	}
	c.batch = max(c.batch, c.idx.find(c.next))
	b, err := c.seg.batch(c.f, c.idx, c.batch)
	if err != nil {
		return false, err
	}
	c.at = c.idx.batches[c.batch].pos
	if err := c.it.Reset(b); err != nil {
		return false, c.seg.corrupt(c.at, "%v", err)
	}
	c.batch++
	c.live = true
	return true, nil
}

// openSegment opens the segment with the first record at or above from.
func (c *segCursor) openSegment(from eventlog.Offset) (bool, error) {
	for {
		seg := c.l.segmentAt(c.key, from)
		if seg == nil {
			return false, nil
		}
		c.close()
		idx, err := seg.index(c.l.fs())
		if err == nil {
			c.f, err = c.l.fs().Open(seg.path)
		}
		if vfs.IsNotExist(err) && c.l.replaced(seg, c.key, from) {
			continue // replaced meanwhile
		}
		if err != nil {
			return false, fmt.Errorf("open segment: %w", err)
		}
		c.seg, c.idx, c.batch = seg, idx, 0
		return true, nil
	}
}

func (c *segCursor) close() {
	if c.f != nil {
		c.f.Close()
	}
	c.f, c.seg, c.idx, c.batch = nil, nil, nil, 0
}
