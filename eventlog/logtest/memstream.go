package logtest

import (
	"context"
	"sync"

	"github.com/tailwater/tailwater/eventlog"
)

// memStream is a transaction in progress, in memory. Each Add becomes a piece.
type memStream struct {
	m    *MemLog
	life int // of the log, when it began

	mu      sync.Mutex
	adds    []memAdd
	aborted map[uint32]bool
	last    int64
	records int64
	bytes   int64
	ended   bool
}

type memAdd struct {
	sub     uint32
	records []eventlog.Record
}

// Stream begins a transaction whose records arrive before its commit.
func (m *MemLog) Stream(ctx context.Context) (eventlog.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, eventlog.ErrClosed
	}
	return &memStream{m: m, life: m.life, last: -1, aborted: map[uint32]bool{}}, nil
}

// usable reports why the stream takes nothing any more. The caller holds both locks.
func (s *memStream) usable() error {
	switch {
	case s.ended:
		return eventlog.ErrStreamEnded
	case s.life != s.m.life:
		return eventlog.ErrClosed
	}
	return nil
}

func (s *memStream) lock() func() {
	s.mu.Lock()
	s.m.mu.Lock()
	return func() { s.m.mu.Unlock(); s.mu.Unlock() }
}

// Add takes records of one sub-transaction.
func (s *memStream) Add(sub uint32, records []eventlog.Record) error {
	defer s.lock()()
	if err := s.usable(); err != nil {
		return err
	}
	if err := eventlog.CheckStreamed(records, s.last, s.m.topic); err != nil {
		return err
	}
	add := memAdd{sub: sub}
	for _, r := range records {
		add.records = append(add.records, cloneRecord(r))
		s.last = int64(r.Seq)
		s.records++
		s.bytes += int64(len(r.Key) + len(r.Value))
	}
	s.adds = append(s.adds, add)
	return nil
}

// Abort takes back a sub-transaction.
func (s *memStream) Abort(sub uint32) error {
	defer s.lock()()
	if err := s.usable(); err != nil {
		return err
	}
	s.aborted[sub] = true
	return nil
}

// Size returns what was added so far.
func (s *memStream) Size() (records, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records, s.bytes
}

// Commit appends what was not aborted.
func (s *memStream) Commit(ctx context.Context, tx *eventlog.Tx) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if fail := s.m.FailAppend; fail != nil {
		if err := fail(); err != nil {
			return err
		}
	}
	defer s.lock()()
	if err := s.usable(); err != nil {
		return err
	}
	if err := eventlog.CheckStream(tx, s.records, s.m.frontier); err != nil {
		return err
	}
	whole := *tx
	var pieces []int
	for _, a := range s.adds {
		if !s.aborted[a.sub] {
			pieces = append(pieces, len(whole.Records))
			whole.Records = append(whole.Records, a.records...)
		}
	}
	s.m.append(&whole)
	s.m.txs[len(s.m.txs)-1].pieces = pieces
	tx.CSN, tx.IngestTime = whole.CSN, whole.IngestTime
	s.m.appends++
	close(s.m.changed)
	s.m.changed = make(chan struct{})
	s.ended, s.adds = true, nil
	return nil
}

// Discard forgets the stream.
func (s *memStream) Discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.adds = true, nil
	return nil
}
