package sqldriver

import (
	"fmt"
	"testing"
)

func dump(n *Node) string {
	s := fmt.Sprintf("%d", n.Op)
	if n.Text != "" {
		s += ":" + n.Text
	}
	if n.Name != "" {
		s += ":" + n.Name
	}
	if n.Type.Name != "" {
		s += fmt.Sprint(n.Type)
	}
	if n.Not {
		s += "!"
	}
	if len(n.Args) > 0 {
		s += "("
		for i, a := range n.Args {
			if i > 0 {
				s += " "
			}
			s += dump(a)
		}
		s += ")"
	}
	return s + fmt.Sprintf("@%d", n.Offset)
}
func TestZ(t *testing.T) {
	for _, src := range []string{"status != 'draft'", "qty > 3 and approved", "not a = b and c", "a is not distinct from b or x is distinct from (c)",
		"a like 'x' || b escape '!'", "data->'a'->>'b' = 'x'", "cast(a as double precision) + cast (b as decimal(10,2))", "extract(year from d) = 2000", "substring(a from 1 for 2)", "trim(both 'x' from a)", "case when a then b else c end", "- -5", "order = 1", "case = 3", "a = b = c", "a in (1,2) and b not in ('x')", "d >= date '2020-01-01'", "a between 1 and 2 and c", "a +", "(a", "a)", "a b", "end > 3", "(a, b)", "a || -(b) || c", "not not a", "a is null is true", "left(a, 3)", "1;", "(select 1)", "count(*)", "a not like 'b'", "(a = b) = c", "-a + b*c%d/e", "position('a' in b)", "f()"} {
		n, err := ParseExpr(src)
		if err != nil {
			e := err.(*SyntaxError)
			fmt.Printf("%s => ERR %d near %q: %s (%s)\n", src, e.Offset, e.Near, e.Message, e.Hint)
			continue
		}
		fmt.Println(src, "=>", dump(n))
	}
}
