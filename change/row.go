package change

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrUnchanged is returned when a column is asked for that the source left out.
var ErrUnchanged = errors.New("change: column is unchanged in this row")

// Row is an encoded row and its layout. It shares the memory it was made over.
type Row struct {
	Schema *Schema
	Data   []byte
}

const (
	stateValue = iota
	stateNull
	stateUnchanged
)

func stateBytes(columns int) int { return (columns + 3) / 4 }

func (r Row) state(i int) byte { return r.Data[i/4] >> (2 * (i % 4)) & 3 }

// check reports whether the state bits can be read.
func (r Row) check() error {
	if len(r.Data) < stateBytes(len(r.Schema.Columns)) {
		return damaged("row shorter than its column states")
	}
	return nil
}

// Value returns column i; ErrUnchanged for a column that the source left out.
func (r Row) Value(i int) (Value, error) {
	if err := r.check(); err != nil {
		return Null, err
	}
	switch r.state(i) {
	case stateNull:
		return Null, nil
	case stateUnchanged:
		return Null, fmt.Errorf("%w: %s of %s", ErrUnchanged, r.Schema.Columns[i].Name, r.Schema.Topic)
	}
	b := r.Data[stateBytes(len(r.Schema.Columns)):]
	for j := range i + 1 {
		if r.state(j) != stateValue {
			continue
		}
		v, rest, err := DecodeValue(r.Schema.Columns[j].Kind, b)
		if err != nil {
			return Null, fmt.Errorf("column %s of %s: %w", r.Schema.Columns[j].Name, r.Schema.Topic, err)
		}
		if j == i {
			return v, nil
		}
		b = rest
	}
	return Null, damaged("column state")
}

// Values decodes all columns into dst, which is reused when large enough.
// Unchanged columns come as UnchangedValue.
func (r Row) Values(dst []Value) ([]Value, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	dst = dst[:0]
	b := r.Data[stateBytes(len(r.Schema.Columns)):]
	for i := range r.Schema.Columns {
		switch r.state(i) {
		case stateNull:
			dst = append(dst, Null)
		case stateUnchanged:
			dst = append(dst, UnchangedValue)
		case stateValue:
			v, rest, err := DecodeValue(r.Schema.Columns[i].Kind, b)
			if err != nil {
				return nil, fmt.Errorf("column %s of %s: %w", r.Schema.Columns[i].Name, r.Schema.Topic, err)
			}
			dst, b = append(dst, v), rest
		default:
			return nil, damaged("column state")
		}
	}
	if len(b) != 0 {
		return nil, damaged("bytes after a row")
	}
	return dst, nil
}

// Partial reports whether any column is unchanged.
func (r Row) Partial() bool {
	if r.check() != nil {
		return false
	}
	for i := range r.Schema.Columns {
		if r.state(i) == stateUnchanged {
			return true
		}
	}
	return false
}

// RowWriter appends one row, a call for each column in order. The zero value is ready for Begin.
type RowWriter struct {
	buf     []byte
	start   int
	columns int
	next    int
	partial bool
}

// Begin starts a row of that many columns at the end of dst.
func (w *RowWriter) Begin(dst []byte, columns int) {
	w.start, w.columns, w.next, w.partial = len(dst), columns, 0, false
	for range stateBytes(columns) {
		dst = append(dst, 0)
	}
	w.buf = dst
}

func (w *RowWriter) mark(state byte) {
	w.buf[w.start+w.next/4] |= state << (2 * (w.next % 4))
	w.next++
}

// Null writes a null column.
func (w *RowWriter) Null() { w.mark(stateNull) }

// Unchanged writes a column that the source left out.
func (w *RowWriter) Unchanged() { w.mark(stateUnchanged); w.partial = true }

// Value writes v, which may be null or unchanged.
func (w *RowWriter) Value(v Value) {
	switch v.kind {
	case KindNull:
		w.mark(stateNull)
	case kindUnchanged:
		w.Unchanged()
	default:
		w.buf = AppendValue(w.buf, v)
		w.mark(stateValue)
	}
}

// Int writes an int, date, time or timestamp column.
func (w *RowWriter) Int(v int64) { w.buf = binary.AppendVarint(w.buf, v); w.mark(stateValue) }

// Bytes writes a decimal, text, bytes or JSON column.
func (w *RowWriter) Bytes(v []byte) {
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(v))), v...)
	w.mark(stateValue)
}

// Raw gives the buffer to append the encoding of one value to; Done takes it back.
func (w *RowWriter) Raw() []byte { return w.buf }

// Done ends a value that was appended to Raw.
func (w *RowWriter) Done(buf []byte) { w.buf = buf; w.mark(stateValue) }

// Partial reports whether Unchanged was called since Begin.
func (w *RowWriter) Partial() bool { return w.partial }

// End returns the buffer with the finished row; every column must have been written.
func (w *RowWriter) End() []byte {
	if w.next != w.columns {
		panic(fmt.Sprintf("change: row of %d columns ended after %d", w.columns, w.next))
	}
	return w.buf
}

// AppendRow appends a row of these values.
func AppendRow(dst []byte, values []Value) []byte {
	var w RowWriter
	w.Begin(dst, len(values))
	for _, v := range values {
		w.Value(v)
	}
	return w.End()
}

// AppendRecordValue appends the value of a row record: after, and before if there is one.
func AppendRecordValue(dst, before, after []byte) []byte {
	if before == nil {
		return append(append(dst, 0), after...)
	}
	dst = binary.AppendUvarint(append(dst, 1), uint64(len(before)))
	return append(append(dst, before...), after...)
}

// DecodeRecordValue splits the value of a row record; before is nil if the source did not send it.
func DecodeRecordValue(b []byte) (before, after []byte, err error) {
	if len(b) == 0 {
		return nil, nil, damaged("empty record value")
	}
	switch b[0] {
	case 0:
		return nil, b[1:], nil
	case 1:
		before, after, err = readBytes(b[1:])
		return before, after, err
	}
	return nil, nil, damaged("record value layout")
}

// Merge fills the unchanged columns of a newer row from an older row of the
// same key and returns the row encoded with the newer schema. Columns are
// matched by number and kind; a column that the older row does not have takes
// its schema default, else stays unchanged.
func Merge(newer, older Row) ([]byte, error) {
	nv, err := newer.Values(nil)
	if err != nil {
		return nil, err
	}
	ov, err := older.Values(nil)
	if err != nil {
		return nil, err
	}
	for i := range nv {
		if !nv[i].IsUnchanged() {
			continue
		}
		c := &newer.Schema.Columns[i]
		if j := older.Schema.ByNumber(c.Number); j >= 0 {
			if older.Schema.Columns[j].Kind == c.Kind {
				nv[i] = ov[j]
			}
			continue
		}
		if c.HasDefault {
			if nv[i], err = c.DefaultValue(); err != nil {
				return nil, err
			}
		}
	}
	return AppendRow(nil, nv), nil
}

// DefaultValue decodes the column's constant default.
func (c *Column) DefaultValue() (Value, error) {
	if len(c.Default) == 0 && c.Kind != KindNull {
		return Null, nil
	}
	v, rest, err := DecodeValue(c.Kind, c.Default)
	if err == nil && len(rest) != 0 {
		err = damaged("bytes after a default")
	}
	return v, err
}
