package seglog

import (
	"container/heap"

	"github.com/tailwater/tailwater/eventlog"
)

// mergePieces shows a sealed transaction in pieces: it merges what the
// transaction has in each partition by seq. It holds one batch of each.
type mergePieces struct {
	parts mergeHeap
	own   []*segCursor // more than a reader keeps open: closed after each batch
	begun bool
	err   error // met before: it stays
}

// mergePart is what is left of a sealed transaction in one partition.
type mergePart struct {
	c     *segCursor
	end   eventlog.Offset
	head  eventlog.Record
	order int // of equal seqs
	park  bool
}

// beginMerge starts the pieces of the row of _tx that was just read.
func (r *reader) beginMerge(s *sealedReader, ordinal uint64) (bool, error) {
	r.ordinal = ordinal
	byKey := map[partKey]*mergePart{}
	m := &mergePieces{}
	for _, run := range s.runs {
		if !r.shows(run.key.topic) {
			continue
		}
		end := run.first + eventlog.Offset(run.count)
		if p := byKey[run.key]; p != nil {
			p.end = max(p.end, end)
			continue
		}
		p := &mergePart{end: end, order: len(m.parts), c: newSegCursor(r.l, run.key, run.first)}
		p.c.keep = true // the records of a piece are all valid at once
		byKey[run.key] = p
		m.parts = append(m.parts, p)
		m.own = append(m.own, p.c)
	}
	for _, p := range m.parts {
		p.park = len(m.parts) > maxSealedCursors
	}
	r.rest = m
	return r.nextPiece()
}

func (m *mergePieces) next(r *reader) (more bool, err error) {
	if m.err == nil {
		m.err = m.fill(r)
	}
	return len(m.parts) > 0, m.err
}

// fill reads records in order of their seq until a piece is full.
func (m *mergePieces) fill(r *reader) error {
	if !m.begun {
		m.begun = true
		all := m.parts
		m.parts = m.parts[:0:0]
		for _, p := range all {
			ok, err := p.advance(r)
			if err != nil {
				return err
			}
			if ok {
				m.parts = append(m.parts, p)
			}
		}
		heap.Init(&m.parts)
	}
	for _, c := range m.own {
		c.recycle()
	}
	r.records = r.records[:0]
	for size := 0; len(m.parts) > 0 && size < r.l.opts.StreamChunk; {
		p := m.parts[0]
		r.records = append(r.records, p.head)
		size += len(p.head.Key) + len(p.head.Value) + recordOverhead
		ok, err := p.advance(r)
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(&m.parts, 0)
		} else {
			heap.Pop(&m.parts)
		}
	}
	return nil
}

// advance reads the partition's next record shown into head.
func (p *mergePart) advance(r *reader) (bool, error) {
	for {
		ok, err := p.c.nextBelow(p.end, &p.head)
		if err != nil || !ok {
			p.c.close()
			return false, err
		}
		if p.park {
			p.c.park()
		}
		if !(p.c.every && p.c.key.partition != 0) && !r.skips(&p.head) {
			return true, nil
		}
	}
}

// park closes the cursor's file until its next batch is read.
func (c *segCursor) park() {
	if c.f != nil {
		c.f.Close()
		c.f = nil
	}
}

func (m *mergePieces) close() {
	for _, c := range m.own {
		c.close()
	}
}

// mergeHeap has the partition with the lowest seq first.
type mergeHeap []*mergePart

func (h mergeHeap) Len() int { return len(h) }
func (h mergeHeap) Less(i, j int) bool {
	if h[i].head.Seq != h[j].head.Seq {
		return h[i].head.Seq < h[j].head.Seq
	}
	return h[i].order < h[j].order
}
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(*mergePart)) }
func (h *mergeHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	*h = old[:len(old)-1]
	return p
}
