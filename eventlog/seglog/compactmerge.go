package seglog

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// mergeEntry is the memory that merging takes for a key, with its share of the map.
const mergeEntry = 96

// merger makes the survivors of keys whose newest record is partial. Their values
// lie in a temporary file; in memory is where. Keys for which there is no memory
// keep all their records until another pass: those with the largest offsets.
type merger struct {
	c       *compaction
	scratch scratch
	open    map[eventlog.Offset]spot // by the offset of the key's newest record
	done    map[eventlog.Offset]spot
	most    eventlog.Offset // no key is taken whose newest record is behind it
	limit   int             // keys
	buffer  []byte
}

// spot is a record in the making.
type spot struct {
	at        int64 // of its value in the scratch
	n         int64
	schema    uint32
	flags     uint8
	tombstone bool
	changed   bool // merging changed it
}

// lacksMoved reports whether it is the insert half of a key change with columns
// that are under the old key.
func (s spot) lacksMoved() bool {
	const both = eventlog.FlagMoved | eventlog.FlagPartial
	return !s.tombstone && s.flags&both == both
}

func (c *compaction) newMerger() (*merger, error) {
	dir, err := c.l.makeTopicDir(c.topic)
	if err != nil {
		return nil, err
	}
	m := &merger{
		c: c, open: map[eventlog.Offset]spot{}, done: map[eventlog.Offset]spot{}, most: math.MaxInt64,
		limit: int(max(c.l.opts.MergeBytes/mergeEntry, 1)),
	}
	m.scratch.path = path.Join(dir, fmt.Sprintf("%05d.merge.tmp", c.key.partition))
	m.scratch.fs = c.l.fs()
	return m, m.scratch.create()
}

// merge reads the partition from its beginning and makes the survivors.
func (m *merger) merge() error {
	c := m.c
	err := c.records(c.segs, c.segs[0].base, c.end, func(r *eventlog.Record) error {
		switch {
		case isTruncate(r):
			clear(m.open)
			return nil
		case isControl(r), len(r.Key) == 0:
			return nil
		}
		off, partial, ok := c.newest.get(r.Key)
		if !ok || !partial || r.Offset > off || off > m.most {
			return nil
		}
		return m.take(r, off)
	})
	clear(m.open)
	return err
}

// take puts a record over what its key has so far; off is its key's newest offset.
func (m *merger) take(r *eventlog.Record, off eventlog.Offset) error {
	older, have := m.open[off]
	next := spot{schema: r.Schema, flags: r.Flags, tombstone: r.Value == nil}
	value := r.Value
	switch {
	case !have || !isPartial(r) || older.tombstone, next.lacksMoved():
		// What the insert half of a key change lacks is under its old key, never in an
		// older record of this one: that row was deleted, perhaps by a tombstone that
		// has gone while its values are still here.
	case older.lacksMoved(): // it must stay what it is, and what came behind it too
		if r.Offset == off {
			delete(m.open, off)
		}
		return nil
	default:
		merged, whole, err := m.over(older, r)
		if err != nil {
			return err
		}
		value, next.changed = merged, true
		if whole {
			next.flags &^= eventlog.FlagPartial
		}
	}
	var err error
	if next.at, err = m.scratch.add(value); err != nil {
		return err
	}
	next.n = int64(len(value))
	if r.Offset == off {
		delete(m.open, off)
		m.done[off] = next
		return nil
	}
	m.open[off] = next
	return m.shrink()
}

func (m *merger) over(older spot, r *eventlog.Record) (value []byte, whole bool, err error) {
	if m.c.l.opts.Merge == nil {
		return nil, false, errors.New("the log was opened without a way to merge partial records")
	}
	if m.buffer, err = m.scratch.read(m.buffer, older.at, older.n); err != nil {
		return nil, false, err
	}
	rec := eventlog.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: m.buffer, Schema: older.schema, Flags: older.flags}
	value, whole, err = m.c.l.opts.Merge(m.c.topic, rec, *r)
	if err != nil {
		err = fmt.Errorf("merge the record at offset %d with an older one: %w", r.Offset, err)
	}
	return value, whole, err
}

// shrink gives up the keys with the largest newest offsets when there are too many.
func (m *merger) shrink() error {
	if len(m.open)+len(m.done) <= m.limit {
		return nil
	}
	offs := make([]eventlog.Offset, 0, len(m.open))
	for off := range m.open {
		offs = append(offs, off)
	}
	slices.Sort(offs)
	if len(offs) == 1 {
		if len(m.done) > 0 {
			m.most = offs[0] - 1
			return errEnough
		}
		return nil // one key is always possible
	}
	m.most = offs[len(offs)/2] - 1
	for _, off := range offs[len(offs)/2:] {
		delete(m.open, off)
	}
	return nil
}

// value reads a survivor's value.
func (m *merger) value(s spot) ([]byte, error) {
	return m.scratch.read(make([]byte, 0, s.n), s.at, s.n)
}

// close removes the temporary file; Open would do it too.
func (m *merger) close() {
	if err := m.scratch.remove(); err != nil {
		m.c.l.opts.Logger.Warn("remove a temporary file", "file", m.scratch.path, "err", err)
	}
}

// scratch is a temporary file that is written from its beginning and read anywhere.
type scratch struct {
	fs   vfs.FS
	path string
	f    vfs.File
	end  int64  // of what is in the file
	buf  []byte // behind it
}

func (s *scratch) create() (err error) {
	s.f, err = s.fs.Create(s.path)
	return err
}

func (s *scratch) add(b []byte) (at int64, err error) {
	at = s.end + int64(len(s.buf))
	s.buf = append(s.buf, b...)
	if len(s.buf) < segChunk {
		return at, nil
	}
	if _, err := s.f.WriteAt(s.buf, s.end); err != nil {
		return 0, err
	}
	s.end += int64(len(s.buf))
	s.buf = s.buf[:0]
	return at, nil
}

func (s *scratch) read(dst []byte, at, n int64) ([]byte, error) {
	if at >= s.end {
		return append(dst[:0], s.buf[at-s.end:][:n]...), nil
	}
	dst = slices.Grow(dst[:0], int(n))[:n]
	if _, err := s.f.ReadAt(dst, at); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	return dst, nil
}

func (s *scratch) remove() error {
	if s.f == nil {
		return nil
	}
	return errors.Join(s.f.Close(), s.fs.Remove(s.path))
}
