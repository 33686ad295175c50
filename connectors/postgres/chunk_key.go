package postgres

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// plainKey reports whether the key's columns compare by operators that are
// found without a search path: not those of an extension's types.
func (t *table) plainKey() bool {
	for _, i := range t.layout.Key {
		if t.layout.Columns[i].Fold || !t.columns[i].typ.known {
			return false
		}
	}
	return true
}

// keyCondition returns a WHERE condition for the rows with these keys. ok is
// false if they cannot be written as SQL (an array, an extension's type): then
// the whole table is to be read.
func (t *table) keyCondition(keys []change.Key) (sql string, args []string, ok bool) {
	if !t.plainKey() {
		return "", nil, false
	}
	var any []string
	for _, key := range keys {
		parts, err := change.DecodeKey(key)
		if err != nil || len(parts) != len(t.layout.Key) {
			continue // of another key than the table has now: such a row is not there
		}
		var all []string
		for j, v := range parts {
			text, ok := t.keyText(t.layout.Key[j], v)
			if !ok {
				return "", nil, false
			}
			args = append(args, text)
			all = append(all, fmt.Sprintf("%s = $%d", quoteName(t.layout.Columns[t.layout.Key[j]].Name), len(args)))
		}
		any = append(any, "("+strings.Join(all, " AND ")+")")
	}
	if len(any) == 0 {
		return "false", nil, true
	}
	return strings.Join(any, " OR "), args, true
}

// keyText returns a key part as PostgreSQL reads it. Equal parts need not be
// equal text, so that the rows found are compared again by their key.
func (t *table) keyText(column int, v change.Value) (string, bool) {
	c := &t.layout.Columns[column]
	switch c.Kind {
	case change.KindBool, change.KindInt, change.KindUint, change.KindDecimal, change.KindFloat32, change.KindFloat64, change.KindText, change.KindUUID:
		return string(change.AppendText(nil, v)), true
	case change.KindBytes:
		return `\x` + hex.EncodeToString(v.Raw()), true
	case change.KindDate, change.KindTimestamp, change.KindTimestampTZ:
		return calendarText(change.AppendText(nil, v)), true
	case change.KindTime, change.KindTimeTZ, change.KindInterval:
		return string(change.AppendText(nil, v)), true
	}
	return "", false
}

// calendarText turns the expanded years of ISO 8601 into PostgreSQL's: year 0 is 1 BC.
func calendarText(b []byte) string {
	if len(b) > 0 && b[0] == '+' {
		return string(b[1:])
	}
	negative := len(b) > 0 && b[0] == '-' && !bytes.HasPrefix(b, []byte("-infinity"))
	if !negative && !bytes.HasPrefix(b, []byte("0000-")) {
		return string(b)
	}
	if negative {
		b = b[1:]
	}
	year, rest, _ := bytes.Cut(b, []byte("-"))
	return fmt.Sprintf("%04d-%s BC", toInt(year)+1, rest)
}
