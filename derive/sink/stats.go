package sink

import (
	"context"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// States of a worker.
const (
	StateWaiting  = "waiting"  // for the view's first output
	StateOpening  = "opening"  // connecting to the target
	StateBuilding = "building" // sending everything
	StateLive     = "live"
	StateDegraded = "degraded" // live, with documents in the dead letters
	StateRetrying = "retrying" // Reason says why
	StateStopped  = "stopped"  // Reason says what a person must mend
	StateAhead    = "sink ahead of log"
)

// SinkStats describe a Worker at some moment. Counts are since New.
type SinkStats struct {
	Sink, View   string
	State        string
	Reason       string // of retrying, stopped, degraded
	Written      int64  // documents stored or deleted
	Stale        int64  // of which the target had a newer version
	Rejected     int64
	Retries      int64   // writes and documents sent once more
	DeadLetters  int64   // documents of this view in _dlq.SINK now
	LagRecords   int64   // of the view's topic, not yet answered for by the target
	LagSeconds   float64 // age of the oldest record in hand; -1 unknown
	LastVersion  uint64  // CSN of the newest document written
	BuildRecords int64   // sent by the build under way
}

// String is the state with its reason, for status lines.
func (s SinkStats) String() string {
	if s.Reason == "" {
		return s.State
	}
	return s.State + ": " + s.Reason
}

// Stats may be called at any time.
func (w *Worker) Stats() SinkStats {
	w.mu.Lock()
	s, acked, since := w.stats, w.acked, w.behindSince
	w.mu.Unlock()
	topic, ok := w.opts.Log.Topic(w.opts.Topic)
	if !ok {
		return s
	}
	for p, end := range w.opts.Log.EndOffsets(topic.ID) {
		from := eventlog.Offset(0)
		if p < len(acked) {
			from = acked[p]
		}
		s.LagRecords += eventlog.Apart(from, end)
	}
	switch {
	case s.LagRecords == 0:
	case since > 0:
		s.LagSeconds = max(0, time.Since(time.UnixMicro(since)).Seconds())
	case s.State != StateLive && s.State != StateDegraded: // no record has been taken in hand yet
		s.LagSeconds = -1
	}
	return s
}

func (w *Worker) setState(state, reason string) {
	w.mu.Lock()
	changed := w.stats.State != state || w.stats.Reason != reason
	was := w.stats.State
	w.stats.State, w.stats.Reason = state, reason
	w.mu.Unlock()
	if changed && (was != state || state == StateStopped) {
		w.log.Info("sink state", "state", state, "reason", reason, "was", was)
	}
}

// setGoing is the state of a worker that does its work.
func (w *Worker) setGoing(building bool) {
	switch {
	case building:
		w.setState(StateBuilding, "")
	case len(w.dead) > 0:
		w.setState(StateDegraded, "the target rejected documents; see 'tailwater log cat "+w.dlqName()+"'")
	default:
		w.setState(StateLive, "")
	}
}

// Sync waits until everything that is in the view's topic now is in the target
// and visible to its readers.
func (w *Worker) Sync(ctx context.Context) error {
	topic, ok := w.opts.Log.Topic(w.opts.Topic)
	r := &syncRequest{done: make(chan struct{})}
	if ok {
		r.ends = w.opts.Log.EndOffsets(topic.ID)
	}
	w.mu.Lock()
	w.requests = append(w.requests, r)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type syncRequest struct {
	ends []eventlog.Offset
	done chan struct{}
}

// reachedRequests takes the requests out whose ends are acknowledged.
func (w *Worker) reachedRequests() []*syncRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked == nil {
		return nil
	}
	var due []*syncRequest
	kept := w.requests[:0]
	for _, r := range w.requests {
		if reached(w.acked, r.ends) {
			due = append(due, r)
		} else {
			kept = append(kept, r)
		}
	}
	w.requests = kept
	return due
}

func reached(at, ends []eventlog.Offset) bool {
	for p, e := range ends {
		if p >= len(at) || at[p] < e {
			return false
		}
	}
	return true
}
