package expr

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// like compiles x LIKE pattern [ESCAPE '!']: % is any text, _ one character.
// The escape is a backslash unless given; ” means none. ILIKE, and LIKE over
// a case-folded column, compare lower-cased.
func (c *compiler) like(t *sqldriver.Node, args []*node) (*node, *Error) {
	word := "LIKE"
	if t.Op == sqldriver.OpILike {
		word = "ILIKE"
	}
	for _, n := range args[:2] {
		if n.kind != change.KindText && n.kind != change.KindNull {
			return nil, c.fail(n.offset, word+" wants text, not "+n.describe(), "write CAST(x AS text)")
		}
	}
	x, p := args[0], args[1]
	escape, text := byte('\\'), "("+x.text+" "+word+" "+p.text
	if len(args) == 3 {
		e := args[2]
		if !e.literal || e.kind != change.KindText || len(e.value.Raw()) > 1 || len(e.value.Raw()) == 1 && e.value.Raw()[0] >= 0x80 {
			return nil, c.fail(e.offset, "ESCAPE wants a string of one ASCII character, or an empty one for none", "write x LIKE '…' ESCAPE '!'")
		}
		if escape = 0; len(e.value.Raw()) == 1 {
			escape = e.value.Raw()[0]
		}
		text += " ESCAPE " + e.text
	}
	text += ")"
	fold := t.Op == sqldriver.OpILike || x.fold || p.fold
	if p.literal && p.kind == change.KindText {
		pat, ok := compilePattern(p.value.Raw(), escape, fold)
		if !ok {
			return nil, c.fail(p.offset, "the pattern ends with its escape character", "write the escape twice for the character itself")
		}
		return invertedIf(t.Not, boolean(t.Offset, text, likeLiteral(x, pat))), nil
	}
	failed := c.fault(t.Offset, "a LIKE pattern ends with its escape character")
	pe := p.eval
	return invertedIf(t.Not, boolean(t.Offset, text, func(row []change.Value) (tri, error) {
		v, err := x.eval(row)
		if err != nil {
			return null, err
		}
		w, err := pe(row)
		if err != nil || v.IsNull() || w.IsNull() {
			return null, err
		}
		pat, ok := compilePattern(w.Raw(), escape, fold)
		if !ok {
			_, err := failed()
			return null, err
		}
		return triOf(pat.match(v.Raw())), nil
	})), nil
}

func likeLiteral(x *node, pat pattern) testFunc {
	if i := x.column; i >= 0 {
		return func(row []change.Value) (tri, error) {
			switch v := &row[i]; v.Kind() {
			case change.KindText:
				return triOf(pat.match(v.Raw())), nil
			case change.KindNull:
				return null, nil
			}
			return null, strange(&row[i], change.KindText)
		}
	}
	eval := x.eval
	return func(row []change.Value) (tri, error) {
		v, err := eval(row)
		if err != nil || v.IsNull() {
			return null, err
		}
		return triOf(pat.match(v.Raw())), nil
	}
}

// pattern is a LIKE pattern cut at its percent signs.
type pattern struct {
	pieces []piece // what stands between the percent signs; at least one
	fold   bool
}

// piece is text in which some characters are any.
type piece struct {
	text []byte // 0xFF, which UTF-8 does not have, for any one character
	any  bool   // whether there is such a one
}

const anyOne = 0xFF

// compilePattern reads a pattern; ok is false if it ends with the escape.
func compilePattern(p []byte, escape byte, fold bool) (pat pattern, ok bool) {
	pat = pattern{fold: fold, pieces: []piece{{}}}
	last := &pat.pieces[0]
	for i := 0; i < len(p); i++ {
		switch b := p[i]; {
		case b == escape && escape != 0:
			if i++; i == len(p) {
				return pat, false
			}
			i += last.add(p[i:], fold) - 1
		case b == '%':
			pat.pieces = append(pat.pieces, piece{})
			last = &pat.pieces[len(pat.pieces)-1]
		case b == '_':
			last.text, last.any = append(last.text, anyOne), true
		default:
			i += last.add(p[i:], fold) - 1
		}
	}
	return pat, true
}

// add takes one character of the pattern and returns its width.
func (p *piece) add(from []byte, fold bool) int {
	r, width := utf8.DecodeRune(from)
	if fold && width > 0 {
		p.text = utf8.AppendRune(p.text, unicode.ToLower(r))
	} else {
		p.text = append(p.text, from[:width]...)
	}
	return width
}

// match finds the pieces from left to right, each as early as it fits; the
// last one must end the text.
func (p *pattern) match(s []byte) bool {
	if p.fold {
		s = bytes.ToLower(s)
	}
	n, ok := p.pieces[0].prefix(s)
	if !ok {
		return false
	}
	s = s[n:]
	if len(p.pieces) == 1 {
		return len(s) == 0
	}
	for i := 1; i < len(p.pieces)-1; i++ {
		if n = p.pieces[i].find(s); n < 0 {
			return false
		}
		s = s[n:]
	}
	return p.pieces[len(p.pieces)-1].ends(s)
}

// prefix reports whether s begins with the piece, and how long that is.
func (p *piece) prefix(s []byte) (n int, ok bool) {
	if !p.any {
		return len(p.text), bytes.HasPrefix(s, p.text)
	}
	for _, b := range p.text {
		if n == len(s) {
			return 0, false
		}
		if b == anyOne {
			_, width := utf8.DecodeRune(s[n:])
			n += width
			continue
		}
		if s[n] != b {
			return 0, false
		}
		n++
	}
	return n, true
}

// find returns the end of the piece's first place in s, or -1.
func (p *piece) find(s []byte) int {
	if !p.any {
		if i := bytes.Index(s, p.text); i >= 0 {
			return i + len(p.text)
		}
		return -1
	}
	for i := 0; i <= len(s); {
		if n, ok := p.prefix(s[i:]); ok {
			return i + n
		}
		_, width := utf8.DecodeRune(s[i:])
		i += max(width, 1)
	}
	return -1
}

// ends reports whether s ends with the piece.
func (p *piece) ends(s []byte) bool {
	if !p.any {
		return bytes.HasSuffix(s, p.text)
	}
	// As many characters from the end as the piece has.
	at := len(s)
	for range p.characters() {
		if at == 0 {
			return false
		}
		_, width := utf8.DecodeLastRune(s[:at])
		at -= width
	}
	n, ok := p.prefix(s[at:])
	return ok && at+n == len(s)
}

func (p *piece) characters() int {
	n := 0
	for _, b := range p.text {
		if b == anyOne || utf8.RuneStart(b) {
			n++
		}
	}
	return n
}
