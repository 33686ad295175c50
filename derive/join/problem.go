package join

import (
	"fmt"
	"strings"
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
		if d := distance(strings.ToLower(word), strings.ToLower(n)); d < limit {
			best, limit = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is the number of edits between a and b, a swap of neighbours being one.
func distance(a, b string) int {
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
