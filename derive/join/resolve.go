package join

import (
	"slices"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// relation resolves how a node hangs on its parent.
func (c *compiler) relation(n *node) {
	r := n.rel
	switch r.Kind {
	case BelongsTo, HasOne, HasMany:
	default:
		c.problem(n.path, "belongs_to, has_one or has_many", "unknown kind of relation %q", r.Kind)
		return
	}
	if r.Through != nil {
		c.through(n)
		return
	}
	up, down := n.parent.schema, n.schema
	if r.Kind == BelongsTo {
		pairs := c.reference(up, down, r.By, at(n.path, "by"))
		n.edge = c.edge(up, down, pairs, true, r.Fold, at(n.path, "by"))
	} else {
		pairs := c.reference(down, up, r.By, at(n.path, "by"))
		n.edge = c.edge(up, down, pairs, false, r.Fold, at(n.path, "by"))
	}
	markUsed(n.parent.used, n.edge.up)
	markUsed(n.used, n.edge.down)
}

func (c *compiler) through(n *node) {
	r := n.rel
	if r.Kind == BelongsTo {
		c.problem(at(n.path, "through"), "use has_many or has_one", "belongs_to goes through no table")
		return
	}
	if len(r.By) > 0 {
		c.problem(at(n.path, "by"), "near and far of through name the link's columns", "by and through exclude each other")
	}
	s := c.table(r.Through.Table, at(n.path, "through", "table"))
	if s == nil {
		return
	}
	if len(s.Key) == 0 {
		c.problem(at(n.path, "through", "table"), "give it a primary key over its two references", "table %s has no key", s.Topic)
	}
	l := &linkNode{schema: s, columns: exprColumns(s), where: r.Through.Where, used: map[int]bool{}}
	n.link = l
	near := c.reference(s, n.parent.schema, r.Through.Near, at(n.path, "through", "near"))
	l.edge = c.edge(n.parent.schema, s, near, false, r.Fold, at(n.path, "through", "near"))
	far := c.reference(s, n.schema, r.Through.Far, at(n.path, "through", "far"))
	n.edge = c.edge(s, n.schema, far, true, r.Fold, at(n.path, "through", "far"))
	c.predicate(r.Through.Where, l.columns, l.used, at(n.path, "through", "where"))
	markUsed(n.parent.used, l.edge.up)
	markUsed(l.used, l.edge.down)
	markUsed(l.used, n.edge.up)
	markUsed(n.used, n.edge.down)
}

func markUsed(used map[int]bool, columns []int) {
	for _, i := range columns {
		if i >= 0 {
			used[i] = true
		}
	}
}

// reference returns the pairs of columns by which holder refers to target.
func (c *compiler) reference(holder, target *change.Schema, by []By, path []string) []By {
	if len(by) == 0 {
		return c.infer(holder, target, path)
	}
	explicit := 0
	for _, b := range by {
		if b.Refers != "" {
			explicit++
		}
	}
	if explicit > 0 {
		if explicit < len(by) {
			c.problem(path, "write all of them as COLUMN: REFERRED", "some columns say what they refer to and some do not")
			return nil
		}
		return by
	}
	names := make([]string, len(by))
	for i, b := range by {
		names[i] = b.Column
	}
	for _, fk := range holder.ForeignKeys {
		if fk.RefTopic == target.Topic && slices.Equal(fk.Columns, names) && len(fk.RefColumns) == len(names) {
			return pairs(fk)
		}
	}
	key := target.KeyNames()
	if len(key) != len(by) {
		c.problem(path, "write each as COLUMN: REFERRED", "%s refers to %s by %d columns, whose key has %d (%s)",
			holder.Topic, target.Topic, len(by), len(key), strings.Join(key, ", "))
		return nil
	}
	out := make([]By, len(by))
	for i := range by {
		out[i] = By{Column: by[i].Column, Refers: key[i]}
	}
	return out
}

func pairs(fk change.ForeignKey) []By {
	out := make([]By, len(fk.Columns))
	for i := range fk.Columns {
		out[i] = By{Column: fk.Columns[i], Refers: fk.RefColumns[i]}
	}
	return out
}

// infer finds the one foreign key from holder to target.
func (c *compiler) infer(holder, target *change.Schema, path []string) []By {
	var fits []change.ForeignKey
	for _, fk := range holder.ForeignKeys {
		if fk.RefTopic == target.Topic && len(fk.Columns) == len(fk.RefColumns) {
			fits = append(fits, fk)
		}
	}
	word := path[len(path)-1]
	switch len(fits) {
	case 1:
		return pairs(fits[0])
	case 0:
		c.problem(path, "say "+word+": COLUMN, a column of "+holder.Topic, "no foreign key of %s refers to %s", holder.Topic, target.Topic)
	default:
		choices := make([]string, len(fits))
		for i, fk := range fits {
			choices[i] = strings.Join(fk.Columns, " and ")
		}
		c.problem(path, "say "+word+": one of "+strings.Join(choices, ", "), "%d foreign keys of %s refer to %s", len(fits), holder.Topic, target.Topic)
	}
	return nil
}

// edge makes the equality of two tables of these pairs. holderUp tells which side holds the reference.
func (c *compiler) edge(up, down *change.Schema, by []By, holderUp, fold bool, path []string) edge {
	var e edge
	for _, b := range by {
		upName, downName := b.Refers, b.Column
		if holderUp {
			upName, downName = b.Column, b.Refers
		}
		i, j := c.column(up, map[int]bool{}, upName, path), c.column(down, map[int]bool{}, downName, path)
		if i < 0 || j < 0 {
			continue
		}
		a, z := &up.Columns[i], &down.Columns[j]
		if !joinable(a.Kind, z.Kind) {
			c.problem(path, "join columns of comparable types", "%s.%s is %s and %s.%s is %s",
				up.Topic, a.Name, a.SourceType, down.Topic, z.Name, z.SourceType)
			continue
		}
		e.up, e.down = append(e.up, i), append(e.down, j)
		e.fold = append(e.fold, fold || a.Fold || z.Fold)
	}
	return e
}

func joinable(a, b change.Kind) bool { return a == b || a.Numeric() && b.Numeric() }
