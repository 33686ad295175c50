package expr

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// jsonAccess is x -> key and x ->> key: the member of an object by a string,
// the element of an array by a number from 0, from the end if negative. What is
// not there is null; ->> gives a string without quotes, and null for a JSON null.
// The text is walked as it is: numbers keep their digits.
func (c *compiler) jsonAccess(t *sqldriver.Node, x, key *node) (*node, *Error) {
	op, kind := "->", change.KindJSON
	if t.Op == sqldriver.OpJSONText {
		op, kind = "->>", change.KindText
	}
	if x.kind != change.KindJSON && x.kind != change.KindNull {
		return nil, c.fail(x.offset, op+" wants json on its left, not "+x.describe(), "put what is joined by || in parentheses")
	}
	if !key.literal || key.kind != change.KindText && key.kind != change.KindInt {
		return nil, c.fail(key.offset, op+" wants a key in single quotes or a number as a constant", "what follows it in a wider expression: put x "+op+" 'key' in parentheses")
	}
	name, index, byName := key.value.Raw(), key.value.Int64(), key.kind == change.KindText
	text := "(" + x.text + " " + op + " " + key.text + ")"
	return strict(t.Offset, kind, text, []*node{x}, func(v []change.Value) (change.Value, error) {
		var part []byte
		if byName {
			part = jsonMember(v[0].Raw(), name)
		} else {
			part = jsonElement(v[0].Raw(), index)
		}
		switch {
		case part == nil:
			return change.Null, nil
		case kind == change.KindJSON:
			return change.JSON(part), nil
		case part[0] == '"':
			return change.TextBytes(jsonUnquote(part)), nil
		case string(part) == "null":
			return change.Null, nil
		}
		return change.TextBytes(part), nil
	}), nil
}

// jsonWalk steps over JSON text. Text that is none ends the walk: ok is false.
type jsonWalk struct {
	b  []byte
	ok bool
}

func (w *jsonWalk) blank() {
	for len(w.b) > 0 && (w.b[0] == ' ' || w.b[0] == '\t' || w.b[0] == '\n' || w.b[0] == '\r') {
		w.b = w.b[1:]
	}
}

// take steps over one byte, and blanks around it.
func (w *jsonWalk) take(c byte) bool {
	if w.blank(); len(w.b) == 0 || w.b[0] != c {
		return false
	}
	w.b = w.b[1:]
	w.blank()
	return true
}

// value steps over one value and returns its text.
func (w *jsonWalk) value() []byte {
	w.blank()
	start := w.b
	n := 0
	for depth := 0; n < len(start); {
		switch start[n] {
		case '"':
			width := jsonString(start[n:])
			if width == 0 {
				w.ok, w.b = false, nil
				return nil
			}
			n += width
		case '{', '[':
			depth++
			n++
			continue
		case '}', ']':
			depth--
			n++
		case ',', ':', ' ', '\t', '\n', '\r':
			n++
		default:
			for n < len(start) && !bytes.ContainsRune([]byte(",:]} \t\n\r\"[{"), rune(start[n])) {
				n++
			}
		}
		if depth <= 0 {
			break
		}
	}
	if n == 0 {
		w.ok = false
	}
	w.b = start[n:]
	return start[:n]
}

// jsonString returns the length of the string at the start of b, with quotes; 0 if it has no end.
func jsonString(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// jsonMember returns the member of an object; of several of one name the last.
func jsonMember(b, name []byte) []byte {
	w := jsonWalk{b, true}
	if !w.take('{') {
		return nil
	}
	var found []byte
	for w.ok && !w.take('}') {
		key := w.value()
		if !w.take(':') || len(key) < 2 || key[0] != '"' {
			return nil
		}
		v := w.value()
		if bytes.Equal(jsonUnquote(key), name) {
			found = v
		}
		if !w.take(',') && (len(w.b) == 0 || w.b[0] != '}') {
			return nil
		}
	}
	return present(found)
}

// jsonElement returns the element of an array.
func jsonElement(b []byte, index int64) []byte {
	if index < 0 {
		index += jsonElements(b, -1, nil)
		if index < 0 {
			return nil
		}
	}
	var found []byte
	jsonElements(b, index, &found)
	return present(found)
}

func present(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// jsonElements counts elements, and stores the one of index.
func jsonElements(b []byte, index int64, found *[]byte) int64 {
	w := jsonWalk{b, true}
	if !w.take('[') {
		return 0
	}
	n := int64(0)
	for w.ok && !w.take(']') {
		v := w.value()
		if n == index && found != nil {
			*found = v
			return n
		}
		n++
		if !w.take(',') && (len(w.b) == 0 || w.b[0] != ']') {
			break
		}
	}
	return n
}

// jsonUnquote returns what a JSON string says; without escapes it shares its memory.
func jsonUnquote(s []byte) []byte {
	s = s[1 : len(s)-1]
	i := bytes.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, width := jsonRune(s[i+1:])
			out = utf8.AppendRune(out, r)
			i += width
		default:
			out = append(out, s[i])
		}
	}
	return out
}

// jsonRune reads the digits of \uXXXX, and of the low half that follows a high one.
func jsonRune(s []byte) (rune, int) {
	r, ok := hex4(s)
	if !ok {
		return utf8.RuneError, 0
	}
	if utf16.IsSurrogate(r) && len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if low, ok := hex4(s[6:]); ok {
			return utf16.DecodeRune(r, low), 10
		}
	}
	return r, 4
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[:4]), 16, 32)
	return rune(n), err == nil
}
