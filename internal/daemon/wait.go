package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/retry"
	"github.com/tailwater/tailwater/server"
)

// defaultWait is the timeout of a request that names none.
const defaultWait = 30 * time.Second

// pollEvery bounds how long a wait sleeps on a condition that nothing signals.
const pollEvery = 50 * time.Millisecond

// Wait returns once everything that was committed at the sources before the
// call has reached the views and sinks that r names.
func (d *Daemon) Wait(ctx context.Context, r server.WaitRequest) error {
	timeout := defaultWait
	if r.TimeoutMS > 0 {
		timeout = time.Duration(r.TimeoutMS) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w, err := d.newWaiter(r)
	if err != nil {
		return err
	}
	err = w.run(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w after %v: %s", server.ErrTimeout, timeout, w.missing())
	}
	return err
}

// waiter is one Wait.
type waiter struct {
	d       *Daemon
	sources []*sourceRunner
	views   []string // nil with allViews: all there are
	sinks   []string
	allOut  bool // views and sinks, all of them
	doing   string
}

func (d *Daemon) newWaiter(r server.WaitRequest) (*waiter, error) {
	w := &waiter{d: d, views: r.Views, sinks: r.Sinks, allOut: len(r.Views)+len(r.Sinks)+len(r.Sources) == 0}
	for _, name := range r.Sources {
		s := d.source(name)
		if s == nil {
			return nil, fmt.Errorf("%w: there is no source %q", server.ErrNotFound, name)
		}
		w.sources = append(w.sources, s)
	}
	if len(r.Sources) == 0 {
		w.sources = d.sources
	}
	for _, name := range r.Views {
		if d.cfg.View(name) == nil {
			return nil, fmt.Errorf("%w: there is no view %q", server.ErrNotFound, name)
		}
	}
	for _, name := range r.Sinks {
		if d.cfg.Sink(name) == nil {
			return nil, fmt.Errorf("%w: there is no sink %q", server.ErrNotFound, name)
		}
	}
	return w, nil
}

func (w *waiter) missing() string {
	text := "still waiting for " + w.doing
	s := w.d.Status()
	for _, r := range s.Reasons {
		text += "; " + r
	}
	return text
}

func (w *waiter) run(ctx context.Context) error {
	for _, s := range w.sources {
		if err := w.source(ctx, s); err != nil {
			return err
		}
	}
	if !w.allOut && len(w.views)+len(w.sinks) == 0 {
		return nil
	}
	target := w.d.log.Frontier()
	for {
		views, err := w.await(ctx)
		if err != nil {
			return err
		}
		vctx, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(views.over, func() { cancel(errReplaced) })
		if err = w.viewsReach(vctx, views, target); err == nil {
			err = w.sinksReach(vctx, views)
		}
		replaced := errors.Is(context.Cause(vctx), errReplaced)
		stop()
		cancel(nil)
		if err == nil || !replaced || ctx.Err() != nil {
			return err
		}
	}
}

// errReplaced ends the wait for views that stopped at damage: others take their place.
var errReplaced = errors.New("the views are started anew")

// source waits until the log has everything up to the source's end as it is
// now, and the snapshots due by then are done.
func (w *waiter) source(ctx context.Context, s *sourceRunner) error {
	w.doing = fmt.Sprintf("source %q to connect", s.cfg.Name)
	end, err := w.end(ctx, s)
	if err != nil {
		return err
	}
	w.doing = fmt.Sprintf("source %q to reach %s", s.cfg.Name, end.Name)
	for {
		changed := w.d.log.Changed()
		if err := s.failure(); err != nil {
			return err
		}
		if st, ok := w.d.log.SourceState(s.cfg.Name); ok {
			if pos, err := change.DecodePosition(st.Position); err == nil && s.connector.Reached(pos, end) {
				break
			}
		}
		if err := pause(ctx, changed); err != nil {
			return err
		}
	}
	for {
		open := s.unfinished()
		if len(open) == 0 {
			return nil
		}
		w.doing = fmt.Sprintf("the snapshots of source %q: %s", s.cfg.Name, strings.Join(open, ", "))
		if err := pause(ctx, w.d.log.Changed()); err != nil {
			return err
		}
	}
}

// end asks the source for its end until it answers.
func (w *waiter) end(ctx context.Context, s *sourceRunner) (change.Position, error) {
	backoff := retry.Backoff{Most: time.Second}
	for {
		if err := s.failure(); err != nil {
			return change.Position{}, err
		}
		err := s.discover(ctx)
		if err == nil {
			var end change.Position
			if end, err = s.connector.End(ctx); err == nil {
				return end, nil
			}
		}
		if final(err) {
			return change.Position{}, err
		}
		w.doing = fmt.Sprintf("source %q to answer: %v", s.cfg.Name, err)
		if err := backoff.Wait(ctx); err != nil {
			return change.Position{}, err
		}
	}
}

// discoverer is a Source that can look for new tables at once.
type discoverer interface {
	Discover(ctx context.Context) error
}

// discover makes the source look for new tables that match, so that Wait covers them.
func (r *sourceRunner) discover(ctx context.Context) error {
	r.mu.Lock()
	src := r.src
	r.mu.Unlock()
	if src == nil {
		return errors.New("the source is not connected")
	}
	if ds, ok := src.(discoverer); ok {
		return ds.Discover(ctx)
	}
	return nil
}

// unfinished names the tables that wait for a snapshot or are in one, with their states.
func (r *sourceRunner) unfinished() (list []string) {
	st, _, _, open := r.stats()
	if !open {
		return []string{"the source is not connected"}
	}
	for _, t := range st.Tables {
		switch state := r.snapshotState(&t); state {
		case "done", "given up":
		case "paused":
			list = append(list, t.Topic+" is paused (tailwater snapshot resume)")
		default:
			list = append(list, t.Topic+" is "+state)
		}
	}
	return list
}

// snapshotState is the state of a table's snapshot: a run has ended once the log says so.
func (r *sourceRunner) snapshotState(t *connectors.TableProgress) string {
	if (t.State == "done" || t.State == "given up") && t.Run > 0 && !r.ingest.Ended(t.Topic, t.Run) {
		return "running"
	}
	return t.State
}

// pause waits for a change of the log, or a little.
func pause(ctx context.Context, changed <-chan struct{}) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// await waits for the views to be compiled.
func (w *waiter) await(ctx context.Context) (*viewSet, error) {
	w.doing = "the views to be compiled"
	for {
		w.d.mu.Lock()
		v := w.d.views
		w.d.mu.Unlock()
		if v != nil {
			return v, nil
		}
		if err := pause(ctx, w.d.log.Changed()); err != nil {
			return nil, err
		}
	}
}

// takes reports whether the view must be reached: named, or fed to a named sink.
func (w *waiter) takes(view string) bool {
	return w.allOut || slices.Contains(w.views, view) ||
		slices.ContainsFunc(w.d.cfg.View(view).To, func(t *config.Target) bool { return slices.Contains(w.sinks, t.Sink) })
}

func (w *waiter) viewsReach(ctx context.Context, v *viewSet, target eventlog.CSN) error {
	for {
		behind := ""
		for _, s := range v.stats() {
			if w.d.cfg.View(s.Name) == nil || !w.takes(s.Name) {
				continue
			}
			if s.State == viewStopped {
				return fmt.Errorf("view %q is stopped: %s", s.Name, s.Reason)
			}
			if s.State != viewLive || s.CompleteCSN < target {
				behind = s.Name
			}
		}
		if behind == "" {
			return nil
		}
		w.doing = fmt.Sprintf("view %q", behind)
		if err := pause(ctx, w.d.log.Changed()); err != nil {
			return err
		}
	}
}

func (w *waiter) sinksReach(ctx context.Context, v *viewSet) error {
	w.doing = "the sinks"
	g, gctx := errgroup.WithContext(ctx)
	for _, view := range w.d.cfg.Views {
		for _, t := range view.To {
			if w.allOut || slices.Contains(w.sinks, t.Sink) && (len(w.views) == 0 || slices.Contains(w.views, view.Name)) {
				g.Go(func() error { return syncWorker(gctx, w.d.log, v, view.Name, t.Sink) })
			}
		}
	}
	return g.Wait()
}

// syncWorker waits for the worker to start, and then for what it has to write.
func syncWorker(ctx context.Context, log eventlog.Log, v *viewSet, view, sink string) error {
	for {
		changed := log.Changed()
		if k := v.worker(view, sink); k != nil {
			return k.Sync(ctx)
		}
		if err := pause(ctx, changed); err != nil {
			return err
		}
	}
}
