package expr

import (
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// common brings several results to one kind: literals in quotes take that of
// the others, numbers the widest, a date beside a timestamp becomes one.
func (c *compiler) common(list []*node, what string) ([]*node, change.Kind, *Error) {
	kind := change.KindNull
	loose := false
	for _, n := range list {
		switch {
		case n.kind == change.KindNull:
		case n.loose:
			loose = true
		case kind == change.KindNull || kind == n.kind:
			kind = n.kind
		case kind.Numeric() && n.kind.Numeric():
			kind = numberKind(kind, n.kind)
		case comparableKinds(kind, n.kind):
			kind = change.KindTimestamp
		default:
			return nil, 0, c.fail(n.offset, what+" has results of the types "+kind.String()+" and "+n.describe(), "bring them to one type with CAST(x AS type)")
		}
	}
	if kind == change.KindNull && loose {
		kind = change.KindText
	}
	out := make([]*node, len(list))
	for i, n := range list {
		var err *Error
		if out[i], err = c.bring(trimmed(n), kind); err != nil {
			return nil, 0, err
		}
	}
	return out, kind, nil
}

// foldLike lets a result compare case-folded if one of its sources does.
func foldLike(n *node, sources []*node) *node {
	for _, s := range sources {
		n.fold = n.fold || s.fold && n.kind == change.KindText
	}
	return n
}

// bring converts a node to a kind that common chose.
func (c *compiler) bring(n *node, kind change.Kind) (*node, *Error) {
	switch {
	case n.kind == change.KindNull || n.kind == kind && !n.loose:
		return n, nil
	case n.loose:
		return c.adapt(n, kind)
	}
	eval := n.eval
	m := *n
	m.kind, m.column, m.literal = kind, -1, false
	m.eval = func(row []change.Value) (change.Value, error) {
		v, err := eval(row)
		if err != nil || v.IsNull() {
			return v, err
		}
		return widen(&v, kind), nil
	}
	return &m, nil
}

// widen converts a value to a wider kind without loss of what it says.
func widen(v *change.Value, kind change.Kind) change.Value {
	switch kind {
	case change.KindDecimal:
		return change.Decimal(change.AppendText(nil, *v))
	case change.KindFloat64:
		return change.Float64(toFloat(v))
	case change.KindTimestamp:
		return change.Timestamp(dateMicros(v.Int64()))
	}
	return *v
}

func callText(name string, args []*node) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

func (c *compiler) caseOf(t *sqldriver.Node, args []*node) (*node, *Error) {
	var operand *node
	if t.HasOperand {
		operand, args = args[0], args[1:]
	}
	var results []*node
	var tests []testFunc
	text := "CASE"
	pairs := len(args) / 2
	for i := range pairs {
		when := args[2*i]
		if operand != nil {
			var err *Error
			if when, err = c.compare(when.offset, sqldriver.OpEqual, operand, when); err != nil {
				return nil, err
			}
		} else if err := c.condition(when, "WHEN"); err != nil {
			return nil, err
		}
		tests, results = append(tests, when.test), append(results, args[2*i+1])
	}
	if t.HasElse {
		results = append(results, args[len(args)-1])
	}
	whens := args
	results, kind, err := c.common(results, "CASE")
	if err != nil {
		return nil, err
	}
	if operand != nil {
		text += " " + operand.text
	}
	for i := range pairs {
		text += " WHEN " + whens[2*i].text + " THEN " + results[i].text
	}
	if t.HasElse {
		text += " ELSE " + results[pairs].text
	}
	return foldLike(computed(t.Offset, kind, text+" END", func(row []change.Value) (change.Value, error) {
		for i, test := range tests {
			a, err := test(row)
			if err != nil {
				return change.Null, err
			}
			if a == yes {
				return results[i].eval(row)
			}
		}
		if len(results) > len(tests) {
			return results[len(tests)].eval(row)
		}
		return change.Null, nil
	}), results), nil
}

func (c *compiler) coalesce(t *sqldriver.Node, args []*node) (*node, *Error) {
	args, kind, err := c.common(args, "COALESCE")
	if err != nil {
		return nil, err
	}
	return foldLike(computed(t.Offset, kind, callText("COALESCE", args), func(row []change.Value) (change.Value, error) {
		for _, n := range args {
			v, err := n.eval(row)
			if err != nil || !v.IsNull() {
				return v, err
			}
		}
		return change.Null, nil
	}), args), nil
}

func (c *compiler) nullif(t *sqldriver.Node, args []*node) (*node, *Error) {
	same, err := c.compare(t.Offset, sqldriver.OpEqual, args[0], args[1])
	if err != nil {
		return nil, err
	}
	x := trimmed(args[0])
	if x.loose && !args[1].loose && args[1].kind != change.KindNull {
		if x, err = c.adapt(x, args[1].kind); err != nil {
			return nil, err
		}
	}
	return foldLike(computed(t.Offset, x.kind, callText("NULLIF", args), func(row []change.Value) (change.Value, error) {
		a, err := same.test(row)
		if err != nil || a == yes {
			return change.Null, err
		}
		return x.eval(row)
	}), []*node{x}), nil
}

// extreme is GREATEST (sign 1) or LEAST (-1), which leave nulls out.
func (c *compiler) extreme(t *sqldriver.Node, args []*node, sign int) (*node, *Error) {
	args, kind, err := c.common(args, t.Name)
	if err != nil {
		return nil, err
	}
	if kind == change.KindJSON {
		return nil, c.fail(t.Offset, t.Name+" wants values that have an order, not json", "take a value out of it with ->> 'key' first")
	}
	text := callText(t.Name, args)
	return computed(t.Offset, kind, text, func(row []change.Value) (change.Value, error) {
		best := change.Null
		for _, n := range args {
			v, err := n.eval(row)
			if err != nil {
				return change.Null, err
			}
			if v.IsNull() {
				continue
			}
			if best.IsNull() {
				best = v
				continue
			}
			order, err := compareValues(&v, &best)
			if err != nil {
				return change.Null, err
			}
			if order == sign {
				best = v
			}
		}
		return best, nil
	}), nil
}
