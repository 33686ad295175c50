package expr

import (
	"bytes"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// outcome is the set of orders for which a comparison is true: bit 0 less, 1 equal, 2 greater.
type outcome uint8

var outcomes = map[sqldriver.Op]struct {
	text string
	set  outcome
	flip sqldriver.Op // with the operands exchanged
}{
	sqldriver.OpEqual:        {"=", 2, sqldriver.OpEqual},
	sqldriver.OpNotEqual:     {"<>", 5, sqldriver.OpNotEqual},
	sqldriver.OpLess:         {"<", 1, sqldriver.OpGreater},
	sqldriver.OpLessEqual:    {"<=", 3, sqldriver.OpGreaterEqual},
	sqldriver.OpGreater:      {">", 4, sqldriver.OpLess},
	sqldriver.OpGreaterEqual: {">=", 6, sqldriver.OpLessEqual},
}

func (o outcome) of(c int) tri { return tri(o >> (c + 1) & 1) }

// paddedType reports PostgreSQL's char(n), whose blanks at the end do not count.
func paddedType(sourceType string) bool {
	t := strings.ToLower(sourceType)
	return t == "bpchar" || t == "character" || strings.HasPrefix(t, "character(") || strings.HasPrefix(t, "bpchar(")
}

// trimmed returns a node of char(n) without its blanks at the end.
func trimmed(n *node) *node {
	if !n.padded {
		return n
	}
	eval := n.eval
	t := *n
	t.padded, t.column = false, -1
	t.eval = func(row []change.Value) (change.Value, error) {
		v, err := eval(row)
		if err != nil || v.IsNull() {
			return v, err
		}
		return change.TextBytes(bytes.TrimRight(v.Raw(), " ")), nil
	}
	return &t
}

// folded returns a text node lower-cased, as keys of citext columns are.
func folded(n *node) *node {
	if n.literal && n.kind == change.KindText {
		return constant(n.offset, change.Text(strings.ToLower(n.value.TextValue())), n.text)
	}
	eval := n.eval
	t := *n
	t.column, t.fold = -1, false
	t.eval = func(row []change.Value) (change.Value, error) {
		v, err := eval(row)
		if err != nil || v.IsNull() {
			return v, err
		}
		return change.TextBytes(bytes.ToLower(v.Raw())), nil
	}
	return &t
}

// unify brings two operands to comparable kinds, or says why it cannot.
func (c *compiler) unify(l, r *node) (*node, *node, *Error) {
	var err *Error
	switch {
	case l.kind == change.KindNull || r.kind == change.KindNull:
		return l, r, nil
	case l.loose && !r.loose:
		l, err = c.adapt(l, r.kind)
	case r.loose && !l.loose:
		r, err = c.adapt(r, l.kind)
	}
	if err != nil {
		return nil, nil, err
	}
	if !comparableKinds(l.kind, r.kind) {
		return nil, nil, c.fail(l.offset, "a "+l.typeName()+" does not compare with a "+r.typeName()+": "+l.text+" is "+l.describe()+", "+r.text+" is "+r.describe(), compareHint(l, r))
	}
	l, r = trimmed(l), trimmed(r)
	if l.kind == change.KindText && (l.fold || r.fold) {
		l, r = folded(l), folded(r)
	}
	return l, r, nil
}

func comparableKinds(a, b change.Kind) bool {
	switch {
	case a == change.KindJSON || b == change.KindJSON:
		return false
	case a == b, a.Numeric() && b.Numeric():
		return true
	}
	return a == change.KindDate && b == change.KindTimestamp || a == change.KindTimestamp && b == change.KindDate
}

func compareHint(l, r *node) string {
	switch {
	case l.kind == change.KindJSON || r.kind == change.KindJSON:
		return "take a value out of the json with ->> 'key' first"
	case l.kind == change.KindBool || r.kind == change.KindBool:
		return "compare with TRUE or FALSE"
	}
	return "bring one side to the other's type with CAST(x AS type)"
}

func (c *compiler) compare(offset int, op sqldriver.Op, l, r *node) (*node, *Error) {
	o := outcomes[op]
	l, r, err := c.unify(l, r)
	if err != nil {
		return nil, err
	}
	text := "(" + l.text + " " + o.text + " " + r.text + ")"
	return boolean(offset, text, comparison(o.set, outcomes[o.flip].set, l, r)), nil
}

// comparison picks the fastest test for two operands.
func comparison(set, flipped outcome, l, r *node) testFunc {
	switch {
	case l.column >= 0 && r.literal:
		if t := columnLiteral(l.column, l.kind, r.value, set); t != nil {
			return t
		}
	case r.column >= 0 && l.literal:
		if t := columnLiteral(r.column, r.kind, l.value, flipped); t != nil {
			return t
		}
	}
	le, re := l.eval, r.eval
	return func(row []change.Value) (tri, error) {
		a, err := le(row)
		if err != nil {
			return null, err
		}
		b, err := re(row)
		if err != nil || a.IsNull() || b.IsNull() {
			return null, err
		}
		order, err := compareValues(&a, &b)
		if err != nil {
			return null, err
		}
		return set.of(order), nil
	}
}

// columnLiteral compares a column with a literal without a copy of either.
func columnLiteral(i int, kind change.Kind, lit change.Value, set outcome) testFunc {
	if lit.IsNull() {
		return nil
	}
	order := literalOrder(kind, lit, set)
	if order == nil {
		return nil
	}
	return func(row []change.Value) (tri, error) {
		v := &row[i]
		switch v.Kind() {
		case kind:
			return order(v), nil
		case change.KindNull:
			return null, nil
		}
		return null, strange(v, kind)
	}
}

// literalOrder compares a present value of kind with the literal.
func literalOrder(kind change.Kind, lit change.Value, set outcome) func(v *change.Value) tri {
	switch kind {
	case change.KindText, change.KindBytes, change.KindUUID:
		want := lit.Raw()
		if set == 2 || set == 5 {
			return func(v *change.Value) tri { return triOf(bytes.Equal(v.Raw(), want) == (set == 2)) }
		}
		return func(v *change.Value) tri { return set.of(bytes.Compare(v.Raw(), want)) }
	case change.KindInt:
		if lit.Kind() == change.KindInt {
			want := lit.Int64()
			return func(v *change.Value) tri { return set.of(ordered(v.Int64(), want)) }
		}
	case change.KindUint:
		if lit.Kind() == change.KindInt && lit.Int64() >= 0 || lit.Kind() == change.KindUint {
			want := lit.Uint64()
			return func(v *change.Value) tri { return set.of(ordered(v.Uint64(), want)) }
		}
	case change.KindFloat32, change.KindFloat64:
		return floatOrder(kind, lit, set)
	case change.KindDecimal:
		want := readDigits(appendDigits(nil, &lit))
		return func(v *change.Value) tri {
			d := readDigits(v.Raw())
			return set.of(d.compare(&want))
		}
	case change.KindDate, change.KindTimestamp, change.KindTimestampTZ, change.KindTime, change.KindTimeTZ, change.KindInterval, change.KindBool:
	default:
		return nil
	}
	return func(v *change.Value) tri {
		order, _ := compareValues(v, &lit) // the kinds were found comparable
		return set.of(order)
	}
}
