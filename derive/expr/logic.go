package expr

import (
	"errors"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// condition checks that an operand is a truth value.
func (c *compiler) condition(n *node, what string) *Error {
	if n.test != nil {
		return nil
	}
	return c.fail(n.offset, what+" wants true or false, not "+n.describe(), conditionHint(n))
}

func (c *compiler) andOr(t *sqldriver.Node, l, r *node) (*node, *Error) {
	word, settles := "AND", no
	if t.Op == sqldriver.OpOr {
		word, settles = "OR", yes
	}
	for _, n := range []*node{l, r} {
		if err := c.condition(n, word); err != nil {
			return nil, err
		}
	}
	return boolean(t.Offset, "("+l.text+" "+word+" "+r.text+")", junction(l.test, r.test, settles)), nil
}

// junction is AND when no settles it, OR when yes does. A side that settles it
// does so also when the other hangs on a column that the source did not send.
func junction(l, r testFunc, settles tri) testFunc {
	return func(row []change.Value) (tri, error) {
		a, err := l(row)
		if err == nil && a == settles {
			return settles, nil
		}
		if err != nil && !errors.Is(err, ErrUnchanged) {
			return null, err
		}
		b, rerr := r(row)
		switch {
		case rerr == nil && b == settles:
			return settles, nil
		case rerr != nil && !errors.Is(rerr, ErrUnchanged):
			return null, rerr
		case err != nil:
			return null, err
		case rerr != nil:
			return null, rerr
		case a == null:
			return null, nil
		}
		return b, nil
	}
}

func (c *compiler) negation(t *sqldriver.Node, n *node) (*node, *Error) {
	if err := c.condition(n, "NOT"); err != nil {
		return nil, err
	}
	return inverted(t.Offset, n), nil
}

func inverted(offset int, n *node) *node {
	test := n.test
	return boolean(offset, "(NOT "+n.text+")", func(row []change.Value) (tri, error) {
		a, err := test(row)
		return a.not(), err
	})
}

// inverted if not is set: for x NOT IN, NOT LIKE, NOT BETWEEN.
func invertedIf(not bool, n *node) *node {
	if not {
		return inverted(n.offset, n)
	}
	return n
}

func isWord(not bool) string {
	if not {
		return " IS NOT "
	}
	return " IS "
}

func (c *compiler) isNull(t *sqldriver.Node, n *node) (*node, *Error) {
	text, want := "("+n.text+isWord(t.Not)+"NULL)", !t.Not
	if i := n.column; i >= 0 {
		return boolean(t.Offset, text, func(row []change.Value) (tri, error) {
			v := &row[i]
			if v.IsUnchanged() {
				return null, ErrUnchanged
			}
			return triOf(v.IsNull() == want), nil
		}), nil
	}
	eval := n.eval
	return boolean(t.Offset, text, func(row []change.Value) (tri, error) {
		v, err := eval(row)
		return triOf(v.IsNull() == want), err
	}), nil
}

func (c *compiler) isTruth(t *sqldriver.Node, n *node) (*node, *Error) {
	word, is := "TRUE", yes
	if t.Op == sqldriver.OpIsFalse {
		word, is = "FALSE", no
	}
	if err := c.condition(n, "IS "+word); err != nil {
		return nil, err
	}
	test, want := n.test, !t.Not
	return boolean(t.Offset, "("+n.text+isWord(t.Not)+word+")", func(row []change.Value) (tri, error) {
		a, err := test(row)
		return triOf((a == is) == want), err
	}), nil
}
