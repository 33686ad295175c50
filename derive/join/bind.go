package join

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/expr"
	"github.com/tailwater/tailwater/derive/image"
)

// bound is a View over certain images: the tree again, columns being positions
// in the images' layouts, with scratch memory. One goroutine.
type bound struct {
	root   *place
	places []*place
	held   bool
}

type place struct {
	t      *image.Table
	parent *place
	kind   Kind
	link   *linkPlace
	down   lookup // from the row above (or the link's) to this table
	up     lookup // from this row to the row above (or the link)
	where  *expr.Expr
	used   []int
	fields []placeField
	nest   []*place
	names  [][]byte // of nest, as JSON
	calcs  []placeCalc
	order  []orderColumn
	limit  int

	// Scratch, reused for each row.
	values  []change.Value
	buf     []byte
	rows    []listed
	walkRow []change.Value
	walkBuf []byte
}

type linkPlace struct {
	t       *image.Table
	down    lookup // from the row above to the link
	up      lookup // from the link to the row above
	where   *expr.Expr
	used    []int
	values  []change.Value
	buf     []byte
	walkRow []change.Value
	walkBuf []byte
}

type placeField struct {
	name   []byte // "name": as JSON
	column int
	expr   *expr.Expr // instead
}

type placeCalc struct {
	name      []byte
	child     int
	column    int
	expr      *expr.Expr
	where     *expr.Expr
	rows      bool // counts rows
	aggregate expr.Aggregate
}

// lookup finds rows of a table by columns of another row.
type lookup struct {
	t     *image.Table
	index *image.Index // nil: the columns are the table's key
	from  []int        // columns of the other row
	fold  []bool
}

// Bind readies the view for these images.
func (v *View) Bind(tables func(topic string) *image.Table) (derive.Bound, error) {
	b := &bound{}
	byNode := map[*node]*place{}
	for _, n := range v.nodes {
		p, err := bindNode(n, byNode[n.parent], tables)
		if err != nil {
			return nil, fmt.Errorf("view %s: %w", v.def.Name, err)
		}
		byNode[n] = p
		b.places = append(b.places, p)
	}
	b.root = b.places[0]
	for _, n := range v.nodes {
		p := byNode[n]
		for _, m := range n.nest {
			p.nest = append(p.nest, byNode[m])
			p.names = append(p.names, append(change.AppendJSONString(nil, m.rel.Name), ':'))
		}
		if err := p.bindCalcs(n); err != nil {
			return nil, fmt.Errorf("view %s: %w", v.def.Name, err)
		}
	}
	return b, nil
}

func bindNode(n *node, parent *place, tables func(string) *image.Table) (*place, error) {
	t := tables(n.schema.Topic)
	if t == nil {
		return nil, fmt.Errorf("no image of %s", n.schema.Topic)
	}
	p := &place{t: t, parent: parent, used: positions(t, n.schema, slices.Sorted(maps.Keys(n.used)))}
	columns := imageColumns(t, n.schema)
	var err error
	if p.where, err = bindPredicate(n.where, columns); err != nil {
		return nil, err
	}
	for _, f := range n.fields {
		pf := placeField{name: append(change.AppendJSONString(nil, f.name), ':'), column: -1}
		if f.column >= 0 {
			pf.column = positions(t, n.schema, []int{f.column})[0]
		} else if pf.expr, err = expr.Compile(f.expr, columns); err != nil {
			return nil, err
		}
		p.fields = append(p.fields, pf)
	}
	if n.rel == nil {
		return p, nil
	}
	p.kind, p.limit = n.rel.Kind, n.rel.Limit
	for _, o := range n.order {
		o.column = positions(t, n.schema, []int{o.column})[0]
		p.order = append(p.order, o)
	}
	if n.link == nil {
		p.down = bindLookup(n.schema, t, n.edge.down, n.parent.schema, parent.t, n.edge.up, n.edge.fold)
		p.up = bindLookup(n.parent.schema, parent.t, n.edge.up, n.schema, t, n.edge.down, n.edge.fold)
		return p, nil
	}
	return p, p.bindLink(n, tables)
}

func (p *place) bindLink(n *node, tables func(string) *image.Table) error {
	s := n.link.schema
	t := tables(s.Topic)
	if t == nil {
		return fmt.Errorf("no image of %s", s.Topic)
	}
	l := &linkPlace{t: t, used: positions(t, s, slices.Sorted(maps.Keys(n.link.used)))}
	near, far := n.link.edge, n.edge
	l.down = bindLookup(s, t, near.down, n.parent.schema, p.parent.t, near.up, near.fold)
	l.up = bindLookup(n.parent.schema, p.parent.t, near.up, s, t, near.down, near.fold)
	p.down = bindLookup(n.schema, p.t, far.down, s, t, far.up, far.fold)
	p.up = bindLookup(s, t, far.up, n.schema, p.t, far.down, far.fold)
	p.link = l
	var err error
	l.where, err = bindPredicate(n.link.where, imageColumns(t, s))
	return err
}

// bindLookup finds rows of target by columns; source's columns stand at the same places in from.
func bindLookup(s *change.Schema, target *image.Table, columns []int, fromSchema *change.Schema, source *image.Table, from []int, fold []bool) lookup {
	at := positions(source, fromSchema, from)
	if order := keyOrder(s, columns, fold); order != nil {
		l := lookup{t: target}
		for _, i := range order {
			l.from, l.fold = append(l.from, at[i]), append(l.fold, fold[i])
		}
		return l
	}
	return lookup{t: target, index: target.Index(indexNeed(s, columns, fold)), from: at, fold: fold}
}

// positions translates columns of a schema into those of an image's layout.
func positions(t *image.Table, s *change.Schema, columns []int) []int {
	out := make([]int, len(columns))
	for i, c := range columns {
		out[i] = t.Layout.ByNumber(s.Columns[c].Number)
	}
	return out
}

// imageColumns names the image's columns as the view's schema does.
func imageColumns(t *image.Table, s *change.Schema) []expr.Column {
	out := make([]expr.Column, len(t.Layout.Columns))
	for i := range t.Layout.Columns {
		c := &t.Layout.Columns[i]
		out[i] = expr.Column{Kind: c.Kind, SourceType: c.SourceType, Nullable: c.Nullable, Fold: c.Fold} // nameless: not of this view
		if j := s.ByNumber(c.Number); j >= 0 {
			out[i].Name = s.Columns[j].Name
		}
	}
	return out
}

func bindPredicate(src string, columns []expr.Column) (*expr.Expr, error) {
	if src == "" {
		return nil, nil
	}
	return expr.CompilePredicate(src, columns)
}

func (p *place) bindCalcs(n *node) error {
	for _, k := range n.calcs {
		child := p.nest[k.child]
		m := n.nest[k.child]
		columns := imageColumns(child.t, m.schema)
		pc := placeCalc{name: append(change.AppendJSONString(nil, k.name), ':'), child: k.child, column: -1}
		kind := change.KindInt
		var err error
		switch {
		case k.expr != "":
			if pc.expr, err = expr.Compile(k.expr, columns); err != nil {
				return err
			}
			kind = pc.expr.Kind()
		case k.column >= 0:
			pc.column = positions(child.t, m.schema, []int{k.column})[0]
			kind = child.t.Layout.Columns[pc.column].Kind
		default:
			pc.rows = true
		}
		if pc.where, err = bindPredicate(k.where, columns); err != nil {
			return err
		}
		if pc.aggregate, _, err = expr.NewAggregate(k.fn, kind, expr.AggregateOptions{Round: k.round, Approximate: true}); err != nil {
			return err
		}
		p.calcs = append(p.calcs, pc)
	}
	return nil
}

// Root is the image whose rows own the documents.
func (b *bound) Root() *image.Table { return b.root.t }

// prefix appends the key, or the start of the index keys, of the rows that the
// lookup finds for row; ok is false where null or an unfilled column joins nothing.
func (l *lookup) prefix(dst []byte, row []change.Value) ([]byte, bool) {
	if l.index != nil {
		dst = l.t.IndexPrefix(dst, l.index)
	}
	for i, c := range l.from {
		v := row[c]
		if v.IsNull() || v.IsUnchanged() {
			return dst, false
		}
		dst = change.AppendKeyPart(dst, v, l.fold[i])
	}
	return dst, true
}
