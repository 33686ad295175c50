package join

import (
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/expr"
)

// node is a checked place of the tree. Columns are positions in schema.
type node struct {
	path    []string
	rel     *Relation // nil at the root
	schema  *change.Schema
	columns []expr.Column // of schema
	parent  *node
	nest    []*node
	edge    edge // parent (or link) to this
	link    *linkNode
	where   string
	fields  []field
	order   []orderColumn
	calcs   []calc
	used    map[int]bool // columns that the documents depend on
}

// linkNode is the link table between a node and its parent.
type linkNode struct {
	schema  *change.Schema
	columns []expr.Column
	edge    edge // parent to link
	where   string
	used    map[int]bool
}

// edge is an equality of columns of an upper and a lower table.
type edge struct {
	up, down []int
	fold     []bool
}

type field struct {
	name   string
	column int    // or -1
	expr   string // instead
	kind   change.Kind
	source string // source type of a column
}

type orderColumn struct {
	column     int
	desc       bool
	nullsFirst bool
}

type calc struct {
	name   string
	fn     string
	child  int // index in nest
	column int // or -1
	expr   string
	where  string
	round  *int
	kind   change.Kind
}

// compiler collects all problems of one definition.
type compiler struct {
	schemas  func(topic string) (*change.Schema, bool)
	known    []string // topics, for suggestions
	problems Problems
	nodes    []*node // all, parents first
}

// table finds a table's layout; nil after a problem.
func (c *compiler) table(topic string, path []string) *change.Schema {
	s, ok := c.schemas(topic)
	if !ok {
		hint := nearest(topic, c.known)
		if hint == "" {
			hint = "only captured tables can be joined: see the source's tables"
		}
		c.problem(path, hint, "unknown table %s", topic)
		return nil
	}
	return s
}

func (c *compiler) node(def *Node, rel *Relation, parent *node, path []string) *node {
	tablePath := at(path, "from")
	if rel != nil {
		tablePath = at(path, string(rel.Kind))
	}
	n := &node{path: path, rel: rel, parent: parent, where: def.Where, used: map[int]bool{}}
	if n.schema = c.table(def.Table, tablePath); n.schema == nil {
		return nil
	}
	if len(n.schema.Key) == 0 {
		c.problem(tablePath, "give it a primary key, or a unique index as replica identity",
			"table %s has no key, so its rows cannot be told apart", def.Table)
	}
	n.columns = exprColumns(n.schema)
	c.nodes = append(c.nodes, n)
	c.predicate(def.Where, n.columns, n.used, at(path, "where"))
	c.fields(n, def)
	if rel != nil {
		c.relation(n)
		c.order(n)
	}
	c.names(def, path)
	for i := range def.Nest {
		r := &def.Nest[i]
		child := c.node(&r.Node, r, n, at(path, "nest", r.Name))
		n.nest = append(n.nest, child)
	}
	for i := range def.Calc {
		c.calc(n, def, &def.Calc[i])
	}
	return n
}

func exprColumns(s *change.Schema) []expr.Column {
	columns := make([]expr.Column, len(s.Columns))
	for i := range s.Columns {
		col := &s.Columns[i]
		columns[i] = expr.Column{Name: col.Name, Kind: col.Kind, SourceType: col.SourceType, Nullable: col.Nullable, Fold: col.Fold}
	}
	return columns
}

// column finds a column by name and notes its use; -1 after a problem.
func (c *compiler) column(s *change.Schema, used map[int]bool, name string, path []string) int {
	i := s.Column(name)
	if i < 0 {
		names := make([]string, len(s.Columns))
		for j := range s.Columns {
			names[j] = s.Columns[j].Name
		}
		c.problem(path, nearest(name, names), "table %s has no column %q", s.Topic, name)
		return -1
	}
	used[i] = true
	return i
}

func (c *compiler) predicate(src string, columns []expr.Column, used map[int]bool, path []string) {
	if src == "" {
		return
	}
	e, err := expr.CompilePredicate(src, columns)
	if err != nil {
		c.problem(path, "", "%s", err)
		return
	}
	for _, i := range e.Columns() {
		used[i] = true
	}
}

func (c *compiler) expression(src string, columns []expr.Column, used map[int]bool, path []string) change.Kind {
	e, err := expr.Compile(src, columns)
	if err != nil {
		c.problem(path, "", "%s", err)
		return change.KindNull
	}
	for _, i := range e.Columns() {
		used[i] = true
	}
	return e.Kind()
}

func (c *compiler) fields(n *node, def *Node) {
	if def.Fields == nil {
		for i := range n.schema.Columns {
			col := &n.schema.Columns[i]
			n.used[i] = true
			n.fields = append(n.fields, field{name: col.Name, column: i, kind: col.Kind, source: col.SourceType})
		}
		return
	}
	for i := range def.Fields {
		f := &def.Fields[i]
		path := at(n.path, "fields", f.Name)
		if f.Expr != "" {
			n.fields = append(n.fields, field{name: f.Name, column: -1, expr: f.Expr, kind: c.expression(f.Expr, n.columns, n.used, path)})
			continue
		}
		if j := c.column(n.schema, n.used, f.Column, path); j >= 0 {
			col := &n.schema.Columns[j]
			n.fields = append(n.fields, field{name: f.Name, column: j, kind: col.Kind, source: col.SourceType})
		}
	}
}

// names checks that no name occurs twice in a document.
func (c *compiler) names(def *Node, path []string) {
	seen := map[string]string{}
	check := func(name, part string) {
		switch first, twice := seen[name]; {
		case name == "":
			c.problem(at(path, part), "", "a name is empty")
		case twice:
			c.problem(at(path, part, name), "choose another name", "the name %q is already used in %s", name, first)
		default:
			seen[name] = part
		}
	}
	for i := range def.Fields {
		check(def.Fields[i].Name, "fields")
	}
	if def.Fields == nil {
		if s, ok := c.schemas(def.Table); ok {
			for i := range s.Columns {
				check(s.Columns[i].Name, "fields")
			}
		}
	}
	for i := range def.Nest {
		check(def.Nest[i].Name, "nest")
	}
	for i := range def.Calc {
		check(def.Calc[i].Name, "calc")
	}
}

func (c *compiler) order(n *node) {
	for _, o := range n.rel.Order {
		if i := c.column(n.schema, n.used, o.Column, at(n.path, "order")); i >= 0 {
			n.order = append(n.order, orderColumn{column: i, desc: o.Desc, nullsFirst: o.NullsFirst})
		}
	}
	if n.rel.Limit < 0 {
		c.problem(at(n.path, "limit"), "leave it out for all rows", "limit is %d", n.rel.Limit)
	}
	if n.rel.Limit > 0 && n.rel.Kind != HasMany {
		c.problem(at(n.path, "limit"), "only has_many makes a list", "limit on a %s", n.rel.Kind)
	}
}

func (c *compiler) calc(n *node, def *Node, k *Calc) {
	path := at(n.path, "calc", k.Name)
	child := slices.IndexFunc(def.Nest, func(r Relation) bool { return r.Name == k.Relation })
	if child < 0 {
		names := make([]string, len(def.Nest))
		for i := range def.Nest {
			names[i] = def.Nest[i].Name
		}
		c.problem(path, nearest(k.Relation, names), "there is no relation %q beside it", k.Relation)
		return
	}
	m := n.nest[child]
	if m == nil {
		return // its table is a problem already
	}
	out := calc{name: k.Name, fn: k.Func, child: child, column: -1, expr: k.Expr, where: k.Where, round: k.Round}
	kind := change.KindInt
	switch {
	case k.Expr != "":
		kind = c.expression(k.Expr, m.columns, m.used, path)
	case k.Column != "":
		if out.column = c.column(m.schema, m.used, k.Column, path); out.column < 0 {
			return
		}
		kind = m.schema.Columns[out.column].Kind
	case k.Func != "count":
		c.problem(path, "write "+k.Func+": "+k.Relation+".COLUMN", "%s needs a column", k.Func)
		return
	}
	c.predicate(k.Where, m.columns, m.used, path)
	if kind == change.KindNull {
		return
	}
	_, result, err := expr.NewAggregate(k.Func, kind, expr.AggregateOptions{Round: k.Round, Approximate: k.Approximate})
	if err != nil {
		c.problem(path, "", "%s", err)
		return
	}
	out.kind = result
	n.calcs = append(n.calcs, out)
}
