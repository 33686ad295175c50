package join

import (
	"bytes"
	"errors"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/expr"
	"github.com/tailwater/tailwater/derive/image"
)

// span is a piece of a place's buffer.
type span struct{ start, end int }

func (s span) of(b []byte) []byte { return b[s.start:s.end:s.end] }

// listed is an accepted row of a relation, in the place's buffer.
type listed struct{ sort, row span }

// Build appends the document of a root.
func (b *bound) Build(r image.Reader, root change.Key, dst []byte) ([]byte, derive.Outcome, error) {
	p := b.root
	_, row, buf, ok, err := p.t.Row(r, p.buf[:0], root)
	p.buf = buf
	if err != nil || !ok {
		return dst, derive.Absent, err
	}
	b.held = false
	ok, err = b.accept(p, row)
	if err != nil {
		return dst, derive.Absent, err
	}
	if ok && !b.held {
		dst, err = b.object(r, p, dst)
	}
	switch {
	case err != nil:
		return dst, derive.Absent, err
	case b.held:
		return dst, derive.Held, nil
	case !ok:
		return dst, derive.Absent, nil
	}
	return dst, derive.Present, nil
}

// accept decodes a row into p.values and applies the place's filter. A needed
// column that is not filled holds the document.
func (b *bound) accept(p *place, row []byte) (bool, error) {
	var err error
	if p.values, err = (change.Row{Schema: p.t.Layout, Data: row}).Values(p.values); err != nil {
		return false, err
	}
	ok, err := b.holds(p.where, p.values)
	if ok && unfilled(p.values, p.used) {
		b.held = true
	}
	return ok, err
}

// holds evaluates a filter; one that hangs on an unfilled column holds the document.
func (b *bound) holds(where *expr.Expr, row []change.Value) (bool, error) {
	if where == nil {
		return true, nil
	}
	ok, err := where.True(row)
	if errors.Is(err, expr.ErrUnchanged) {
		b.held = true
		return false, nil
	}
	return ok, err
}

// object appends the object of the row in p.values.
func (b *bound) object(r image.Reader, p *place, dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	start := len(dst)
	for i := range p.fields {
		f := &p.fields[i]
		dst = append(comma(dst, start), f.name...)
		if f.expr == nil {
			dst = change.AppendJSON(dst, p.values[f.column])
			continue
		}
		v, err := f.expr.Eval(p.values)
		if err != nil {
			return dst, err
		}
		dst = change.AppendJSON(dst, v)
	}
	for i := range p.calcs {
		p.calcs[i].aggregate.Reset()
	}
	for i, m := range p.nest {
		if err := b.gather(r, p, i, m); err != nil || b.held {
			return dst, err
		}
		dst = append(comma(dst, start), p.names[i]...)
		var err error
		if dst, err = b.related(r, m, dst); err != nil || b.held {
			return dst, err
		}
	}
	for i := range p.calcs {
		k := &p.calcs[i]
		v, err := k.aggregate.Result()
		if err != nil {
			return dst, err
		}
		dst = change.AppendJSON(append(comma(dst, start), k.name...), v)
	}
	return append(dst, '}'), nil
}

func comma(dst []byte, start int) []byte {
	if len(dst) > start {
		return append(dst, ',')
	}
	return dst
}

// related appends what the gathered rows of m become: a list, an object or null.
func (b *bound) related(r image.Reader, m *place, dst []byte) ([]byte, error) {
	if len(m.order) > 0 || m.link != nil {
		slices.SortFunc(m.rows, func(x, y listed) int { return bytes.Compare(x.sort.of(m.buf), y.sort.of(m.buf)) })
	}
	if m.kind != HasMany {
		if len(m.rows) == 0 {
			return append(dst, "null"...), nil
		}
		return b.listed(r, m, m.rows[0], dst)
	}
	n := len(m.rows)
	if m.limit > 0 {
		n = min(n, m.limit)
	}
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = b.listed(r, m, m.rows[i], dst); err != nil || b.held {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (b *bound) listed(r image.Reader, m *place, l listed, dst []byte) ([]byte, error) {
	var err error
	if m.values, err = (change.Row{Schema: m.t.Layout, Data: l.row.of(m.buf)}).Values(m.values); err != nil {
		return dst, err
	}
	return b.object(r, m, dst)
}

// gather collects the accepted rows of relation i of p and feeds p's aggregates with them.
func (b *bound) gather(r image.Reader, p *place, i int, m *place) error {
	m.buf, m.rows = m.buf[:0], m.rows[:0]
	w := walker{r: r}
	if m.link == nil {
		return w.each(&m.down, p.values, func(key change.Key) error { return b.take(r, p, i, m, key, nil) })
	}
	l := m.link
	return w.each(&l.down, p.values, func(link change.Key) error {
		values, ok, err := w.row(l.t, link, &l.buf, &l.values)
		if err != nil || !ok {
			return err
		}
		if ok, err = b.holds(l.where, values); err != nil || !ok {
			return err
		}
		if unfilled(values, l.used) {
			b.held = true
			return nil
		}
		return w.each(&m.down, values, func(key change.Key) error { return b.take(r, p, i, m, key, link) })
	})
}

// take adds one related row if the filter accepts it.
func (b *bound) take(r image.Reader, p *place, i int, m *place, key, link change.Key) error {
	start := len(m.buf)
	_, row, buf, ok, err := m.t.Row(r, m.buf, key)
	m.buf = buf
	if err != nil || !ok {
		m.buf = m.buf[:start]
		return err
	}
	l := listed{row: span{len(buf) - len(row), len(buf)}}
	if ok, err = b.accept(m, row); err != nil || !ok || b.held {
		m.buf = m.buf[:start]
		return err
	}
	for j := range p.calcs {
		if k := &p.calcs[j]; k.child == i {
			if err := b.add(k, m.values); err != nil {
				return err
			}
		}
	}
	if len(m.order) > 0 || link != nil {
		l.sort.start = len(m.buf)
		m.buf = appendOrder(m.buf, m.order, m.values)
		m.buf = append(append(m.buf, key...), link...)
		l.sort.end = len(m.buf)
	}
	m.rows = append(m.rows, l)
	return nil
}

// add feeds a row to an aggregate.
func (b *bound) add(k *placeCalc, row []change.Value) error {
	if ok, err := b.holds(k.where, row); err != nil || !ok {
		return err
	}
	var v change.Value
	switch {
	case k.rows:
		v = change.Int(1)
	case k.expr != nil:
		var err error
		if v, err = k.expr.Eval(row); err != nil {
			return err
		}
	default:
		v = row[k.column]
	}
	return k.aggregate.Add(v)
}

// appendOrder appends bytes that order rows as the columns say.
func appendOrder(dst []byte, order []orderColumn, row []change.Value) []byte {
	for _, o := range order {
		v := row[o.column]
		if v.IsNull() {
			if o.nullsFirst {
				dst = append(dst, 0)
			} else {
				dst = append(dst, 2)
			}
			continue
		}
		dst = append(dst, 1)
		start := len(dst)
		dst = change.AppendKeyPart(dst, v, false)
		if o.desc {
			for i := start; i < len(dst); i++ {
				dst[i] = ^dst[i]
			}
		}
	}
	return dst
}
