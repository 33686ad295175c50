package join_test

import (
	"bytes"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/join"
)

// brute computes a view's documents by nested loops over whole tables: no
// index, no key lookup, nothing shared with the code under test but AppendJSON.
type brute struct {
	w     *world
	state map[string]rows
	where map[string]func(row []change.Value, s *change.Schema) bool
}

func (b *brute) name(topic string) string { return strings.TrimPrefix(topic, "db.public.") }

func (b *brute) docs(def *join.Definition) map[string]string {
	out := map[string]string{}
	name := b.name(def.Table)
	for key, row := range b.state[name] {
		if b.accepts(def.Where, name, row) {
			out[key] = string(b.object(&def.Node, row, nil))
		}
	}
	return out
}

func (b *brute) accepts(where, table string, row []change.Value) bool {
	return where == "" || b.where[where](row, b.w.tables[table].schema)
}

func (b *brute) object(def *join.Node, row []change.Value, dst []byte) []byte {
	s := b.w.tables[b.name(def.Table)].schema
	dst = append(dst, '{')
	sep := func(name string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(change.AppendJSONString(dst, name), ':')
	}
	if def.Fields == nil {
		for i := range s.Columns {
			sep(s.Columns[i].Name)
			dst = change.AppendJSON(dst, row[i])
		}
	}
	for _, f := range def.Fields {
		sep(f.Name)
		dst = change.AppendJSON(dst, row[s.Column(f.Column)])
	}
	lists := map[string][][]change.Value{}
	for i := range def.Nest {
		r := &def.Nest[i]
		list := b.related(def, r, row)
		lists[r.Name] = list
		sep(r.Name)
		if r.Kind != join.HasMany {
			if len(list) == 0 {
				dst = append(dst, "null"...)
			} else {
				dst = b.object(&r.Node, list[0], dst)
			}
			continue
		}
		if r.Limit > 0 && len(list) > r.Limit {
			list = list[:r.Limit]
		}
		dst = append(dst, '[')
		for j, child := range list {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = b.object(&r.Node, child, dst)
		}
		dst = append(dst, ']')
	}
	for _, k := range def.Calc {
		sep(k.Name)
		dst = append(dst, b.calc(def, &k, lists[k.Relation])...)
	}
	return append(dst, '}')
}

func (b *brute) related(def *join.Node, r *join.Relation, row []change.Value) [][]change.Value {
	parent, child := b.name(def.Table), b.name(r.Table)
	type found struct {
		row  []change.Value
		sort []byte
	}
	var list []found
	add := func(row []change.Value, link string) {
		if b.accepts(r.Where, child, row) {
			list = append(list, found{row, b.sortKey(r, child, row, link)})
		}
	}
	match := func(holder, target string, by []join.By, h, t []change.Value) bool {
		for _, p := range by {
			x, y := h[b.w.tables[holder].schema.Column(p.Column)], t[b.w.tables[target].schema.Column(p.Refers)]
			if x.IsNull() || y.IsNull() || !bytes.Equal(change.AppendKeyPart(nil, x, false), change.AppendKeyPart(nil, y, false)) {
				return false
			}
		}
		return true
	}
	for _, c := range b.state[child] {
		switch {
		case r.Through != nil:
			link := b.name(r.Through.Table)
			for k, l := range b.state[link] {
				if b.accepts(r.Through.Where, link, l) && match(link, parent, r.Through.Near, l, row) && match(link, child, r.Through.Far, l, c) {
					add(c, k)
				}
			}
		case r.Kind == join.BelongsTo:
			if match(parent, child, r.By, row, c) {
				add(c, "")
			}
		default:
			if match(child, parent, r.By, c, row) {
				add(c, "")
			}
		}
	}
	slices.SortFunc(list, func(x, y found) int { return bytes.Compare(x.sort, y.sort) })
	out := make([][]change.Value, len(list))
	for i := range list {
		out[i] = list[i].row
	}
	return out
}

// sortKey spells the total order of a list: nulls, then values (text by bytes, numbers of small size), then keys.
func (b *brute) sortKey(r *join.Relation, table string, row []change.Value, link string) []byte {
	s := b.w.tables[table].schema
	var k []byte
	for _, o := range r.Order {
		v := row[s.Column(o.Column)]
		var part []byte
		switch {
		case v.IsNull() && o.NullsFirst:
			part = []byte{0}
		case v.IsNull():
			part = []byte{9}
		case v.Kind() == change.KindInt:
			n := v.Int64() + 1000
			if o.Desc {
				n = 2000 - n
			}
			part = []byte{1, byte(n >> 8), byte(n)}
		default:
			part = append([]byte{1}, v.Raw()...)
			for len(part) < 40 {
				part = append(part, 0)
			}
			if o.Desc {
				for i := 1; i < len(part); i++ {
					part[i] = ^part[i]
				}
			}
		}
		k = append(k, part...)
	}
	return append(append(k, b.w.tables[table].key(row)...), link...)
}

func (b *brute) calc(def *join.Node, k *join.Calc, list [][]change.Value) string {
	if k.Func == "count" && k.Column == "" {
		return big.NewInt(int64(len(list))).String()
	}
	var child string
	for i := range def.Nest {
		if def.Nest[i].Name == k.Relation {
			child = b.name(def.Nest[i].Table)
		}
	}
	c := b.w.tables[child].schema.Column(k.Column)
	var values []int64
	for _, row := range list {
		if !row[c].IsNull() {
			values = append(values, row[c].Int64())
		}
	}
	if k.Func == "count" {
		return big.NewInt(int64(len(values))).String()
	}
	if len(values) == 0 {
		return "null"
	}
	sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
	n := int64(0)
	switch k.Func {
	case "min":
		n = values[0]
	case "max":
		n = values[len(values)-1]
	case "sum":
		for _, v := range values {
			n += v
		}
	}
	return big.NewInt(n).String()
}
