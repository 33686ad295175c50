package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

// ErrNotOpen means that the view has no index that could be searched now.
var ErrNotOpen = errors.New("local: the view's index is not open")

// Options of a local sink.
type Options struct {
	Dir      string       // made if needed; DATA_DIR/local
	Analyzer string       // of text: standard (default), simple, web, keyword
	Logger   *slog.Logger // default: discards
}

// ViewOptions are the sink.View.Options of this sink.
type ViewOptions struct {
	Mapping []MappingField
}

// MappingField overrides how one field is indexed.
type MappingField struct {
	Field   string // path in the document, "reviews.title"
	Type    string // text, keyword, number, date, boolean, none; "" = by the field's kind
	Keyword bool   // text: also as a whole, under FIELD.keyword
}

// Sink is a folder of indexes. It may be used from any goroutine.
type Sink struct {
	opts Options

	mu   sync.RWMutex // guards open
	open map[string]*target
}

// New returns the sink; it does no I/O.
func New(opts Options) *Sink {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sink{opts: opts, open: map[string]*target{}}
}

// Check makes the folder and looks whether it can be written to.
func (s *Sink) Check(context.Context) error {
	if _, err := analyzerName(s.opts.Analyzer); err != nil {
		return err
	}
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the local index: %w", err)
	}
	f, err := os.CreateTemp(s.opts.Dir, ".check-*")
	if err != nil {
		return fmt.Errorf("write to the folder of the local index: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Open opens the index of a view, or what is left of it.
func (s *Sink) Open(_ context.Context, v sink.View, log [16]byte) (sink.Target, error) {
	opts, _ := v.Options.(ViewOptions)
	m, err := newMapping(v.Fields, opts.Mapping, s.opts.Analyzer)
	if err != nil {
		return nil, fmt.Errorf("%w: view %q: %w", sink.ErrStopped, v.Name, err)
	}
	t := &target{
		sink: s, view: v.Name, log: log, mapping: m, dir: filepath.Join(s.opts.Dir, change.EscapeName(v.Name)),
		logger: s.opts.Logger.With("view", v.Name),
	}
	if err := t.load(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	old := s.open[v.Name]
	s.open[v.Name] = t
	s.mu.Unlock()
	if old != nil {
		return nil, errors.Join(fmt.Errorf("local: the index of view %q is open already", v.Name), s.putBack(v.Name, old, t))
	}
	return t, nil
}

func (s *Sink) putBack(view string, old, t *target) error {
	s.mu.Lock()
	s.open[view] = old
	s.mu.Unlock()
	return t.closeAll()
}

func (s *Sink) forget(t *target) {
	s.mu.Lock()
	if s.open[t.view] == t {
		delete(s.open, t.view)
	}
	s.mu.Unlock()
}

func (s *Sink) target(view string) (*target, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.open[view]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: view %q", ErrNotOpen, view)
}

// Search searches the index of a view that a worker has open. See target.Search.
func (s *Sink) Search(ctx context.Context, view, query string, limit, offset int) ([]sink.Hit, uint64, error) {
	t, err := s.target(view)
	if err != nil {
		return nil, 0, err
	}
	return t.Search(ctx, query, limit, offset)
}

// Get returns a document, nil if there is none.
func (s *Sink) Get(view, id string) ([]byte, error) {
	t, err := s.target(view)
	if err != nil {
		return nil, err
	}
	return t.get(id)
}

// Close closes every index that is still open.
func (s *Sink) Close() error {
	s.mu.Lock()
	open := s.open
	s.open = map[string]*target{}
	s.mu.Unlock()
	var errs []error
	for _, t := range open {
		errs = append(errs, t.closeAll())
	}
	return errors.Join(errs...)
}
