package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/derive/verify"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/retry"
)

// viewSet is the running views and the workers of their sinks.
type viewSet struct {
	runner *derive.Runner
	over   context.Context // ends with them

	mu      sync.Mutex
	workers []*worker // they start one after the other, as their views are compiled
}

func (v *viewSet) list() []*worker {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.workers)
}

// worker returns the worker of a view and sink; nil if it has not started.
func (v *viewSet) worker(view, sink string) *worker {
	for _, w := range v.list() {
		if w.view == view && w.sink == sink {
			return w
		}
	}
	return nil
}

// state returns the state of a view; ok is false if it is unknown.
func (v *viewSet) state(view string) (s derive.ViewStats, ok bool) {
	for _, s := range v.runner.Stats() {
		if s.Name == view {
			return s, true
		}
	}
	return s, false
}

// worker copies one view into one sink.
type worker struct {
	*sink.Worker
	view, sink string
	expires    bool // documents leave the target by themselves (ttl)
}

func (v *viewSet) stats() []derive.ViewStats { return v.runner.Stats() }

// runViews checks the views against the sources' tables, then runs them and
// their sinks until ctx ends.
func (d *Daemon) runViews(ctx context.Context) error {
	if len(d.cfg.Views) == 0 {
		d.setBuilding("the configuration has no views")
	}
	if err := d.checkViews(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	backoff := retry.Backoff{First: 10 * time.Second, Most: time.Minute}
	for {
		err := d.followViews(ctx)
		if !errors.Is(err, eventlog.ErrCorrupt) || ctx.Err() != nil {
			return err
		}
		// The sources go on, so that a table can be read anew: that mends its topic.
		err = dirError(err)
		d.setBuilding(err.Error())
		d.logger.Error("the views stop at damage; they are tried again", "err", err)
		if backoff.Wait(ctx) != nil {
			return nil
		}
	}
}

// followViews runs the views and their sinks once.
func (d *Daemon) followViews(ctx context.Context) error {
	runner, err := derive.Open(runnerOptions(d.cfg, d.log, d.dir.stateDir(), d.logger))
	if err != nil {
		return err
	}
	defer runner.Close()
	over, end := context.WithCancel(ctx)
	defer end()
	v := &viewSet{runner: runner, over: over}
	d.mu.Lock()
	d.views, d.building = v, ""
	d.mu.Unlock()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return runner.Run(gctx) })
	for _, view := range d.cfg.Views {
		if len(view.To) > 0 {
			g.Go(func() error { return d.runSinks(gctx, v, view) })
		}
	}
	err = g.Wait()
	d.mu.Lock()
	d.views, d.building = nil, "the daemon stops"
	d.mu.Unlock()
	return err
}

func (d *Daemon) setBuilding(text string) {
	d.mu.Lock()
	d.building = text
	d.mu.Unlock()
}

// checkViews compiles every view against the sources' tables as they are. A
// source that does not answer is passed over if the log knows its tables.
func (d *Daemon) checkViews(ctx context.Context) error {
	catalog := map[string]*change.Schema{}
	for _, s := range d.sources {
		tables, err := d.tablesOf(ctx, s)
		if err != nil {
			return err
		}
		maps.Copy(catalog, tables)
	}
	if ctx.Err() != nil {
		return nil // asked to stop: nothing is known of the tables
	}
	var problems config.Problems
	for _, v := range d.cfg.Views {
		if d.stopped(v) {
			continue
		}
		found := compileProblems(d.cfg, v, catalog)
		if len(found) == 0 || len(uncaptured(d.cfg, v)) > 0 {
			problems = append(problems, found...)
			continue
		}
		// A column that was renamed since the view was built is followed; one that was dropped stops that view alone.
		keeps, err := derive.Keeps(d.dir.stateDir(), join.New(definition(v)))
		if err != nil {
			return fmt.Errorf("look for view %s in the state: %w", v.Name, err)
		}
		if !keeps {
			problems = append(problems, found...)
		}
	}
	return problems.Err()
}

// stopped reports whether a source of the view has failed for good; its state says so.
func (d *Daemon) stopped(v *config.View) bool {
	s := d.source(v.Table.Source)
	return s != nil && s.failure() != nil
}

// tablesOf asks the source until it answers, unless the log has its tables.
func (d *Daemon) tablesOf(ctx context.Context, s *sourceRunner) (map[string]*change.Schema, error) {
	known, err := (&connectors.LogHistory{Log: d.log, Source: s.cfg.Name}).Schemas()
	if err != nil {
		return nil, err
	}
	backoff := retry.Backoff{First: 200 * time.Millisecond, Most: 5 * time.Second}
	for {
		desc, err := s.connector.Describe(ctx)
		if err == nil {
			for _, t := range desc.Tables {
				known[t.Topic] = t
			}
			return known, nil
		}
		if ctx.Err() != nil || s.failure() != nil || len(known) > 0 {
			return known, nil
		}
		d.setBuilding(fmt.Sprintf("source %q does not answer: %v", s.cfg.Name, err))
		if backoff.Wait(ctx) != nil {
			return nil, nil
		}
	}
}

func runnerOptions(cfg *config.Config, log eventlog.Log, stateDir string, logger *slog.Logger) derive.Options {
	o := derive.Options{
		Log: log, StateDir: stateDir, Logger: logger, Restore: join.Restore,
		Topic: func(view string) eventlog.TopicSpec {
			spec := topicSpec(cfg, change.TopicView+change.EscapeName(view))
			if v := cfg.View(view); v != nil && v.Partitions > 0 {
				spec.Partitions = v.Partitions
			}
			return spec
		},
	}
	for _, v := range cfg.Views {
		o.Views = append(o.Views, join.New(definition(v)))
	}
	return o
}

// runSinks runs a view's workers once it is compiled, since targets need to know its fields.
func (d *Daemon) runSinks(ctx context.Context, v *viewSet, view *config.View) error {
	info, err := d.awaitInfo(ctx, v, view.Name)
	if err != nil {
		return nil // ctx ended
	}
	g, gctx := errgroup.WithContext(ctx)
	live := make(chan struct{})
	for _, t := range view.To {
		w := d.newWorker(v.runner, view, t, info, live)
		v.mu.Lock()
		v.workers = append(v.workers, w)
		v.mu.Unlock()
		g.Go(func() error { return w.Run(gctx) })
	}
	g.Go(func() error {
		for {
			changed := d.log.Changed()
			if s, ok := v.state(view.Name); ok && s.State == viewLive {
				close(live)
				return nil
			}
			if pause(gctx, changed) != nil {
				return nil
			}
		}
	})
	return g.Wait()
}

// awaitInfo waits until the view is compiled.
func (d *Daemon) awaitInfo(ctx context.Context, v *viewSet, view string) (*derive.Info, error) {
	for {
		changed := d.log.Changed()
		if s, ok := v.state(view); ok && s.Info != nil {
			return s.Info, nil
		}
		if err := pause(ctx, changed); err != nil {
			return nil, err
		}
	}
}

func (d *Daemon) newWorker(runner *derive.Runner, view *config.View, t *config.Target, info *derive.Info, live <-chan struct{}) *worker {
	s := d.cfg.Sink(t.Sink)
	w := &worker{view: view.Name, sink: t.Sink, expires: t.TTL > 0}
	w.Worker = sink.NewWorker(sink.WorkerOptions{
		Log: d.log, Sink: d.sinks.byName[t.Sink], SinkName: t.Sink, View: describeView(view, t, s, info), Topic: change.TopicView + change.EscapeName(view.Name),
		Ready:       live,
		RejectStops: s.OnReject == config.OnRejectStop, BatchCount: s.Batch.Docs, BatchBytes: int(s.Batch.Bytes), BatchWait: s.Batch.Wait,
		Logger: d.logger,
	})
	return w
}

// describeView tells a sink about a view in its own words.
func describeView(view *config.View, t *config.Target, s *config.Sink, info *derive.Info) sink.View {
	out := sink.View{Name: view.Name, Fingerprint: info.Fingerprint + "/" + t.Fingerprint(), Fields: sinkFields(info.Fields), Options: viewOptions(s, t)}
	for _, k := range info.Key {
		out.Key = append(out.Key, sink.KeyColumn{Name: k.Name, Kind: k.Kind})
	}
	return out
}

func sinkFields(fields []derive.Field) []sink.Field {
	var out []sink.Field
	for _, f := range fields {
		out = append(out, sink.Field{Name: f.Name, Kind: f.Kind, SourceType: f.SourceType, List: f.List, Fields: sinkFields(f.Fields)})
	}
	return out
}

// verify compares the worker's target with the view. What both say while
// changes go on is looked at again before it counts.
func (v *viewSet) verify(ctx context.Context, w *worker) (json.RawMessage, bool, error) {
	if err := w.Sync(ctx); err != nil {
		return nil, false, err
	}
	report, err := verify.Compare(ctx, v.side(w.view), verify.Side{Name: "sink:" + w.sink, Each: w.Scan}, verify.Options{View: w.view, MissingIsFine: w.expires})
	if err != nil {
		return nil, false, viewError(err)
	}
	text, err := json.Marshal(report)
	return text, report.Equal(), err
}

func (v *viewSet) side(view string) verify.Side {
	return verify.Side{
		Name: "view",
		Each: func(ctx context.Context, fn func(id string, doc []byte) error) error {
			return v.runner.Dump(view, func(d derive.Doc) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fn(d.ID, d.JSON)
			})
		},
		Get: func(_ context.Context, id string) ([]byte, error) {
			d, ok, err := v.runner.Get(view, id)
			if err != nil || !ok {
				return nil, err
			}
			return d.JSON, nil
		},
	}
}
