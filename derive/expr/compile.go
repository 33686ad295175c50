package expr

import (
	"errors"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// Column is a column that an expression may use.
type Column struct {
	Name       string
	Kind       change.Kind
	SourceType string // as the database spells it; for messages and char(n)
	Nullable   bool
	Fold       bool // compares case-folded (citext)
}

// Expr is a compiled expression. It may be used by several goroutines.
type Expr struct {
	root    *node
	columns []int
	faults  *faults
	text    string
}

// Compile compiles an expression of any type over cols. The error is an *Error.
func Compile(src string, cols []Column) (*Expr, error) {
	tree, err := sqldriver.ParseExpr(src)
	if err != nil {
		var syntax *sqldriver.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &Error{Offset: syntax.Offset, Near: syntax.Near, Message: syntax.Message, Hint: syntax.Hint}
		}
		return nil, &Error{Message: err.Error()}
	}
	c := &compiler{src: src, cols: cols, faults: &faults{}, used: map[int]bool{}}
	root, cerr := c.compile(tree)
	if cerr != nil {
		return nil, cerr
	}
	e := &Expr{root: root, faults: c.faults, text: root.text}
	for i := range c.used {
		e.columns = append(e.columns, i)
	}
	slices.Sort(e.columns)
	return e, nil
}

// CompilePredicate compiles an expression that must be boolean.
func CompilePredicate(src string, cols []Column) (*Expr, error) {
	e, err := Compile(src, cols)
	if err != nil {
		return nil, err
	}
	if e.root.test == nil {
		return nil, &Error{Offset: e.root.offset, Near: near(src, e.root.offset), Message: "a condition is true or false, but this is " + e.root.describe(),
			Hint: conditionHint(e.root)}
	}
	return e, nil
}

func conditionHint(n *node) string {
	switch {
	case n.kind.Numeric():
		return "write " + n.text + " <> 0"
	case n.column >= 0:
		return "compare it with a value, or write " + n.text + " IS NOT NULL"
	}
	return "compare it with a value"
}

// Columns returns the indexes of the columns that the expression uses, ascending.
func (e *Expr) Columns() []int { return slices.Clone(e.columns) }

// Kind returns the kind of the result; text for a bare NULL.
func (e *Expr) Kind() change.Kind {
	if e.root.kind == change.KindNull {
		return change.KindText
	}
	return e.root.kind
}

// Eval computes the expression for a row, which is indexed like the columns it
// was compiled with. The result may share the row's memory. A column that the
// source did not send and that the result hangs on is ErrUnchanged. An
// operation without a result (division by zero, a number out of range, text
// that is no number) is null and counted in Faults.
func (e *Expr) Eval(row []change.Value) (change.Value, error) {
	v, err := e.root.eval(row)
	if err != nil {
		return change.Null, err
	}
	return v, nil
}

// True reports whether a predicate is true for a row: not when it is false or null.
func (e *Expr) True(row []change.Value) (bool, error) {
	if e.root.test == nil {
		return false, errors.New("expr: True of an expression that is no predicate: " + e.text)
	}
	t, err := e.root.test(row)
	return t == yes && err == nil, err
}

// String returns the canonical text: equal for expressions that differ only in
// blanks, case of keywords, quotes of names and spelling of operators. It
// compiles to the same expression over the same columns.
func (e *Expr) String() string { return e.text }

// Faults returns how many operations had no result so far, and the last of
// them; nil if there was none.
func (e *Expr) Faults() (uint64, *Fault) { return e.faults.count.Load(), e.faults.last.Load() }

// compiler turns a tree into nodes.
type compiler struct {
	src    string
	cols   []Column
	used   map[int]bool
	faults *faults
}

func (c *compiler) fail(offset int, message, hint string) *Error {
	return &Error{Offset: offset, Near: near(c.src, offset), Message: message, Hint: hint}
}

// fault makes the function that an operation at offset calls when it has no result.
func (c *compiler) fault(offset int, message string) func() (change.Value, error) {
	f := &Fault{Offset: offset, Message: message}
	return func() (change.Value, error) {
		c.faults.add(f)
		return change.Null, nil
	}
}

func (c *compiler) compileAll(list []*sqldriver.Node) ([]*node, *Error) {
	nodes := make([]*node, len(list))
	for i, t := range list {
		n, err := c.compile(t)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

func (c *compiler) compile(t *sqldriver.Node) (*node, *Error) {
	switch t.Op {
	case sqldriver.OpColumn:
		return c.column(t)
	case sqldriver.OpNumber:
		return c.number(t)
	case sqldriver.OpString, sqldriver.OpWord:
		n := constant(t.Offset, change.Text(t.Text), quoteString(t.Text))
		n.loose = true
		return n, nil
	case sqldriver.OpTyped:
		return c.typedLiteral(t)
	case sqldriver.OpNull:
		return constant(t.Offset, change.Null, "NULL"), nil
	case sqldriver.OpTrue:
		return constant(t.Offset, change.Bool(true), "TRUE"), nil
	case sqldriver.OpFalse:
		return constant(t.Offset, change.Bool(false), "FALSE"), nil
	}
	args, err := c.compileAll(t.Args)
	if err != nil {
		return nil, err
	}
	switch t.Op {
	case sqldriver.OpAnd, sqldriver.OpOr:
		return c.andOr(t, args[0], args[1])
	case sqldriver.OpNot:
		return c.negation(t, args[0])
	case sqldriver.OpEqual, sqldriver.OpNotEqual, sqldriver.OpLess, sqldriver.OpLessEqual, sqldriver.OpGreater, sqldriver.OpGreaterEqual:
		return c.compare(t.Offset, t.Op, args[0], args[1])
	case sqldriver.OpDistinct:
		return c.distinct(t, args[0], args[1])
	case sqldriver.OpIsNull:
		return c.isNull(t, args[0])
	case sqldriver.OpIsTrue, sqldriver.OpIsFalse:
		return c.isTruth(t, args[0])
	case sqldriver.OpIn:
		return c.in(t, args)
	case sqldriver.OpBetween:
		return c.between(t, args)
	case sqldriver.OpLike, sqldriver.OpILike:
		return c.like(t, args)
	case sqldriver.OpNegate:
		return c.negate(t, args[0])
	case sqldriver.OpAdd, sqldriver.OpSubtract, sqldriver.OpMultiply, sqldriver.OpDivide, sqldriver.OpModulo:
		return c.arithmetic(t.Offset, t.Op, args[0], args[1])
	case sqldriver.OpConcat:
		return c.concat(t, args)
	case sqldriver.OpJSONGet, sqldriver.OpJSONText:
		return c.jsonAccess(t, args[0], args[1])
	case sqldriver.OpCase:
		return c.caseOf(t, args)
	case sqldriver.OpCast:
		return c.cast(t, args[0])
	case sqldriver.OpCall:
		return c.call(t, args)
	}
	return nil, c.fail(t.Offset, "this is not supported in an expression", "")
}
