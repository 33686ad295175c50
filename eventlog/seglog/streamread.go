package seglog

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// pieces is what is left of a transaction that comes in pieces.
type pieces interface {
	// next puts the records shown of the next piece, in order, into r.records;
	// more tells whether there is another with any.
	next(r *reader) (more bool, err error)
	close()
}

// nextPiece reads on in a transaction that comes in pieces.
func (r *reader) nextPiece() (bool, error) {
	more, err := r.rest.next(r)
	if err != nil {
		return false, err
	}
	if r.tx.More = more; !more {
		r.endPieces()
		r.ordinal++
	}
	return true, nil
}

func (r *reader) endPieces() {
	if r.rest != nil {
		r.rest.close()
		r.rest = nil
	}
}

// stepStream reads the streamed transaction of the group at hand: whole, or its first piece.
func (r *reader) stepStream(a *adoption) (bool, error) {
	if !r.touches(a) {
		r.tx, r.records = a.tx, r.records[:0]
		r.group.row++
		r.ordinal++
		return true, nil
	}
	c, err := r.l.openStream(a)
	if vfs.IsNotExist(err) {
		r.group.g = nil // the journal's place is looked up anew
		r.journal.close()
		if err := r.l.streamGone(a); err != nil {
			return false, err
		}
		return r.step()
	}
	if err != nil {
		return false, err
	}
	r.tx, r.records = a.tx, r.records[:0]
	p := &streamPieces{c: c, whole: !r.spec.Pieces}
	if r.spec.Pieces {
		r.group.row++
		r.rest = p
		return r.nextPiece()
	}
	defer p.close()
	for {
		shown, err := p.read(r, r.records)
		if err != nil {
			return false, err
		}
		if len(shown) == len(r.records) {
			break
		}
		r.records = shown
	}
	r.group.row++
	r.ordinal++
	return true, nil
}

// touches reports whether the reader may show a record of the transaction.
func (r *reader) touches(a *adoption) bool {
	return slices.ContainsFunc(a.parts, func(p adoptedPart) bool {
		if from, ok := r.spec.From[p.key.topic]; ok {
			return r.shows(p.key.topic) && !(int(p.key.partition) < len(from) && p.first+p.count <= from[p.key.partition])
		}
		return r.shows(p.key.topic) && a.tx.CSN > r.spec.After
	})
}

// streamPieces reads a streamed transaction chunk by chunk, one ahead of the
// caller, who learns so whether there is more.
type streamPieces struct {
	c     *chunkFile
	whole bool // every chunk keeps its memory
	bufs  [2][]byte
	ahead []eventlog.Record // what the next call shows
	begun bool
	err   error // met before: it stays
}

func (p *streamPieces) next(r *reader) (more bool, err error) {
	if p.err == nil && !p.begun {
		p.begun = true
		p.ahead, p.err = p.read(r, nil)
	}
	if p.err != nil {
		return false, p.err
	}
	now := p.ahead
	p.ahead, p.err = p.read(r, r.records[:0])
	r.records = now
	return len(p.ahead) > 0, p.err
}

// read appends the records shown of the next chunk with any to dst, in order.
func (p *streamPieces) read(r *reader, dst []eventlog.Record) ([]eventlog.Record, error) {
	n := len(dst)
	for len(dst) == n {
		k, buf, err := p.c.next(p.bufs[0])
		p.bufs[0] = buf
		if err != nil || k == nil {
			return dst, err
		}
		err = p.c.records(k, func(k partKey) bool { return r.shows(k.topic) }, func(rec *eventlog.Record, every bool) error {
			if !(every && rec.Partition != 0) && !r.skips(rec) {
				dst = append(dst, *rec)
			}
			return nil
		})
		if err != nil {
			return dst, err
		}
	}
	sortBySeq(dst[n:])
	p.bufs[0], p.bufs[1] = p.bufs[1], p.bufs[0]
	if p.whole {
		p.bufs[1] = nil
	}
	return dst, nil
}

func (p *streamPieces) close() { p.c.close() }

// sortBySeq orders records by seq, and those of one seq as they are. Records are
// large: of many, only seq and place are sorted, and each record moves once.
func sortBySeq(records []eventlog.Record) {
	bySeq := func(a, b eventlog.Record) int { return cmp.Compare(a.Seq, b.Seq) }
	switch n := len(records); {
	case slices.IsSortedFunc(records, bySeq):
	case n < 64 || n > math.MaxUint32:
		slices.SortStableFunc(records, bySeq)
	default:
		keys := make([]uint64, n)
		for i := range records {
			keys[i] = uint64(records[i].Seq)<<32 | uint64(i)
		}
		slices.Sort(keys)
		from := slices.Clone(records)
		for i, k := range keys {
			records[i] = from[uint32(k)]
		}
	}
}

// takeStream opens the streamed file of a group if it may hold something for the partition.
func (p *partReader) takeStream(a *adoption) error {
	part := a.part(p.key)
	if part == nil || part.first+part.count <= p.next {
		return nil
	}
	c, err := p.l.openStream(a)
	if vfs.IsNotExist(err) {
		if err := p.l.streamGone(a); err != nil {
			return err
		}
		return errSealed
	}
	p.stream = c
	return err
}

// fromStream queues what the next chunk of the streamed file at hand holds for
// the partition; false if there is no file at hand or it has ended.
func (p *partReader) fromStream() (bool, error) {
	if p.stream == nil {
		return false, nil
	}
	k, buf, err := p.stream.next(p.buf)
	p.buf = buf
	if err != nil {
		return false, err
	}
	if k == nil {
		p.closeStream()
		return false, nil
	}
	p.rows = p.rows[:0]
	err = p.stream.records(k, func(k partKey) bool { return k == p.key }, func(rec *eventlog.Record, _ bool) error {
		p.rows = append(p.rows, *rec)
		return nil
	})
	return err == nil, err
}

func (p *partReader) closeStream() {
	if p.stream != nil {
		p.stream.close()
	}
	p.stream, p.buf = nil, nil
}

// stream seals a streamed transaction: its row, then its records chunk by chunk.
func (s *sealer) stream(ctx context.Context, a *adoption) error {
	row := a.txRecord()
	if err := s.add(&row, false); err != nil {
		return err
	}
	for _, p := range a.parts { // also where all of it was aborted: its offsets are used up
		if _, err := s.writer(p.key); err != nil {
			return err
		}
	}
	c, err := s.l.openStream(a)
	if vfs.IsNotExist(err) {
		return missingStream(s.l.streamPath(a), a)
	}
	if err != nil {
		return err
	}
	defer c.close()
	var buf []byte
	for {
		if err := ctx.Err(); err != nil {
			return &ioError{err}
		}
		var k *chunk
		if k, buf, err = c.next(buf); err != nil || k == nil {
			return err
		}
		if err := c.records(k, func(partKey) bool { return true }, s.add); err != nil {
			return err
		}
	}
}

// checkStream reads a streamed file as Check does.
func (l *Log) checkStream(ctx context.Context, a *adoption) (records int64, err error) {
	c, err := l.openStream(a)
	if vfs.IsNotExist(err) {
		return 0, l.streamGone(a)
	}
	if err != nil {
		return 0, err
	}
	defer c.close()
	var buf []byte
	for ctx.Err() == nil {
		var k *chunk
		if k, buf, err = c.next(buf); err != nil || k == nil {
			return records, err
		}
		for _, b := range k.batches {
			if _, err := eventlog.DecodeBatch(b.data); err != nil {
				return records, located(c.path, c.at, err)
			}
		}
		err := c.records(k, func(partKey) bool { return true }, func(*eventlog.Record, bool) error { records++; return nil })
		if err != nil {
			return records, err
		}
	}
	return records, nil
}
