package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// table is a captured table in one layout. It does not change once made: DDL
// makes another one. Stream and chunks use the same.
type table struct {
	oid         uint32
	schema      string
	name        string
	layout      *change.Schema
	columns     []column // as layout.Columns
	partitioned bool     // the root of a partitioned table; its filenode is 0
	filenode    uint32   // when the catalogue was read
	rows        int64    // the planner's estimate
	// loose: text that is not of a composite type as it is known is kept as a JSON
	// string; the table is to be read again (compareShape).
	loose bool

	keyColumn []int // for each column its place in the key, or -1
}

// column is how one column is read.
type column struct {
	attnum int16
	typ    *typeInfo
	typmod int32
}

// newTable completes a table whose layout and columns are set.
func newTable(t table) *table {
	t.keyColumn = make([]int, len(t.columns))
	for i := range t.keyColumn {
		t.keyColumn[i] = slices.Index(t.layout.Key, i)
	}
	return &t
}

// topic returns the table's topic.
func (t *table) topic() string { return t.layout.Topic }

// sql returns the quoted name.
func (t *table) sql() string { return quoteName(t.schema) + "." + quoteName(t.name) }

// String returns the name for messages.
func (t *table) String() string { return t.schema + "." + t.name }

// selectList returns the columns for a SELECT whose text results appendRead takes.
func (t *table) selectList() string {
	var b strings.Builder
	for i := range t.layout.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(t.layout.Columns[i].Name))
	}
	return b.String()
}

// appendRead appends an OpRead event of one row: the fields are the text
// results, in the session of this package (session.go), of a SELECT of exactly
// selectList; nil is null. They are not kept.
func (t *table) appendRead(b *change.Batch, fields [][]byte) error {
	buf := b.Buffer()
	start := len(buf)
	buf, err := t.appendKeyText(buf, fields)
	if err != nil {
		return err
	}
	keyEnd := len(buf)
	var w change.RowWriter
	if len(fields) != len(t.columns) {
		return fmt.Errorf("table %s: a row of %d fields for %d columns", t, len(fields), len(t.columns))
	}
	w.Begin(buf, len(t.columns))
	for i, text := range fields {
		if text == nil {
			w.Null()
			continue
		}
		if err := t.writeText(&w, i, text); err != nil {
			return err
		}
	}
	buf = w.End()
	b.AddInPlace(buf, t.layout, change.OpRead, change.FlagSnapshot, start, keyEnd, keyEnd, len(buf))
	return nil
}

// appendKeyText appends the row key of text fields.
func (t *table) appendKeyText(dst []byte, fields [][]byte) ([]byte, error) {
	for _, i := range t.layout.Key {
		if i >= len(fields) {
			return nil, fmt.Errorf("table %s: a row of %d fields for %d columns", t, len(fields), len(t.columns))
		}
		var err error
		if dst, err = t.appendKeyPart(dst, i, fields[i]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendKeyPart appends the key part of column i; nil text is null.
func (t *table) appendKeyPart(dst []byte, i int, text []byte) ([]byte, error) {
	if text == nil {
		return change.AppendKeyPart(dst, change.Null, false), nil
	}
	v, err := t.columns[i].typ.value(text)
	if err != nil && t.loose && t.columns[i].typ.shaped && checkText(text) == nil {
		v, err = change.JSON(change.AppendJSONString(nil, text)), nil
	}
	if err != nil {
		return nil, t.columnError(i, err)
	}
	return change.AppendKeyPart(dst, v, t.layout.Columns[i].Fold), nil
}

// writeText writes column i of a row.
func (t *table) writeText(w *change.RowWriter, i int, text []byte) error {
	buf, err := t.columns[i].typ.append(w.Raw(), text)
	if err != nil && t.loose && t.columns[i].typ.shaped {
		buf, err = appendTextAsJSON(w.Raw(), text)
	}
	if err != nil {
		return t.columnError(i, err)
	}
	w.Done(buf)
	return nil
}

// errShape says that a value is not of its composite type as that is known.
var errShape = errors.New("the type was altered")

// columnError names the column; the error must not hold the value.
func (t *table) columnError(i int, err error) error {
	c := &t.layout.Columns[i]
	if t.columns[i].typ.shaped {
		err = fmt.Errorf("%w: %w", errShape, err)
	}
	return fmt.Errorf("decode column %s of table %s (%s): %w", c.Name, t, c.SourceType, err)
}

// quoteName quotes an identifier.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText quotes a string literal.
func quoteText(s string) string {
	if strings.Contains(s, `\`) {
		return ` E'` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `'`, `''`) + `'`
	}
	return `'` + strings.ReplaceAll(s, `'`, `''`) + `'`
}
