package config

import (
	"fmt"
	"math"
	"strings"
)

var relationKinds = []string{string(BelongsTo), string(HasOne), string(HasMany)}

// relation decodes one entry of nest.
func (d *decoder) relation(e entry, parent TableRef, cfg *Config) *Relation {
	r := &Relation{Name: e.key, Pos: e.pos}
	o := d.object(e.value, e.pos)
	for _, kind := range relationKinds {
		n := o.child(kind)
		if n == nil {
			continue
		}
		if r.Kind != "" {
			d.problem(o.at(kind), fmt.Sprintf("a relation has one kind, this has %s and %s", r.Kind, kind), "keep one")
			continue
		}
		r.Kind = RelationKind(kind)
		r.Table = d.tableRef(n, parent, cfg)
	}
	if r.Kind == "" && o.n != nil {
		d.kindMissing(o)
	}
	r.Through = d.through(o.child("through"), o.at("through"), parent, cfg)
	r.By = d.by(o.child("by"))
	o.boolean("fold", &r.Fold)
	r.Order = d.order(o.child("order"))
	o.integer("limit", &r.Limit, 1, math.MaxInt32)
	d.node(o, &r.Node, cfg)
	d.checkRelation(o, r)
	o.done()
	return r
}

// kindMissing reports a relation without kind, or with a misspelt one.
func (d *decoder) kindMissing(o *object) {
	for _, e := range o.n.entries {
		if s := suggest(e.key, relationKinds); s != "" && e.key != s {
			return // the unknown key says it
		}
	}
	d.problem(o.pos, "the relation has no kind", "add belongs_to: TABLE (this row refers to the other), has_one: TABLE or has_many: TABLE (the other row refers to this)")
}

func (d *decoder) checkRelation(o *object, r *Relation) {
	if r.Through != nil {
		if r.Kind == BelongsTo {
			d.problem(o.at("through"), "through does not go with belongs_to", "use has_many (a list) or has_one")
		}
		if o.has("by") {
			d.problem(o.at("by"), "by does not go with through", "name the link's columns: through: { table: …, near: column that refers to this row, far: column that refers to the other }")
		}
	}
	if r.Kind == BelongsTo && o.has("order") {
		d.problem(o.at("order"), "order does not go with belongs_to: it is one row", "leave it out")
	}
	if (r.Kind == BelongsTo || r.Kind == HasOne) && o.has("limit") {
		d.problem(o.at("limit"), fmt.Sprintf("limit does not go with %s: it is one row", r.Kind), "leave it out, or use has_many")
	}
}

// through takes a table's name, or { table, near, far, where }.
func (d *decoder) through(n *node, pos Pos, parent TableRef, cfg *Config) *Through {
	if n == nil {
		return nil
	}
	t := &Through{Pos: pos}
	if n.kind == scalarNode {
		t.Table = d.tableRef(n, parent, cfg)
		return t
	}
	if n.kind == nullNode {
		d.problem(pos, "through has no value", "write through: { table: link_table, near: column, far: column }")
		return t
	}
	o := d.object(n, pos)
	if tn := o.child("table"); tn != nil {
		t.Table = d.tableRef(tn, parent, cfg)
	} else if o.n != nil {
		d.problem(pos, "through has no table", "write through: { table: link_table, near: column, far: column }")
	}
	t.Near = d.by(o.child("near"))
	t.Far = d.by(o.child("far"))
	t.Where = d.expr(o.child("where"))
	o.done()
	return t
}

// by takes one column, a list of columns in the order of the key, or a map from
// columns to the ones they refer to.
func (d *decoder) by(n *node) []ByColumn {
	if n == nil {
		return nil
	}
	var out []ByColumn
	add := func(column, refers string, pos Pos) {
		for _, b := range out {
			if b.Column == column && (b.Refers == refers || refers == "") {
				d.problem(pos, fmt.Sprintf("the column %s is here twice", quote(column)), "")
			}
		}
		out = append(out, ByColumn{Column: column, Refers: refers, Pos: pos})
	}
	switch n.kind {
	case nullNode:
		d.problem(n.pos, "no column is given", "name the column that holds the reference, or leave the key out where one foreign key fits")
	case mapNode:
		for _, e := range n.entries {
			if refers, ok := d.column(e.value); ok {
				name, plain := columnName(e.key)
				if !plain {
					name = e.key
				}
				add(name, refers, e.pos)
			}
		}
	default:
		for _, it := range d.list(n) {
			if column, ok := d.column(it); ok {
				add(column, "", it.pos)
			}
		}
	}
	if n.kind != nullNode && len(n.items) == 0 && len(n.entries) == 0 && n.kind != scalarNode {
		d.problem(n.pos, "no column is given", "name the column that holds the reference")
	}
	return out
}

func (d *decoder) column(n *node) (string, bool) {
	text, ok := d.value(n)
	if !ok {
		return "", false
	}
	name, ok := columnName(text)
	if !ok {
		d.problem(n.pos, fmt.Sprintf("%s is not a column's name", quote(text)), "a name with other characters than letters, digits, _ and $ needs double quotes inside the YAML quotes")
	}
	return name, ok
}

// order takes "column [asc|desc] [nulls first|nulls last]", one or a list.
func (d *decoder) order(n *node) []OrderItem {
	var out []OrderItem
	for _, it := range d.list(n) {
		text, ok := d.value(it)
		if !ok {
			continue
		}
		item, err := parseOrder(text)
		if err != nil {
			d.problem(it.pos, err.Error(), "write COLUMN [asc|desc] [nulls first|nulls last]")
			continue
		}
		item.Pos = it.pos
		for _, o := range out {
			if o.Column == item.Column {
				d.problem(it.pos, fmt.Sprintf("the order names the column %s twice", quote(item.Column)), "")
			}
		}
		out = append(out, item)
	}
	return out
}

func parseOrder(text string) (OrderItem, error) {
	text = strings.TrimSpace(text)
	bad := fmt.Errorf("%s is not an order", quote(text))
	head, tail, err := cutColumn(text)
	if err != nil {
		return OrderItem{}, bad
	}
	item := OrderItem{Column: head}
	words := strings.Fields(strings.ToLower(tail))
	if len(words) > 0 && (words[0] == "asc" || words[0] == "desc") {
		item.Desc = words[0] == "desc"
		words = words[1:]
	}
	if len(words) == 2 && words[0] == "nulls" && (words[1] == "first" || words[1] == "last") {
		item.NullsFirst = words[1] == "first"
		words = nil
	}
	if len(words) > 0 {
		return OrderItem{}, bad
	}
	return item, nil
}

// cutColumn takes a column's name off the front of a text.
func cutColumn(text string) (column, tail string, err error) {
	if strings.HasPrefix(text, `"`) {
		column, tail, err = cutPart(text)
		if err == nil && tail != "" && tail[0] != ' ' {
			err = fmt.Errorf("something follows the closing quote")
		}
		return column, tail, err
	}
	word, tail, _ := strings.Cut(text, " ")
	column, ok := columnName(word)
	if !ok {
		return "", "", fmt.Errorf("%s is not a column's name", quote(word))
	}
	return column, tail, nil
}
