package sqldriver

import (
	"fmt"
	"strconv"
	"strings"
)

// shaper writes the shape of an expression: its tokens with names, literals,
// functions and types replaced by the number of their token.
type shaper struct {
	src    string
	tokens []token
	out    strings.Builder
	starts []int // where the output of token i begins; those that wrote nothing have their successor's place
	open   []paren
	at     int // the next token
	cases  int // CASE without its END so far
}

// paren is an open parenthesis and the function that it belongs to.
type paren struct {
	token    int
	function string
}

const (
	shapeStart = "SELECT ("
	shapeEnd   = " )"
)

// shape returns the text for the parser and where each token stands in it.
func shape(src string, tokens []token) (string, []int, *SyntaxError) {
	s := &shaper{src: src, tokens: tokens, starts: make([]int, len(tokens))}
	s.out.WriteString(shapeStart)
	for s.at < len(tokens) {
		from := s.at
		start := s.out.Len()
		if err := s.next(&tokens[s.at]); err != nil {
			return "", nil, err
		}
		for i := from; i < s.at; i++ {
			s.starts[i] = start
		}
	}
	if len(s.open) > 0 {
		return "", nil, s.fail(s.open[len(s.open)-1].token, "this parenthesis is never closed", "")
	}
	s.out.WriteString(shapeEnd)
	return s.out.String(), s.starts, nil
}

func (s *shaper) fail(i int, message, hint string) *SyntaxError {
	if i >= len(s.tokens) {
		return &SyntaxError{Offset: len(s.src), Message: message, Hint: hint}
	}
	t := &s.tokens[i]
	return &SyntaxError{Offset: t.start, Near: excerpt(s.src[t.start:t.end]), Message: message, Hint: hint}
}

// emit writes text for n tokens.
func (s *shaper) emit(text string, n int) *SyntaxError {
	if text != "(" { // the parser knows CAST only directly before its parenthesis
		s.out.WriteByte(' ')
	}
	s.out.WriteString(text)
	s.at += n
	return nil
}

func (s *shaper) number(n int) *SyntaxError { return s.emit(strconv.Itoa(s.at), n) }
func (s *shaper) name(prefix string) *SyntaxError {
	return s.emit(prefix+strconv.Itoa(s.at), 1)
}

func (s *shaper) peek(n int) *token {
	if s.at+n < len(s.tokens) {
		return &s.tokens[s.at+n]
	}
	return &token{kind: tokSymbol}
}

func (s *shaper) next(t *token) *SyntaxError {
	switch t.kind {
	case tokNumber, tokString:
		return s.number(1)
	case tokQuoted:
		if s.peek(1).symbol("(") {
			return s.fail(s.at, "a function's name does not stand in quotes", "")
		}
		return s.name("c")
	case tokSymbol:
		return s.symbol(t)
	}
	return s.word(t)
}

func (s *shaper) symbol(t *token) *SyntaxError {
	switch t.text {
	case "(":
		return s.push("")
	case ")":
		if len(s.open) == 0 {
			return s.fail(s.at, "this parenthesis was never opened", "")
		}
		s.open = s.open[:len(s.open)-1]
	case ".":
		return s.fail(s.at, "a name with a dot is not supported", "write the column's name alone; a name that contains a dot stands in double quotes")
	case "->", "->>":
		return s.emit("||", 1)
	}
	return s.emit(t.text, 1)
}

func (s *shaper) push(function string) *SyntaxError {
	if len(s.open) == maxNested {
		return s.fail(s.at, fmt.Sprintf("parentheses are nested more than %d deep", maxNested), "")
	}
	s.open = append(s.open, paren{token: s.at, function: function})
	return s.emit("(", 1)
}

func (s *shaper) word(t *token) *SyntaxError {
	next := s.peek(1)
	switch {
	case t.upper == "IS":
		return s.is()
	case t.upper == "ESCAPE":
		return s.emit("||", 1)
	case t.upper == "TRUE" || t.upper == "FALSE" || t.upper == "NULL":
		return s.number(1)
	case t.upper == "CAST":
		if !next.symbol("(") {
			return s.fail(s.at, "CAST stands before a parenthesis", `write CAST(x AS type); a column of that name stands in double quotes`)
		}
		_ = s.emit("CAST", 1)
		return s.push("CAST")
	case s.function() == "CAST" && t.upper == "AS":
		return s.castType()
	case s.separates(t):
		return s.emit(",", 1)
	case t.upper == "CASE":
		s.cases++
		return s.emit(t.upper, 1)
	case t.upper == "END" && s.cases > 0:
		s.cases--
		return s.emit(t.upper, 1)
	case operators[t.upper] && t.upper != "END":
		return s.emit(t.upper, 1)
	case t.upper == "INTERVAL" && next.kind == tokString:
		return s.fail(s.at, "intervals are not supported", "compute with EXTRACT(EPOCH FROM x)")
	case literalTypes[t.upper] && next.kind == tokString:
		return s.number(2)
	}
	if e, ok := excluded[t.upper]; ok {
		return s.fail(s.at, e[0], e[1]+"; a column of that name stands in double quotes: "+quoteName(t.text))
	}
	if reserved[t.upper] {
		return s.fail(s.at, t.upper+" is a reserved word", "if it is the name of a column, quote it: "+quoteName(t.text))
	}
	if next.symbol("(") {
		return s.call(t)
	}
	return s.name("c")
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// function returns the function whose arguments we stand in, if the grammar of its arguments is its own.
func (s *shaper) function() string {
	if len(s.open) == 0 {
		return ""
	}
	return s.open[len(s.open)-1].function
}

// separates reports whether a word stands for a comma: SUBSTRING(x FROM 1 FOR 2).
func (s *shaper) separates(t *token) bool {
	switch s.function() {
	case "SUBSTRING":
		return t.upper == "FROM" || t.upper == "FOR"
	case "TRIM", "EXTRACT":
		return t.upper == "FROM"
	case "POSITION":
		return t.upper == "IN"
	}
	return false
}

// is handles IS [NOT] NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM.
func (s *shaper) is() *SyntaxError {
	n, not := 1, ""
	if s.peek(1).is("NOT") {
		n, not = 2, "NOT "
	}
	switch what := s.peek(n); {
	case what.is("DISTINCT") && s.peek(n+1).is("FROM"):
		return s.emit("<=>", n+2)
	case what.is("NULL"), what.is("TRUE"), what.is("FALSE"), what.is("UNKNOWN"):
		return s.emit("IS "+not+what.upper, n+1)
	}
	return s.fail(s.at+n, "IS stands before NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM", "write = to compare values")
}

// call writes the function before a parenthesis, with the words that some take behind it.
func (s *shaper) call(t *token) *SyntaxError {
	name := t.upper
	_ = s.name("f")
	if err := s.push(name); err != nil {
		return err
	}
	switch t := s.peek(0); {
	case name == "EXTRACT":
		if t.kind != tokWord && t.kind != tokString || !s.peek(1).is("FROM") {
			return s.fail(s.at, "EXTRACT takes a field and a date", "write EXTRACT(YEAR FROM x)")
		}
		return s.number(1)
	case name == "TRIM" && (t.is("BOTH") || t.is("LEADING") || t.is("TRAILING")):
		_ = s.number(1)
		if !s.peek(0).is("FROM") {
			return s.emit(",", 0)
		}
	}
	return nil
}

// castType writes AS CHAR(n), n being the first token of the type, and skips the type.
func (s *shaper) castType() *SyntaxError {
	first := s.at + 1
	end, depth := first, 0
	for ; end < len(s.tokens); end++ {
		if s.tokens[end].symbol("(") {
			depth++
		} else if s.tokens[end].symbol(")") {
			if depth == 0 {
				break
			}
			depth--
		}
	}
	if end == first || end == len(s.tokens) {
		return s.fail(end, "CAST wants a type after AS", "for example CAST(x AS DECIMAL(10, 2))")
	}
	return s.emit("AS CHAR("+strconv.Itoa(first)+")", end-s.at)
}

// readType reads the type that begins at token i.
func readType(src string, tokens []token, i int) (Type, *SyntaxError) {
	t := Type{Offset: tokens[i].start}
	var words []string
	for ; !tokens[i].symbol(")"); i++ {
		switch tok := &tokens[i]; {
		case tok.kind == tokWord:
			words = append(words, tok.upper)
		case tok.symbol("(") && t.Params == nil && len(words) > 0:
			for i++; tokens[i].kind == tokNumber; i++ {
				n, err := strconv.Atoi(tokens[i].text)
				if err != nil || n > 1_000_000 {
					return t, syntaxAt(src, &tokens[i], "a type's length is a whole number", "")
				}
				t.Params = append(t.Params, n)
				if tokens[i+1].symbol(",") {
					i++
				}
			}
			if !tokens[i].symbol(")") || t.Params == nil {
				return t, syntaxAt(src, &tokens[i], "a type's length is a whole number", "")
			}
		default:
			return t, syntaxAt(src, tok, "this is no type", "for example CAST(x AS DECIMAL(10, 2))")
		}
	}
	t.Name = strings.Join(words, " ")
	return t, nil
}

func syntaxAt(src string, t *token, message, hint string) *SyntaxError {
	return &SyntaxError{Offset: t.start, Near: excerpt(src[t.start:t.end]), Message: message, Hint: hint}
}
