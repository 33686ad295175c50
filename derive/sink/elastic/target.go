package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tailwater/tailwater/derive/sink"
)

// target is one view in a cluster.
type target struct {
	sink     *Sink
	view     string
	alias    string
	log      [16]byte
	mapping  map[string]any
	remap    func(*serverInfo) error // makes mapping for another kind of server
	settings map[string]any

	mu      sync.Mutex  // guards current and next against Scan; only the worker changes them
	current *generation // complete, under the alias; nil if there is none
	next    *generation // being built
	unseen  bool        // written since the last refresh

	// A build that was neither interrupted nor had an unclear answer knows how
	// many documents its index must hold.
	exact bool
	count atomic.Int64
}

// set changes the generations.
func (t *target) set(current, next *generation) {
	t.mu.Lock()
	t.current, t.next = current, next
	t.mu.Unlock()
}

func reader(b []byte) io.Reader { return bytes.NewReader(b) }

// find looks for the generations. A complete one of our own without the alias
// was left by a kill between its last stamp and the switch.
func (t *target) find(ctx context.Context) error {
	gens, err := t.generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range gens {
		switch {
		case g.aliased && g.stamp.Complete:
			t.current = g
		case g.ours && !g.stamp.Complete && (g.stamp.Log == t.log || g.aliased):
			t.next = g
		}
	}
	for _, g := range slices.Backward(gens) {
		newer := t.current == nil || g.number > t.current.number
		if g.ours && g.stamp.Complete && g.stamp.Log == t.log && newer {
			if err := t.publish(ctx, g, gens); err != nil {
				return err
			}
			t.current = g
			break
		}
	}
	if t.next != nil && t.current != nil && t.next.number < t.current.number {
		t.next = nil
	}
	return nil
}

// writing is the generation that updates go to.
func (t *target) writing() *generation {
	if t.next != nil {
		return t.next
	}
	return t.current
}

// Stamp returns the stamp of the generation that is written to.
func (t *target) Stamp() (sink.Stamp, bool) {
	if g := t.writing(); g != nil {
		return g.stamp, true
	}
	return sink.Stamp{}, false
}

// Begin makes the next generation, or goes on with an unfinished one.
func (t *target) Begin(ctx context.Context, s sink.Stamp) error {
	t.exact = false
	if t.next != nil && t.next.stamp.Log == s.Log && t.next.stamp.Fingerprint == s.Fingerprint {
		_, err := t.read(ctx, t.next)
		return err
	}
	gens, err := t.generations(ctx)
	if err != nil {
		return err
	}
	number, public := 0, true
	for _, g := range gens {
		number = max(number, g.number)
		if g.ours && !g.stamp.Complete && (g.stamp.Log == s.Log || g.aliased) {
			if err := t.remove(ctx, g); err != nil {
				return err
			}
			continue
		}
		public = public && !g.aliased
	}
	s.Complete, s.Seq = false, 1
	if t.current != nil {
		s.Seq = t.current.stamp.Seq + 1
	}
	g, err := t.create(ctx, number+1, public, s)
	if err != nil {
		return err
	}
	t.set(t.current, g)
	t.exact = true
	t.count.Store(0)
	return nil
}

// Finish completes the new generation, switches the alias and deletes the generations before it.
func (t *target) Finish(ctx context.Context, s sink.Stamp, keep func(id string) (bool, error)) error {
	g := t.next
	if g == nil {
		return nil // done by an earlier call
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	if err := t.checkBuild(ctx, g, keep); err != nil {
		return err
	}
	s.Complete = true
	if err := t.writeStamp(ctx, g, s); err != nil {
		return err
	}
	gens, err := t.generations(ctx)
	if err != nil {
		return err
	}
	if err := t.publish(ctx, g, gens); err != nil {
		return err
	}
	old := t.current
	t.set(g, nil)
	t.exact = false
	for _, o := range gens {
		kept := o.name == g.name || !o.ours || t.sink.opts.KeepOld && old != nil && o.name == old.name
		if kept {
			continue
		}
		if err := t.remove(ctx, o); err != nil {
			t.sink.opts.Logger.Warn("an old generation stays", "view", t.view, "err", err)
		}
	}
	return nil
}

// checkBuild compares the number of documents with what was answered for; after
// an interruption, which makes that unknown, it deletes what is no document.
func (t *target) checkBuild(ctx context.Context, g *generation, keep func(id string) (bool, error)) error {
	if !t.exact {
		return t.sweep(ctx, g, keep)
	}
	var answer struct {
		Count int64 `json:"count"`
	}
	if err := t.sink.do(ctx, esapi.CountRequest{Index: []string{g.name}}, &answer); err != nil {
		return fmt.Errorf("count the documents of %q: %w", g.name, err)
	}
	if want := t.count.Load(); answer.Count != want {
		err := t.remove(ctx, g)
		t.set(t.current, nil)
		return errors.Join(fmt.Errorf("%w: the new index %q has %d documents and the server answered for %d", sink.ErrWentBack, g.name, answer.Count, want), err)
	}
	return nil
}

// Flush makes what was written visible and moves the stamp, which it reads and compares first (V33).
func (t *target) Flush(ctx context.Context, s sink.Stamp) error {
	g := t.writing()
	if g == nil {
		return fmt.Errorf("%w: view %q has no index", sink.ErrWentBack, t.view)
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	now, err := t.read(ctx, g)
	if err != nil {
		return err
	}
	if now != nil {
		g.adopt(now.stamp)
	}
	switch {
	case now == nil || !now.ours:
		return fmt.Errorf("%w: the index %q has lost its stamp", sink.ErrWentBack, g.name)
	case now.stamp.Log != g.stamp.Log, now.uuid == g.uuid && g.stamp.Before(now.stamp):
		return fmt.Errorf("%w: view %q, index %q. Stop the other one, then 'tailwater view rebuild %s'", sink.ErrOtherWriter, t.view, g.name, t.view)
	case now.stamp != g.stamp, now.uuid != g.uuid:
		return fmt.Errorf("%w: the index %q was replaced by another, perhaps an older copy", sink.ErrWentBack, g.name)
	case g.stamp.Complete && !now.aliased:
		return fmt.Errorf("%w: the alias %q no longer names the index %q", sink.ErrWentBack, t.alias, g.name)
	}
	s.Seq = g.stamp.Seq
	if s == g.stamp || s.CSN < g.stamp.CSN {
		return nil
	}
	return t.writeStamp(ctx, g, s)
}

func (t *target) refresh(ctx context.Context) error {
	g := t.writing()
	if !t.unseen || g == nil {
		return nil
	}
	err := t.sink.do(ctx, esapi.IndicesRefreshRequest{Index: []string{g.name}}, nil)
	if notFound(err) {
		return fmt.Errorf("%w: the index %q is gone", sink.ErrWentBack, g.name)
	}
	if err != nil {
		return fmt.Errorf("refresh the index %q: %w", g.name, err)
	}
	t.unseen = false
	return nil
}

// scanPage and scanKeep bound a scroll.
const (
	scanPage = 500
	scanKeep = 2 * time.Minute
)

type scanHit struct {
	ID      string          `json:"_id"`
	Version uint64          `json:"_version"`
	Source  json.RawMessage `json:"_source"`
}

type scanAnswer struct {
	ScrollID string `json:"_scroll_id"`
	Hits     struct {
		Hits []scanHit `json:"hits"`
	} `json:"hits"`
}

// Scan calls fn for every document that can be found under the alias.
func (t *target) Scan(ctx context.Context, fn func(id string, doc []byte) error) error {
	t.mu.Lock()
	g := t.current
	if g == nil {
		g = t.next
	}
	t.mu.Unlock()
	if g == nil {
		return fmt.Errorf("%w: view %q has no index", sink.ErrWentBack, t.view)
	}
	if err := t.sink.do(ctx, esapi.IndicesRefreshRequest{Index: []string{g.name}}, nil); err != nil {
		return fmt.Errorf("refresh the index %q: %w", g.name, err)
	}
	return t.scroll(ctx, g, `"_source":true`, func(h scanHit) error { return fn(h.ID, h.Source) })
}

func (t *target) scroll(ctx context.Context, g *generation, what string, fn func(h scanHit) error) error {
	body := fmt.Appendf(nil, `{"query":{"match_all":{}},"sort":["_doc"],"size":%d,"version":true,%s}`, scanPage, what)
	var page scanAnswer
	err := t.sink.do(ctx, esapi.SearchRequest{Index: []string{g.name}, Body: reader(body), Scroll: scanKeep}, &page)
	for err == nil && len(page.Hits.Hits) > 0 {
		for _, h := range page.Hits.Hits {
			if err := fn(h); err != nil {
				return errors.Join(err, t.endScroll(ctx, page.ScrollID))
			}
		}
		id, _ := json.Marshal(page.ScrollID)
		page = scanAnswer{}
		err = t.sink.do(ctx, esapi.ScrollRequest{Body: reader(fmt.Appendf(nil, `{"scroll":"2m","scroll_id":%s}`, id))}, &page)
	}
	if err != nil {
		return fmt.Errorf("read the index %q: %w", g.name, err)
	}
	return t.endScroll(ctx, page.ScrollID)
}

// endScroll frees the scroll; a server that does not answer frees it by time.
func (t *target) endScroll(ctx context.Context, id string) error {
	text, _ := json.Marshal(id)
	if err := t.sink.do(ctx, esapi.ClearScrollRequest{Body: reader(fmt.Appendf(nil, `{"scroll_id":[%s]}`, text))}, nil); err != nil {
		t.sink.opts.Logger.Debug("end a scroll", "err", err)
	}
	return nil
}

// sweep deletes what is no document, at the version it has.
func (t *target) sweep(ctx context.Context, g *generation, keep func(id string) (bool, error)) error {
	var gone []sink.Update
	flush := func() error {
		if len(gone) == 0 {
			return nil
		}
		results, err := t.bulk(ctx, g, gone)
		for _, r := range results {
			if err == nil && r.Outcome == sink.Retry {
				err = errors.New(r.Reason)
			}
		}
		gone = gone[:0]
		return err
	}
	err := t.scroll(ctx, g, `"_source":false`, func(h scanHit) error {
		ok, err := keep(h.ID)
		if err != nil || ok {
			return err
		}
		gone = append(gone, sink.Update{ID: h.ID, Version: h.Version})
		if len(gone) >= scanPage {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("sweep the index %q: %w", g.name, err)
	}
	return nil
}

// Drop deletes all generations.
func (t *target) Drop(ctx context.Context) error {
	gens, err := t.generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range gens {
		if g.ours {
			if err := t.remove(ctx, g); err != nil {
				return err
			}
		}
	}
	t.set(nil, nil)
	return nil
}

// Close has nothing to do: the connections are the sink's.
func (t *target) Close() error { return nil }
