package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// Checked is what a check has read.
type Checked struct {
	Files   int
	Bytes   int64
	Records int64 // in all files; a record that is being sealed counts twice
	// Torn is how many bytes follow the last whole entry of the newest journal
	// file: they are being written, or the next start cuts them off.
	Torn int64
}

// Damage is a place that is not as it was written. Topic is 0 in the journal.
type Damage struct {
	*CorruptError
	Topic eventlog.TopicID
}

// Check reads everything that the log has on disk and calls damaged for each
// place that is not as it was written. It returns the number of records read.
func (l *Log) Check(ctx context.Context, damaged func(error)) (records int64, err error) {
	c, err := l.CheckFiles(ctx, func(d Damage) error { damaged(d.CorruptError); return nil })
	return c.Records, err
}

// CheckFiles is Check with more to say; an error of damaged ends it.
func (l *Log) CheckFiles(ctx context.Context, damaged func(Damage) error) (Checked, error) {
	c := checker{l: l, ctx: ctx, damaged: damaged}
	l.mu.RLock()
	files := slices.Clone(l.files)
	sizes := make([]int64, len(files))
	for i, f := range files {
		sizes[i] = f.size
	}
	var segs []*segment
	for _, list := range l.segs {
		segs = append(segs, list...)
	}
	l.mu.RUnlock()
	for i, f := range files {
		newest := i == len(files)-1 && l.readOnly
		if err := c.report(0, c.journalFile(f.path, f.number, sizes[i], newest)); err != nil {
			return c.Checked, err
		}
	}
	return c.Checked, c.segments(segs)
}

// checker is one check.
type checker struct {
	Checked
	l       *Log
	ctx     context.Context
	damaged func(Damage) error
}

// report tells damage and takes it for no error.
func (c *checker) report(topic eventlog.TopicID, err error) error {
	var bad *CorruptError
	switch {
	case errors.As(err, &bad):
		return c.damaged(Damage{bad, topic})
	case vfs.IsNotExist(err): // sealed or compacted meanwhile: the next check reads what came of it
		return nil
	}
	return err
}

func (c *checker) segments(segs []*segment) error {
	slices.SortFunc(segs, func(a, b *segment) int { return strings.Compare(a.path, b.path) })
	for _, s := range segs {
		err := c.segment(s)
		if vfs.IsNotExist(err) && !c.l.readOnly && c.l.segmentAt(s.key, s.base) == s {
			err = s.missing()
		}
		if err := c.report(s.key.topic, err); err != nil {
			return err
		}
	}
	return c.ctx.Err()
}

// journalFile checks a file up to size; in the newest of a log that another
// process may write to, what follows is counted as torn.
func (c *checker) journalFile(path string, number uint64, size int64, newest bool) error {
	f, err := c.l.fs().Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c.Files++
	if newest {
		whole, err := f.Size()
		if err != nil {
			return err
		}
		c.Torn = max(0, whole-size)
	}
	head := make([]byte, fileHeaderSize)
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", path, err)
	} else if err := checkFileHeader(head[:n], number); err != nil {
		if err := c.report(0, &CorruptError{Path: path, Reason: err.Error()}); err != nil {
			return err
		}
	}
	return c.entries(newScanner(f, path, number, fileHeaderSize, size))
}

// entries checks the entries of a file, each also as the next behind those before
// it; behind a bad one it goes on at the next good one, whatever that follows.
func (c *checker) entries(s *entryScanner) error {
	var st *state // as the entries so far make it; nil behind a bad one
	for c.ctx.Err() == nil {
		pos := s.pos
		kind, payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if err := c.report(0, err); err != nil {
				return err
			}
			at, found, err := s.goodBehind()
			if errors.Is(err, io.EOF) || err == nil && !found { // the file is cut short, or nothing good follows
				return nil
			}
			if err != nil {
				return err
			}
			s.pos, st = at, nil
			continue
		}
		c.Bytes += s.pos - pos
		n, err := checkEntry(kind, payload, pos == fileHeaderSize)
		c.Records += n
		if err == nil {
			st, err = follow(st, kind, payload)
		}
		if err == nil && kind == kindAdopt {
			if err := c.stream(payload); err != nil {
				return err
			}
		}
		if err != nil {
			st = nil
			if err := c.report(0, &CorruptError{Path: s.path, Pos: pos, Reason: err.Error()}); err != nil {
				return err
			}
		}
	}
	return c.ctx.Err()
}

// follow advances the state by a good entry; an error says that it cannot follow what st holds.
func follow(st *state, kind byte, payload []byte) (*state, error) {
	switch {
	case kind == kindCheckpoint:
		st, _, err := decodeCheckpoint(bytes.Clone(payload))
		return st, err
	case st == nil || kind == kindIndex:
		return st, nil
	}
	g, err := decodeTransactions(kind, bytes.Clone(payload))
	if err != nil {
		return nil, err
	}
	return st, st.applyGroup(g)
}

func checkEntry(kind byte, payload []byte, first bool) (records int64, err error) {
	if first != (kind == kindCheckpoint) {
		return 0, fmt.Errorf("entry of kind %d in the wrong place", kind)
	}
	switch kind {
	case kindCheckpoint:
		_, _, err = decodeCheckpoint(payload)
	case kindIndex:
		_, _, err = decodeIndex(payload)
	case kindGroup:
		g, err := decodeGroup(payload)
		if err != nil {
			return 0, err
		}
		for _, b := range g.batches {
			h, err := eventlog.DecodeBatch(b.data)
			if err != nil {
				return records, err
			}
			n, err := countRecords(&h)
			records += n
			if err != nil {
				return records, err
			}
		}
	case kindAdopt:
		_, err = decodeAdoption(payload)
	default:
		err = fmt.Errorf("entry of kind %d", kind)
	}
	return records, err
}

// stream checks the streamed file that an entry adopts.
func (c *checker) stream(payload []byte) error {
	a, err := decodeAdoption(bytes.Clone(payload))
	if err != nil {
		return err
	}
	n, err := c.l.checkStream(c.ctx, a)
	c.Files++
	c.Records += n
	c.Bytes += a.length
	return c.report(0, err)
}

func countRecords(b *eventlog.Batch) (n int64, err error) {
	it, err := b.Records()
	if err != nil {
		return 0, err
	}
	for {
		var r eventlog.Record
		ok, err := it.Next(&r)
		if err != nil || !ok {
			return n, err
		}
		n++
	}
}

// segment checks a segment's header, footer and batches, and that they agree.
func (c *checker) segment(s *segment) error {
	f, err := c.l.fs().Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	c.Files++
	idx, err := s.readIndex(f)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	c.Bytes += size
	var records int64
	var csn eventlog.CSN
	whole := true
	for i := range idx.batches {
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		n, most, err := c.batch(s, f, idx, i, csn)
		csn = max(csn, most)
		records += n
		if err != nil {
			whole = false
			if err := c.report(s.key.topic, err); err != nil {
				return err
			}
		}
	}
	c.Records += records
	if whole && (records != idx.records || csn != idx.maxCSN) {
		return s.corrupt(idx.end, "%d records up to CSN %d, the footer says %d up to %d", records, csn, idx.records, idx.maxCSN)
	}
	return nil
}

// batch checks one batch behind records up to a CSN; it returns its largest CSN.
func (c *checker) batch(s *segment, f vfs.File, idx *segmentIndex, i int, before eventlog.CSN) (n int64, most eventlog.CSN, err error) {
	b, err := s.batch(f, idx, i)
	if err != nil {
		return 0, idx.batches[i].before, err
	}
	it, err := b.Records()
	newest := int64(math.MinInt64)
	for err == nil {
		var r eventlog.Record
		var ok bool
		if ok, err = it.Next(&r); err != nil || !ok {
			break
		}
		n++
		most, newest = max(most, r.CSN), max(newest, r.Time/1000)
	}
	switch at := idx.batches[i]; {
	case err != nil:
		err = s.corrupt(at.pos, "%v", err)
	case before > at.before || newest != at.maxTime:
		err = s.corrupt(idx.end, "footer says CSN %d before the batch at byte %d and time %d in it, there are %d and %d", at.before, at.pos, at.maxTime, before, newest)
	}
	return n, most, err
}
