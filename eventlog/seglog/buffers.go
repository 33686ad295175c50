package seglog

// Limits of the memory that a cursor keeps for later.
const (
	maxSpares = 4       // buffers
	maxSpare  = 4 << 20 // bytes of one
)

// buffers is memory in which records lie that a reader has handed out, and
// memory to use again once those records are no longer valid.
type buffers struct{ used, spare [][]byte }

// take returns memory for later use, empty, nil if there is none.
func (s *buffers) take() []byte {
	n := len(s.spare)
	if n == 0 {
		return nil
	}
	b := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return b[:0]
}

// retire notes a buffer whose records may still be in use.
func (s *buffers) retire(b []byte) {
	if cap(b) > 0 {
		s.used = append(s.used, b)
	}
}

// recycle says that no record handed out before is in use.
func (s *buffers) recycle() {
	for _, b := range s.used {
		spoil(b)
		if len(s.spare) < maxSpares && cap(b) <= maxSpare {
			s.spare = append(s.spare, b)
		}
	}
	clear(s.used)
	s.used = s.used[:0]
}

// grown returns a buffer of n bytes, b's memory if that is enough.
func grown(b []byte, n int64) []byte {
	if int64(cap(b)) >= n {
		return b[:n]
	}
	return make([]byte, n, n+n/8)
}
