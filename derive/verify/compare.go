package verify

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/tailwater/tailwater/internal/jsoncmp"
)

// Each calls fn for every document of one side, in any order; an id may come
// again. fn keeps nothing of doc.
type Each func(ctx context.Context, fn func(id string, doc []byte) error) error

// Side is one of the two things that are compared.
type Side struct {
	Name string // "view", "sink:search"
	Each Each
	// Get reads one document, nil if there is none. It may be nil; then what
	// looks different is looked up by another pass of Each.
	Get func(ctx context.Context, id string) ([]byte, error)
}

// Options of Compare.
type Options struct {
	View string
	// MissingIsFine is for sinks that may drop documents by themselves (ttl).
	MissingIsFine bool
	// Limit bounds each list of the report; default all, at most what ErrTooMany allows. Totals are exact.
	Limit int
	// Settle is waited before differences are looked at again; default 1s.
	Settle time.Duration
	// Again is how often differences are looked at again before they count; default 2.
	Again int
}

// Diff is a document that differs.
type Diff struct {
	ID    string   `json:"id"`
	Paths []string `json:"paths"`
}

// Report is the outcome. Its lists are in the order of the ids.
type Report struct {
	View      string   `json:"view"`
	Against   string   `json:"against"`
	Compared  int64    `json:"compared"` // documents of the view
	Missing   []string `json:"missing"`  // in the view only
	Extra     []string `json:"extra"`    // in the sink only
	Different []Diff   `json:"different"`
	// Totals, where the lists were cut at the limit.
	MissingTotal   int64 `json:"missing_total,omitempty"`
	ExtraTotal     int64 `json:"extra_total,omitempty"`
	DifferentTotal int64 `json:"different_total,omitempty"`
}

// Equal reports whether nothing was found.
func (r *Report) Equal() bool {
	return len(r.Missing)+len(r.Extra)+len(r.Different) == 0 && r.MissingTotal+r.ExtraTotal+r.DifferentTotal == 0
}

// maxSuspects bounds the ids kept of documents that look different; beyond it
// only their number is known.
const maxSuspects = 200_000

// Compare compares all documents of the view with those of the other side.
func Compare(ctx context.Context, view, other Side, o Options) (*Report, error) {
	if o.Limit <= 0 {
		o.Limit = maxSuspects
	}
	if o.Settle <= 0 {
		o.Settle = time.Second
	}
	if o.Again <= 0 {
		o.Again = 2
	}
	c := &comparison{view: view, other: other, opts: o, hash: newHasher()}
	r := &Report{View: o.View, Against: other.Name, Missing: []string{}, Extra: []string{}, Different: []Diff{}}
	ids, compared, err := c.firstPass(ctx)
	if err != nil {
		return nil, err
	}
	r.Compared = compared
	for i := 0; len(ids) > 0; i++ {
		if i > 0 {
			if err := wait(ctx, o.Settle); err != nil {
				return nil, err
			}
		}
		last := i == o.Again-1
		if ids, err = c.again(ctx, ids, last, r); err != nil {
			return nil, err
		}
		if last {
			break
		}
	}
	r.cut()
	return r, nil
}

// cut leaves totals out that the lists say.
func (r *Report) cut() {
	for _, p := range []struct {
		total *int64
		n     int
	}{{&r.MissingTotal, len(r.Missing)}, {&r.ExtraTotal, len(r.Extra)}, {&r.DifferentTotal, len(r.Different)}} {
		if *p.total == int64(p.n) {
			*p.total = 0
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// comparison is one run of Compare.
type comparison struct {
	view, other Side
	opts        Options
	hash        hasher
}

// suspect is a document that looked different.
type suspect struct {
	id          string
	want, got   []byte
	inView, has bool
}

// digest stands for an id, or for a document's canonical form.
type digest [2]uint64

type hasher [2]maphash.Seed

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h hasher) sum(b []byte) digest {
	return digest{maphash.Bytes(h[0], b), maphash.Bytes(h[1], b)}
}

// seen is what is kept of a document of the view.
type seen struct {
	doc  uint64
	have bool // the other side has it
}

// firstPass reads both sides once and returns the ids that need a closer look.
func (c *comparison) firstPass(ctx context.Context) (suspects []string, compared int64, err error) {
	docs := map[digest]seen{}
	var scratch []byte
	err = c.view.Each(ctx, func(id string, doc []byte) error {
		scratch, err = jsoncmp.AppendExact(scratch[:0], doc)
		if err != nil {
			return fmt.Errorf("document %q: %w", id, err)
		}
		docs[c.hash.sum([]byte(id))] = seen{doc: maphash.Bytes(c.hash[0], scratch)}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", c.view.Name, err)
	}
	compared = int64(len(docs))
	suspect := map[string]struct{}{}
	err = c.other.Each(ctx, func(id string, doc []byte) error {
		key := c.hash.sum([]byte(id))
		d, ok := docs[key]
		scratch, err = jsoncmp.AppendExact(scratch[:0], doc)
		if !ok || err != nil || d.doc != maphash.Bytes(c.hash[0], scratch) {
			suspect[id] = struct{}{}
		}
		if ok && !d.have {
			d.have = true
			docs[key] = d
		}
		return tooMany(len(suspect))
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", c.other.Name, err)
	}
	if err := c.missing(ctx, docs, suspect); err != nil {
		return nil, 0, err
	}
	for id := range suspect {
		suspects = append(suspects, id)
	}
	slices.Sort(suspects)
	return suspects, compared, nil
}

// missing adds the ids that the other side did not show: their names need another pass.
func (c *comparison) missing(ctx context.Context, docs map[digest]seen, suspect map[string]struct{}) error {
	any := false
	for _, d := range docs {
		if any = !d.have; any {
			break
		}
	}
	if !any || c.opts.MissingIsFine {
		return nil
	}
	err := c.view.Each(ctx, func(id string, _ []byte) error {
		if d, ok := docs[c.hash.sum([]byte(id))]; ok && !d.have {
			suspect[id] = struct{}{}
		}
		return tooMany(len(suspect))
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", c.view.Name, err)
	}
	return nil
}

// ErrTooMany means that almost nothing is equal; a list of it would help nobody.
var ErrTooMany = errors.New("verify: more than 200000 documents differ; build the target anew")

func tooMany(n int) error {
	if n > maxSuspects {
		return ErrTooMany
	}
	return nil
}

// chunk bounds the documents that again holds at a time.
const chunk = 1000

// again looks at documents once more and returns the ids that still differ; the
// last time they go into the report.
func (c *comparison) again(ctx context.Context, ids []string, last bool, r *Report) ([]string, error) {
	var left []string
	for part := range slices.Chunk(ids, c.chunk(len(ids))) {
		pairs, err := c.pairs(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			paths, same := c.look(p)
			if same {
				continue
			}
			left = append(left, p.id)
			if last {
				r.add(p, paths, c.opts.Limit)
			}
		}
	}
	return left, nil
}

// chunk is how many documents to read at a time: without Get each chunk is a whole pass.
func (c *comparison) chunk(n int) int {
	if c.view.Get == nil || c.other.Get == nil {
		return max(n/4+1, chunk)
	}
	return chunk
}

// look compares both sides of one document.
func (c *comparison) look(p *suspect) (paths []string, same bool) {
	if !p.has {
		return nil, !p.inView || c.opts.MissingIsFine
	}
	if !p.inView {
		return nil, false
	}
	paths, err := jsoncmp.Paths(p.want, p.got, maxPaths)
	return paths, err == nil && len(paths) == 0
}

// maxPaths bounds the paths told of one document.
const maxPaths = 20

func (r *Report) add(p *suspect, paths []string, limit int) {
	switch {
	case !p.has:
		r.MissingTotal++
		if len(r.Missing) < limit {
			r.Missing = append(r.Missing, p.id)
		}
	case !p.inView:
		r.ExtraTotal++
		if len(r.Extra) < limit {
			r.Extra = append(r.Extra, p.id)
		}
	default:
		r.DifferentTotal++
		if len(r.Different) < limit {
			r.Different = append(r.Different, Diff{ID: p.id, Paths: paths})
		}
	}
}

// pairs reads both sides of documents, in the order of ids.
func (c *comparison) pairs(ctx context.Context, ids []string) ([]*suspect, error) {
	pairs := make([]*suspect, len(ids))
	byID := make(map[string]*suspect, len(ids))
	for i, id := range ids {
		pairs[i] = &suspect{id: id}
		byID[id] = pairs[i]
	}
	err := lookUp(ctx, c.view, byID, func(s *suspect, doc []byte) { s.want, s.inView = slices.Clone(doc), true })
	if err == nil {
		err = lookUp(ctx, c.other, byID, func(s *suspect, doc []byte) { s.got, s.has = slices.Clone(doc), true })
	}
	return pairs, err
}

func lookUp(ctx context.Context, side Side, byID map[string]*suspect, set func(*suspect, []byte)) error {
	if side.Get == nil {
		err := side.Each(ctx, func(id string, doc []byte) error {
			if s := byID[id]; s != nil {
				set(s, doc)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", side.Name, err)
		}
		return nil
	}
	for id, s := range byID {
		doc, err := side.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("read %q of %s: %w", id, side.Name, err)
		}
		if doc != nil {
			set(s, doc)
		}
	}
	return nil
}
