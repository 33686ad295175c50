package expr

import (
	"fmt"

	"github.com/tailwater/tailwater/change"
)

// evalFunc computes a value from a row.
type evalFunc func(row []change.Value) (change.Value, error)

// tri is a truth value of SQL.
type tri int8

const (
	no   tri = 0
	yes  tri = 1
	null tri = 2
)

// testFunc computes a truth value from a row.
type testFunc func(row []change.Value) (tri, error)

func triOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

// not is SQL's NOT.
func (t tri) not() tri { return [...]tri{yes, no, null}[t] }

func (t tri) value() change.Value {
	if t == null {
		return change.Null
	}
	return change.Bool(t == yes)
}

// node is a compiled part of an expression.
type node struct {
	offset int
	kind   change.Kind // KindNull: the literal NULL, which fits everything
	text   string      // canonical
	source string      // SourceType of a bare column, for messages

	column  int  // index of a bare column, else -1
	literal bool // value holds it
	value   change.Value
	loose   bool // a string literal that takes the type of its neighbour
	fold    bool // compares case-folded
	padded  bool // PostgreSQL's char(n): blanks at the end do not count

	eval evalFunc
	test testFunc // set for KindBool only
}

// describe names the node's type in a message.
func (n *node) describe() string {
	switch {
	case n.kind == change.KindNull:
		return "NULL"
	case n.loose:
		return "the string " + n.text
	case n.source != "" && n.source != n.kind.String():
		return fmt.Sprintf("%s (%s)", n.kind, n.source)
	}
	return n.kind.String()
}

// typeName names the node's type without a value.
func (n *node) typeName() string {
	if n.loose {
		return "text"
	}
	return n.kind.String()
}

// boolean makes a node of a test.
func boolean(offset int, text string, test testFunc) *node {
	return &node{offset: offset, kind: change.KindBool, text: text, column: -1, test: test,
		eval: func(row []change.Value) (change.Value, error) {
			t, err := test(row)
			if err != nil {
				return change.Null, err
			}
			return t.value(), nil
		}}
}

// computed makes a node of an evaluation.
func computed(offset int, kind change.Kind, text string, eval evalFunc) *node {
	n := &node{offset: offset, kind: kind, text: text, column: -1, eval: eval}
	if kind == change.KindBool {
		n.test = testOf(eval)
	}
	return n
}

func testOf(eval evalFunc) testFunc {
	return func(row []change.Value) (tri, error) {
		v, err := eval(row)
		if err != nil || v.IsNull() {
			return null, err
		}
		return triOf(v.Bool()), nil
	}
}

// constant makes a node of a literal.
func constant(offset int, v change.Value, text string) *node {
	n := &node{offset: offset, kind: v.Kind(), text: text, column: -1, literal: true, value: v}
	n.eval = func([]change.Value) (change.Value, error) { return v, nil }
	if n.kind == change.KindBool || n.kind == change.KindNull {
		n.test = testOf(n.eval)
	}
	return n
}

// columnNode reads a column of the row.
func columnNode(offset, index int, c Column, text string) *node {
	n := &node{offset: offset, kind: c.Kind, text: text, column: index, fold: c.Fold && c.Kind == change.KindText,
		padded: c.Kind == change.KindText && paddedType(c.SourceType), source: c.SourceType}
	n.eval = func(row []change.Value) (change.Value, error) {
		v := &row[index]
		if v.IsUnchanged() {
			return change.Null, ErrUnchanged
		}
		return *v, nil
	}
	if n.kind == change.KindBool {
		n.test = func(row []change.Value) (tri, error) {
			switch v := &row[index]; v.Kind() {
			case change.KindBool:
				return triOf(v.Bool()), nil
			case change.KindNull:
				return null, nil
			}
			return null, strange(&row[index], change.KindBool)
		}
	}
	return n
}

// strange explains a value that its column's kind does not allow.
func strange(v *change.Value, want change.Kind) error {
	if v.IsUnchanged() {
		return ErrUnchanged
	}
	return fmt.Errorf("expr: a column of kind %s holds a value of kind %s", want, v.Kind())
}
