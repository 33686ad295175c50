package keytemplate

import (
	"fmt"
	"strings"
)

// Part is a literal text or a field's name; exactly one is set.
type Part struct {
	Text  string
	Field string
}

// Parse splits a template into texts and {names}; {{ and }} are literal braces.
// name reads what stands between braces, ok is false for what is no name.
func Parse(text string, name func(text string) (field string, ok bool)) ([]Part, error) {
	var parts []Part
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			parts = append(parts, Part{Text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			lit.WriteByte(c)
			i++
		case c == '}':
			return nil, fmt.Errorf("a } without its {")
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return nil, fmt.Errorf("a { without its }")
			}
			field, ok := name(text[i+1 : i+end])
			if !ok {
				return nil, fmt.Errorf("%q is not a field's name", text[i+1:i+end])
			}
			flush()
			parts = append(parts, Part{Field: field})
			i += end
		default:
			lit.WriteByte(c)
		}
	}
	flush()
	return parts, nil
}

// Unquote takes a column's name out of its double quotes; without any it is the text.
func Unquote(text string) string {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	return strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
}
