package seglog

import (
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// backStream reads what a streamed transaction has in a partition from its end.
// Chunks cannot be read backward: their places are noted first.
type backStream struct {
	c      *chunkFile
	key    partKey
	places []int64 // of the chunks with records of the partition
	buf    []byte
}

// openBackStream notes the chunks of a streamed file that have records of a
// partition in [low, before); nil if the transaction was sealed meanwhile.
func (l *Log) openBackStream(a *adoption, k partKey, low, before eventlog.Offset) (*backStream, error) {
	c, err := l.openStream(a)
	if vfs.IsNotExist(err) {
		return nil, l.streamGone(a)
	}
	if err != nil {
		return nil, err
	}
	s := &backStream{c: c, key: k}
	for {
		var chunk *chunk
		if chunk, s.buf, err = c.next(s.buf); err != nil || chunk == nil {
			break
		}
		some := false
		err = c.records(chunk, s.wants, func(r *eventlog.Record, _ bool) error {
			some = some || r.Offset >= low && r.Offset < before
			return nil
		})
		if err != nil {
			break
		}
		if some {
			s.places = append(s.places, c.at)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *backStream) wants(k partKey) bool { return k == s.key }

// previous appends the records in [low, before) of the last chunk not yet read; false when there is none.
func (s *backStream) previous(dst []eventlog.Record, low, before eventlog.Offset) ([]eventlog.Record, bool, error) {
	if len(s.places) == 0 {
		return dst, false, nil
	}
	s.c.pos = s.places[len(s.places)-1]
	s.places = s.places[:len(s.places)-1]
	chunk, buf, err := s.c.read(s.buf)
	if s.buf = buf; err != nil {
		return dst, false, err
	}
	err = s.c.records(chunk, s.wants, func(r *eventlog.Record, _ bool) error {
		if r.Offset >= low && r.Offset < before {
			dst = append(dst, *r)
		}
		return nil
	})
	return dst, true, err
}

func (s *backStream) close() { s.c.close() }
