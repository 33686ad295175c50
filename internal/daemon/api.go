package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/server"
)

var _ server.Daemon = (*Daemon)(nil)

// ready returns the views once they are compiled.
func (d *Daemon) ready() (*viewSet, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.views == nil {
		return nil, fmt.Errorf("%w: the views are not running yet: %s", server.ErrUnavailable, d.building)
	}
	return d.views, nil
}

// viewError gives the server's words to an error of the views.
func viewError(err error) error {
	switch {
	case errors.Is(err, derive.ErrUnknownView):
		return fmt.Errorf("%w: %v", server.ErrNotFound, err)
	case errors.Is(err, derive.ErrNotReady):
		return fmt.Errorf("%w: %v", server.ErrUnavailable, err)
	}
	return err
}

// Get returns one document.
func (d *Daemon) Get(view, id string) ([]byte, uint64, error) {
	v, err := d.ready()
	if err != nil {
		return nil, 0, err
	}
	doc, ok, err := v.runner.Get(view, id)
	if err != nil {
		return nil, 0, viewError(err)
	}
	if !ok {
		return nil, 0, fmt.Errorf("%w: view %q has no document %q", server.ErrNotFound, view, id)
	}
	return doc.JSON, doc.Version, nil
}

// Dump calls fn for each document in key order.
func (d *Daemon) Dump(ctx context.Context, view string, fn func(id string, version uint64, doc []byte) error) error {
	v, err := d.ready()
	if err != nil {
		return err
	}
	return viewError(v.runner.Dump(view, func(doc derive.Doc) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fn(doc.ID, doc.Version, doc.JSON)
	}))
}

// Search asks the first local index that takes the view.
func (d *Daemon) Search(ctx context.Context, view, query string, limit, offset int) (*server.SearchResult, error) {
	if d.cfg.View(view) == nil {
		return nil, fmt.Errorf("%w: there is no view %q", server.ErrNotFound, view)
	}
	s := d.sinks.searcher(d.cfg.View(view))
	if s == nil {
		return nil, fmt.Errorf("%w: no local sink takes view %q; add one: sinks: { find: { local: {} } }, and to: [find] in the view", server.ErrNotFound, view)
	}
	hits, total, err := s.Search(ctx, view, query, limit, offset)
	if err != nil {
		return nil, searchError(err)
	}
	res := &server.SearchResult{Total: total}
	for _, h := range hits {
		res.Hits = append(res.Hits, server.Hit{ID: h.ID, Score: h.Score, Doc: json.RawMessage(h.Doc)})
	}
	return res, nil
}

// Rebuild makes the view's sinks take every document again. If the view's topic is
// damaged it is mended first.
func (d *Daemon) Rebuild(ctx context.Context, view string) error {
	v, err := d.ready()
	if err != nil {
		return err
	}
	if d.cfg.View(view) == nil {
		return fmt.Errorf("%w: there is no view %q", server.ErrNotFound, view)
	}
	before, _ := v.state(view)
	damaged, err := v.runner.Refill(ctx, view)
	if err != nil {
		return fmt.Errorf("mend the topic of view %q: %w", view, viewError(err))
	}
	if damaged { // a sink that is built must find every document
		if err := d.awaitOutputs(ctx, v, view, before.Pending); err != nil {
			return fmt.Errorf("%w. The documents of view %q are output again, but its sinks do not take them again yet: ask for the rebuild once more", err, view)
		}
	}
	for _, k := range v.list() {
		if k.view == view {
			k.Rebuild()
		}
	}
	return nil
}

// awaitOutputs waits until no more documents of a view are pending than so many,
// which could not be built before either.
func (d *Daemon) awaitOutputs(ctx context.Context, v *viewSet, view string, pending int64) error {
	for {
		changed := d.log.Changed()
		if now, err := d.ready(); err != nil {
			return err
		} else if now != v {
			return fmt.Errorf("%w: the views have begun anew", server.ErrUnavailable)
		}
		s, ok := v.state(view)
		switch {
		case !ok || s.Pending <= pending:
			return nil
		case s.State == viewStopped:
			return fmt.Errorf("%w: the view is stopped: %s", server.ErrUnavailable, s.Reason)
		}
		if err := pause(ctx, changed); err != nil {
			return err
		}
	}
}

// Reload takes the configuration file again.
func (d *Daemon) Reload(ctx context.Context) error {
	if d.opts.Load == nil {
		return fmt.Errorf("%w: this daemon has no file to load again", server.ErrBadRequest)
	}
	answer := make(chan error, 1)
	select {
	case d.reload <- answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := <-answer; err != nil {
		return fmt.Errorf("%w: %v", server.ErrBadRequest, err)
	}
	return nil
}

// Verify compares what a sink holds with the view, document by document.
func (d *Daemon) Verify(ctx context.Context, view, sinkName string) (json.RawMessage, bool, error) {
	v, err := d.ready()
	if err != nil {
		return nil, false, err
	}
	cfgView := d.cfg.View(view)
	if cfgView == nil {
		return nil, false, fmt.Errorf("%w: there is no view %q", server.ErrNotFound, view)
	}
	if sinkName == "" && len(cfgView.To) == 1 {
		sinkName = cfgView.To[0].Sink
	}
	if cfgView.Target(sinkName) == nil {
		return nil, false, fmt.Errorf("%w: view %q does not go to a sink %q; name one of its sinks with --sink", server.ErrBadRequest, view, sinkName)
	}
	k := v.worker(view, sinkName)
	if k == nil {
		return nil, false, fmt.Errorf("%w: view %q does not go to its sinks yet", server.ErrUnavailable, view)
	}
	return v.verify(ctx, k)
}
