package seglog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

const (
	// sealRound bounds the journal bytes that one round turns into segments.
	sealRound = 256 << 20
	// sealRetry is how long Run waits after a round that failed.
	sealRetry = 10 * time.Second
)

// Run seals in the background, whenever the journal has outgrown
// Options.JournalBytes, compacts and expires, until ctx ends or the journal is
// found damaged.
func (l *Log) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.sealLoop(ctx) })
	g.Go(func() error { l.compactLoop(ctx); return nil })
	return g.Wait()
}

func (l *Log) sealLoop(ctx context.Context) error {
	for {
		l.mu.RLock()
		rolled := l.rolled
		l.mu.RUnlock()
		err := l.sealDue(ctx)
		if ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed) {
			return nil
		}
		if errors.Is(err, eventlog.ErrCorrupt) {
			return err
		}
		var retry <-chan time.Time
		if err != nil {
			l.opts.Logger.Warn("sealing is tried again", "in", sealRetry, "err", err)
			retry = time.After(sealRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rolled:
		case <-l.sealNow:
		case <-retry:
		}
	}
}

// sealDue seals what is too much; when the quota is nearly used up, everything:
// segments are smaller, and compaction works on them.
func (l *Log) sealDue(ctx context.Context) error {
	if !l.pressed() {
		return l.Seal(ctx, l.opts.JournalBytes)
	}
	l.mu.RLock()
	newest := l.files[len(l.files)-1]
	large := newest.bytes() > l.quota.Load()/pressedRoll
	l.mu.RUnlock()
	if large {
		if err := l.Roll(ctx); err != nil {
			return err
		}
	}
	return l.Seal(ctx, 0)
}

// Seal turns the oldest closed journal files into segments until the journal
// has at most keep bytes or only its newest file.
func (l *Log) Seal(ctx context.Context, keep int64) error {
	l.sealMu.Lock()
	defer l.sealMu.Unlock()
	for ctx.Err() == nil {
		files, err := l.toSeal(keep)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return l.dropFiles(0) // what an earlier round could not delete
		}
		if err := l.sealFiles(ctx, files); err != nil {
			return fmt.Errorf("seal journal files %d to %d: %w", files[0].number, files[len(files)-1].number, err)
		}
	}
	return ctx.Err()
}

// SealAll closes the newest journal file and seals everything.
func (l *Log) SealAll(ctx context.Context) error {
	if err := l.Roll(ctx); err != nil {
		return err
	}
	return l.Seal(ctx, 0)
}

// Roll closes the newest journal file and begins the next, if it holds anything.
func (l *Log) Roll(ctx context.Context) error {
	if l.readOnly {
		return ErrReadOnly
	}
	select {
	case <-l.token:
	case <-l.stopped:
		return eventlog.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.token <- struct{}{} }()
	if err := l.ready(); err != nil {
		return err
	}
	if l.w.end <= l.w.file.body {
		return nil
	}
	return l.roll()
}

// toSeal returns the oldest closed files that are too many.
func (l *Log) toSeal(keep int64) ([]*journalFile, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, eventlog.ErrClosed
	}
	if l.readOnly {
		return nil, ErrReadOnly
	}
	if l.fatal != nil {
		return nil, l.fatal
	}
	var total, taken int64
	for _, f := range l.files {
		total += f.bytes()
	}
	n := 0
	for n < len(l.files)-1 && total > keep && (n == 0 || taken < sealRound) {
		taken += l.files[n].bytes()
		total -= l.files[n].bytes()
		n++
	}
	return slices.Clone(l.files[:n]), nil
}

// sealer is one round of sealing.
type sealer struct {
	l     *Log
	parts map[partKey]*segWriter
	rows  []eventlog.Record
	// behind is the file behind the round: what each segment covers ends where that
	// begins, so that a segment that is missing leaves a hole.
	behind *journalFile
}

// sealFiles writes segments, makes them durable, shows them, and deletes the
// files. A crash in between needs no repair: what is at or below a partition's
// last sealed offset is left out next time.
func (l *Log) sealFiles(ctx context.Context, files []*journalFile) error {
	l.mu.RLock()
	s := &sealer{l: l, parts: map[partKey]*segWriter{}, behind: l.files[len(files)]}
	l.mu.RUnlock()
	err := s.read(ctx, files)
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		for _, k := range slices.SortedFunc(maps.Keys(s.parts), partKey.compare) {
			s.parts[k].abandon()
		}
		return err
	}
	err = l.dropFiles(len(files))
	wake(l.compactNow)
	return err
}

func (s *sealer) read(ctx context.Context, files []*journalFile) error {
	for _, file := range files {
		f, err := s.l.fs().Open(file.path)
		if err != nil {
			return err
		}
		err = s.readFile(ctx, f, file)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sealer) readFile(ctx context.Context, f vfs.File, file *journalFile) error {
	next := file.ordinal
	scan := newScanner(f, file.path, file.number, file.body, file.size)
	for ctx.Err() == nil {
		pos := scan.pos
		kind, payload, err := scan.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != kindGroup && kind != kindAdopt {
			continue
		}
		g, err := decodeTransactions(kind, payload)
		if err == nil && len(g.rows) > 0 && g.first != next {
			err = fmt.Errorf("transaction %d where %d was due", g.first, next)
		}
		if err == nil {
			next += uint64(len(g.rows))
		}
		if err == nil && g.stream != nil {
			err = s.stream(ctx, g.stream)
		} else if err == nil {
			err = s.group(g)
		}
		if err != nil && vfs.IsFull(err) {
			return err
		}
		if err != nil {
			return located(file.path, pos, err)
		}
	}
	return ctx.Err()
}

// ioError is a failure to write, or to read, not damage of what is read.
type ioError struct{ err error }

func (e *ioError) Error() string { return e.err.Error() }
func (e *ioError) Unwrap() error { return e.err }

// group hands the records of a group to their partitions.
func (s *sealer) group(g *group) error {
	var err error
	if s.rows, err = appendTxRecords(s.rows[:0], g); err != nil {
		return err
	}
	for i := range s.rows {
		if err := s.add(&s.rows[i], false); err != nil {
			return err
		}
	}
	for _, b := range g.batches {
		h, err := eventlog.DecodeBatchHeader(b.data)
		if err != nil {
			return err
		}
		it, err := h.Records()
		if err != nil {
			return err
		}
		for {
			r := eventlog.Record{Topic: b.topic, Partition: b.partition}
			ok, err := it.Next(&r)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := s.add(&r, it.Every); err != nil {
				return err
			}
		}
	}
	return nil
}

// writer returns the writer of a partition's segment.
func (s *sealer) writer(k partKey) (*segWriter, error) {
	if w := s.parts[k]; w != nil {
		return w, nil
	}
	w, err := s.l.newSegWriter(k)
	if err != nil {
		return nil, &ioError{err}
	}
	s.parts[k] = w
	return w, nil
}

func (s *sealer) add(r *eventlog.Record, every bool) error {
	w, err := s.writer(partKey{r.Topic, r.Partition})
	if err != nil || r.Offset < w.from {
		return err
	}
	if err := w.add(r, every); err != nil {
		return &ioError{err}
	}
	return nil
}

// finish makes all segments durable under their names and shows them.
func (s *sealer) finish() error {
	keys := slices.SortedFunc(maps.Keys(s.parts), partKey.compare)
	for _, k := range keys {
		w := s.parts[k]
		if next := s.behind.start(k.topic, k.partition); next > w.from { // else all of it was sealed before
			w.covers, w.base, w.next = true, w.from, next
		}
		if err := w.finish(); err != nil {
			return err
		}
	}
	dirs := map[string]bool{}
	for _, k := range keys {
		w := s.parts[k]
		// Also where all was sealed before: the round that renamed it may have
		// ended before the directory was synced, and the journal goes now (V17).
		dirs[w.dir] = true
		if w.seg == nil {
			continue
		}
		if err := s.l.fs().Rename(w.tmp, w.seg.path); err != nil {
			return err
		}
		s.l.addSegment(w.seg) // it holds what the journal holds: showing it early is harmless
		w.seg = nil
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := s.l.syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) addSegment(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setSegments(s.key, append(slices.Clip(l.segs[s.key]), s))
	l.markDirty(s.key)
}

// dropFiles takes the n oldest files out of the journal and deletes them, oldest
// first and each durably, so that no crash leaves a hole.
func (l *Log) dropFiles(n int) error {
	l.mu.Lock()
	l.doomed = append(l.doomed, l.files[:n]...)
	l.files = slices.Clone(l.files[n:])
	l.tail.forget(l.files[0].ordinal) // from now on it is read from segments, which compaction may change
	l.mu.Unlock()
	for len(l.doomed) > 0 {
		if err := l.fs().Remove(l.doomed[0].path); err != nil && !vfs.IsNotExist(err) {
			return err
		}
		if err := l.syncDir(l.path("journal")); err != nil {
			return err
		}
		if err := l.removeStreams(l.doomed[0]); err != nil {
			return err
		}
		l.mu.Lock()
		l.doomed = l.doomed[1:]
		l.mu.Unlock()
	}
	return nil
}

// oldestFile returns the oldest file that may be in the journal after a crash. The
// caller holds the lock.
func (l *Log) oldestFile() *journalFile {
	if len(l.doomed) > 0 {
		return l.doomed[0]
	}
	return l.files[0]
}
