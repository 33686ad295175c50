package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/retry"
)

// Worker copies the topic of one view into one target until its Run is told to
// stop. Run belongs to one goroutine; the other methods may be called from any.
type Worker struct {
	opts WorkerOptions
	log  *slog.Logger

	dead    map[string]uint64 // documents of the view in the dead letters, by id; nil: not yet read
	rebuild bool              // send everything, until a build has begun
	wake    chan struct{}

	mu          sync.Mutex // guards what follows; never held across a call
	stats       SinkStats
	acked       []eventlog.Offset // next of each partition; nil while building or resending
	behindSince int64             // commit time of the oldest record in hand, µs
	requests    []*syncRequest
	asked       bool   // Rebuild was called
	open        Target // nil between sessions; for Scan
}

// NewWorker returns a worker; it does nothing before Run.
func NewWorker(opts WorkerOptions) *Worker {
	o := opts.withDefaults()
	return &Worker{
		opts: o, log: o.Logger, wake: make(chan struct{}, 1),
		stats: SinkStats{Sink: o.SinkName, View: o.View.Name, State: StateWaiting},
	}
}

// Rebuild makes the worker send everything again, whatever it finds in the target.
func (w *Worker) Rebuild() {
	w.mu.Lock()
	w.asked = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// takeRebuild tells whether everything is to be sent, until a build has begun.
func (w *Worker) takeRebuild() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rebuild = w.rebuild || w.asked
	w.asked = false
	return w.rebuild
}

// logError is a fault of the log: it ends Run, since nothing here can mend it.
type logError struct{ err error }

func (e *logError) Error() string { return e.err.Error() }
func (e *logError) Unwrap() error { return e.err }

func logFault(doing string, err error) error {
	return &logError{fmt.Errorf("%s: %w", doing, err)}
}

// errDamagedTopic is damage in the view's topic.
var errDamagedTopic = errors.New("sink: the view's topic is damaged")

// errAgain asks for a new session at once.
var errAgain = errors.New("sink: open the target anew")

// Run copies until ctx ends (nil) or the log fails. Faults of the target, and
// damage in the view's topic, never end it: it retries, or waits for a person and
// tries from time to time.
func (w *Worker) Run(ctx context.Context) error {
	wait := retry.Backoff{First: w.opts.RetryMin, Most: w.opts.RetryMax}
	for {
		written := w.written()
		err := w.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if w.written() != written {
			wait.Reset()
		}
		var fault *logError
		pause := wait.Next()
		switch {
		case errors.Is(err, errDamagedTopic): // it can be mended while others go on
			w.setState(StateStopped, err.Error())
			pause = w.opts.ProbeEvery
		case errors.As(err, &fault):
			w.setState(StateStopped, err.Error())
			return fmt.Errorf("sink %q, view %q: %w", w.opts.SinkName, w.opts.View.Name, err)
		case errors.Is(err, errAgain):
		case errors.Is(err, ErrWentBack):
			w.log.Warn("the target lost what was written to it; sending it again", "err", err)
		case errors.Is(err, ErrAhead):
			w.setState(StateAhead, err.Error())
			pause = w.opts.ProbeEvery
		case errors.Is(err, ErrStopped), errors.Is(err, ErrOtherWriter):
			w.setState(StateStopped, err.Error())
			pause = w.opts.ProbeEvery
		default:
			w.setState(StateRetrying, err.Error())
			w.count(func(s *SinkStats) { s.Retries++ })
		}
		if !w.sleep(ctx, pause) {
			return nil
		}
	}
}

func (w *Worker) count(f func(*SinkStats)) {
	w.mu.Lock()
	f(&w.stats)
	w.mu.Unlock()
}

func (w *Worker) written() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats.Written
}

// sleep waits; a wake-up for Rebuild ends it early. It reports whether ctx is alive.
func (w *Worker) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		case <-w.wake:
			w.mu.Lock()
			asked := w.asked
			w.mu.Unlock()
			if asked {
				return true
			}
		}
	}
}

// session is one opened target.
type session struct {
	*Worker
	topic   eventlog.Topic
	target  Target
	cur     *cursor
	csn     uint64 // of the last write
	time    int64
	dirty   bool      // cur was not saved
	unseen  bool      // written since the last flush
	saved   time.Time // when cur was last saved
	flushed time.Time
	limit   int              // of documents in a write; falls while the target is overloaded
	held    *eventlog.Cursor // what the log was last told to hold
	heldAt  time.Time
}

// session opens the target and copies until something fails.
func (w *Worker) session(ctx context.Context) (err error) {
	s := &session{Worker: w, limit: w.opts.BatchCount, saved: time.Now(), flushed: time.Now()}
	w.forget()
	if err := s.awaitTopic(ctx); err != nil {
		return err
	}
	if err := s.loadDead(); err != nil {
		return err
	}
	w.setState(StateOpening, "")
	if s.target, err = w.opts.Sink.Open(ctx, w.opts.View, w.opts.Log.ID()); err != nil {
		return err
	}
	w.publish(s.target)
	defer func() {
		w.publish(nil)
		err = s.close(ctx, err)
	}()
	build, err := s.decide(ctx)
	if err != nil {
		return err
	}
	if build {
		if err := s.build(ctx); err != nil {
			return err
		}
	}
	return s.stream(ctx)
}

// forget withdraws what was said about progress.
func (w *Worker) forget() {
	w.mu.Lock()
	w.acked = nil
	w.mu.Unlock()
}

// awaitTopic waits for the view's topic.
func (s *session) awaitTopic(ctx context.Context) error {
	for {
		changed := s.opts.Log.Changed()
		var ok bool
		if s.topic, ok = s.opts.Log.Topic(s.opts.Topic); ok {
			return nil
		}
		s.setState(StateWaiting, "the view has no topic yet")
		select {
		case <-changed:
		case <-time.After(time.Second): // a topic may be made without an append
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close flushes what was written, saves the cursor and closes the target.
func (s *session) close(ctx context.Context, err error) error {
	if ctx.Err() != nil && s.unseen && s.cur != nil && s.cur.phase == phaseLive {
		fctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.StopTimeout)
		if ferr := s.flush(fctx); ferr != nil {
			s.log.Warn("flush at stop; the target's stamp stays behind", "err", ferr)
		}
		cancel()
	}
	if s.dirty {
		if serr := s.save(); serr != nil && ctx.Err() == nil {
			err = serr
		}
	}
	if cerr := s.target.Close(); cerr != nil {
		s.log.Debug("close the target", "err", cerr)
	}
	return err
}

// save keeps the cursor. A full disk only delays it: an older cursor is harmless.
func (s *session) save() error {
	if s.held == nil {
		if err := s.hold(0); err != nil { // before anything relies on it
			return err
		}
	}
	err := s.opts.Log.SaveCheckpoint(CheckpointName(s.opts.SinkName, s.opts.View.Name), s.cur.append(nil))
	if err != nil && !errors.Is(err, eventlog.ErrFull) {
		return logFault("save the sink's cursor", err)
	}
	if err == nil {
		s.dirty = false
	}
	s.saved = time.Now()
	if err != nil || s.cur.phase == phaseBuild {
		return s.hold(0)
	}
	return s.hold(s.cur.after)
}

// holdEvery is how often the log hears how far the worker has come: so much
// longer than needed does it keep tombstones.
const holdEvery = 30 * time.Second

// hold tells the log to keep the tombstones of the view's topic above passed,
// which is what the saved cursor has answered for; while a target is filled, all.
func (s *session) hold(passed eventlog.CSN) error {
	c := eventlog.Cursor{Topics: []eventlog.TopicID{s.topic.ID}, Passed: passed, Rebuilds: true}
	if s.held != nil && passed >= s.held.Passed && (passed == s.held.Passed || time.Since(s.heldAt) < holdEvery) {
		return nil
	}
	err := s.opts.Log.SetCursor(CheckpointName(s.opts.SinkName, s.opts.View.Name), &c)
	if errors.Is(err, eventlog.ErrLetGo) {
		return errAgain
	}
	if err != nil && !errors.Is(err, eventlog.ErrFull) {
		return logFault("hold the tombstones of the view's topic", err)
	}
	if err == nil {
		s.held, s.heldAt = &c, time.Now()
	}
	return nil
}

// flush makes everything written visible and the stamp durable.
func (s *session) flush(ctx context.Context) error {
	if err := s.target.Flush(ctx, s.stamp(s.csn, s.time)); err != nil {
		return err
	}
	s.unseen, s.flushed = false, time.Now()
	s.noteStamp()
	return nil
}

// stamp is the stamp to write behind everything up to csn.
func (s *session) stamp(csn uint64, at int64) Stamp {
	return Stamp{
		Log: s.opts.Log.ID(), CSN: max(csn, s.csn), Time: max(at, s.time),
		Fingerprint: s.opts.View.Fingerprint, Complete: s.cur == nil || s.cur.phase != phaseBuild,
	}
}

// noteStamp remembers what the target's stamp now is.
func (s *session) noteStamp() {
	if found, ok := s.target.Stamp(); ok {
		s.cur.stamp = found
		s.dirty = true
	}
}

// acknowledge publishes progress; offsets nil withdraws it.
func (s *session) acknowledge(offsets []eventlog.Offset) {
	s.mu.Lock()
	s.acked = slices.Clone(offsets)
	s.behindSince = 0
	s.mu.Unlock()
}
