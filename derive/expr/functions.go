package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/internal/sqldriver"
)

// function is one that an expression may call.
type function struct {
	least, most int // arguments
	compile     func(c *compiler, t *sqldriver.Node, args []*node) (*node, *Error)
}

const many = 1000

// functions by name; filled at start since their compilers refer to it.
var functions map[string]function

// aliases are other names of functions.
var aliases = map[string]string{"LCASE": "LOWER", "UCASE": "UPPER", "CEILING": "CEIL", "CHAR_LENGTH": "LENGTH", "CHARACTER_LENGTH": "LENGTH",
	"SUBSTR": "SUBSTRING", "BTRIM": "TRIM", "IFNULL": "COALESCE", "STRPOS": "POSITION"}

func init() {
	functions = map[string]function{
		"COALESCE":     {1, many, (*compiler).coalesce},
		"NULLIF":       {2, 2, (*compiler).nullif},
		"GREATEST":     {1, many, func(c *compiler, t *sqldriver.Node, a []*node) (*node, *Error) { return c.extreme(t, a, 1) }},
		"LEAST":        {1, many, func(c *compiler, t *sqldriver.Node, a []*node) (*node, *Error) { return c.extreme(t, a, -1) }},
		"LOWER":        {1, 1, (*compiler).lower},
		"UPPER":        {1, 1, (*compiler).upper},
		"LENGTH":       {1, 1, (*compiler).length},
		"OCTET_LENGTH": {1, 1, (*compiler).octetLength},
		"TRIM":         {1, 3, (*compiler).trim},
		"LTRIM":        {1, 2, (*compiler).trim},
		"RTRIM":        {1, 2, (*compiler).trim},
		"SUBSTRING":    {2, 3, (*compiler).substring},
		"LEFT":         {2, 2, (*compiler).leftRight},
		"RIGHT":        {2, 2, (*compiler).leftRight},
		"REPLACE":      {3, 3, (*compiler).replace},
		"POSITION":     {2, 2, (*compiler).position},
		"CONCAT":       {1, many, (*compiler).concatCall},
		"ABS":          {1, 1, (*compiler).abs},
		"ROUND":        {1, 2, (*compiler).round},
		"FLOOR":        {1, 1, (*compiler).floorCeil},
		"CEIL":         {1, 1, (*compiler).floorCeil},
		"MOD": {2, 2, func(c *compiler, t *sqldriver.Node, a []*node) (*node, *Error) {
			return c.arithmetic(t.Offset, sqldriver.OpModulo, a[0], a[1])
		}},
		"EXTRACT": {2, 2, (*compiler).extract},
	}
}

// noFunction explains names that people try.
var noFunction = map[string]string{
	"NOW":    "an expression has no clock: its value would change without a change of the row",
	"RANDOM": "an expression gives the same result for the same row",
	"RAND":   "an expression gives the same result for the same row",
	"UUID":   "an expression gives the same result for the same row",
	"COUNT":  "an aggregate is computed under calc:, not in an expression",
	"SUM":    "an aggregate is computed under calc:, not in an expression",
	"AVG":    "an aggregate is computed under calc:, not in an expression",
	"MIN":    "an aggregate is computed under calc:, not in an expression; of several values LEAST takes the least",
	"MAX":    "an aggregate is computed under calc:, not in an expression; of several values GREATEST takes the greatest",
	"IF":     "write CASE WHEN … THEN … ELSE … END",
	"DATE":   "write DATE '2024-05-31', or CAST(x AS date)",
}

func (c *compiler) call(t *sqldriver.Node, args []*node) (*node, *Error) {
	name := t.Name
	if a, ok := aliases[name]; ok {
		if name == "STRPOS" && len(args) == 2 {
			args[0], args[1] = args[1], args[0]
		}
		name = a
	}
	f, ok := functions[name]
	if !ok {
		hint := noFunction[name]
		if hint == "" {
			hint = functionHint(name)
		}
		return nil, c.fail(t.Offset, "there is no function "+t.Name, hint)
	}
	if len(args) < f.least || len(args) > f.most {
		return nil, c.fail(t.Offset, fmt.Sprintf("%s takes %s, not %d", t.Name, arguments(f), len(args)), "")
	}
	named := *t
	named.Name = name
	return f.compile(c, &named, args)
}

func arguments(f function) string {
	switch {
	case f.least == 1 && f.most == 1:
		return "one argument"
	case f.least == f.most:
		return fmt.Sprintf("%d arguments", f.least)
	case f.most == many:
		return fmt.Sprintf("at least %d arguments", f.least)
	}
	return fmt.Sprintf("%d to %d arguments", f.least, f.most)
}

func functionHint(name string) string {
	var names []string
	for n := range functions {
		names = append(names, n)
	}
	slices.Sort(names)
	if best := nearest(name, names); best != "" {
		return "did you mean " + best + "?"
	}
	return "functions: " + strings.Join(names, ", ") + ", CAST"
}
