package postgres

import (
	"bytes"
	"errors"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tailwater/tailwater/change"
)

// Canonical JSON (TYPES.md K12): no whitespace outside strings, strings with
// only the escapes that JSON requires, number tokens untouched, of members with
// the same name the last one.

var (
	errJSON      = errors.New("not JSON")
	errJSONDepth = errors.New("JSON is nested too deeply")
)

// maxJSONDepth is above what PostgreSQL's own parser takes with its largest stack.
const maxJSONDepth = 100000

func appendJSONText(dst, text []byte) ([]byte, error)  { return appendCanonical(dst, text, false) }
func appendJSONBText(dst, text []byte) ([]byte, error) { return appendCanonical(dst, text, true) }

func appendCanonical(dst, text []byte, unique bool) ([]byte, error) {
	start := len(dst)
	dst, gap := openSized(dst, len(text))
	p := jsonParser{in: text, out: dst, unique: unique}
	if !unique {
		list := memberLists.Get().(*[]member)
		p.members = (*list)[:0]
		defer func() {
			if *list = p.members; cap(*list) <= mostMembers {
				memberLists.Put(list)
			}
		}()
	}
	p.value(0)
	p.space()
	if p.err == nil && len(p.in) != 0 {
		p.err = errJSON
	}
	if p.err != nil {
		return nil, p.err
	}
	return closeSized(p.out, start, gap), nil
}

// memberLists are lists of members to use again, up to mostMembers long.
var memberLists = sync.Pool{New: func() any { return new([]member) }}

const mostMembers = 4096

type jsonParser struct {
	in     []byte
	out    []byte
	unique bool // the server has removed double members
	err    error

	members []member // of all objects that are open
}

// member is a member of an object: where it and its name stand in out.
type member struct{ start, nameEnd int }

func (p *jsonParser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.in = nil
}

func (p *jsonParser) space() {
	for len(p.in) > 0 && (p.in[0] == ' ' || p.in[0] == '\n' || p.in[0] == '\t' || p.in[0] == '\r') {
		p.in = p.in[1:]
	}
}

// take copies one byte if it is the next one.
func (p *jsonParser) take(c byte) bool {
	p.space()
	if len(p.in) == 0 || p.in[0] != c {
		return false
	}
	p.out, p.in = append(p.out, c), p.in[1:]
	return true
}

func (p *jsonParser) value(depth int) {
	p.space()
	if len(p.in) == 0 || p.err != nil {
		p.fail(errJSON)
		return
	}
	if depth > maxJSONDepth {
		p.fail(errJSONDepth)
		return
	}
	switch c := p.in[0]; {
	case c == '{':
		p.object(depth)
	case c == '[':
		p.array(depth)
	case c == '"':
		p.string()
	case c == '-' || c >= '0' && c <= '9':
		p.number()
	default:
		p.word()
	}
}

func (p *jsonParser) word() {
	for _, w := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(p.in, []byte(w)) {
			p.out, p.in = append(p.out, w...), p.in[len(w):]
			return
		}
	}
	p.fail(errJSON)
}

func (p *jsonParser) number() {
	n := numberToken(p.in)
	if n == 0 {
		p.fail(errJSON)
		return
	}
	p.out, p.in = append(p.out, p.in[:n]...), p.in[n:]
}

// numberToken returns the length of the JSON number that b starts with, or 0.
func numberToken(b []byte) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	first := i
	if !digits() || b[first] == '0' && i > first+1 {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return 0
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}

func (p *jsonParser) array(depth int) {
	p.take('[')
	if p.take(']') {
		return
	}
	for {
		p.value(depth + 1)
		if p.err != nil || p.take(']') {
			return
		}
		if !p.take(',') {
			p.fail(errJSON)
			return
		}
	}
}

func (p *jsonParser) object(depth int) {
	p.take('{')
	if p.take('}') {
		return
	}
	first := len(p.members)
	for {
		p.space()
		if len(p.in) == 0 || p.in[0] != '"' {
			p.fail(errJSON)
			return
		}
		start := len(p.out)
		p.string()
		if !p.unique {
			p.members = append(p.members, member{start, len(p.out)})
		}
		if !p.take(':') {
			p.fail(errJSON)
			return
		}
		p.value(depth + 1)
		if p.err != nil {
			return
		}
		if p.take('}') {
			p.lastWins(p.members[first:])
			p.members = p.members[:first]
			return
		}
		if !p.take(',') {
			p.fail(errJSON)
			return
		}
	}
}

// lastWins removes the members of the object that ends out whose name comes again.
func (p *jsonParser) lastWins(members []member) {
	dead := p.doubles(members)
	if dead == nil {
		return
	}
	end := members[0].start
	for i, m := range members {
		if dead[i] {
			continue
		}
		next := len(p.out) // with the comma or brace behind
		if i+1 < len(members) {
			next = members[i+1].start
		}
		end += copy(p.out[end:], p.out[m.start:next])
	}
	p.out = p.out[:end]
}

// doubles marks the members whose name comes again; nil if there are none.
func (p *jsonParser) doubles(members []member) []bool {
	var dead []bool
	mark := func(i int) {
		if dead == nil {
			dead = make([]bool, len(members))
		}
		dead[i] = true
	}
	name := func(m member) []byte { return p.out[m.start:m.nameEnd] }
	if len(members) <= 8 {
		for i, m := range members {
			for _, o := range members[i+1:] {
				if bytes.Equal(name(m), name(o)) {
					mark(i)
					break
				}
			}
		}
		return dead
	}
	seen := make(map[string]struct{}, len(members))
	for i := len(members) - 1; i >= 0; i-- {
		n := name(members[i])
		if _, ok := seen[string(n)]; ok {
			mark(i)
			continue
		}
		seen[string(n)] = struct{}{}
	}
	return dead
}

// string copies a string with canonical escapes.
func (p *jsonParser) string() {
	b := p.in[1:]
	end := bytes.IndexAny(b, `"\`)
	if end >= 0 && b[end] == '"' && plainString(b[:end]) { // the common case
		p.out = append(p.out, p.in[:end+2]...)
		p.in = b[end+1:]
		return
	}
	p.out = append(p.out, '"')
	for {
		n := bytes.IndexAny(b, `"\`)
		if n < 0 || !plainString(b[:n]) {
			p.fail(errJSON)
			return
		}
		p.out = append(p.out, b[:n]...)
		if b[n] == '"' {
			p.out, p.in = append(p.out, '"'), b[n+1:]
			return
		}
		if b = p.escape(b[n:]); p.err != nil {
			return
		}
	}
}

// plainString reports whether bytes may stand in a string as they are.
func plainString(b []byte) bool {
	for _, c := range b {
		if c < 0x20 {
			return false
		}
	}
	return utf8.Valid(b)
}

// escape copies the character of an escape and returns what follows it.
func (p *jsonParser) escape(b []byte) []byte {
	if len(b) < 2 {
		p.fail(errJSON)
		return nil
	}
	var r rune
	switch b[1] {
	case 'u':
		return p.unicodeEscape(b)
	case '"', '\\', '/':
		r = rune(b[1])
	case 'b':
		r = '\b'
	case 'f':
		r = '\f'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 't':
		r = '\t'
	default:
		p.fail(errJSON)
		return nil
	}
	p.rune(r)
	return b[2:]
}

// unicodeEscape copies \uXXXX, or a pair of them; half a pair stays an escape.
func (p *jsonParser) unicodeEscape(b []byte) []byte {
	r, ok := hex4(b)
	if !ok {
		p.fail(errJSON)
		return nil
	}
	if !utf16.IsSurrogate(r) {
		p.rune(r)
		return b[6:]
	}
	if low, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			p.rune(pair)
			return b[12:]
		}
	}
	p.out = append(p.out, bytes.ToLower(b[:6])...)
	return b[6:]
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// rune appends a character as AppendJSONString writes it, without the quotes.
func (p *jsonParser) rune(r rune) {
	var c [utf8.UTFMax]byte
	n := utf8.EncodeRune(c[:], r)
	if n == 1 && (r < 0x20 || r == '"' || r == '\\') {
		var quoted [10]byte
		q := change.AppendJSONString(quoted[:0], c[:1])
		p.out = append(p.out, q[1:len(q)-1]...)
		return
	}
	p.out = append(p.out, c[:n]...)
}
