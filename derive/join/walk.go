package join

import (
	"bytes"
	"errors"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/expr"
	"github.com/tailwater/tailwater/derive/image"
)

// scanRun bounds how many keys of an index are held while walking up.
const scanRun = 1024

// walker carries one walk.
type walker struct {
	r   image.Reader
	add func(root change.Key) error
}

// Walk goes up from a row at each place that shows its table.
func (b *bound) Walk(r image.Reader, t *image.Table, key change.Key, row, other []change.Value, add func(change.Key) error) error {
	w := &walker{r: r, add: add}
	for _, p := range b.places {
		if p.t == t && differ(row, other, p.used) {
			if ok, err := maybe(p.where, row); err != nil {
				return err
			} else if ok {
				if err := w.up(p, key, row); err != nil {
					return err
				}
			}
		}
		if l := p.link; l != nil && l.t == t && differ(row, other, l.used) {
			if ok, err := maybe(l.where, row); err != nil {
				return err
			} else if ok {
				if err := w.parents(&l.up, row, p.parent); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// differ reports whether any of these columns does; without another row all do.
func differ(row, other []change.Value, columns []int) bool {
	if other == nil {
		return true
	}
	for _, c := range columns {
		if !same(row[c], other[c]) {
			return true
		}
	}
	return false
}

func same(a, b change.Value) bool {
	return a.Kind() == b.Kind() && a.Int64() == b.Int64() && a.Offset() == b.Offset() && bytes.Equal(a.Raw(), b.Raw())
}

// maybe reports whether the predicate accepts the row, or could once an unfilled column is known.
func maybe(where *expr.Expr, row []change.Value) (bool, error) {
	if where == nil {
		return true, nil
	}
	ok, err := where.True(row)
	if errors.Is(err, expr.ErrUnchanged) {
		return true, nil
	}
	return ok, err
}

func unfilled(row []change.Value, columns []int) bool {
	for _, c := range columns {
		if row[c].IsUnchanged() {
			return true
		}
	}
	return false
}

// up goes from an accepted row of p to the roots above it.
func (w *walker) up(p *place, key change.Key, row []change.Value) error {
	switch {
	case p.parent == nil:
		return w.add(key)
	case p.link == nil:
		return w.parents(&p.up, row, p.parent)
	}
	l := p.link
	return w.each(&p.up, row, func(link change.Key) error {
		values, ok, err := w.row(l.t, link, &l.walkBuf, &l.walkRow)
		if err != nil || !ok {
			return err
		}
		if ok, err = maybe(l.where, values); err != nil || !ok {
			return err
		}
		return w.parents(&l.up, values, p.parent)
	})
}

// parents goes on with the rows of p that the lookup finds.
func (w *walker) parents(l *lookup, row []change.Value, p *place) error {
	return w.each(l, row, func(key change.Key) error {
		if p.parent == nil && p.where == nil {
			return w.add(key) // whether it exists, its build will see
		}
		values, ok, err := w.row(p.t, key, &p.walkBuf, &p.walkRow)
		if err != nil || !ok {
			return err
		}
		if ok, err = maybe(p.where, values); err != nil || !ok {
			return err
		}
		return w.up(p, key, values)
	})
}

func (w *walker) row(t *image.Table, key change.Key, buf *[]byte, values *[]change.Value) ([]change.Value, bool, error) {
	_, data, b, ok, err := t.Row(w.r, (*buf)[:0], key)
	*buf = b
	if err != nil || !ok {
		return nil, false, err
	}
	*values, err = change.Row{Schema: t.Layout, Data: data}.Values(*values)
	return *values, err == nil, err
}

// each calls fn with the key of each row that the lookup finds. fn may read;
// it must not keep the key.
func (w *walker) each(l *lookup, row []change.Value, fn func(key change.Key) error) error {
	prefix, ok := l.prefix(nil, row)
	if !ok {
		return nil
	}
	if l.index == nil {
		return fn(prefix)
	}
	lower, upper := prefix, image.Successor(nil, prefix)
	var keys []byte
	var ends []int
	for {
		keys, ends = keys[:0], ends[:0]
		err := w.r.Scan(lower, upper, func(k, _ []byte) (bool, error) {
			keys = append(keys, k[len(prefix):]...)
			ends = append(ends, len(keys))
			return len(ends) < scanRun, nil
		})
		if err != nil {
			return err
		}
		start := 0
		for _, end := range ends {
			if err := fn(keys[start:end:end]); err != nil {
				return err
			}
			start = end
		}
		if len(ends) < scanRun {
			return nil
		}
		last := keys[ends[len(ends)-2]:]
		lower = append(append(append([]byte{}, prefix...), last...), 0)
	}
}
