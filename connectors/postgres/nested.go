package postgres

import (
	"bytes"
	"errors"

	"github.com/tailwater/tailwater/change"
)

// Decoders of values made of others: arrays become nested JSON arrays without
// their lower bounds, composites and hstore objects, multiranges arrays of the
// text of their ranges (TYPES.md K11).

var (
	errArray      = errors.New("not an array in PostgreSQL's form")
	errRecord     = errors.New("not a row of the composite type as the catalogue has it now")
	errHstore     = errors.New("not an hstore in PostgreSQL's form")
	errMultirange = errors.New("not a multirange in PostgreSQL's form")
)

// maxArrayDims is above PostgreSQL's limit of six.
const maxArrayDims = 8

func arrayDecoder(elem *typeInfo, delim byte) appendFunc {
	return func(dst, text []byte) ([]byte, error) {
		start := len(dst)
		dst, gap := openSized(dst, len(text))
		if len(text) > 0 && text[0] == '[' { // lower bounds, [0:2]={…}
			i := bytes.IndexByte(text, '=')
			if i < 0 {
				return nil, errArray
			}
			text = text[i+1:]
		}
		a := arrayParser{in: text, out: dst, elem: elem, delim: delim}
		if err := a.array(0); err != nil {
			return nil, err
		}
		if len(a.in) != 0 {
			return nil, errArray
		}
		return closeSized(a.out, start, gap), nil
	}
}

type arrayParser struct {
	in, out []byte
	elem    *typeInfo
	delim   byte
}

func (a *arrayParser) next() byte {
	if len(a.in) == 0 {
		return 0
	}
	return a.in[0]
}

func (a *arrayParser) array(depth int) error {
	if a.next() != '{' || depth >= maxArrayDims {
		return errArray
	}
	a.out, a.in = append(a.out, '['), a.in[1:]
	if a.next() == '}' {
		a.out, a.in = append(a.out, ']'), a.in[1:]
		return nil
	}
	for {
		var err error
		if a.next() == '{' {
			err = a.array(depth + 1)
		} else {
			err = a.element()
		}
		if err != nil {
			return err
		}
		c := a.next()
		if c != a.delim && c != '}' {
			return errArray
		}
		a.in = a.in[1:]
		if c == '}' {
			a.out = append(a.out, ']')
			return nil
		}
		a.out = append(a.out, ',')
	}
}

func (a *arrayParser) element() (err error) {
	if a.next() == '"' {
		start := len(a.out)
		if a.out, a.in, err = unquote(a.out, a.in, false); err != nil {
			return errArray
		}
		a.out, err = a.elem.replaceJSON(a.out, start)
		return err
	}
	end := 0
	for end < len(a.in) && a.in[end] != a.delim && a.in[end] != '}' {
		end++
	}
	word := a.in[:end]
	a.in = a.in[end:]
	if string(word) == "NULL" {
		a.out = append(a.out, "null"...)
		return nil
	}
	if len(word) == 0 {
		return errArray
	}
	if bytes.IndexByte(word, '\\') >= 0 {
		return errArray // PostgreSQL quotes what it escapes
	}
	a.out, err = a.elem.appendJSON(a.out, word)
	return err
}

var errQuote = errors.New("quoted text without an end")

// unquote appends the content of the quoted text that b starts with, in which a
// backslash takes the next byte as it is and, if doubled, "" is a quote.
func unquote(dst, b []byte, doubled bool) (out, rest []byte, err error) {
	b = b[1:]
	for {
		i := bytes.IndexAny(b, `"\`)
		if i < 0 {
			return nil, nil, errQuote
		}
		dst = append(dst, b[:i]...)
		switch {
		case b[i] == '\\' && i+1 < len(b):
			dst, b = append(dst, b[i+1]), b[i+2:]
		case b[i] == '\\':
			return nil, nil, errQuote
		case doubled && i+1 < len(b) && b[i+1] == '"':
			dst, b = append(dst, '"'), b[i+2:]
		default:
			return dst, b[i+1:], nil
		}
	}
}

// recordDecoder takes (1,x,).
func recordDecoder(attrs []attribute) appendFunc {
	return func(dst, text []byte) ([]byte, error) {
		start := len(dst)
		dst, gap := openSized(dst, len(text))
		if len(text) < 2 || text[0] != '(' {
			return nil, errRecord
		}
		dst, text = append(dst, '{'), text[1:]
		for i := range attrs {
			if i > 0 {
				if len(text) == 0 || text[0] != ',' {
					return nil, errRecord
				}
				dst, text = append(dst, ','), text[1:]
			}
			dst = append(change.AppendJSONString(dst, attrs[i].name), ':')
			at := len(dst)
			var null bool
			var err error
			if dst, null, text, err = recordField(dst, text); err != nil {
				return nil, err
			}
			if null {
				dst = append(dst, "null"...)
				continue
			}
			if dst, err = attrs[i].typ.replaceJSON(dst, at); err != nil {
				return nil, err
			}
		}
		if string(text) != ")" {
			return nil, errRecord
		}
		return closeSized(append(dst, '}'), start, gap), nil
	}
}

// recordField appends the next field of a composite's text; an empty one is null.
func recordField(dst, b []byte) (field []byte, null bool, rest []byte, err error) {
	null = true
	for {
		if len(b) == 0 {
			return nil, false, nil, errRecord
		}
		switch c := b[0]; {
		case c == ',' || c == ')':
			return dst, null, b, nil
		case c == '"':
			if dst, b, err = unquote(dst, b, true); err != nil {
				return nil, false, nil, errRecord
			}
		case c == '\\':
			if len(b) < 2 {
				return nil, false, nil, errRecord
			}
			dst, b = append(dst, b[1]), b[2:]
		default:
			dst, b = append(dst, c), b[1:]
		}
		null = false
	}
}

// appendHstore takes "a"=>"1", "b"=>NULL.
func appendHstore(dst, text []byte) ([]byte, error) {
	start := len(dst)
	dst, gap := openSized(dst, len(text))
	dst = append(dst, '{')
	var ok bool
	var err error
	for first := true; len(text) > 0; first = false {
		if !first {
			if text, ok = bytes.CutPrefix(text, []byte(", ")); !ok {
				return nil, errHstore
			}
			dst = append(dst, ',')
		}
		if dst, text, err = hstoreString(dst, text); err != nil {
			return nil, err
		}
		if text, ok = bytes.CutPrefix(text, []byte("=>")); !ok {
			return nil, errHstore
		}
		dst = append(dst, ':')
		if rest, null := bytes.CutPrefix(text, []byte("NULL")); null {
			dst, text = append(dst, "null"...), rest
			continue
		}
		if dst, text, err = hstoreString(dst, text); err != nil {
			return nil, err
		}
	}
	return closeSized(append(dst, '}'), start, gap), nil
}

// hstoreString appends the quoted string that text starts with as a JSON string.
func hstoreString(dst, text []byte) (out, rest []byte, err error) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, errHstore
	}
	start := len(dst)
	if dst, rest, err = unquote(dst, text, false); err != nil {
		return nil, nil, errHstore
	}
	s := dst[start:]
	if err := checkText(s); err != nil {
		return nil, nil, err
	}
	end := len(dst)
	return moveDown(change.AppendJSONString(dst, s), start, end), rest, nil
}

// appendMultirange takes {[1,3),[5,7)}.
func appendMultirange(dst, text []byte) ([]byte, error) {
	start := len(dst)
	dst, gap := openSized(dst, len(text))
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, errMultirange
	}
	if err := checkText(text); err != nil {
		return nil, err
	}
	text = text[1 : len(text)-1]
	dst = append(dst, '[')
	for len(text) > 0 {
		end := rangeEnd(text)
		if end < 0 {
			return nil, errMultirange
		}
		dst = change.AppendJSONString(dst, text[:end])
		if text = text[end:]; len(text) > 0 {
			if text[0] != ',' || len(text) == 1 {
				return nil, errMultirange
			}
			dst, text = append(dst, ','), text[1:]
		}
	}
	return closeSized(append(dst, ']'), start, gap), nil
}

// rangeEnd returns the length of the range that b starts with, -1 if there is none.
func rangeEnd(b []byte) int {
	if b[0] != '[' && b[0] != '(' {
		return -1
	}
	quoted := false
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ')' || c == ']'):
			return i + 1
		}
	}
	return -1
}
