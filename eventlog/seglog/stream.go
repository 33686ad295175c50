package seglog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// streamSync is how many chunks a stream writes before it syncs, so that its commit does not wait for all of it.
const streamSync = 32

// stream is a transaction in progress, in a file of its own from the first full
// chunk on. The file is named .tmp until it is adopted; Open deletes those.
type stream struct {
	l      *Log
	number uint64

	mu      sync.Mutex
	spool   spool
	aborted map[uint32]struct{}
	last    int64 // seq of the last record taken, -1: none
	retried bool  // the last Add ended without space: its records may come again
	records int64

	path    string // of the file, "" while there is none
	f       vfs.File
	buf     []byte
	written int64
	synced  int64
	heads   uint32
	chunks  uint64

	placed   bool  // the file's name in the journal's directory is durable
	doubtful bool  // an entry that adopts the file may be on the disk
	lost     error // what was written is not known to be there
	over     error // after it every call answers this
}

// Stream begins a transaction whose records arrive before its commit.
func (l *Log) Stream(ctx context.Context) (eventlog.Stream, error) {
	if l.readOnly {
		return nil, ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	if l.closing {
		return nil, eventlog.ErrClosed
	}
	l.streamNumber++
	s := &stream{l: l, number: l.streamNumber, last: -1, aborted: map[uint32]struct{}{}}
	l.streams[s] = struct{}{}
	return s, nil
}

// usable reports why the stream takes nothing any more.
func (s *stream) usable() error {
	if s.over != nil {
		return s.over
	}
	s.l.mu.RLock()
	fatal := s.l.fatal
	s.l.mu.RUnlock()
	if fatal != nil {
		return fatal
	}
	return s.lost
}

// Add takes records of one sub-transaction.
func (s *stream) Add(sub uint32, records []eventlog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.retried {
		for len(records) > 0 && int64(records[0].Seq) <= s.last {
			records = records[1:]
		}
	}
	if err := s.check(records); err != nil {
		return err
	}
	s.retried = false
	_, aborted := s.aborted[sub]
	for i := range records {
		if !aborted {
			if err := s.take(sub, &records[i]); err != nil {
				s.retried = errors.Is(err, eventlog.ErrFull)
				return err
			}
		}
		s.last = int64(records[i].Seq)
	}
	return nil
}

// check reports what no stream can take, before any of it is taken.
func (s *stream) check(records []eventlog.Record) error {
	if err := eventlog.CheckStreamed(records, s.last, s.l.topicByID); err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		if r.Topic == txTopic {
			return fmt.Errorf("stream record to topic %s: the log writes it itself", txTopicName)
		}
		if n := s.copies(r); n*(len(r.Key)+len(r.Value)+2*recordOverhead) > maxEntry/2 {
			return fmt.Errorf("%w: a record of %d bytes in %d partitions", eventlog.ErrTooLarge, len(r.Key)+len(r.Value), n)
		}
	}
	return nil
}

// copies returns the number of partitions that a record goes to.
func (s *stream) copies(r *eventlog.Record) int {
	if r.Partition != eventlog.EveryPartition {
		return 1
	}
	t, _ := s.l.topicByID(r.Topic)
	return t.Spec.Partitions
}

// take puts one record into the chunk at hand, after writing that if it is full.
func (s *stream) take(sub uint32, r *eventlog.Record) error {
	n := s.copies(r)
	if s.spool.size > 0 && s.spool.size+n*(len(r.Key)+len(r.Value)+recordOverhead) > s.l.opts.StreamChunk {
		if err := s.flush(); err != nil {
			return err
		}
	}
	first, every := int32(0), r.Partition == eventlog.EveryPartition
	if !every {
		t, _ := s.l.topicByID(r.Topic)
		first = eventlog.PartitionOf(r.Key, t.Spec.Partitions)
	}
	for p := first; p < first+int32(n); p++ {
		if err := s.room(partKey{r.Topic, p}); err != nil {
			return err
		}
	}
	for p := first; p < first+int32(n); p++ {
		s.spool.add(sub, r, p, every)
	}
	s.records++
	return nil
}

// room reports that a partition has no offset left for the transaction.
func (s *stream) room(k partKey) error {
	if p := s.spool.parts[k]; p != nil && p.next >= maxAdopted {
		return fmt.Errorf("%w: %d records in partition %d of topic %d", eventlog.ErrTooLarge, p.next, k.partition, k.topic)
	}
	return nil
}

// flush writes the chunk at hand. After an error it is still at hand.
func (s *stream) flush() error {
	if s.spool.size == 0 {
		return nil
	}
	if err := s.l.checkSpace(int64(s.spool.size)); err != nil {
		return err
	}
	if s.f == nil {
		path := s.l.path("journal/" + streamTmpName(s.number))
		f, err := s.l.fs().Create(path)
		if err != nil {
			return s.l.failed("make", path, err)
		}
		s.f, s.path = f, path
	}
	b := s.buf[:0]
	if s.written == 0 {
		b = appendStreamHeader(b, s.number)
	}
	start := len(b)
	b = s.spool.appendChunk(beginEntry(b))
	if len(b)-start > maxEntry {
		return fmt.Errorf("%w: a chunk of %d bytes", eventlog.ErrTooLarge, len(b)-start)
	}
	finishEntry(b, start, seedOf(s.number), kindChunk)
	if s.buf = b; cap(s.buf) > 4*s.l.opts.StreamChunk {
		s.buf = nil
	}
	if _, err := s.f.WriteAt(b, s.written); err != nil {
		return s.l.failed("write", s.path, err)
	}
	s.written += int64(len(b))
	s.l.streaming.Add(int64(len(b)))
	s.heads = crc32.Update(s.heads, castagnoli, b[start:start+entryHeaderSize])
	s.chunks++
	s.spool.next(4 * s.l.opts.StreamChunk)
	if s.chunks%streamSync == 0 {
		return s.sync()
	}
	return nil
}

// sync makes what was written durable. Without space for it the pages may be
// gone, and a second sync would succeed and mean nothing: the stream is lost.
func (s *stream) sync() error {
	if s.written == s.synced {
		return nil
	}
	if err := s.f.Sync(); err != nil {
		err = s.l.syncFailed(s.path, err)
		if errors.Is(err, eventlog.ErrFull) {
			s.lost = fmt.Errorf("%w: %w", eventlog.ErrStreamLost, err)
			return s.lost
		}
		return err
	}
	s.synced = s.written
	s.l.mu.Lock()
	s.l.counts.syncs++
	s.l.mu.Unlock()
	return nil
}

// Abort takes back a sub-transaction.
func (s *stream) Abort(sub uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	s.aborted[sub] = struct{}{}
	return nil
}

// Size returns the records added so far and the bytes that they take.
func (s *stream) Size() (records, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records, s.written + int64(s.spool.size)
}

// Commit ends the stream and makes it durable and visible. The file is synced
// before the stream queues, so that appends wait only for a rename and one entry.
func (s *stream) Commit(ctx context.Context, tx *eventlog.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := eventlog.CheckStream(tx, s.records, s.l.Frontier()); err != nil {
		return err
	}
	if s.records == 0 {
		if err := s.l.Append(ctx, []*eventlog.Tx{tx}); err != nil {
			return err
		}
		s.end(eventlog.ErrStreamEnded)
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.l.do(ctx, &request{txs: []*eventlog.Tx{tx}, stream: s, done: make(chan struct{})}); err != nil {
		return err
	}
	s.end(eventlog.ErrStreamEnded)
	return nil
}

// place gives the file its name for the journal file that is to adopt it,
// durably. A name that it has from an earlier attempt stays if it is the same.
func (s *stream) place(journal uint64) error {
	path := s.l.path("journal/" + streamName(journal, s.number))
	if s.path != path {
		if err := s.l.fs().Rename(s.path, path); err != nil {
			return s.l.failed("rename", s.path, err)
		}
		s.path, s.placed = path, false
	}
	if !s.placed {
		if err := s.l.fs().SyncDir(s.l.path("journal")); err != nil {
			return s.l.syncFailed(path, err)
		}
		s.placed = true
	}
	return nil
}

// adoption is what the entry says that adopts the file.
func (s *stream) adoption(st *state, tx *eventlog.Tx, journal uint64) *adoption {
	a := &adoption{
		ordinal: st.ordinal, tx: *tx, journal: journal, number: s.number,
		length: s.written, heads: s.heads, chunks: s.chunks,
	}
	for sub := range s.aborted {
		a.aborted = append(a.aborted, sub)
	}
	slices.Sort(a.aborted)
	for k, p := range s.spool.parts {
		a.parts = append(a.parts, adoptedPart{k, st.topic(k.topic).next[k.partition], p.next})
	}
	slices.SortFunc(a.parts, func(a, b adoptedPart) int { return a.key.compare(b.key) })
	return a
}

// end closes the file and gives the memory back.
func (s *stream) end(over error) {
	if s.f != nil {
		if err := s.f.Close(); err != nil {
			s.l.opts.Logger.Warn("close streamed file", "file", s.path, "err", err)
		}
	}
	if s.over == nil {
		s.l.streaming.Add(-s.written) // adopted, it counts with its journal file
	}
	s.over, s.f, s.buf, s.spool, s.aborted = over, nil, nil, spool{}, nil
	s.l.queueMu.Lock()
	delete(s.l.streams, s)
	s.l.queueMu.Unlock()
}

// Discard ends the stream without a trace.
func (s *stream) Discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return nil
	}
	if s.doubtful { // only behind the writer's token is it known that nothing names the file
		err := s.l.do(context.Background(), &request{stream: s, forget: true, done: make(chan struct{})})
		if err != nil {
			s.l.opts.Logger.Warn("leaving a discarded streamed file to the next start", "file", s.path, "err", err)
		}
	}
	return s.discard(eventlog.ErrStreamEnded)
}

// discard removes the file, unless an entry may name it: then Open or the end of
// its journal file does.
func (s *stream) discard(over error) error {
	path := s.path
	s.end(over)
	if path == "" || s.doubtful {
		return nil
	}
	if err := s.l.fs().Remove(path); err != nil && !vfs.IsNotExist(err) {
		return fmt.Errorf("remove discarded %s: %w; the next start does", path, err)
	}
	return nil
}

// endStreams discards what is in progress when the log closes. The caller holds
// the token for good, so no commit is under way.
func (l *Log) endStreams() {
	l.queueMu.Lock()
	open := make([]*stream, 0, len(l.streams))
	for s := range l.streams {
		open = append(open, s)
	}
	l.queueMu.Unlock()
	slices.SortFunc(open, func(a, b *stream) int { return cmp.Compare(a.number, b.number) })
	for _, s := range open {
		s.mu.Lock()
		if s.over == nil {
			if err := s.discard(eventlog.ErrClosed); err != nil {
				l.opts.Logger.Warn("close log", "err", err)
			}
		}
		s.mu.Unlock()
	}
}
