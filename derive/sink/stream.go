package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// stream sends what the topic holds behind the cursor, for as long as it can.
func (s *session) stream(ctx context.Context) error {
	spec := eventlog.ReadSpec{Topics: []eventlog.TopicID{s.topic.ID}, Outputs: true, Pieces: true}
	if s.cur.phase == phaseResend {
		spec.After = s.cur.after
	} else {
		spec.From = map[eventlog.TopicID][]eventlog.Offset{s.topic.ID: s.cur.offsets}
	}
	r, err := s.opts.Log.Read(spec)
	if err != nil {
		return s.readFault(err)
	}
	defer r.Close()
	if s.cur.phase == phaseLive {
		s.acknowledge(s.cur.offsets)
		s.setGoing(false)
	}
	in := &input{reader: r}
	for {
		changed := s.opts.Log.Changed()
		ends := s.opts.Log.EndOffsets(s.topic.ID)
		b := newBatch(s.cur.offsets)
		if err := s.fill(ctx, in, b); err != nil {
			return err
		}
		if b.records > 0 {
			err = s.send(ctx, b)
		} else if err = s.caughtUp(ctx); err == nil {
			s.acknowledgeHoles(ends)
			err = s.idle(ctx, changed)
		}
		if err != nil {
			return err
		}
		if err := s.upkeep(ctx); err != nil {
			return err
		}
	}
}

// readFault sorts the errors of reading the topic.
func (s *session) readFault(err error) error {
	if errors.Is(err, eventlog.ErrOutOfRange) {
		s.mu.Lock()
		s.asked = true
		s.mu.Unlock()
		s.log.Warn("the view's topic no longer reaches back to the cursor; sending everything")
		return errAgain
	}
	if errors.Is(err, eventlog.ErrCorrupt) {
		return fmt.Errorf("%w: %w; 'tailwater log check' tells the way out", errDamagedTopic, err)
	}
	return logFault("read the view's topic", err)
}

// input reads transactions and gives their records one by one, so that a huge
// one can be split over several writes.
type input struct {
	reader eventlog.Reader
	tx     *eventlog.Tx
	at     int
}

func (in *input) next() (*eventlog.Record, *eventlog.Tx, error) {
	for in.tx == nil || in.at >= len(in.tx.Records) {
		tx, err := in.reader.Next()
		if tx == nil || err != nil {
			return nil, nil, err
		}
		in.tx, in.at = tx, 0
	}
	r := &in.tx.Records[in.at]
	in.at++
	return r, in.tx, nil
}

// fill reads until the batch is full or the topic's end is reached and the wait for more is over.
func (s *session) fill(ctx context.Context, in *input, b *batch) error {
	var deadline <-chan time.Time
	for len(b.updates) < s.limit && b.bytes < s.opts.BatchBytes {
		changed := s.opts.Log.Changed()
		r, tx, err := in.next()
		if err != nil {
			return s.readFault(err)
		}
		if r != nil {
			if r.Topic != s.topic.ID {
				continue
			}
			if err := b.add(r, tx.IngestTime); err != nil {
				return logFault("read the view's topic", err)
			}
			continue
		}
		if b.records == 0 || s.opts.BatchWait <= 0 {
			return nil
		}
		if deadline == nil {
			t := time.NewTimer(s.opts.BatchWait)
			defer t.Stop()
			deadline = t.C
		}
		select {
		case <-changed:
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// send delivers a batch and moves the cursor behind it.
func (s *session) send(ctx context.Context, b *batch) error {
	s.mu.Lock()
	s.behindSince = b.oldest
	s.mu.Unlock()
	if err := s.deliver(ctx, b.updates, uint64(b.csn), b.time); err != nil {
		return err
	}
	s.csn, s.time = max(s.csn, uint64(b.csn)), max(s.time, b.time)
	s.noteStamp()
	s.cur.offsets, s.dirty = b.offsets, true
	s.cur.after = max(s.cur.after, b.csn-1)
	if s.cur.phase == phaseLive {
		s.acknowledge(b.offsets)
	}
	s.setGoing(s.cur.phase == phaseBuild)
	return nil
}

// caughtUp ends what lasts until the topic's end is reached: a build, a resend.
func (s *session) caughtUp(ctx context.Context) error {
	switch s.cur.phase {
	case phaseLive:
		return nil
	case phaseBuild:
		if err := s.finish(ctx); err != nil {
			return err
		}
	}
	if s.cur.phase == phaseBuild && s.csn > 0 {
		s.cur.after = eventlog.CSN(s.csn) - 1
	}
	s.cur.phase = phaseLive
	s.acknowledge(s.cur.offsets)
	s.setGoing(false)
	return s.save()
}

// acknowledgeHoles counts offsets that no record has, at the topic's end, as
// reached. The cursor does not pass them.
func (s *session) acknowledgeHoles(ends []eventlog.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behindSince = 0
	acked := slices.Clone(s.acked) // Stats may have the old one
	for p := range acked {
		acked[p] = max(acked[p], ends[p])
	}
	s.acked = acked
}

// idle waits for the log, a request, or until a save or a flush is due.
func (s *session) idle(ctx context.Context, changed <-chan struct{}) error {
	var due <-chan time.Time
	if wait, ok := s.untilDue(); ok {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	if s.haveReached() {
		return nil
	}
	select {
	case <-changed:
	case <-s.wake:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (s *session) untilDue() (time.Duration, bool) {
	var wait time.Duration
	ok := false
	if s.dirty {
		wait, ok = max(0, s.opts.SaveEvery-time.Since(s.saved)), true
	}
	if s.cur.phase == phaseLive {
		f := max(0, s.opts.FlushEvery-time.Since(s.flushed))
		if !ok || f < wait {
			wait, ok = f, true
		}
	}
	return wait, ok
}

// haveReached reports whether a request waits only for a flush.
func (s *session) haveReached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked {
		return true
	}
	for _, r := range s.requests {
		if s.acked != nil && reached(s.acked, r.ends) {
			return true
		}
	}
	return false
}

// upkeep flushes, saves and answers requests when it is time.
func (s *session) upkeep(ctx context.Context) error {
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	if asked || s.wasLetGo() { // nothing may be said to be reached
		return errAgain
	}
	due := s.reachedRequests()
	if len(due) > 0 || s.cur.phase == phaseLive && time.Since(s.flushed) >= s.opts.FlushEvery {
		if err := s.retrying(ctx, func() error { return s.flush(ctx) }); err != nil {
			s.putBack(due)
			return err
		}
		s.setGoing(s.cur.phase == phaseBuild)
	}
	for _, r := range due {
		close(r.done)
	}
	if s.dirty && time.Since(s.saved) >= s.opts.SaveEvery {
		return s.save()
	}
	return nil
}

func (s *session) putBack(due []*syncRequest) {
	s.mu.Lock()
	s.requests = append(s.requests, due...)
	s.mu.Unlock()
}
