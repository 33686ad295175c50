package seglog

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// backReader reads a partition from its end: first what only the journal holds,
// then the segments. Where it is depends on the offset alone, so that sealing
// under it neither hides a record nor shows one twice.
type backReader struct {
	l      *Log
	key    partKey
	before eventlog.Offset // all records at or above it were returned

	held  []eventlog.Record // of the batch or group at hand, to be returned from the end
	group backGroups
	// stream is the streamed transaction at hand.
	stream *backStream
	seg    backSegment

	closed bool
}

// ReadBackward reads the records below an offset, the newest first.
func (l *Log) ReadBackward(topic eventlog.TopicID, partition int32, before eventlog.Offset) (eventlog.PartitionReader, error) {
	t, ok := l.topicByID(topic)
	if !ok || partition < 0 || int(partition) >= t.Spec.Partitions {
		return nil, fmt.Errorf("read topic %d partition %d backward: %w", topic, partition, eventlog.ErrUnknownTopic)
	}
	before = max(0, min(before, l.EndOffsets(topic)[partition]))
	return &backReader{l: l, key: partKey{topic, partition}, before: before}, nil
}

// Next returns the next older record; ok is false at the beginning.
func (b *backReader) Next() (r eventlog.Record, ok bool, err error) {
	if b.closed {
		return r, false, eventlog.ErrClosed
	}
	for tries := 0; len(b.held) == 0; {
		more, err := b.fill()
		if vfs.IsNotExist(err) && tries < reloads { // sealed or replaced between the look and the open
			tries++
			b.group.close()
			b.seg.close()
			if err = b.l.vanished(); err == nil {
				continue
			}
		}
		if err != nil || !more {
			return r, false, err
		}
	}
	last := len(b.held) - 1
	r, b.held = b.held[last], b.held[:last]
	b.before = r.Offset
	return r, true, nil
}

// fill looks for older records: false if there are none. It may find nothing
// and yet have come nearer to them.
func (b *backReader) fill() (bool, error) {
	b.l.mu.RLock()
	sealed := b.l.sealedEnd(b.key)
	files := b.l.files
	i := sort.Search(len(files), func(i int) bool { return files[i].start(b.key.topic, b.key.partition) >= b.before }) - 1
	b.l.mu.RUnlock()
	switch {
	case b.before <= 0:
		return false, nil
	case b.before <= sealed:
		b.endStream()
		b.group.close()
		return b.fromSegment()
	case i < 0: // a gap between the segments and the journal
		b.before = sealed
		return true, nil
	}
	return true, b.fromFile(files[i], sealed)
}

// fromFile takes the newest group of a journal file with records in [low, b.before).
func (b *backReader) fromFile(file *journalFile, low eventlog.Offset) error {
	if err := b.group.open(b.l, file, b.key); err != nil {
		return err
	}
	for len(b.held) == 0 {
		if more, err := b.fromStream(low); more || err != nil {
			return err
		}
		ok, err := b.group.previous(b)
		if err != nil {
			return err
		}
		if !ok { // go on below the file
			b.before = min(b.before, max(low, file.start(b.key.topic, b.key.partition)))
			return nil
		}
		if a := b.group.group.stream; a != nil && b.key.topic != txTopic {
			b.stream, err = b.l.openBackStream(a, b.key, low, b.before)
			if err != nil || b.stream == nil { // nil: sealed, and looked up anew
				return err
			}
			continue
		}
		if b.held, err = groupRecords(b.held[:0], b.group.group, b.key, low, b.before); err != nil {
			return &CorruptError{Path: file.path, Pos: b.group.pos, Reason: err.Error()}
		}
	}
	return nil
}

// fromStream takes the next older chunk of the streamed transaction at hand.
func (b *backReader) fromStream(low eventlog.Offset) (more bool, err error) {
	if b.stream == nil {
		return false, nil
	}
	if b.held, more, err = b.stream.previous(b.held[:0], low, b.before); !more {
		b.endStream()
	}
	return more && len(b.held) > 0, err
}

func (b *backReader) endStream() {
	if b.stream != nil {
		b.stream.close()
		b.stream = nil
	}
}

// groupRecords appends a group's records of a partition with offsets in [low, before).
func groupRecords(dst []eventlog.Record, g *group, k partKey, low, before eventlog.Offset) ([]eventlog.Record, error) {
	p := partReader{key: k, next: low}
	if err := p.take(g); err != nil {
		return dst, err
	}
	for {
		var r eventlog.Record
		ok, err := p.fromGroup(&r)
		if err != nil || !ok || r.Offset >= before {
			return dst, err
		}
		dst = append(dst, r)
	}
}

// fromSegment takes the newest batch with records below b.before.
func (b *backReader) fromSegment() (bool, error) {
	for {
		found, err := b.seg.find(b.l, b.key, b.before)
		if err != nil || !found {
			return false, err
		}
		if b.held, err = b.seg.previous(b.held[:0], b.key, b.before); err != nil || len(b.held) > 0 {
			return true, err
		}
		b.before = b.seg.reached // the batch held nothing below: its records were left out
	}
}

// Close ends the reader.
func (b *backReader) Close() error {
	b.closed = true
	b.endStream()
	b.group.close()
	b.seg.close()
	return nil
}

// backSegment reads batches of one segment from its end.
type backSegment struct {
	seg     *segment
	idx     *segmentIndex
	f       vfs.File
	reached eventlog.Offset // nothing is left in the segment at or above it
}

// find opens the last segment with records below an offset; false if there is none.
func (s *backSegment) find(l *Log, k partKey, before eventlog.Offset) (bool, error) {
	if s.seg != nil && s.seg.base < before {
		return true, nil
	}
	s.close()
	l.mu.RLock()
	segs := l.segs[k]
	i := sort.Search(len(segs), func(i int) bool { return segs[i].base >= before }) - 1
	l.mu.RUnlock()
	if i < 0 {
		return false, nil
	}
	idx, err := segs[i].index(l.fs())
	if err != nil {
		return false, err
	}
	f, err := l.fs().Open(segs[i].path)
	if err != nil {
		return false, err
	}
	s.seg, s.idx, s.f = segs[i], idx, f
	return true, nil
}

// previous returns the records below an offset of the batch in which the last of them lies.
func (s *backSegment) previous(dst []eventlog.Record, k partKey, before eventlog.Offset) ([]eventlog.Record, error) {
	if len(s.idx.batches) == 0 { // compaction left nothing
		s.reached = s.seg.base
		return dst, nil
	}
	i := s.idx.find(before - 1)
	if s.reached = s.idx.batches[i].base; i == 0 {
		s.reached = s.seg.base // where compaction left out the first ones
	}
	batch, err := s.seg.batch(s.f, s.idx, i)
	if err != nil {
		return dst, err
	}
	it, err := batch.Records()
	for err == nil {
		r := eventlog.Record{Topic: k.topic, Partition: k.partition}
		var ok bool
		if ok, err = it.Next(&r); err != nil || !ok || r.Offset >= before {
			break
		}
		dst = append(dst, r)
	}
	if err != nil {
		err = s.seg.corrupt(s.idx.batches[i].pos, "%v", err)
	}
	return dst, err
}

func (s *backSegment) close() {
	if s.f != nil {
		s.f.Close()
	}
	s.f, s.seg, s.idx = nil, nil, nil
}

// backGroups reads the groups of one journal file from its end. Entries cannot
// be read backward, so it notes the places of one stretch between two index
// points at a time.
type backGroups struct {
	file  *journalFile
	f     vfs.File
	key   partKey
	cuts  []int64 // where the stretches not yet noted begin, and the end of the last
	ends  []entryPlace
	buf   []byte
	group *group // decoded last
	pos   int64  // of its entry
}

type entryPlace struct{ pos, end int64 }

// open makes g read a file from its end, unless it is at it.
func (g *backGroups) open(l *Log, file *journalFile, k partKey) error {
	if g.file != nil && g.file.path == file.path {
		return nil
	}
	g.close()
	f, err := l.fs().Open(file.path)
	if err != nil {
		return err
	}
	l.indexOf(f, file)
	l.mu.RLock()
	defer l.mu.RUnlock()
	g.file, g.f, g.key = file, f, k
	g.cuts = append(g.cuts[:0], file.body)
	for _, p := range file.index {
		if p.pos > file.body {
			g.cuts = append(g.cuts, p.pos)
		}
	}
	g.cuts = append(g.cuts, file.size)
	return nil
}

// previous decodes the next older group with records of the partition below
// b.before; false at the file's beginning.
func (g *backGroups) previous(b *backReader) (bool, error) {
	for len(g.ends) == 0 {
		if len(g.cuts) < 2 {
			return false, nil
		}
		from, to := g.cuts[len(g.cuts)-2], g.cuts[len(g.cuts)-1]
		g.cuts = g.cuts[:len(g.cuts)-1]
		if err := g.note(from, to, b.before); err != nil {
			return false, err
		}
	}
	e := g.ends[len(g.ends)-1]
	g.ends = g.ends[:len(g.ends)-1]
	s := newScanner(g.f, g.file.path, g.file.number, e.pos, e.end)
	s.buf = g.buf[:0]
	kind, payload, err := s.next()
	if err != nil {
		return false, err
	}
	g.buf, g.pos = s.buf, e.pos
	if g.group, err = decodeTransactions(kind, payload); err != nil {
		return false, &CorruptError{Path: g.file.path, Pos: e.pos, Reason: err.Error()}
	}
	return true, nil
}

// note notes the places of the groups between two positions that have records
// of the partition below an offset.
func (g *backGroups) note(from, to int64, before eventlog.Offset) error {
	s := newScanner(g.f, g.file.path, g.file.number, from, to)
	for {
		pos := s.pos
		kind, payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != kindGroup && kind != kindAdopt {
			continue
		}
		gr, err := decodeTransactions(kind, payload)
		if err != nil {
			return &CorruptError{Path: g.file.path, Pos: pos, Reason: err.Error()}
		}
		if first, ok, err := gr.firstOf(g.key); err != nil {
			return &CorruptError{Path: g.file.path, Pos: pos, Reason: err.Error()}
		} else if ok && first < before {
			g.ends = append(g.ends, entryPlace{pos, s.pos})
		}
	}
}

// firstOf returns a group's first offset in a partition; false if it has none there.
func (g *group) firstOf(k partKey) (eventlog.Offset, bool, error) {
	if k.topic == txTopic {
		return eventlog.Offset(g.first), len(g.rows) > 0, nil
	}
	if g.stream != nil {
		if p := g.stream.part(k); p != nil {
			return p.first, true, nil
		}
		return 0, false, nil
	}
	for _, b := range g.batches {
		if b.topic == k.topic && b.partition == k.partition {
			h, err := eventlog.DecodeBatchHeader(b.data)
			return h.Base, true, err
		}
	}
	return 0, false, nil
}

func (g *backGroups) close() {
	if g.f != nil {
		g.f.Close()
	}
	g.f, g.file, g.group, g.cuts, g.ends = nil, nil, nil, g.cuts[:0], g.ends[:0]
}
