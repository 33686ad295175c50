package seglog

import (
	"sync"
	"sync/atomic"
)

const (
	slabStep   = 64 << 10  // sizes of slabs are multiples of it
	sharedSlab = 1 << 20   // size of one that many small entries share
	maxShared  = 256 << 10 // size of an entry that still does
	maxIdle    = 8 << 20   // bytes of slabs that wait to be used again
)

// slab is memory of entries. Whoever needs an entry's bytes holds the slab;
// when the last one releases it, other entries are written there.
type slab struct {
	b    []byte
	refs atomic.Int32
	of   *slabs
}

func (c *slab) hold() { c.refs.Add(1) }

func (c *slab) release() {
	switch n := c.refs.Add(-1); {
	case n == 0:
		c.of.put(c)
	case n < 0:
		panic("seglog: slab released twice")
	}
}

// slabs is slabs that nobody holds. What is never released, because a reader
// was not closed, the collector takes.
type slabs struct {
	mu   sync.Mutex
	idle []*slab
	size int
}

// take returns a slab of at least n bytes and not many more, held once.
func (s *slabs) take(n int) *slab {
	n = (n + slabStep - 1) / slabStep * slabStep
	c := s.find(n)
	if c == nil {
		c = &slab{b: make([]byte, n), of: s}
	}
	c.refs.Store(1)
	return c
}

func (s *slabs) find(n int) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		if c := s.idle[i]; len(c.b) >= n && len(c.b) <= n+n/4 {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			s.size -= len(c.b)
			return c
		}
	}
	return nil
}

// freed is for tests: it is shown memory that nobody may read any more.
var freed func(b []byte)

func spoil(b []byte) {
	if freed != nil {
		freed(b)
	}
}

func (s *slabs) put(c *slab) {
	spoil(c.b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, c)
	s.size += len(c.b)
	for s.size > maxIdle {
		s.size -= len(s.idle[0].b)
		s.idle[0] = nil
		s.idle = s.idle[1:]
	}
}

// entryMemory gives small entries places in shared slabs. It belongs to one goroutine at a time.
type entryMemory struct {
	slabs  slabs // of any goroutine
	shared *slab
	used   int
}

// take returns n bytes for an entry, and their slab held for it.
func (m *entryMemory) take(n int) ([]byte, *slab) {
	if n > maxShared {
		c := m.slabs.take(n)
		return c.b[:n], c
	}
	if m.shared == nil || m.used+n > len(m.shared.b) {
		if m.shared != nil {
			m.shared.release()
		}
		m.shared, m.used = m.slabs.take(sharedSlab), 0
	}
	b := m.shared.b[m.used : m.used+n : m.used+n]
	m.used += n
	m.shared.hold()
	return b, m.shared
}

// copy returns a copy of b, and its slab held for it.
func (m *entryMemory) copy(b []byte) ([]byte, *slab) {
	to, c := m.take(len(b))
	copy(to, b)
	return to, c
}
