package config

import (
	"fmt"
	"strings"
)

func (d *decoder) views(n *node, cfg *Config) []*View {
	o := d.object(n, cfg.pos("views"))
	if o.n == nil {
		return nil
	}
	var out []*View
	for _, e := range o.n.entries {
		d.checkName("view", e.key, e.pos)
		for _, v := range out {
			if strings.EqualFold(v.Name, e.key) {
				d.problem(e.pos, fmt.Sprintf("the views %s and %s differ in case only", quote(v.Name), quote(e.key)), "rename one")
			}
		}
		out = append(out, d.view(e, cfg))
	}
	return out
}

var laterTypes = []string{"stream", "aggregate", "fold", "pattern"}

func (d *decoder) view(e entry, cfg *Config) *View {
	v := &View{Name: e.key, Pos: e.pos, Emit: EmitCoalesced, definition: canonical(e.value, false, "to")}
	o := d.object(e.value, e.pos)
	if tn, text, ok := o.scalar("type"); ok && text != "document" {
		if contains(laterTypes, text) {
			d.problem(tn.pos, text+" views are not in this version yet", "document views are")
		} else {
			d.problem(tn.pos, "type must be document, not "+shown(tn, text), "")
		}
	}
	from := o.child("from")
	if from == nil {
		d.problem(e.pos, "the view has no from", "name its root table: from: source.schema.table")
	} else {
		v.Table = d.tableRef(from, TableRef{}, cfg)
	}
	d.node(o, &v.Node, cfg)
	o.enum("emit", &v.Emit, EmitCoalesced, EmitTransactional, EmitEveryTransaction)
	o.integer("partitions", &v.Partitions, 1, 1024)
	v.To = d.targets(o.child("to"), o.at("to"), v, cfg)
	d.hintRelationKeys(o)
	o.done()
	return v
}

// hintRelationKeys explains keys that belong into nest.
func (d *decoder) hintRelationKeys(o *object) {
	for _, key := range []string{"order", "limit", "by", "through", "belongs_to", "has_one", "has_many"} {
		if o.has(key) {
			o.known = append(o.known, key)
			d.problem(o.at(key), fmt.Sprintf("unknown key %s in a view", quote(key)), key+" belongs to a relation: nest: { NAME: { has_many: TABLE, … } }")
		}
	}
}

// node decodes what a view and a relation have in common.
func (d *decoder) node(o *object, out *Node, cfg *Config) {
	out.Where = d.expr(o.child("where"))
	out.Fields = d.fields(o)
	seen := map[string]Pos{}
	for _, f := range out.Fields {
		d.unique(seen, f.Name, f.Pos)
	}
	nest := d.object(o.child("nest"), o.at("nest"))
	if nest.n != nil {
		for _, e := range nest.n.entries {
			d.unique(seen, e.key, e.pos)
			if r := d.relation(e, out.Table, cfg); r != nil {
				out.Nest = append(out.Nest, r)
			}
		}
	}
	calc := d.object(o.child("calc"), o.at("calc"))
	if calc.n != nil {
		for _, e := range calc.n.entries {
			d.unique(seen, e.key, e.pos)
			if c := d.calc(e, out, nest); c != nil {
				out.Calc = append(out.Calc, c)
			}
		}
	}
}

// unique reports a name that a document has twice, or cannot have.
func (d *decoder) unique(seen map[string]Pos, name string, pos Pos) {
	if old, ok := seen[name]; ok {
		d.problem(pos, fmt.Sprintf("the document has two fields %s", quote(name)), fmt.Sprintf("the first one is at %s; rename one", old))
		return
	}
	seen[name] = pos
	switch {
	case name == "":
		d.problem(pos, "a field has no name", "")
	case strings.ContainsRune(name, '.') || strings.TrimSpace(name) != name || strings.ContainsRune(name, 0):
		d.problem(pos, fmt.Sprintf("%s cannot be a field of a document", quote(name)), "rename it: { new_name: column }; search engines read a dot as nesting")
	case contains(reservedFields, name):
		d.problem(pos, fmt.Sprintf("%s is reserved by search engines", quote(name)), "rename it: { new_name: column }")
	}
}

var reservedFields = []string{
	"_id", "_index", "_source", "_type", "_routing", "_version", "_field_names", "_ignored", "_meta",
	"_doc_count", "_seq_no", "_primary_term", "_size", "_tier", "_nested_path", "_data_stream_timestamp",
}

func (d *decoder) expr(n *node) *Expr {
	if n == nil {
		return nil
	}
	text, ok := d.value(n)
	if !ok {
		return nil
	}
	e := &Expr{Text: text, Pos: n.pos, inset: n.inset}
	if hasRef(n.text) {
		e.inset = -1
	}
	if strings.TrimSpace(text) == "" {
		d.problem(n.pos, "the expression is empty", "leave the key out, or write an SQL expression")
		return nil
	}
	return e
}

// fields decodes a list of names and of {name: expression} maps. Nil means all
// columns; a list that is there and empty means none.
func (d *decoder) fields(o *object) []Field {
	n := o.child("fields")
	if n == nil {
		return nil
	}
	if n.kind == nullNode {
		d.problem(n.pos, "fields has no value", "leave it out for all columns, or write [] for none")
		return nil
	}
	if n.kind == scalarNode && n.text == "*" {
		return nil
	}
	out := []Field{}
	for _, it := range d.list(n) {
		switch it.kind {
		case mapNode:
			for _, e := range it.entries {
				if f, ok := d.computed(e); ok {
					out = append(out, f)
				}
			}
		default:
			text, ok := d.value(it)
			if !ok {
				continue
			}
			name, plain := columnName(text)
			if !plain {
				d.problem(it.pos, fmt.Sprintf("%s is not a column's name", quote(text)), "name the field: { new_name: \"expression\" }")
				continue
			}
			out = append(out, Field{Name: name, Column: name, Pos: it.pos})
		}
	}
	return out
}

// computed is a field { name: column or expression }.
func (d *decoder) computed(e entry) (Field, bool) {
	f := Field{Name: e.key, Pos: e.pos}
	if e.value.kind == nullNode {
		d.problem(e.pos, fmt.Sprintf("the field %s has no value", quote(e.key)), "write { new_name: column } or { new_name: \"expression\" }")
		return f, false
	}
	x := d.expr(e.value)
	if x == nil {
		return f, false
	}
	if column, ok := columnName(x.Text); ok {
		f.Column = column
	} else {
		f.Expr = x
	}
	return f, true
}

// columnName reads a text that is a column's name and nothing else: a plain
// identifier, or one in double quotes. TRUE, FALSE and NULL are expressions.
func columnName(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, `"`) {
		part, tail, err := cutPart(text)
		return part, err == nil && tail == "" && part != ""
	}
	switch strings.ToLower(text) {
	case "true", "false", "null", "":
		return "", false
	}
	for i, c := range text {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
		if !letter && (i == 0 || c != '$' && (c < '0' || c > '9')) {
			return "", false
		}
	}
	return text, true
}
