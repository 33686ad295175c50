package sqldriver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

var opNames = map[Op]string{OpTyped: "typed", OpNull: "null", OpTrue: "true", OpFalse: "false", OpCast: "cast", OpCase: "case", OpNegate: "neg", OpNot: "not", OpAnd: "and", OpOr: "or",
	OpAdd: "+", OpSubtract: "-", OpMultiply: "*", OpDivide: "/", OpModulo: "%", OpConcat: "||", OpJSONGet: "->", OpJSONText: "->>", OpEqual: "=", OpNotEqual: "<>", OpLess: "<",
	OpLessEqual: "<=", OpGreater: ">", OpGreaterEqual: ">=", OpDistinct: "distinct", OpIsNull: "isnull", OpIsTrue: "istrue", OpIsFalse: "isfalse", OpIn: "in", OpBetween: "between", OpLike: "like", OpILike: "ilike"}

// sexpr writes a tree as one line, with the offset of each node.
func sexpr(n *Node) string {
	var b strings.Builder
	switch n.Op {
	case OpColumn, OpNumber, OpWord:
		return fmt.Sprintf("%s@%d", n.Text, n.Offset)
	case OpString:
		return fmt.Sprintf("'%s'@%d", n.Text, n.Offset)
	}
	b.WriteString("(")
	if n.Not {
		b.WriteString("!")
	}
	b.WriteString(opNames[n.Op] + n.Name + fmt.Sprintf("@%d", n.Offset))
	if n.Text != "" {
		b.WriteString(" '" + n.Text + "'")
	}
	for _, a := range n.Args {
		b.WriteString(" " + sexpr(a))
	}
	if n.Type.Name != "" {
		b.WriteString(" " + n.Type.Name)
		for _, p := range n.Type.Params {
			fmt.Fprintf(&b, " %d", p)
		}
	}
	return b.String() + ")"
}

func TestParseExpr(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"status != 'draft'", "(<>@0 status@0 'draft'@10)"},
		{"not a = b and c", "(and@0 (not@0 (=@4 a@4 b@8)) c@14)"},
		{"a or b and c", "(or@0 a@0 (and@5 b@5 c@11))"},
		{"a is not distinct from b or x is distinct from (c)", "(or@0 (!distinct@0 a@0 b@23) (distinct@28 x@28 c@48))"},
		{"a <=> b", "(!distinct@0 a@0 b@6)"},
		{"a is distinct from (b <=> c)", "(distinct@0 a@0 (!distinct@20 b@20 c@26))"},
		{"a like 'x' || b escape '!'", "(like@0 a@0 (||@7 'x'@7 b@14) '!'@23)"},
		{"a not like 'b' and c", "(and@0 (!like@0 a@0 'b'@11) c@19)"},
		{"data->'a'->>'b' || -(c)", "(||@0 (->>@0 (->@0 data@0 'a'@6) 'b'@12) (neg@19 c@21))"},
		{"cast(a as double precision) + cast (b as decimal(10,2))", "(+@0 (cast@0 a@5 DOUBLE PRECISION) (cast@30 b@36 DECIMAL 10 2))"},
		{"cast(cast(a as text) as timestamp(3) with time zone)", "(cast@0 (cast@5 a@10 TEXT) TIMESTAMP WITH TIME ZONE 3)"},
		{"extract(year from d)", "(EXTRACT@0 year@8 d@18)"},
		{"substring(a from 1 for 2)", "(SUBSTRING@0 a@10 1@17 2@23)"},
		{"trim(both 'x' from a)", "(TRIM@0 both@5 'x'@10 a@19)"},
		{"position('a' in b) in (1, 2)", "(in@0 (POSITION@0 'a'@9 b@16) 1@23 2@26)"},
		{"case case a when 1 then b end when 2 then c else d end", "(case@0 (case@5 a@10 1@17 b@24) 2@35 c@42 d@49)"},
		{"- -5 + 3", "(+@0 (neg@0 (neg@2 5@3)) 3@7)"},
		{"a - -b", "(-@0 a@0 (neg@4 b@5))"},
		{"-a + b*c%d/e", "(+@0 (neg@0 a@1) (/@5 (%@5 (*@5 b@5 c@7) d@9) e@11))"},
		{"a between 1 and 2 and c", "(and@0 (between@0 a@0 1@10 2@16) c@22)"},
		{"a is null is true", "(istrue@0 (isnull@0 a@0))"},
		{"(a = b) = c", "(=@1 (=@1 a@1 b@5) c@10)"},
		{`"select" = 'it''s' and ` + "`a``b`" + ` > 1`, "(and@0 (=@0 select@0 'it's'@11) (>@23 a`b@23 1@32))"},
		{"rank = key + value", "(=@0 rank@0 (+@7 key@7 value@13))"},
		{"date = date '2024-01-01'", "(=@0 date@0 (typedDATE@7 '2024-01-01'))"},
		{"a = 1 -\n 2", "(=@0 a@0 (-@4 1@4 2@9))"},
		{"f()", "(F@0)"}, {"c7 = 1", "(=@0 c7@0 1@5)"}, {"a = 99999999999999999999999999.5e7", "(=@0 a@0 99999999999999999999999999.5e7@4)"},
		{"\"end\" > 3", "(>@0 end@0 3@8)"},
	} {
		n, err := ParseExpr(tt.src)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
		} else if got := sexpr(n); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.src, got, tt.want)
		}
	}
}

func TestParseExprBounds(t *testing.T) {
	digits := strings.Repeat("7", 131072)
	if n, err := ParseExpr("a = " + digits); err != nil || n.Args[1].Text != digits {
		t.Errorf("a literal of 131072 digits: %v", err)
	}
	for name, src := range map[string]string{
		"nested": strings.Repeat("(", maxNested+1) + "1" + strings.Repeat(")", maxNested+1),
		"tokens": "1" + strings.Repeat("+1", maxTokens/2+1),
		"bytes":  "'" + strings.Repeat("x", maxSource) + "'",
		"chain":  "a" + strings.Repeat(" or a", 20_000),
		"not":    strings.Repeat("not ", maxTokens) + "a",
	} {
		var e *SyntaxError
		if _, err := ParseExpr(src); !errors.As(err, &e) {
			t.Errorf("%s: error %v, want a SyntaxError", name, err)
		}
	}
	if _, err := ParseExpr(strings.Repeat("(", maxNested) + "1" + strings.Repeat(")", maxNested)); err != nil {
		t.Errorf("parentheses nested %d deep: %v", maxNested, err)
	}
	if _, err := ParseExpr("a" + strings.Repeat(" or a", maxDepth-10)); err != nil {
		t.Errorf("a long chain: %v", err)
	}
	if _, err := ParseExpr("a in (1" + strings.Repeat(", 1", maxTokens/2-10) + ")"); err != nil {
		t.Errorf("a long list: %v", err)
	}
}

// TestHooks checks what DDL parsing gets for literals: every digit, and no panic.
func TestHooks(t *testing.T) {
	long := strings.Repeat("9", 200) + "." + strings.Repeat("1", 100)
	p := parser.New()
	stmt, err := p.ParseOneStmt("SELECT "+long+", 1, -2, 18446744073709551615, 1.5e3, 'a''b', NULL, x'6162', 0x1, b'101', TRUE, ?", "", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range stmt.(*ast.SelectStmt).Fields.Fields {
		var b strings.Builder
		if err := f.Expr.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
			t.Errorf("restore: %v", err)
		}
		got = append(got, b.String())
	}
	want := []string{long, "1", "-2", "18446744073709551615", "1500", "'a''b'", "NULL", "x'6162'", "x'01'", "x'05'", "TRUE", "?"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("literals\n got %v\nwant %v", got, want)
	}
	for _, bad := range []string{"x'616'", "x'zz'", "b'12'"} {
		if _, err := p.ParseOneStmt("SELECT "+bad, "", ""); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	stmt, err = p.ParseOneStmt("CREATE TABLE t (a DECIMAL(65,30) DEFAULT "+long+", b INT DEFAULT 5 COMMENT 'x')", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if v := stmt.(*ast.CreateTableStmt).Cols[0].Options[0].Expr.(*Literal).GetValue(); v != Digits(long) {
		t.Errorf("default %v, want all its digits", v)
	}
}

func FuzzParseExpr(f *testing.F) {
	for _, s := range []string{"a = 1", "not a like 'x' escape '!'", "case when a then b end", "cast(a as decimal(1,2))", "trim(both 'x' from a)", `"a" -> 'b' ->> 1`, "x is not distinct from 1e5", "((", "'", "escape", "cast(as)", "extract(a from", "a in (select 1)", "end", "1 || escape 'x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		n, err := ParseExpr(src)
		var e *SyntaxError
		if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > len(src)) {
			t.Fatalf("%q: error %v at %+v", src, err, e)
		}
		if err == nil {
			check(t, src, n)
		}
	})
}

func check(t *testing.T, src string, n *Node) {
	if n.Offset < 0 || n.Offset >= len(src) {
		t.Fatalf("%q: offset %d of %s", src, n.Offset, sexpr(n))
	}
	for _, a := range n.Args {
		check(t, src, a)
	}
}
