package seglog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// Check reads everything that the log has on disk and calls damaged for each
// file that is not as it was written. It returns the number of records read.
func (l *Log) Check(ctx context.Context, damaged func(error)) (records int64, err error) {
	l.mu.RLock()
	files := slices.Clone(l.files)
	sizes := make([]int64, len(files))
	for i, f := range files {
		sizes[i] = f.size
	}
	segs := maps.Clone(l.segs)
	l.mu.RUnlock()
	report := func(err error) error {
		if errors.Is(err, eventlog.ErrCorrupt) {
			damaged(err)
			return nil
		}
		if vfs.IsNotExist(err) { // sealed meanwhile: read as a segment by the next check
			return nil
		}
		return err
	}
	for i, f := range files {
		n, err := l.checkFile(ctx, f, sizes[i])
		records += n
		if err := report(err); err != nil {
			return records, err
		}
	}
	for _, list := range segs {
		for _, s := range list {
			n, err := l.checkSegment(ctx, s)
			records += n
			if err := report(err); err != nil {
				return records, err
			}
		}
	}
	return records, ctx.Err()
}

func (l *Log) checkFile(ctx context.Context, file *journalFile, size int64) (records int64, err error) {
	f, err := l.fs().Open(file.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, fileHeaderSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return 0, fmt.Errorf("read %s: %w", file.path, err)
	}
	if err := checkFileHeader(head, file.number); err != nil {
		return 0, &CorruptError{Path: file.path, Reason: err.Error()}
	}
	s := newScanner(f, file.path, file.number, fileHeaderSize, size)
	for ctx.Err() == nil {
		pos := s.pos
		kind, payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		n, err := checkEntry(kind, payload, pos == fileHeaderSize)
		records += n
		if err != nil {
			return records, &CorruptError{Path: file.path, Pos: pos, Reason: err.Error()}
		}
	}
	return records, nil
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
	default:
		err = fmt.Errorf("entry of kind %d", kind)
	}
	return records, err
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

func (l *Log) checkSegment(ctx context.Context, s *segment) (records int64, err error) {
	f, err := l.fs().Open(s.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	idx, err := s.readIndex(f)
	if err != nil {
		return 0, err
	}
	for i := range idx.batches {
		if ctx.Err() != nil {
			return records, nil
		}
		b, err := s.batch(f, idx, i)
		if err != nil {
			return records, err
		}
		n, err := countRecords(&b)
		records += n
		if err != nil {
			return records, s.corrupt(idx.batches[i].pos, "%v", err)
		}
	}
	if records != idx.records {
		return records, s.corrupt(idx.end, "%d records, the footer says %d", records, idx.records)
	}
	return records, nil
}
