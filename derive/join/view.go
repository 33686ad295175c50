package join

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/image"
)

// View is a compiled definition. It is a derive.Stage.
type View struct {
	def   Definition
	root  *node
	nodes []*node // all, parents first
	info  *derive.Info
}

// Compile checks the definition against the tables' layouts. An error is
// Problems with all that is wrong. known are all topics, for suggestions.
func Compile(def Definition, schemas func(topic string) (*change.Schema, bool), known ...string) (*View, error) {
	c := &compiler{schemas: schemas, known: known}
	root := c.node(&def.Node, nil, nil, nil)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	v := &View{def: def, root: root, nodes: c.nodes}
	var err error
	v.info, err = v.describe()
	return v, err
}

// Info describes the view.
func (v *View) Info() *derive.Info { return v.info }

// Needs returns what the view needs of each topic's image.
func (v *View) Needs() map[string]image.Need {
	needs := map[string]image.Need{}
	add := func(s *change.Schema, used map[int]bool, indexes ...image.IndexNeed) {
		n := needs[s.Topic]
		n.Schema = s
		for _, i := range slices.Sorted(maps.Keys(used)) {
			if number := s.Columns[i].Number; !slices.Contains(n.Columns, number) {
				n.Columns = append(n.Columns, number)
			}
		}
		for _, x := range indexes {
			if len(x.Columns) > 0 && !slices.ContainsFunc(n.Indexes, x.Equal) {
				n.Indexes = append(n.Indexes, x)
			}
		}
		needs[s.Topic] = n
	}
	for _, n := range v.nodes {
		add(n.schema, n.used)
		switch {
		case n.parent == nil:
		case n.link != nil:
			add(n.parent.schema, nil, indexNeed(n.parent.schema, n.link.edge.up, n.link.edge.fold))
			add(n.link.schema, n.link.used, indexNeed(n.link.schema, n.link.edge.down, n.link.edge.fold),
				indexNeed(n.link.schema, n.edge.up, n.edge.fold))
			add(n.schema, nil, indexNeed(n.schema, n.edge.down, n.edge.fold))
		default:
			add(n.parent.schema, nil, indexNeed(n.parent.schema, n.edge.up, n.edge.fold))
			add(n.schema, nil, indexNeed(n.schema, n.edge.down, n.edge.fold))
		}
	}
	return needs
}

// indexNeed is the index by which rows with these columns are found; none if the table's key does it.
func indexNeed(s *change.Schema, columns []int, fold []bool) image.IndexNeed {
	if keyOrder(s, columns, fold) != nil {
		return image.IndexNeed{}
	}
	x := image.IndexNeed{Fold: fold}
	for _, i := range columns {
		x.Columns = append(x.Columns, s.Columns[i].Number)
	}
	return x
}

// keyOrder returns, for each key column, its place among columns; nil if
// columns are not the whole key, compared as the key is.
func keyOrder(s *change.Schema, columns []int, fold []bool) []int {
	if len(columns) != len(s.Key) {
		return nil
	}
	order := make([]int, len(s.Key))
	for i, k := range s.Key {
		if order[i] = slices.Index(columns, k); order[i] < 0 || fold[order[i]] != s.Columns[k].Fold {
			return nil
		}
	}
	return order
}

func (v *View) describe() (*derive.Info, error) {
	info := &derive.Info{Name: v.def.Name, Root: v.def.Table, Topics: v.def.Topics(), Fields: v.root.describe()}
	for _, k := range v.root.schema.Key {
		c := &v.root.schema.Columns[k]
		info.Key = append(info.Key, derive.KeyColumn{Name: c.Name, Kind: c.Kind, Fold: c.Fold})
	}
	for _, n := range v.nodes {
		if n.rel != nil {
			info.Relations = append(info.Relations, n.resolved())
		}
	}
	var err error
	info.Fingerprint, err = v.fingerprint()
	return info, err
}

func (n *node) describe() []derive.Field {
	var out []derive.Field
	for _, f := range n.fields {
		out = append(out, derive.Field{Name: f.name, Kind: f.kind, SourceType: f.source})
	}
	for _, m := range n.nest {
		out = append(out, derive.Field{Name: m.rel.Name, List: m.rel.Kind == HasMany, Fields: m.describe()})
	}
	for _, k := range n.calcs {
		out = append(out, derive.Field{Name: k.name, Kind: k.kind})
	}
	return out
}

// resolved returns the edge in the form that `by`, `near` and `far` may spell out.
func (n *node) resolved() derive.Relation {
	r := derive.Relation{Kind: string(n.rel.Kind), Topic: n.schema.Topic}
	for m := n; m.rel != nil; m = m.parent {
		r.Path = append(r.Path, m.rel.Name)
	}
	slices.Reverse(r.Path)
	if n.link == nil {
		r.By = columnPairs(n.parent.schema, n.schema, n.edge, n.rel.Kind == BelongsTo)
		return r
	}
	r.Through = n.link.schema.Topic
	r.Near = columnPairs(n.parent.schema, n.link.schema, n.link.edge, false)
	r.Far = columnPairs(n.link.schema, n.schema, n.edge, true)
	return r
}

func columnPairs(up, down *change.Schema, e edge, holderUp bool) []derive.ColumnPair {
	var out []derive.ColumnPair
	for i := range e.up {
		p := derive.ColumnPair{Holder: down.Columns[e.down[i]].Name, Refers: up.Columns[e.up[i]].Name}
		if holderUp {
			p.Holder, p.Refers = p.Refers, p.Holder
		}
		out = append(out, p)
	}
	return out
}

// fingerprint hashes the resolved definition: what was written, the edges, and
// the numbers and kinds of all columns used.
func (v *View) fingerprint() (string, error) {
	def, err := v.def.marshal()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(def)
	rel, err := json.Marshal(v.resolvedAll())
	if err != nil {
		return "", fmt.Errorf("view %s: %w", v.def.Name, err)
	}
	h.Write(rel)
	var buf []byte
	column := func(s *change.Schema, used map[int]bool) {
		for _, i := range slices.Sorted(maps.Keys(used)) {
			buf = binary.AppendUvarint(buf, uint64(s.Columns[i].Number))
			buf = append(append(buf, byte(s.Columns[i].Kind)), s.Columns[i].Name...)
			buf = append(buf, 0)
		}
		buf = append(buf, 0xFF)
	}
	for _, n := range v.nodes {
		column(n.schema, n.used)
		if n.link != nil {
			column(n.link.schema, n.link.used)
		}
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func (v *View) resolvedAll() []derive.Relation {
	var out []derive.Relation
	for _, n := range v.nodes {
		if n.rel != nil {
			out = append(out, n.resolved())
		}
	}
	return out
}

// New returns the definition as the Runner takes it.
func New(def Definition, known ...string) derive.View { return &source{def: def, known: known} }

// Restore is the inverse of a view's Definition bytes, for derive.Options.
func Restore(definition []byte) (derive.View, error) {
	s := &source{}
	if err := json.Unmarshal(definition, &s.def); err != nil {
		return nil, fmt.Errorf("kept definition of a view: %w", err)
	}
	return s, nil
}

// source is a Definition as a derive.View.
type source struct {
	def   Definition
	known []string
}

func (s *source) Name() string                { return s.def.Name }
func (s *source) Definition() ([]byte, error) { return s.def.marshal() }
func (s *source) Topics() []string            { return s.def.Topics() }
func (s *source) Compile(schemas derive.Schemas) (derive.Stage, error) {
	v, err := Compile(s.def, schemas, s.known...)
	if err != nil {
		return nil, err
	}
	return v, nil
}
