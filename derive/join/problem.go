package join

import (
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/internal/spell"
)

// Problem is one thing wrong with a definition. Path leads to it through the
// words of the view, for example nest, brand, by.
type Problem struct {
	Path    []string
	Message string
	Hint    string // the way out; may be empty
}

// String returns the problem in one line.
func (p Problem) String() string {
	s := p.Message
	if len(p.Path) > 0 {
		s = strings.Join(p.Path, ".") + ": " + s
	}
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Problems are all the problems of a definition.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}

func (c *compiler) problem(path []string, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// at returns path with words appended, sharing nothing.
func at(path []string, words ...string) []string {
	return append(append(make([]string, 0, len(path)+len(words)), path...), words...)
}

// nearest returns a hint with the name that word was likely meant to be.
func nearest(word string, names []string) string {
	best, limit := "", max(2, len(word)/3)+1
	for _, n := range names {
		if d := spell.Distance(strings.ToLower(word), strings.ToLower(n)); d < limit {
			best, limit = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}
