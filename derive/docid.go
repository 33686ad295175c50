package derive

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// keyOfID reads a document id back into its key. ok is false where the id is
// hashed or the text of a part does not tell its value in a simple way; the
// caller checks the result by making the id again.
func keyOfID(id string, columns []KeyColumn) (key change.Key, ok bool) {
	parts := splitID(id)
	if len(parts) != len(columns) {
		return nil, false
	}
	for i, text := range parts {
		v, ok := parsePart(text, columns[i].Kind)
		if !ok {
			return nil, false
		}
		key = change.AppendKeyPart(key, v, columns[i].Fold)
	}
	return key, true
}

// splitID undoes the escapes of change.DocumentID.
func splitID(id string) []string {
	parts := []string{""}
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case c == '|':
			parts[len(parts)-1] = b.String()
			b.Reset()
			parts = append(parts, "")
		case c == '\\' && i+1 < len(id):
			i++
			if id[i] != 'e' {
				b.WriteByte(id[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	parts[len(parts)-1] = b.String()
	return parts
}

func parsePart(text string, kind change.Kind) (change.Value, bool) {
	switch kind {
	case change.KindText:
		return change.Text(text), true
	case change.KindBool:
		return change.Bool(text == "true"), text == "true" || text == "false"
	case change.KindInt, change.KindUint, change.KindDecimal, change.KindFloat32, change.KindFloat64:
		return change.Decimal([]byte(text)), number(text) // keys hold all numbers in one form
	case change.KindBytes:
		b, err := base64.StdEncoding.DecodeString(text)
		return change.Bytes(b), err == nil
	case change.KindUUID:
		var u [16]byte
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || copy(u[:], b) != 16 || len(b) != 16 {
			return change.Null, false
		}
		return change.UUID(u), true
	}
	return change.Null, false
}

// number reports whether text is digits with at most a sign before and one point between.
func number(text string) bool {
	text = strings.TrimPrefix(text, "-")
	whole, fraction, point := strings.Cut(text, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!point || digits(fraction))
}
