package seglog

import (
	"encoding/binary"
	"sort"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

const (
	// probeBytes is how much of an entry a probe reads at first.
	probeBytes = 8 << 10
	// probeEntries is how many entries a probe looks at for a record of the partition.
	probeEntries = 16
)

// seekOffset returns the ordinal of an index point of the file at or before
// which a partition's offset lies; where none is known to be, of the file's
// beginning. It looks at a few bytes of some entries and verifies no checksum:
// who reads on from there must find the partition going on at or below the
// offset, or begin with the file.
func (l *Log) seekOffset(file *journalFile, k partKey, off eventlog.Offset) uint64 {
	f, err := l.fs().Open(file.path)
	if err != nil {
		return file.ordinal // reading tells
	}
	defer f.Close()
	l.indexOf(f, file)
	l.mu.RLock()
	points, end := file.index, file.size
	l.mu.RUnlock()
	p := prober{f: f, end: end}
	i := sort.Search(len(points), func(i int) bool {
		base, ok := p.firstOffset(points[i].pos, k)
		return !ok || base > off
	})
	if i == 0 {
		return file.ordinal
	}
	return points[i-1].ordinal
}

// prober reads parts of journal entries.
type prober struct {
	f   vfs.File
	end int64 // of what is durable
	b   []byte
}

// firstOffset returns the first offset of a partition in the entries from pos on.
func (p *prober) firstOffset(pos int64, k partKey) (eventlog.Offset, bool) {
	for range probeEntries {
		head, ok := p.read(pos, entryHeaderSize)
		if !ok {
			return 0, false
		}
		h := decodeEntryHead(head)
		next := pos + entryHeaderSize + int64(h.n)
		if next > p.end {
			return 0, false
		}
		if h.kind == kindGroup {
			if base, ok := p.inGroup(pos+entryHeaderSize, next, k); ok {
				return base, true
			}
		}
		pos = next
	}
	return 0, false
}

// inGroup looks for a partition's batch in the payload of a group.
func (p *prober) inGroup(pos, end int64, k partKey) (eventlog.Offset, bool) {
	batches, pos, ok := p.batches(pos, end)
	for ; ok && batches > 0; batches-- {
		b, readable := p.read(pos, min(batchBound+8, end-pos))
		if !readable {
			return 0, false
		}
		c := &cursor{b: b}
		topic, partition, size := c.uint32(), c.uint32(), c.uvarint()
		head := int64(len(b) - len(c.b))
		base := c.take(8)
		if c.bad || size > uint64(end-pos-head) {
			return 0, false
		}
		if (partKey{eventlog.TopicID(topic), int32(partition)}) == k {
			return eventlog.Offset(binary.BigEndian.Uint64(base)), true
		}
		pos += head + int64(size)
	}
	return 0, false
}

// batches returns how many batches a group has, and where the first begins.
func (p *prober) batches(pos, end int64) (n int, at int64, ok bool) {
	for size := int64(probeBytes); ; size *= 8 {
		size = min(size, end-pos)
		b, readable := p.read(pos, size)
		if !readable {
			return 0, 0, false
		}
		c := &cursor{b: b}
		if n, ok = c.skipRows(); ok {
			return n, pos + int64(len(b)-len(c.b)), true
		}
		if size == end-pos {
			return 0, 0, false
		}
	}
}

// skipRows goes over a group's payload up to the number of its batches.
func (c *cursor) skipRows() (batches int, ok bool) {
	if c.byte() != groupVersion {
		return 0, false
	}
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		c.topic()
	}
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		c.mark()
	}
	c.uvarint()
	var tx eventlog.Tx
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		c.txHead(&tx, tx.Source, tx.ID)
		for runs := c.uvarint(); runs > 0 && !c.bad; runs-- {
			c.uvarint()
			c.uvarint()
		}
	}
	n := c.uvarint()
	return int(min(n, maxEntry)), !c.bad
}

func (p *prober) read(pos, n int64) ([]byte, bool) {
	if n < 0 || pos+n > p.end {
		return nil, false
	}
	p.b = grown(p.b, n)
	k, _ := p.f.ReadAt(p.b, pos)
	return p.b, int64(k) == n
}
