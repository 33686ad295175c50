package expr

import (
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/internal/spell"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

func quoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
func quoteName(s string) string   { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// column resolves a name: exactly, or, where it is not quoted and no column
// has exactly this name, without regard to case if only one column fits.
func (c *compiler) column(t *sqldriver.Node) (*node, *Error) {
	found, fits := -1, 0
	for i := range c.cols {
		if c.cols[i].Name == t.Text {
			found, fits = i, 1
			break
		}
		if !t.Quoted && strings.EqualFold(c.cols[i].Name, t.Text) {
			found = i
			fits++
		}
	}
	switch {
	case fits > 1:
		return nil, c.fail(t.Offset, fmt.Sprintf("several columns are named %s but for their case", t.Text), "quote the name as it is spelled: "+quoteName(c.cols[found].Name))
	case fits == 0:
		return nil, c.fail(t.Offset, "there is no column "+quoteName(t.Text), c.unknownHint(t))
	}
	c.used[found] = true
	return columnNode(t.Offset, found, c.cols[found], quoteName(c.cols[found].Name)), nil
}

func (c *compiler) unknownHint(t *sqldriver.Node) string {
	names := make([]string, len(c.cols))
	for i := range c.cols {
		names[i] = c.cols[i].Name
	}
	if best := nearest(t.Text, names); best != "" {
		return "did you mean " + best + "?"
	}
	if t.Quoted {
		return "a string stands in single quotes, a name in double quotes"
	}
	if len(names) == 0 || len(names) > 30 {
		return ""
	}
	return "columns: " + strings.Join(names, ", ")
}

// nearest returns the candidate that a misspelt name most likely meant, or "".
func nearest(name string, candidates []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, cand := range candidates {
		if d := spell.Distance(strings.ToLower(name), strings.ToLower(cand)); d < least {
			best, least = cand, d
		}
	}
	return best
}
