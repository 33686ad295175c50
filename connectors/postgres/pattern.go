package postgres

import (
	"strings"

	"github.com/tailwater/tailwater/internal/spell"
)

// pattern is a table name as Options.Tables has it: literal, or with * for any
// run of characters, dots included.
type pattern struct {
	text    string // with the schema filled in
	literal bool
}

func parsePattern(text string) pattern {
	p := pattern{text: text, literal: !strings.Contains(text, "*")}
	if !strings.Contains(text, ".") && (p.literal || text != "*") {
		p.text = "public." + text
	}
	return p
}

func parsePatterns(texts []string) []pattern {
	list := make([]pattern, len(texts))
	for i, t := range texts {
		list[i] = parsePattern(t)
	}
	return list
}

func (p pattern) match(name string) bool {
	if p.literal {
		return p.text == name
	}
	parts := strings.Split(p.text, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

func matchAny(list []pattern, name string) bool {
	for _, p := range list {
		if p.match(name) {
			return true
		}
	}
	return false
}

// nearest returns the table name that is most like the wanted one, "" if none is
// close: another schema's of that name, or one of few other letters in its schema.
func nearest(want string, names []string) string {
	schema, table, _ := strings.Cut(want, ".")
	best, bestDistance := "", len(table)/3+1
	for _, n := range names {
		s, t, _ := strings.Cut(n, ".")
		d := spell.Distance(strings.ToLower(table), strings.ToLower(t))
		if s != schema {
			d += min(2, spell.Distance(schema, s))
		}
		if d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}
