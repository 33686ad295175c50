package config

import (
	"fmt"
	"strings"
)

var calcFuncs = []string{string(Count), string(Sum), string(Avg), string(Min), string(Max)}

// calc decodes one entry of calc: { count: reviews }, { avg: reviews.rating,
// round: 2 } or { sum: "qty * price", of: lines }.
func (d *decoder) calc(e entry, in *Node, nest *object) *Calc {
	c := &Calc{Name: e.key, Pos: e.pos, RelationPos: e.pos}
	o := d.object(e.value, e.pos)
	var arg *node
	for _, f := range calcFuncs {
		n := o.child(f)
		if n == nil {
			continue
		}
		if c.Func != "" {
			d.problem(o.at(f), fmt.Sprintf("a calc has one function, this has %s and %s", c.Func, f), "keep one; write the other as a calc of its own")
			continue
		}
		c.Func, arg = CalcFunc(f), n
	}
	of := o.child("of")
	c.Where = d.expr(o.child("where"))
	o.boolean("approximate", &c.Approximate)
	d.round(o, c)
	if c.Func == "" {
		if o.n != nil {
			d.funcMissing(o)
		}
	} else {
		d.calcOf(c, arg, of)
		d.checkCalcRelation(c, in, nest)
	}
	o.done()
	return c
}

func (d *decoder) funcMissing(o *object) {
	for _, e := range o.n.entries {
		if s := suggest(e.key, calcFuncs); s != "" && e.key != s {
			return // the unknown key says it
		}
	}
	d.problem(o.pos, "the calc has no function", "write one of "+strings.Join(calcFuncs, ", ")+", as in { count: RELATION } or { avg: RELATION.COLUMN }")
}

func (d *decoder) round(o *object, c *Calc) {
	if !o.has("round") {
		return
	}
	v := -1
	o.integer("round", &v, 0, 1000)
	if v < 0 {
		return
	}
	c.Round = &v
	if c.Func == Count {
		d.problem(o.at("round"), "a count is a whole number; round has no effect", "leave it out")
	}
}

// calcOf splits the argument into relation and column, or takes the relation
// from of.
func (d *decoder) calcOf(c *Calc, arg, of *node) {
	text, ok := d.value(arg)
	if !ok {
		return
	}
	if of != nil {
		relation, ok := d.value(of)
		if !ok {
			return
		}
		c.Relation, c.RelationPos = relation, of.pos
		if column, plain := columnName(text); plain {
			c.Column = column
		} else {
			c.Expr = d.expr(arg)
		}
		return
	}
	c.RelationPos = arg.pos
	parts, err := splitName(text)
	switch {
	case err != nil:
		d.problem(arg.pos, fmt.Sprintf("%s is not RELATION.COLUMN", quote(text)), fmt.Sprintf("an expression needs its relation: { %s: \"expression\", of: RELATION }", c.Func))
		return
	case len(parts) == 1 && c.Func == Count:
		c.Relation = parts[0]
		return
	case len(parts) == 1:
		d.problem(arg.pos, fmt.Sprintf("%s names no column", quote(text)), fmt.Sprintf("write %s: RELATION.COLUMN", c.Func))
	case len(parts) > 2:
		d.problem(arg.pos, fmt.Sprintf("%s is more than one level away", quote(text)), fmt.Sprintf("put the calc into nest.%s", parts[0]))
		return
	}
	c.Relation = parts[0]
	if len(parts) == 2 {
		c.Column = parts[1]
	}
}

// checkCalcRelation reports a relation that the same node does not nest.
func (d *decoder) checkCalcRelation(c *Calc, in *Node, nest *object) {
	if c.Relation == "" || in.Relation(c.Relation) != nil || nest.has(c.Relation) {
		return
	}
	known := names(in.Nest, func(r *Relation) string { return r.Name })
	hint := didYouMean(c.Relation, known)
	if len(known) == 0 {
		hint = "nest the relation here: nest: { " + c.Relation + ": { has_many: TABLE } }"
	}
	d.problem(c.RelationPos, fmt.Sprintf("there is no relation %s in nest", quote(c.Relation)), hint)
}
