package seglog

import (
	"errors"
	"fmt"
	"io"

	"github.com/tailwater/tailwater/internal/vfs"
)

// entryScanner reads the entries of a journal file one after the other, up to end.
type entryScanner struct {
	f     vfs.File
	path  string
	seed  uint32
	pos   int64 // of the next entry
	end   int64
	buf   []byte // bytes of the file from at on
	at    int64
	ahead int64  // how much to read next, if it is not more than the entry
	slabs *slabs // from which memory comes; nil: it is the scanner's own
	mem   *slab  // in which buf lies, held; nil: it does not
}

const (
	firstRead = 64 << 10  // who begins in the middle often wants one entry only
	scanChunk = 256 << 10 // further on
)

func newScanner(f vfs.File, path string, number uint64, pos, end int64) *entryScanner {
	return &entryScanner{f: f, path: path, seed: seedOf(number), pos: pos, end: end, ahead: firstRead}
}

// window returns n bytes at pos, reading ahead.
func (s *entryScanner) window(n int64) ([]byte, error) {
	off := s.pos - s.at
	if off >= 0 && off+n <= int64(len(s.buf)) {
		return s.buf[off : off+n], nil
	}
	want := min(max(n, s.ahead), s.end-s.pos)
	s.ahead = scanChunk
	have := int64(0)
	if off >= 0 && off < int64(len(s.buf)) {
		have = int64(len(s.buf)) - off
	}
	s.resize(want, s.buf[int64(len(s.buf))-have:])
	if k, err := s.f.ReadAt(s.buf[have:], s.pos+have); err != nil && !(errors.Is(err, io.EOF) && have+int64(k) >= n) {
		s.buf = s.buf[:0]
		if errors.Is(err, io.EOF) {
			return nil, s.corrupt(fmt.Sprintf("file ends at byte %d, it had %d", s.pos+have+int64(k), s.end))
		}
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	return s.buf[:n], nil
}

// resize makes buf n bytes at pos, the first of which are known.
func (s *entryScanner) resize(n int64, known []byte) {
	if int64(cap(s.buf)) >= n && int64(cap(s.buf)) <= 64*max(n, scanChunk) {
		s.buf = s.buf[:n]
		copy(s.buf, known)
	} else {
		var b []byte
		var mem *slab
		if s.slabs == nil {
			b = make([]byte, n)
		} else {
			mem = s.slabs.take(int(n))
			b = mem.b
		}
		copy(b, known)
		s.release()
		s.buf, s.mem = b[:n], mem
	}
	s.at = s.pos
}

// release gives buf's memory back; nothing that was returned is valid any more.
func (s *entryScanner) release() {
	if s.mem != nil {
		s.mem.release()
	}
	s.buf, s.mem = nil, nil
}

func (s *entryScanner) corrupt(reason string) error {
	return &CorruptError{Path: s.path, Pos: s.pos, Reason: reason}
}

// next returns the next entry; io.EOF at the end; a CorruptError leaves the
// scanner where it is. The payload is valid until the next call.
func (s *entryScanner) next() (kind byte, payload []byte, err error) {
	left := s.end - s.pos
	if left <= 0 {
		return 0, nil, io.EOF
	}
	if left < entryHeaderSize {
		return 0, nil, s.corrupt(fmt.Sprintf("%d bytes are less than an entry", left))
	}
	b, err := s.window(entryHeaderSize)
	if err != nil {
		return 0, nil, err
	}
	size := entryHeaderSize + int64(decodeEntryHead(b).n)
	if size > left {
		return 0, nil, s.corrupt(fmt.Sprintf("entry of %d bytes with %d left", size, left))
	}
	if b, err = s.window(size); err != nil {
		return 0, nil, err
	}
	kind, payload, err = decodeEntry(b, s.seed)
	if err != nil {
		return 0, nil, s.corrupt(err.Error())
	}
	s.pos += size
	return kind, payload, nil
}

// goodBehind looks for a whole entry anywhere behind a bad one at s.pos. By V18
// there is none behind one that was merely torn.
func (s *entryScanner) goodBehind() (at int64, found bool, err error) {
	rest := make([]byte, s.end-s.pos)
	if k, err := s.f.ReadAt(rest, s.pos); err != nil && !(errors.Is(err, io.EOF) && k == len(rest)) {
		return 0, false, fmt.Errorf("read %s: %w", s.path, err)
	}
	for i := 1; i+entryHeaderSize <= len(rest); i++ {
		h := decodeEntryHead(rest[i:])
		if !knownKind(h.kind) || h.n == 0 || int64(h.n) > int64(len(rest)-i-entryHeaderSize) {
			continue
		}
		if _, _, err := decodeEntry(rest[i:], s.seed); err == nil {
			return s.pos + int64(i), true, nil
		}
	}
	return 0, false, nil
}
