package seglog

import (
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// readAhead is how much a cursor reads at once when it goes on from batch to
// batch; the first read behind a seek is one batch.
const readAhead = 256 << 10

// segCursor reads a partition's sealed records in offset order. It keeps one
// file open and, of it, what was read ahead.
type segCursor struct {
	l    *Log
	key  partKey
	next eventlog.Offset // nothing below it is returned
	// keep says that records stay valid until recycle, not just until the next one.
	keep bool

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

	chunk    []byte // of the file from chunkAt on
	chunkAt  int64
	ahead    int64 // how much to read next
	chunks   buffers
	inflated buffers
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
// among what is sealed. The record is valid until the next call, or until recycle.
func (c *segCursor) nextBelow(end eventlog.Offset, r *eventlog.Record) (ok bool, err error) {
	if c.holds && c.held.Offset >= c.next {
		if c.held.Offset >= end {
			return false, nil
		}
		*r, c.holds, c.next = c.held, false, c.held.Offset+1
		return true, nil
	}
	c.holds = false
	for {
		if !c.live {
			if more, err := c.nextBatch(); err != nil || !more {
				return false, err
			}
		}
		c.live, err = c.it.Next(r)
		if err != nil {
			return false, c.seg.corrupt(c.at, "%v", err)
		}
		if !c.live || r.Offset < c.next {
			continue
		}
		r.Topic, r.Partition = c.key.topic, c.key.partition
		c.every = c.it.Every
		if r.Offset >= end {
			c.held, c.holds = *r, true
			return false, nil
		}
		c.next = r.Offset + 1
		return true, nil
	}
}

// recycle says that no record returned so far is in use.
func (c *segCursor) recycle() {
	c.chunks.recycle()
	c.inflated.recycle()
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
	raw, err := c.read(c.batch)
	if err != nil {
		return false, err
	}
	b, err := c.seg.verify(c.idx, c.batch, raw)
	if err != nil {
		return false, err
	}
	if c.keep {
		c.inflated.retire(c.it.Swap(c.inflated.take()))
	}
	c.at = c.idx.batches[c.batch].pos
	if err := c.it.Reset(b); err != nil {
		return false, c.seg.corrupt(c.at, "%v", err)
	}
	c.it.Skip(c.next)
	c.batch++
	c.live = true
	return true, nil
}

// read returns the bytes of a batch, reading those behind it too when the
// cursor came here from the batch before.
func (c *segCursor) read(i int) ([]byte, error) {
	pos, end := c.idx.span(i)
	if off := pos - c.chunkAt; off >= 0 && end-c.chunkAt <= int64(len(c.chunk)) {
		return c.chunk[off : end-c.chunkAt], nil
	}
	if pos != c.chunkAt+int64(len(c.chunk)) {
		c.ahead = 0
	}
	last := end
	for k := i + 1; k < len(c.idx.batches); k++ {
		_, e := c.idx.span(k)
		if e-pos > c.ahead {
			break
		}
		last = e
	}
	c.ahead = readAhead
	if c.keep {
		c.chunks.retire(c.chunk)
		c.chunk = c.chunks.take()
		c.ahead = 0 // a transaction's reader has many cursors
	}
	spoil(c.chunk)
	c.chunk = grown(c.chunk, last-pos)
	c.chunkAt = pos
	if err := c.seg.readInto(c.f, pos, c.chunk); err != nil {
		c.chunk = c.chunk[:0]
		return nil, err
	}
	return c.chunk[:end-pos], nil
}

// openSegment opens the segment with the first record at or above from.
func (c *segCursor) openSegment(from eventlog.Offset) (bool, error) {
	for {
		seg := c.l.segmentAt(c.key, from)
		if end := c.l.expiredEnd(c.key); from < end && c.key.topic != txTopic { // rows of _tx have a guard of their own
			return false, fmt.Errorf("read topic %d partition %d at offset %d: %w; retention deleted all below %d",
				c.key.topic, c.key.partition, from, eventlog.ErrOutOfRange, end)
		}
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
	if c.keep {
		c.chunks.retire(c.chunk)
		c.chunk = nil
	}
	c.f, c.seg, c.idx, c.batch, c.chunk, c.chunkAt = nil, nil, nil, 0, c.chunk[:0], 0
}
