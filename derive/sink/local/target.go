package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/tailwater/tailwater/derive/sink"
)

// maxBatch bounds the documents of one batch of bleve, which is held analysed in memory.
const maxBatch = 1000

// target is the index of one view. Writes come from one goroutine; mu lets
// searches and Get go on beside them and beside a change of generation.
type target struct {
	sink    *Sink
	view    string
	dir     string
	log     [16]byte
	mapping *indexMapping
	logger  *slog.Logger
	floor   uint64 // versions below are in the index already

	mu      sync.RWMutex
	current *generation // complete; nil if there is none
	next    *generation // being built; nil if there is none
	closed  bool
}

// load opens the newest complete generation and, if it is newer, the newest unfinished one.
func (t *target) load() error {
	paths, err := generations(t.dir)
	if err != nil {
		return err
	}
	for i := len(paths) - 1; i >= 0; i-- {
		if t.current != nil {
			t.warnRemove(paths[i], "an older generation")
			continue
		}
		g, err := openGeneration(paths[i])
		switch {
		case errors.Is(err, errDamaged):
			t.warnRemove(paths[i], err.Error())
		case err != nil:
			return errors.Join(err, t.closeAll())
		case g.stamp.Complete:
			t.current, t.floor = g, g.stamp.CSN
		case t.next == nil:
			t.next, t.floor = g, 0
		default:
			_ = g.index.Close()
			t.warnRemove(paths[i], "an unfinished build")
		}
	}
	if t.next != nil {
		t.floor = 0
	}
	return nil
}

func (t *target) warnRemove(path, why string) {
	t.logger.Warn("removing a generation of the local index", "folder", filepath.Base(path), "why", why)
	if err := os.RemoveAll(path); err != nil {
		t.logger.Warn("remove a generation of the local index", "err", err)
	}
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

// Begin makes the next generation; the current one is searched meanwhile.
func (t *target) Begin(_ context.Context, s sink.Stamp) error {
	t.floor = 0
	s.Complete = false
	if t.next != nil {
		if t.next.stamp.Log == s.Log && t.next.stamp.Fingerprint == s.Fingerprint {
			return nil
		}
		t.mu.Lock()
		old := t.next
		t.next = nil
		t.mu.Unlock()
		if err := old.remove(); err != nil {
			return fmt.Errorf("remove an unfinished build: %w", err)
		}
	}
	n := 1
	s.Seq = 1
	if t.current != nil {
		last, err := strconv.Atoi(filepath.Base(t.current.path))
		if err != nil {
			return fmt.Errorf("generation %q of the local index: %w", filepath.Base(t.current.path), err)
		}
		n, s.Seq = last+1, t.current.stamp.Seq+1
	}
	path := filepath.Join(t.dir, fmt.Sprintf("%06d", n))
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove what is in the way of the local index: %w", err)
	}
	g, err := newGeneration(path, t.mapping, s)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.next = g
	t.mu.Unlock()
	return nil
}

// Write writes the updates and the stamp, durably.
func (t *target) Write(ctx context.Context, updates []sink.Update, s sink.Stamp) ([]sink.Result, error) {
	results := make([]sink.Result, len(updates))
	g := t.writing()
	if g == nil {
		return nil, fmt.Errorf("%w: the local index of view %q is not there", sink.ErrWentBack, t.view)
	}
	for start := 0; start < len(updates); start += maxBatch {
		end := min(start+maxBatch, len(updates))
		stamp := g.stamp
		if end == len(updates) {
			stamp = s
		}
		if err := t.writeBatch(ctx, g, updates[start:end], results[start:end], stamp); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (t *target) writeBatch(ctx context.Context, g *generation, updates []sink.Update, results []sink.Result, s sink.Stamp) error {
	b := g.index.NewBatch()
	for i, u := range updates {
		switch {
		case g.stamp.Complete && u.Version < t.floor:
			results[i].Outcome = sink.Stale
		case u.Doc == nil:
			b.Delete(u.ID)
		default:
			doc, err := t.mapping.convert(u.Doc)
			if err == nil {
				err = b.Index(u.ID, doc)
			}
			if err != nil {
				results[i] = sink.Result{Outcome: sink.Rejected, Reason: err.Error()}
			}
		}
	}
	return t.commit(ctx, g, b, s)
}

// commit writes a batch with its stamp. A folder that is gone was taken from us.
func (t *target) commit(ctx context.Context, g *generation, b *bleve.Batch, s sink.Stamp) error {
	s.Seq = g.stamp.Seq + 1
	b.SetInternal(stampKey, sink.EncodeStamp(s))
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("%w: %v", errDamaged, r)
			}
		}()
		done <- g.index.Batch(b)
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		return ctx.Err() // Close waits for the batch
	}
	if _, serr := os.Stat(filepath.Join(g.path, "store", "root.bolt")); errors.Is(serr, os.ErrNotExist) {
		return fmt.Errorf("%w: the folder of the local index was removed", sink.ErrWentBack)
	}
	if errors.Is(err, errDamaged) {
		t.condemn(g)
		return fmt.Errorf("%w: %w", sink.ErrWentBack, err)
	}
	if err != nil {
		return fmt.Errorf("write to the local index of view %q: %w", t.view, err)
	}
	g.stamp = s
	return nil
}

// condemn removes a damaged generation, so that the next Open finds none.
func (t *target) condemn(g *generation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == g {
		t.next = nil
	} else {
		t.current = nil
	}
	if err := g.remove(); err != nil {
		t.logger.Warn("remove a damaged generation of the local index", "err", err)
	}
}

// Finish makes the new generation the one that is searched.
func (t *target) Finish(ctx context.Context, s sink.Stamp, keep func(id string) (bool, error)) error {
	g := t.next
	if g == nil {
		return nil // done by an earlier call
	}
	b, err := t.sweep(g, keep)
	if err != nil {
		return err
	}
	s.Complete = true
	if err := t.commit(ctx, g, b, s); err != nil {
		return err
	}
	t.mu.Lock()
	old := t.current
	t.current, t.next, t.floor = g, nil, 0
	t.mu.Unlock()
	if old != nil {
		if err := old.remove(); err != nil {
			t.logger.Warn("remove the generation before", "err", err)
		}
	}
	return nil
}

// sweep deletes what is in the generation and no document, which only a build that was interrupted can leave.
func (t *target) sweep(g *generation, keep func(id string) (bool, error)) (*bleve.Batch, error) {
	b := g.index.NewBatch()
	r, err := openReader(g.index)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	err = eachID(r, func(id string) error {
		ok, err := keep(id)
		if err == nil && !ok {
			b.Delete(id)
		}
		return err
	})
	return b, err
}

// Flush has nothing to do: a batch is durable and visible when Write returns. It moves the stamp.
func (t *target) Flush(ctx context.Context, s sink.Stamp) error {
	g := t.writing()
	if g == nil {
		return fmt.Errorf("%w: the local index of view %q is not there", sink.ErrWentBack, t.view)
	}
	if s.CSN == g.stamp.CSN && s.Complete == g.stamp.Complete {
		return nil
	}
	return t.commit(ctx, g, g.index.NewBatch(), s)
}

// openReader takes a snapshot of an index, which outlives the index's Close.
func openReader(ix bleve.Index) (index.IndexReader, error) {
	advanced, err := ix.Advanced()
	if err != nil {
		return nil, err
	}
	return advanced.Reader()
}

// eachID calls fn for each document's id.
func eachID(r index.IndexReader, fn func(id string) error) error {
	ids, err := r.DocIDReaderAll()
	if err != nil {
		return err
	}
	defer ids.Close()
	for {
		internal, err := ids.Next()
		if err != nil || internal == nil {
			return err
		}
		id, err := r.ExternalID(internal)
		if err != nil {
			return err
		}
		if err := fn(id); err != nil {
			return err
		}
	}
}

// Scan calls fn for each document of the generation that is searched, as of now.
// It may run beside everything else.
func (t *target) Scan(ctx context.Context, fn func(id string, doc []byte) error) error {
	r, err := t.snapshot()
	if err != nil {
		return err
	}
	defer r.Close()
	return eachID(r, func(id string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := r.Document(id)
		if err != nil || d == nil {
			return err
		}
		return fn(id, storedDoc(d))
	})
}

// snapshot reads the generation that is searched.
func (t *target) snapshot() (index.IndexReader, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.reading()
	if g == nil {
		return nil, fmt.Errorf("%w: view %q", ErrNotOpen, t.view)
	}
	return openReader(g.index)
}

func storedDoc(d index.Document) (doc []byte) {
	d.VisitFields(func(f index.Field) {
		if _, ok := f.(*document.TextField); ok && f.Name() == fieldDoc {
			doc = append(doc[:0], f.Value()...)
		}
	})
	return doc
}

// reading is the generation that is searched: the complete one, else the one
// being built; nil: there is none. mu is held, for as long as its index is used.
func (t *target) reading() *generation {
	switch {
	case t.closed:
		return nil
	case t.current != nil:
		return t.current
	}
	return t.next
}

// get returns a document, nil if there is none.
func (t *target) get(id string) ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.reading()
	if g == nil {
		return nil, fmt.Errorf("%w: view %q", ErrNotOpen, t.view)
	}
	d, err := g.index.Document(id)
	if err != nil || d == nil {
		return nil, err
	}
	return storedDoc(d), nil
}

// Drop removes the folder of the view.
func (t *target) Drop(context.Context) error {
	return errors.Join(t.closeAll(), os.RemoveAll(t.dir))
}

// Close closes the indexes.
func (t *target) Close() error {
	t.sink.forget(t)
	return t.closeAll()
}

func (t *target) closeAll() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	var errs []error
	for _, g := range []*generation{t.current, t.next} {
		if g != nil {
			errs = append(errs, g.index.Close())
		}
	}
	return errors.Join(errs...)
}
