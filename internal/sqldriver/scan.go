package sqldriver

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a source, so that no configuration file can exhaust the stack.
const (
	maxSource = 4 << 20
	maxTokens = 100_000
	maxNested = 500  // parentheses
	maxDepth  = 2000 // of the tree; a chain of operators is as deep as it is long
)

type tokenKind uint8

const (
	tokWord   tokenKind = iota // text: as written; upper: in upper case
	tokQuoted                  // text: the name
	tokNumber                  // text: as written
	tokString                  // text: the value
	tokSymbol                  // text
)

type token struct {
	kind       tokenKind
	text       string
	upper      string // words
	start, end int    // bytes in the source
}

func (t *token) is(word string) bool  { return t.kind == tokWord && t.upper == word }
func (t *token) symbol(s string) bool { return t.kind == tokSymbol && t.text == s }
func isDigit(c byte) bool             { return c >= '0' && c <= '9' }
func isWordStart(r rune) bool         { return r == '_' || unicode.IsLetter(r) }
func isWordPart(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}
func isBlank(c byte) bool              { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func (s *scanner) rest(at int) string  { return s.src[at:] }
func (s *scanner) has(lit string) bool { return strings.HasPrefix(s.src[s.pos:], lit) }

// symbols, longest first.
var symbols = []string{"->>", "<=>", "->", "<=", ">=", "<>", "!=", "||", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", "."}

// refused are what other dialects allow and we name with a hint.
var refused = []struct{ text, message, hint string }{
	{"--", "comments have no place in an expression", "to subtract a negative number write a - (-1)"},
	{"/*", "comments have no place in an expression", "use a YAML comment"},
	{"#>", "the operator #> is not supported", "chain -> and ->> instead"},
	{"#", "comments have no place in an expression", "use a YAML comment"},
	{";", "one expression is expected, not several statements", "remove the semicolon"},
	{"::", "the operator :: is not supported", "write CAST(x AS type)"},
	{"?", "parameters have no place in an expression", "write the value itself"},
	{"@", "variables have no place in an expression", "write the value itself"},
	{"$", "parameters have no place in an expression", "write the value itself"},
	{"&&", "the operator && is not supported", "write AND"},
	{"==", "the operator == is not supported", "write = for equality"},
	{"!", "the operator ! is not supported", "write NOT, or <> for unequal"},
	{"~", "regular expressions and bit operators are not supported", "use LIKE or ILIKE"},
}

type scanner struct {
	src    string
	pos    int
	tokens []token
}

func (s *scanner) fail(at, end int, message, hint string) *SyntaxError {
	return &SyntaxError{Offset: at, Near: excerpt(s.src[at:min(end, len(s.src))]), Message: message, Hint: hint}
}

// excerpt keeps a message short.
func excerpt(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// scan splits the source into tokens.
func scan(src string) ([]token, *SyntaxError) {
	s := &scanner{src: src}
	if len(src) > maxSource {
		return nil, &SyntaxError{Message: fmt.Sprintf("the expression is longer than %d bytes", maxSource)}
	}
	if i := invalidUTF8(src); i >= 0 {
		return nil, &SyntaxError{Offset: i, Message: "the expression is not valid UTF-8"}
	}
	for {
		for s.pos < len(src) && isBlank(src[s.pos]) {
			s.pos++
		}
		if s.pos == len(src) {
			return s.tokens, nil
		}
		if len(s.tokens) == maxTokens {
			return nil, s.fail(s.pos, s.pos+1, fmt.Sprintf("the expression has more than %d tokens", maxTokens), "")
		}
		if err := s.next(); err != nil {
			return nil, err
		}
	}
}

func invalidUTF8(src string) int {
	if utf8.ValidString(src) {
		return -1
	}
	for i, r := range src {
		if r == utf8.RuneError && !strings.HasPrefix(src[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

func (s *scanner) next() *SyntaxError {
	start, c := s.pos, s.src[s.pos]
	r, _ := utf8.DecodeRuneInString(s.src[s.pos:])
	switch {
	case isDigit(c) || c == '.' && s.pos+1 < len(s.src) && isDigit(s.src[s.pos+1]):
		return s.number()
	case isWordStart(r):
		return s.word()
	case c == '\'':
		text, err := s.quoted('\'', "string")
		s.add(tokString, text, start)
		return err
	case c == '"' || c == '`':
		text, err := s.quoted(c, "name")
		if err == nil && text == "" {
			return s.fail(start, s.pos, "a quoted name is empty", "strings stand in single quotes")
		}
		s.add(tokQuoted, text, start)
		return err
	}
	for _, f := range refused {
		if s.has(f.text) && !s.has("!=") {
			return s.fail(start, start+len(f.text), f.message, f.hint)
		}
	}
	for _, sym := range symbols {
		if s.has(sym) {
			s.pos += len(sym)
			s.add(tokSymbol, sym, start)
			return nil
		}
	}
	return s.fail(start, start+utf8.RuneLen(r), fmt.Sprintf("the character %q has no meaning in an expression", r), "")
}

func (s *scanner) add(kind tokenKind, text string, start int) {
	t := token{kind: kind, text: text, start: start, end: s.pos}
	if kind == tokWord {
		t.upper = strings.ToUpper(text)
	}
	s.tokens = append(s.tokens, t)
}

func (s *scanner) word() *SyntaxError {
	start := s.pos
	for i, r := range s.rest(start) {
		if !isWordPart(r) {
			break
		}
		s.pos = start + i + utf8.RuneLen(r)
	}
	if s.pos < len(s.src) && s.src[s.pos] == '\'' {
		if w := s.src[start:s.pos]; len(w) <= 2 && strings.ContainsAny(w, "xXbBnNeEuU") {
			return s.fail(start, s.pos+1, "strings with the prefix "+w+" are not supported", "write a plain string in single quotes")
		}
	}
	s.add(tokWord, s.src[start:s.pos], start)
	return nil
}

func (s *scanner) digits() {
	for s.pos < len(s.src) && isDigit(s.src[s.pos]) {
		s.pos++
	}
}

func (s *scanner) number() *SyntaxError {
	start := s.pos
	s.digits()
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.src) && (s.src[s.pos] == 'e' || s.src[s.pos] == 'E') {
		at := s.pos + 1
		if at < len(s.src) && (s.src[at] == '+' || s.src[at] == '-') {
			at++
		}
		if at < len(s.src) && isDigit(s.src[at]) {
			s.pos = at
			s.digits()
		}
	}
	if r, n := utf8.DecodeRuneInString(s.rest(s.pos)); n > 0 && (isWordPart(r) || r == '.') {
		return s.fail(start, s.pos+n, "this is neither a number nor a name", "a name that begins with a digit stands in double quotes")
	}
	s.add(tokNumber, s.src[start:s.pos], start)
	return nil
}

// quoted reads up to the closing quote; a doubled quote is one. There are no other escapes.
func (s *scanner) quoted(quote byte, what string) (string, *SyntaxError) {
	start := s.pos
	s.pos++
	var b strings.Builder
	for {
		i := strings.IndexByte(s.src[s.pos:], quote)
		if i < 0 {
			end := len(s.src)
			s.pos = end
			return "", s.fail(start, end, "a "+what+" in quotes has no end", "close it with "+string(quote)+"; a quote inside is written twice")
		}
		b.WriteString(s.src[s.pos : s.pos+i])
		s.pos += i + 1
		if s.pos == len(s.src) || s.src[s.pos] != quote {
			return b.String(), nil
		}
		b.WriteByte(quote)
		s.pos++
	}
}
