package expr

import (
	"errors"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

func (c *compiler) distinct(t *sqldriver.Node, l, r *node) (*node, *Error) {
	l, r, err := c.unify(l, r)
	if err != nil {
		return nil, err
	}
	le, re, want := l.eval, r.eval, !t.Not
	text := "(" + l.text + isWord(t.Not) + "DISTINCT FROM " + r.text + ")"
	return boolean(t.Offset, text, func(row []change.Value) (tri, error) {
		a, err := le(row)
		if err != nil {
			return null, err
		}
		b, err := re(row)
		if err != nil {
			return null, err
		}
		if a.IsNull() || b.IsNull() {
			return triOf((a.IsNull() != b.IsNull()) == want), nil
		}
		order, err := compareValues(&a, &b)
		return triOf((order != 0) == want), err
	}), nil
}

func (c *compiler) between(t *sqldriver.Node, args []*node) (*node, *Error) {
	low, err := c.compare(t.Offset, sqldriver.OpGreaterEqual, args[0], args[1])
	if err != nil {
		return nil, err
	}
	high, err := c.compare(t.Offset, sqldriver.OpLessEqual, args[0], args[2])
	if err != nil {
		return nil, err
	}
	text := "(" + low.text + " AND " + high.text + ")"
	return invertedIf(t.Not, boolean(t.Offset, text, junction(low.test, high.test, no))), nil
}

// in is x = a OR x = b OR …; a long list of literals becomes a set.
func (c *compiler) in(t *sqldriver.Node, args []*node) (*node, *Error) {
	x, list := args[0], args[1:]
	tests, texts := make([]testFunc, len(list)), make([]string, len(list))
	operands := make([]*node, len(list))
	text := x.text
	for i, item := range list {
		l, r, err := c.unify(x, item)
		if err != nil {
			return nil, err
		}
		tests[i], texts[i], operands[i] = comparison(2, 2, l, r), r.text, r
		text = l.text
	}
	text = "(" + text + " IN (" + strings.Join(texts, ", ") + "))"
	test := textSet(x, operands)
	if test == nil {
		test = intSet(x, operands)
	}
	if test == nil {
		test = anyOf(tests)
	}
	return invertedIf(t.Not, boolean(t.Offset, text, test)), nil
}

// anyOf is OR over many.
func anyOf(tests []testFunc) testFunc {
	return func(row []change.Value) (tri, error) {
		result := no
		var held error
		for _, test := range tests {
			a, err := test(row)
			switch {
			case errors.Is(err, ErrUnchanged):
				held = err
			case err != nil:
				return null, err
			case a == yes:
				return yes, nil
			case a == null:
				result = null
			}
		}
		if held != nil {
			return null, held
		}
		return result, nil
	}
}

// miss is the answer of an IN list for a value that it does not hold: null if it holds NULL.
func miss(list []*node) tri {
	for _, n := range list {
		if n.kind == change.KindNull {
			return null
		}
	}
	return no
}

// textSet is a test for a text column in a list of strings.
func textSet(x *node, list []*node) testFunc {
	if x.column < 0 || x.kind != change.KindText || x.padded || x.fold {
		return nil
	}
	set := make(map[string]struct{}, len(list))
	for _, n := range list {
		if n.kind == change.KindNull {
			continue
		}
		if !n.literal || n.kind != change.KindText {
			return nil
		}
		set[n.value.TextValue()] = struct{}{}
	}
	i, otherwise := x.column, miss(list)
	return func(row []change.Value) (tri, error) {
		v := &row[i]
		switch v.Kind() {
		case change.KindText:
			if _, ok := set[string(v.Raw())]; ok {
				return yes, nil
			}
			return otherwise, nil
		case change.KindNull:
			return null, nil
		}
		return null, strange(v, change.KindText)
	}
}

// intSet is a test for an int column in a list of ints.
func intSet(x *node, list []*node) testFunc {
	if x.column < 0 || x.kind != change.KindInt {
		return nil
	}
	set := make(map[int64]struct{}, len(list))
	for _, n := range list {
		if n.kind == change.KindNull {
			continue
		}
		if !n.literal || n.kind != change.KindInt {
			return nil
		}
		set[n.value.Int64()] = struct{}{}
	}
	i, otherwise := x.column, miss(list)
	return func(row []change.Value) (tri, error) {
		v := &row[i]
		switch v.Kind() {
		case change.KindInt:
			if _, ok := set[v.Int64()]; ok {
				return yes, nil
			}
			return otherwise, nil
		case change.KindNull:
			return null, nil
		}
		return null, strange(v, change.KindInt)
	}
}
