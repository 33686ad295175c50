package sqldriver

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// parsers are costly to make and serve one goroutine at a time.
var parsers = sync.Pool{New: func() any {
	p := parser.New()
	p.SetSQLMode(mysql.ModeANSI | mysql.ModePipesAsConcat | mysql.ModeANSIQuotes | mysql.ModeNoBackslashEscapes)
	return p
}}

// ParseExpr parses one expression of the subset that expr documents. The error
// is a *SyntaxError.
func ParseExpr(src string) (*Node, error) {
	n, err := parseExpr(src)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func parseExpr(src string) (*Node, *SyntaxError) {
	tokens, err := scan(src)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, &SyntaxError{Message: "the expression is empty"}
	}
	text, starts, err := shape(src, tokens)
	if err != nil {
		return nil, err
	}
	p := parsers.Get().(*parser.Parser)
	defer parsers.Put(p)
	c := &converter{src: src, tokens: tokens}
	stmts, _, perr := p.ParseSQL(text)
	if perr != nil {
		return nil, c.syntax(text, starts, perr.Error())
	}
	root, ok := onlyExpression(stmts)
	if !ok {
		return nil, &SyntaxError{Message: "this is not one expression"}
	}
	t, err := c.convert(root)
	if err != nil {
		return nil, err
	}
	return t.Node, nil
}

// onlyExpression takes the expression out of SELECT (expression).
func onlyExpression(stmts []ast.StmtNode) (ast.ExprNode, bool) {
	if len(stmts) != 1 {
		return nil, false
	}
	s, ok := stmts[0].(*ast.SelectStmt)
	if !ok || s.Fields == nil || len(s.Fields.Fields) != 1 || s.From != nil || s.Fields.Fields[0].Expr == nil {
		return nil, false
	}
	p, ok := s.Fields.Fields[0].Expr.(*ast.ParenthesesExpr)
	if !ok {
		return nil, false
	}
	return p.Expr, true
}

// tree is a node and the first token of it.
type tree struct {
	*Node
	tok int
}

type converter struct {
	src    string
	tokens []token
	depth  int
}

// syntax turns the parser's message, which has the rest of its text behind "near", into ours.
func (c *converter) syntax(text string, starts []int, message string) *SyntaxError {
	at := len(text)
	if _, near, ok := strings.Cut(message, `near "`); ok {
		near = strings.TrimSpace(near)
		if i := strings.LastIndexByte(near, '"'); i >= 0 {
			near = near[:i]
		}
		if i := strings.Index(text, near); near != "" && strings.HasSuffix(text, near) {
			at = len(text) - len(near)
		} else if near != "" && i >= 0 {
			at = i
		}
	}
	tok := len(c.tokens)
	for i := range starts {
		if starts[i]+1 >= at { // behind the blank
			tok = i
			break
		}
	}
	e := &SyntaxError{Offset: len(c.src), Message: "the expression ends too early"}
	if tok < len(c.tokens) {
		e = syntaxAt(c.src, &c.tokens[tok], "this was not expected here", "")
	}
	for _, i := range []int{tok, tok - 1} {
		if i >= 0 && i < len(c.tokens) && c.tokens[i].kind == tokWord && operators[c.tokens[i].upper] {
			e.Hint = c.tokens[i].upper + " is a reserved word; if it is the name of a column, quote it: " + quoteName(c.tokens[i].text)
			break
		}
	}
	return e
}

func (c *converter) fail(t tree, message, hint string) *SyntaxError {
	return syntaxAt(c.src, &c.tokens[t.tok], message, hint)
}

// back returns the last token before i for which ok holds, or i.
func (c *converter) back(i int, ok func(t *token) bool) int {
	for k := i - 1; k >= 0; k-- {
		if ok(&c.tokens[k]) {
			return k
		}
	}
	return i
}

func (c *converter) at(tok int, n *Node) tree {
	n.Offset = c.tokens[tok].start
	return tree{n, tok}
}

// all converts several and reports the first token of the first.
func (c *converter) all(list ...ast.ExprNode) ([]*Node, int, *SyntaxError) {
	nodes, first := make([]*Node, len(list)), 0
	for i, e := range list {
		t, err := c.convert(e)
		if err != nil {
			return nil, 0, err
		}
		if nodes[i] = t.Node; i == 0 {
			first = t.tok
		}
	}
	return nodes, first, nil
}

// over makes a node of the operator over its operands, beginning where the first of them does.
func (c *converter) over(op Op, not bool, operands ...ast.ExprNode) (tree, *SyntaxError) {
	args, tok, err := c.all(operands...)
	if err != nil {
		return tree{}, err
	}
	return c.at(tok, &Node{Op: op, Not: not, Args: args}), nil
}

func (c *converter) convert(e ast.ExprNode) (tree, *SyntaxError) {
	if c.depth == maxDepth {
		return tree{}, &SyntaxError{Near: excerpt(c.src), Message: fmt.Sprintf("operators are nested or chained more than %d deep", maxDepth), Hint: "write a long chain of OR as IN (…)"}
	}
	c.depth++
	t, err := c.node(e)
	c.depth--
	return t, err
}

func (c *converter) node(e ast.ExprNode) (tree, *SyntaxError) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		t, err := c.convert(e.Expr)
		if err == nil {
			t.Parens = true
		}
		return t, err
	case *Literal:
		i, ok := e.value.(int64)
		if !ok || i < 0 || int(i) >= len(c.tokens) {
			break
		}
		return c.literal(int(i))
	case *ast.ColumnNameExpr:
		i, err := strconv.Atoi(strings.TrimPrefix(e.Name.Name.O, "c"))
		if err != nil || i >= len(c.tokens) {
			break
		}
		return c.at(i, &Node{Op: OpColumn, Text: c.tokens[i].text, Quoted: c.tokens[i].kind == tokQuoted}), nil
	case *ast.UnaryOperationExpr:
		return c.unary(e)
	case *ast.BinaryOperationExpr:
		return c.binary(e)
	case *ast.FuncCallExpr:
		if e.FnName.L == ast.Concat {
			return c.concat(e)
		}
		return c.call(e)
	case *ast.FuncCastExpr:
		return c.cast(e)
	case *ast.CaseExpr:
		return c.caseOf(e)
	case *ast.IsNullExpr:
		return c.over(OpIsNull, e.Not, e.Expr)
	case *ast.IsTruthExpr:
		op := OpIsFalse
		if e.True != 0 {
			op = OpIsTrue
		}
		return c.over(op, e.Not, e.Expr)
	case *ast.PatternInExpr:
		if e.Sel == nil {
			return c.over(OpIn, e.Not, append([]ast.ExprNode{e.Expr}, e.List...)...)
		}
	case *ast.BetweenExpr:
		return c.over(OpBetween, e.Not, e.Expr, e.Left, e.Right)
	case *ast.PatternLikeOrIlikeExpr:
		return c.like(e)
	case *ast.RowExpr:
		_, tok, err := c.all(e.Values...)
		if err != nil {
			return tree{}, err
		}
		return tree{}, syntaxAt(c.src, &c.tokens[tok], "rows of several values are not supported", "compare the columns one by one, joined by AND")
	}
	return tree{}, &SyntaxError{Message: "the expression has a part that is not supported", Near: excerpt(c.src)}
}

func (c *converter) literal(i int) (tree, *SyntaxError) {
	t := &c.tokens[i]
	switch {
	case t.kind == tokNumber:
		return c.at(i, &Node{Op: OpNumber, Text: t.text}), nil
	case t.kind == tokString:
		return c.at(i, &Node{Op: OpString, Text: t.text}), nil
	case t.is("TRUE"):
		return c.at(i, &Node{Op: OpTrue}), nil
	case t.is("FALSE"):
		return c.at(i, &Node{Op: OpFalse}), nil
	case t.is("NULL"):
		return c.at(i, &Node{Op: OpNull}), nil
	case literalTypes[t.upper] && i+1 < len(c.tokens) && c.tokens[i+1].kind == tokString:
		return c.at(i, &Node{Op: OpTyped, Name: t.upper, Text: c.tokens[i+1].text}), nil
	}
	return c.at(i, &Node{Op: OpWord, Text: t.text}), nil
}

func (c *converter) unary(e *ast.UnaryOperationExpr) (tree, *SyntaxError) {
	t, err := c.convert(e.V)
	if err != nil {
		return tree{}, err
	}
	switch e.Op {
	case opcode.Minus:
		i := c.back(t.tok, func(t *token) bool { return t.symbol("-") })
		return c.at(i, &Node{Op: OpNegate, Args: []*Node{t.Node}}), nil
	case opcode.Plus:
		return t, nil
	case opcode.Not, opcode.Not2:
		i := c.back(t.tok, func(t *token) bool { return t.is("NOT") })
		return c.at(i, &Node{Op: OpNot, Args: []*Node{t.Node}}), nil
	}
	return tree{}, c.fail(t, "this operator is not supported", "")
}

var binaryOps = map[opcode.Op]Op{
	opcode.LogicAnd: OpAnd, opcode.LogicOr: OpOr, opcode.Plus: OpAdd, opcode.Minus: OpSubtract, opcode.Mul: OpMultiply,
	opcode.Div: OpDivide, opcode.Mod: OpModulo, opcode.EQ: OpEqual, opcode.NE: OpNotEqual, opcode.LT: OpLess,
	opcode.LE: OpLessEqual, opcode.GT: OpGreater, opcode.GE: OpGreaterEqual, opcode.NullEQ: OpDistinct,
}

func (c *converter) binary(e *ast.BinaryOperationExpr) (tree, *SyntaxError) {
	l, err := c.convert(e.L)
	if err != nil {
		return tree{}, err
	}
	r, err := c.convert(e.R)
	if err != nil {
		return tree{}, err
	}
	op, ok := binaryOps[e.Op]
	if !ok {
		return tree{}, c.fail(r, "this operator is not supported", "")
	}
	if op.comparison() && l.Op.comparison() && !l.Parens {
		return tree{}, c.fail(l, "comparisons cannot be chained", "join them by AND, or put one in parentheses")
	}
	n := &Node{Op: op, Args: []*Node{l.Node, r.Node}}
	if op == OpDistinct {
		i := c.back(r.tok, func(t *token) bool { return t.is("IS") || t.symbol("<=>") })
		n.Not = c.tokens[i].kind == tokSymbol || c.tokens[i+1].is("NOT")
	}
	return c.at(l.tok, n), nil
}

func (op Op) comparison() bool { return op >= OpEqual && op <= OpDistinct }

// concat is one of ||, ->, ->> and ESCAPE, which all stand as || before the parser.
func (c *converter) concat(e *ast.FuncCallExpr) (tree, *SyntaxError) {
	t, r, op, err := c.concatOf(e)
	if err == nil && op.is("ESCAPE") {
		return tree{}, c.fail(r, "ESCAPE stands behind a pattern only", "write x LIKE '…' ESCAPE '!'")
	}
	return t, err
}

func (c *converter) concatOf(e *ast.FuncCallExpr) (whole, right tree, op *token, err *SyntaxError) {
	l, err := c.convert(e.Args[0])
	if err != nil {
		return tree{}, tree{}, nil, err
	}
	r, err := c.convert(e.Args[1])
	if err != nil {
		return tree{}, tree{}, nil, err
	}
	i := c.back(r.tok, func(t *token) bool { return t.symbol("||") || t.symbol("->") || t.symbol("->>") || t.is("ESCAPE") })
	n := &Node{Op: OpConcat, Args: []*Node{l.Node, r.Node}}
	switch op = &c.tokens[i]; op.text {
	case "->":
		n.Op = OpJSONGet
	case "->>":
		n.Op = OpJSONText
	}
	return c.at(l.tok, n), r, op, nil
}

func (c *converter) like(e *ast.PatternLikeOrIlikeExpr) (tree, *SyntaxError) {
	l, err := c.convert(e.Expr)
	if err != nil {
		return tree{}, err
	}
	n := &Node{Op: OpILike, Not: e.Not, Args: []*Node{l.Node}}
	if e.IsLike {
		n.Op = OpLike
	}
	if f, ok := e.Pattern.(*ast.FuncCallExpr); ok && f.FnName.L == ast.Concat {
		whole, _, op, err := c.concatOf(f)
		if err != nil {
			return tree{}, err
		}
		if op.is("ESCAPE") {
			n.Args = append(n.Args, whole.Args...)
			return c.at(l.tok, n), nil
		}
		n.Args = append(n.Args, whole.Node)
		return c.at(l.tok, n), nil
	}
	p, err := c.convert(e.Pattern)
	if err != nil {
		return tree{}, err
	}
	n.Args = append(n.Args, p.Node)
	return c.at(l.tok, n), nil
}

func (c *converter) call(e *ast.FuncCallExpr) (tree, *SyntaxError) {
	i, err := strconv.Atoi(strings.TrimPrefix(e.FnName.L, "f"))
	if err != nil || i >= len(c.tokens) {
		return tree{}, &SyntaxError{Message: "the expression has a function that is not supported", Near: excerpt(c.src)}
	}
	args, _, serr := c.all(e.Args...)
	if serr != nil {
		return tree{}, serr
	}
	return c.at(i, &Node{Op: OpCall, Name: c.tokens[i].upper, Args: args, Separated: c.separated(i + 1)}), nil
}

// separated reports whether a FROM, FOR or IN stands between the arguments of
// the call whose parenthesis is token open.
func (c *converter) separated(open int) bool {
	s := shaper{open: []paren{{function: c.tokens[open-1].upper}}}
	switch s.function() {
	case "SUBSTRING", "TRIM", "EXTRACT", "POSITION":
	default:
		return false
	}
	depth := 0
	for i := open; i < len(c.tokens); i++ {
		switch t := &c.tokens[i]; {
		case t.symbol("("):
			depth++
		case t.symbol(")"):
			if depth--; depth == 0 {
				return false
			}
		case depth == 1 && t.kind == tokWord && s.separates(t):
			return true
		}
	}
	return false
}

func (c *converter) cast(e *ast.FuncCastExpr) (tree, *SyntaxError) {
	t, err := c.convert(e.Expr)
	if err != nil {
		return tree{}, err
	}
	i := c.back(t.tok, func(t *token) bool { return t.is("CAST") })
	typ, err := readType(c.src, c.tokens, e.Tp.GetFlen())
	if err != nil {
		return tree{}, err
	}
	return c.at(i, &Node{Op: OpCast, Args: []*Node{t.Node}, Type: typ}), nil
}

func (c *converter) caseOf(e *ast.CaseExpr) (tree, *SyntaxError) {
	n := &Node{Op: OpCase, HasOperand: e.Value != nil, HasElse: e.ElseClause != nil}
	var list []ast.ExprNode
	if n.HasOperand {
		list = append(list, e.Value)
	}
	for _, w := range e.WhenClauses {
		list = append(list, w.Expr, w.Result)
	}
	if n.HasElse {
		list = append(list, e.ElseClause)
	}
	args, tok, err := c.all(list...)
	if err != nil {
		return tree{}, err
	}
	n.Args = args
	return c.at(c.back(tok, func(t *token) bool { return t.is("CASE") }), n), nil
}
