package seglog

import (
	"sync"
	"sync/atomic"
)

const (
	chunkStep   = 64 << 10  // sizes of chunks are multiples of it
	sharedChunk = 1 << 20   // size of one that many small entries share
	maxShared   = 256 << 10 // size of an entry that still does
	maxIdle     = 8 << 20   // bytes of chunks that wait to be used again
)

// chunk is memory of entries. Whoever needs an entry's bytes holds the chunk;
// when the last one releases it, other entries are written there.
type chunk struct {
	b    []byte
	refs atomic.Int32
	of   *chunks
}

func (c *chunk) hold() { c.refs.Add(1) }

func (c *chunk) release() {
	switch n := c.refs.Add(-1); {
	case n == 0:
		c.of.put(c)
	case n < 0:
		panic("seglog: chunk released twice")
	}
}

// chunks is chunks that nobody holds. What is never released, because a reader
// was not closed, the collector takes.
type chunks struct {
	mu   sync.Mutex
	idle []*chunk
	size int
}

// take returns a chunk of at least n bytes and not many more, held once.
func (s *chunks) take(n int) *chunk {
	n = (n + chunkStep - 1) / chunkStep * chunkStep
	c := s.find(n)
	if c == nil {
		c = &chunk{b: make([]byte, n), of: s}
	}
	c.refs.Store(1)
	return c
}

func (s *chunks) find(n int) *chunk {
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

// freed is for tests: it is shown memory that nobody holds any more.
var freed func(b []byte)

func (s *chunks) put(c *chunk) {
	if freed != nil {
		freed(c.b)
	}
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

// entryMemory gives small entries places in shared chunks. It belongs to one goroutine at a time.
type entryMemory struct {
	chunks chunks // of any goroutine
	shared *chunk
	used   int
}

// take returns n bytes for an entry, and their chunk held for it.
func (m *entryMemory) take(n int) ([]byte, *chunk) {
	if n > maxShared {
		c := m.chunks.take(n)
		return c.b[:n], c
	}
	if m.shared == nil || m.used+n > len(m.shared.b) {
		if m.shared != nil {
			m.shared.release()
		}
		m.shared, m.used = m.chunks.take(sharedChunk), 0
	}
	b := m.shared.b[m.used : m.used+n : m.used+n]
	m.used += n
	m.shared.hold()
	return b, m.shared
}

// copy returns a copy of b, and its chunk held for it.
func (m *entryMemory) copy(b []byte) ([]byte, *chunk) {
	to, c := m.take(len(b))
	copy(to, b)
	return to, c
}
