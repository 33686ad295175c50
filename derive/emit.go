package derive

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

const hashLen = 16

// output is the transaction that a step appends.
type output struct {
	tx    eventlog.Tx
	bytes int
	docs  []byte // scratch of one document
}

// add appends an output record; doc nil is a tombstone.
func (o *output) add(v *viewState, root, doc []byte) {
	rec := eventlog.Record{Topic: v.topic.ID, Seq: uint32(len(o.tx.Records)), Key: bytes.Clone(root)}
	if doc != nil {
		rec.Value = bytes.Clone(doc)
	}
	o.tx.Records = append(o.tx.Records, rec)
	o.bytes += len(root) + len(doc)
}

// emitView outputs what the view may: roots of the batch, then of the queue and of a pass, within the step's limits.
func (r *Runner) emitView(s *step, v *viewState) error {
	if v.current == nil || v.stopped != "" || v.wanted == nil {
		clear(v.dirty)
		return nil
	}
	allowed := v.current.bound != nil && s.b >= v.memory.Floor && !r.behind(v)
	if allowed {
		_, _, allowed = r.floors.open(v.current.stage.Info().Topics)
	}
	for _, root := range slices.Sorted(maps.Keys(v.dirty)) {
		cause := v.dirty[root]
		if !allowed || s.out.bytes >= r.opts.OutputBytes {
			if err := r.enqueue(s.batch, v, []byte(root), cause, 0); err != nil {
				return err
			}
			continue
		}
		if err := r.emit(s, v, []byte(root), cause); err != nil {
			return err
		}
	}
	clear(v.dirty)
	if !allowed {
		return nil
	}
	return r.drain(s, v)
}

// drain rebuilds roots of the queue and of the pass.
func (r *Runner) drain(s *step, v *viewState) error {
	roots, err := r.ready(s.batch, v, r.opts.DrainRoots)
	if err != nil {
		return err
	}
	left := r.opts.DrainRoots - len(roots)
	for _, root := range roots {
		if s.out.bytes >= r.opts.OutputBytes {
			s.more = true
			return nil
		}
		if err := r.emit(s, v, root, s.b); err != nil {
			return err
		}
	}
	if !v.memory.Pass {
		s.more = s.more || left <= 0
		return nil
	}
	if left <= 0 || s.out.bytes >= r.opts.OutputBytes {
		s.more = true
		return nil
	}
	return r.pass(s, v, left)
}

// pass rebuilds the next n roots behind the cursor: those that have a row and
// those that have an output.
func (r *Runner) pass(s *step, v *viewState, n int) error {
	roots, err := r.passRoots(s.batch, v, n)
	if err != nil {
		return err
	}
	v.changed = true
	for i, root := range roots {
		if i > 0 && s.out.bytes >= r.opts.OutputBytes {
			s.more = true
			return nil
		}
		if err := r.emit(s, v, root, v.memory.Cause); err != nil {
			return err
		}
		v.memory.Cursor = root
	}
	if len(roots) == n {
		s.more = true
		return nil
	}
	v.memory.Pass, v.memory.Fresh, v.memory.Cursor, v.memory.Cause = false, false, nil, 0
	s.passed = append(s.passed, v)
	return nil
}

func (r *Runner) passRoots(b *image.Batch, v *viewState, n int) ([][]byte, error) {
	t := v.current.bound.Root()
	collect := func(prefix []byte, root func(key []byte) []byte) ([][]byte, error) {
		bounds := image.Prefixed(prefix)
		lower := bounds[0]
		if v.memory.Cursor != nil {
			lower = append(append(slices.Clone(prefix), v.memory.Cursor...), 0)
		}
		var roots [][]byte
		err := b.Scan(lower, bounds[1], func(k, _ []byte) (bool, error) {
			roots = append(roots, bytes.Clone(root(k)))
			return len(roots) < n, nil
		})
		return roots, err
	}
	rows, err := collect(t.Prefix(nil), func(k []byte) []byte { return t.RowKey(k) })
	if err != nil {
		return nil, err
	}
	if v.memory.Fresh || v.memory.Documents == 0 {
		return rows, nil
	}
	outs, err := collect(image.HashKey(nil, v.id, nil), image.RootOf)
	if err != nil || len(outs) == 0 {
		return rows, err
	}
	roots := append(rows, outs...)
	slices.SortFunc(roots, bytes.Compare)
	roots = slices.CompactFunc(roots, bytes.Equal)
	return roots[:min(n, len(roots))], nil
}

// emit rebuilds one root and outputs its document if it differs from what was last output.
func (r *Runner) emit(s *step, v *viewState, root []byte, cause eventlog.CSN) error {
	q, queued, err := r.queued(s.batch, v, root)
	if err != nil {
		return err
	}
	doc, outcome, err := v.current.bound.Build(s.images(), change.Key(root), s.out.docs[:0])
	s.out.docs = doc
	if err != nil {
		return err
	}
	if outcome == Held {
		e := entry{cause: cause, class: classHeld}
		if queued {
			e.cause, e.flags = min(cause, q.cause), q.flags
		}
		return r.putQueue(s.batch, v, root, q, queued, e)
	}
	if queued {
		if err := r.dequeue(s.batch, v, root, q); err != nil {
			return err
		}
	}
	if outcome == Absent {
		doc = nil
	}
	return r.compare(s, v, root, doc, q.flags&mustSend != 0)
}

// compare outputs doc, or a tombstone for nil, unless it is what was last output.
func (r *Runner) compare(s *step, v *viewState, root, doc []byte, must bool) error {
	r.keyBuf = image.HashKey(r.keyBuf[:0], v.id, root)
	n := len(r.keyBuf)
	buf, had := r.keyBuf, false
	if !v.memory.Fresh || string(root) <= string(v.memory.Cursor) {
		var err error
		if buf, had, err = s.batch.Get(r.keyBuf, r.keyBuf[:n:n]); err != nil {
			return err
		}
		r.keyBuf = buf
	}
	key, last := buf[:n], buf[n:]
	if doc == nil {
		if !had && !must {
			return nil
		}
		s.out.add(v, root, nil)
		if !had {
			return nil
		}
		v.memory.Documents--
		v.changed = true
		return s.batch.Delete(key)
	}
	sum := sha256.Sum256(doc)
	if had && !must && len(last) > hashLen && bytes.Equal(last[:hashLen], sum[:hashLen]) {
		return nil
	}
	s.out.add(v, root, doc)
	if !had {
		v.memory.Documents++
		v.changed = true
	}
	return s.batch.Set(key, appendUvarint(sum[:hashLen:hashLen], uint64(s.b)))
}
