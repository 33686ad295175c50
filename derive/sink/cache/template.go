package cache

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/internal/keytemplate"
)

// DefaultTemplate is the key of a view that says nothing: VIEW:{id}.
func DefaultTemplate(view string) string {
	return strings.NewReplacer("{", "{{", "}", "}}").Replace(view) + ":{id}"
}

// template makes keys of documents and parses them back. Text and fields take
// turns: texts[0] field[0] texts[1] … texts[n].
type template struct {
	texts  []string
	fields []int // place in the key; wholeID: the document's id
	names  int   // columns in the key
}

// wholeID stands for {id} where no key column has that name, or where the key
// has several columns and the template names nothing else.
const wholeID = -1

// parseTemplate reads a template over the columns of a view's key.
func parseTemplate(text string, key []sink.KeyColumn) (*template, error) {
	parts, err := keytemplate.Parse(text, func(name string) (string, bool) { return keytemplate.Unquote(name), name != "" })
	if err != nil {
		return nil, fmt.Errorf("key template %q: %w; write {{ or }} for a literal brace", text, err)
	}
	t := &template{texts: []string{""}, names: len(key)}
	for _, p := range parts {
		if p.Field == "" {
			t.texts[len(t.texts)-1] += p.Text
			continue
		}
		field, err := fieldIndex(text, p.Field, key)
		if err != nil {
			return nil, err
		}
		t.fields, t.texts = append(t.fields, field), append(t.texts, "")
	}
	if len(key) > 1 && len(t.fields) == 1 && t.fields[0] >= 0 && key[t.fields[0]].Name == "id" {
		t.fields[0] = wholeID // one column of several would be no key
	}
	return t, t.check(text, key)
}

func fieldIndex(text, name string, key []sink.KeyColumn) (int, error) {
	i := slices.IndexFunc(key, func(c sink.KeyColumn) bool { return c.Name == name })
	if i >= 0 {
		return i, nil
	}
	if name == "id" {
		return wholeID, nil
	}
	return 0, fmt.Errorf("key template %q: {%s} is no column of the view's key (%s); other columns may change, and the old key would stay", text, name, columnNames(key))
}

func columnNames(key []sink.KeyColumn) string {
	var names []string
	for _, c := range key {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// check makes sure that no two documents can have the same key.
func (t *template) check(text string, key []sink.KeyColumn) error {
	if len(t.fields) == 0 {
		return fmt.Errorf("key template %q names no column: every document would have the same key", text)
	}
	for i := 1; i < len(t.fields); i++ {
		if t.texts[i] == "" {
			return fmt.Errorf("key template %q: two columns without a text between them can give two documents one key", text)
		}
		if t.texts[i][0] == '\\' {
			return fmt.Errorf("key template %q: the text between two columns may not begin with a backslash, which escapes", text)
		}
	}
	for i, f := range t.fields {
		if slices.Index(t.fields, f) != i {
			return fmt.Errorf("key template %q names a column twice", text)
		}
	}
	if slices.Contains(t.fields, wholeID) {
		return nil
	}
	for i, c := range key {
		if !slices.Contains(t.fields, i) {
			return fmt.Errorf("key template %q leaves out the key column {%s}: several documents would have the same key", text, c.Name)
		}
	}
	return nil
}

// key returns the key of a document.
func (t *template) key(u *sink.Update) (string, error) {
	parts, err := change.DecodeKey(u.Key)
	if err != nil {
		return "", err
	}
	if len(parts) != t.names && !slices.Equal(t.fields, []int{wholeID}) {
		return "", fmt.Errorf("the document's key has %d columns, the template was made for %d", len(parts), t.names)
	}
	b := []byte(t.texts[0])
	var text []byte
	for i, f := range t.fields {
		if f == wholeID {
			text = append(text[:0], u.ID...)
		} else {
			text = change.AppendText(text[:0], parts[f])
		}
		b = t.appendField(b, text, i)
		b = append(b, t.texts[i+1]...)
	}
	return string(b), nil
}

func (t *template) appendField(b, text []byte, i int) []byte {
	if i == len(t.fields)-1 {
		return append(b, text...)
	}
	for _, c := range text {
		if c == '\\' || c == t.texts[i+1][0] {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return b
}

// parse returns the id of the document that has this key; ok is false if none can have it.
func (t *template) parse(key string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(key, t.texts[0])
	if !ok {
		return "", false
	}
	last := len(t.fields) - 1
	values := make([]string, len(t.fields))
	for i := range last {
		if values[i], rest, ok = cutField(rest, t.texts[i+1]); !ok {
			return "", false
		}
	}
	if values[last], ok = strings.CutSuffix(rest, t.texts[last+1]); !ok {
		return "", false
	}
	var doc change.Key
	for c := range t.names {
		i := slices.Index(t.fields, c)
		if i < 0 { // {id} says it all
			return values[slices.Index(t.fields, wholeID)], true
		}
		doc = change.AppendKeyPart(doc, change.Text(values[i]), false)
	}
	id, err := change.DocumentID(doc)
	return id, err == nil
}

// cutField reads an escaped value up to the text behind it.
func cutField(s, behind string) (value, rest string, ok bool) {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b = append(b, s[i])
		case s[i] == behind[0]:
			if !strings.HasPrefix(s[i:], behind) {
				return "", "", false
			}
			return string(b), s[i+len(behind):], true
		default:
			b = append(b, s[i])
		}
	}
	return "", "", false
}

// glob matches all keys of the template, and perhaps others.
func (t *template) glob() string {
	var b strings.Builder
	for i, text := range t.texts {
		if i > 0 {
			b.WriteByte('*')
		}
		for j := range len(text) {
			if strings.IndexByte(`*?[]^\`, text[j]) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(text[j])
		}
	}
	return b.String()
}
