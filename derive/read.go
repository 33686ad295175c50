package derive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// served is what readers need of a view: a moment of it that does not change.
type served struct {
	id      uint32
	name    string
	stage   Stage
	tables  map[string]*image.Table
	applied eventlog.CSN
	stats   ViewStats
	frozen  *moment // read this and not the newest state
}

// moment is a snapshot that several readers share; its count is guarded by the Runner's mutex.
type moment struct {
	snap *image.Snapshot
	refs int
}

func (s *served) release() error {
	if s == nil || s.frozen == nil {
		return nil
	}
	return s.frozen.release()
}

func (m *moment) release() error {
	if m.refs--; m.refs > 0 {
		return nil
	}
	return m.snap.Close()
}

// publish makes the state visible to readers. r.mu is held.
func (r *Runner) publish() {
	tables := r.liveTables()
	published := make(map[string]*served, len(r.views))
	r.unused = nil
	for _, v := range r.views {
		if v.wanted == nil {
			r.unused = append(r.unused, v.name)
			continue
		}
		s := &served{id: v.id, name: v.name, applied: r.applied, stats: r.viewStats(v)}
		if u := v.serving(); u != nil && u.bound != nil {
			s.stage, s.tables = u.stage, tables
		}
		if v.frozen != nil && s.stats.State == StateHeld {
			frozen := *v.frozen
			frozen.stats = s.stats
			s = &frozen
		} else if v.frozen != nil {
			if err := v.frozen.release(); err != nil {
				r.opts.Logger.Warn("close a snapshot of the state", "stage", "derive", "err", err)
			}
			v.frozen = nil
		}
		published[v.name] = s
	}
	r.published = published
}

// holdReaders keeps, for each view that a floor has begun to hold or whose images
// are behind a horizon, the state as it was: the one committed last.
func (r *Runner) holdReaders() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.views {
		if v.frozen != nil || v.current == nil {
			continue
		}
		s := r.published[v.name]
		_, _, closed := r.floors.open(v.current.stage.Info().Topics)
		if closed && !r.behind(v) || s == nil || s.stage == nil || s.stats.State == StateHeld || s.stats.State == StateWaiting {
			continue
		}
		frozen := *s
		frozen.frozen = &moment{snap: r.store.Snapshot(), refs: 1}
		v.frozen = &frozen
	}
}

// session is one reader's view of the documents.
type session struct {
	*served
	r     image.Reader
	bound Bound
	buf   []byte
	key   []byte
	close func() error
}

// session opens a view for reading; close it.
func (r *Runner) session(view string) (*session, error) {
	s, err := r.openSession(view)
	if err != nil {
		return nil, err
	}
	s.bound, err = s.stage.Bind(func(topic string) *image.Table { return s.tables[topic] })
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (r *Runner) openSession(view string) (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("view %s: %w: the state is closed", view, ErrNotReady)
	}
	s := r.published[view]
	if s == nil {
		return nil, fmt.Errorf("%w %s", ErrUnknownView, view)
	}
	st := s.stats.State
	if s.stage == nil || st == StateWaiting || st == StateStopped || st == StateHeld && s.frozen == nil {
		return nil, fmt.Errorf("view %s: %w: %s %s", view, ErrNotReady, st, s.stats.Reason)
	}
	out := &session{served: s}
	if s.frozen != nil {
		m := s.frozen
		m.refs++
		v := m.snap.View()
		out.r = v
		out.close = func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			return errors.Join(v.Close(), m.release())
		}
	} else {
		snap := r.store.Snapshot()
		out.r, out.close = snap, snap.Close
	}
	return out, nil
}

// doc builds the document of a root. Its version is that of its last output if
// that was the same document, else the position of the images.
func (s *session) doc(root change.Key) (Doc, bool, error) {
	buf, outcome, err := s.bound.Build(s.r, root, s.buf[:0])
	s.buf = buf
	if err != nil || outcome != Present {
		return Doc{}, false, err
	}
	id, err := change.DocumentID(root)
	if err != nil {
		return Doc{}, false, err
	}
	d := Doc{ID: id, Key: bytes.Clone(root), JSON: bytes.Clone(buf), Version: uint64(s.applied)}
	s.key = image.HashKey(s.key[:0], s.id, root)
	n := len(s.key)
	var ok bool
	if s.key, ok, err = s.r.Get(s.key, s.key[:n:n]); err != nil || !ok {
		return d, err == nil, err
	}
	last := s.key[n:]
	if sum := sha256.Sum256(buf); len(last) > hashLen && bytes.Equal(last[:hashLen], sum[:hashLen]) {
		version, _, err := uvarint(last[hashLen:])
		d.Version = version
		return d, err == nil, err
	}
	return d, true, nil
}

// Get returns the document with this id; ok is false if there is none.
func (r *Runner) Get(view, id string) (d Doc, ok bool, err error) {
	s, err := r.session(view)
	if err != nil {
		return d, false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.byID(id)
}

// GetKey returns the document of the root row with this key.
func (r *Runner) GetKey(view string, key change.Key) (d Doc, ok bool, err error) {
	s, err := r.session(view)
	if err != nil {
		return d, false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.doc(key)
}

// Dump calls fn for each document in the order of the keys, all as of one moment.
func (r *Runner) Dump(view string, fn func(d Doc) error) (err error) {
	s, err := r.session(view)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.dump(fn)
}

const dumpRun = 512

func (s *session) dump(fn func(d Doc) error) error {
	t := s.bound.Root()
	bounds := image.Prefixed(t.Prefix(nil))
	lower := bounds[0]
	for {
		var keys [][]byte
		err := s.r.Scan(lower, bounds[1], func(k, _ []byte) (bool, error) {
			keys = append(keys, bytes.Clone(k))
			return len(keys) < dumpRun, nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			d, ok, err := s.doc(t.RowKey(k))
			if err == nil && ok {
				err = fn(d)
			}
			if err != nil {
				return err
			}
		}
		if len(keys) < dumpRun {
			return nil
		}
		lower = append(keys[len(keys)-1], 0)
	}
}

// byID finds a document by its id: by the key that the id spells where that can
// be told, else by looking through all.
func (s *session) byID(id string) (Doc, bool, error) {
	if key, ok := keyOfID(id, s.stage.Info().Key); ok {
		if back, err := change.DocumentID(key); err == nil && back == id {
			return s.doc(key)
		}
	}
	errFound := errors.New("found")
	t := s.bound.Root()
	bounds := image.Prefixed(t.Prefix(nil))
	var key change.Key
	err := s.r.Scan(bounds[0], bounds[1], func(k, _ []byte) (bool, error) {
		got, err := change.DocumentID(t.RowKey(k))
		if err == nil && got == id {
			key, err = bytes.Clone(t.RowKey(k)), errFound
		}
		return true, err
	})
	if err == nil {
		return Doc{}, false, nil
	}
	if !errors.Is(err, errFound) {
		return Doc{}, false, err
	}
	return s.doc(key)
}
