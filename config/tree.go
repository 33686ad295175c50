package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file, so that no input costs much.
const (
	maxFile   = 1 << 20
	maxDepth  = 64
	maxTokens = 25_000 // some 6,000 lines; the parser takes quadratic time over one map
	maxFlow   = 2_000  // entries of one [ ] or { }, likewise
)

type nodeKind int

const (
	nullNode nodeKind = iota
	scalarNode
	mapNode
	listNode
)

// node is a YAML node that knows its place. A scalar keeps its source text;
// the field that takes it decides its type.
type node struct {
	kind    nodeKind
	pos     Pos
	text    string // scalar: text as written, references unresolved
	quoted  bool   // scalar: in quotes or a block, so text and nothing else
	inset   int    // scalar: characters between pos and text; -1 = does not map
	entries []entry
	items   []*node
}

type entry struct {
	key   string
	pos   Pos // of the key
	value *node
}

func (n *node) entry(key string) *entry {
	if n == nil {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key == key {
			return &n.entries[i]
		}
	}
	return nil
}

// word names the node's kind in messages.
func (n *node) word() string {
	switch n.kind {
	case scalarNode:
		return "a single value"
	case mapNode:
		return "a map"
	case listNode:
		return "a list"
	}
	return "nothing"
}

// builder turns a parsed file into nodes and collects what is refused.
type builder struct {
	src      *source
	problems *Problems
}

// parseTree reads one file's text. A nil node means that it holds nothing, or
// could not be read, which problems then tells.
func parseTree(src *source, text string, problems *Problems) *node {
	b := &builder{src: src, problems: problems}
	f := b.parse(text)
	if f == nil {
		return nil
	}
	var body ast.Node
	for _, d := range f.Docs {
		if d == nil || d.Body == nil {
			continue
		}
		if body != nil {
			*b.problems = append(*b.problems, b.at(d.Body, "").Problem("a second YAML document in the file", "keep one document a file; a directory of files is merged"))
			break
		}
		body = d.Body
	}
	if body == nil {
		return nil
	}
	return b.build(body, "", 0)
}

func (b *builder) parse(text string) (f *ast.File) {
	top := Pos{File: b.src.name, src: b.src}
	report := func(pos Pos, message, hint string) {
		*b.problems = append(*b.problems, pos.Problem(message, hint))
	}
	if len(text) > maxFile {
		report(top, fmt.Sprintf("the file has %d bytes; the limit is %s", len(text), Size(maxFile)), "split it into several files and name their directory with -c")
		return nil
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		report(top, "the file is not UTF-8 text", "save it as UTF-8")
		return nil
	}
	defer func() { // the parser panics on some inputs; that is a syntax error
		if r := recover(); r != nil {
			report(top, "the file is not YAML", "look for unbalanced quotes or brackets")
			f = nil
		}
	}()
	tokens := lexer.Tokenize(text)
	if len(tokens) > maxTokens {
		report(top, fmt.Sprintf("the file has %d words and signs; the limit is %d", len(tokens), maxTokens), "split it into several files and name their directory with -c")
		return nil
	}
	if pos := tooDeep(tokens); pos != nil {
		report(b.pos(pos, ""), fmt.Sprintf("nested more than %d deep", maxDepth), "")
		return nil
	}
	if pos := tooLong(tokens); pos != nil {
		report(b.pos(pos, ""), fmt.Sprintf("more than %d entries in one [ ] or { }", maxFlow), "write one entry a line")
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		b.syntaxError(err, report)
		return nil
	}
	return f
}

// tooDeep is the first token that nests too deep: by brackets or, since a block
// costs a column a level, by indentation.
func tooDeep(tokens token.Tokens) *token.Position {
	depth, blocks, line := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if t.Position.Line != line {
				blocks, line = 0, t.Position.Line
			}
			blocks++ // "- - - a" nests in one line
		}
		if depth > maxDepth || blocks > 4*maxDepth && depth == 0 || t.Position.IndentLevel > maxDepth {
			return t.Position
		}
	}
	return nil
}

// tooLong is the first comma too many inside one pair of brackets.
func tooLong(tokens token.Tokens) *token.Position {
	counts := make([]int, 1, maxDepth)
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			counts = append(counts, 0)
		case token.MappingEndType, token.SequenceEndType:
			counts = counts[:max(len(counts)-1, 1)]
		case token.CollectEntryType:
			counts[len(counts)-1]++
			if counts[len(counts)-1] > maxFlow {
				return t.Position
			}
		}
	}
	return nil
}

func (b *builder) syntaxError(err error, report func(Pos, string, string)) {
	var ye yaml.Error
	pos, message, hint := Pos{File: b.src.name, src: b.src}, "not YAML", ""
	if errors.As(err, &ye) {
		message = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			pos = b.pos(t.Position, "")
		}
	}
	if pos.Line >= 1 && pos.Line <= len(b.src.lines) {
		hint = syntaxHint(b.src.lines[pos.Line-1], message)
	}
	report(pos, "not YAML: "+mask(strings.ReplaceAll(message, "\t", `\t`)), hint)
}

func syntaxHint(line, message string) string {
	switch {
	case strings.Contains(line, "${") && strings.ContainsAny(line, "{["):
		return `inside { } and [ ] a reference needs quotes: "${VAR}"`
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t") || strings.Contains(message, "tab"):
		return "indent with blanks, not with tabs"
	case strings.Contains(message, "alias"):
		return `a value that starts with * needs quotes: "*"`
	case strings.Contains(message, "mapping value") || strings.Contains(message, "reserved") || strings.Contains(message, "directive"):
		return "put the value in quotes"
	}
	return ""
}

func (b *builder) pos(p *token.Position, path string) Pos {
	if p == nil {
		return Pos{File: b.src.name, Path: path, src: b.src}
	}
	return Pos{File: b.src.name, Line: p.Line, Col: max(p.Column, 1), Path: path, src: b.src}
}

func (b *builder) at(n ast.Node, path string) Pos {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return b.at(n.Values[0].Key, path)
		}
	case *ast.MappingValueNode:
		return b.at(n.Key, path)
	case *ast.MappingKeyNode:
		if n.Value != nil {
			return b.at(n.Value, path)
		}
	}
	if t := n.GetToken(); t != nil {
		return b.pos(t.Position, path)
	}
	return b.pos(nil, path)
}

func (b *builder) build(n ast.Node, path string, depth int) *node {
	pos := b.at(n, path)
	if depth > maxDepth {
		b.refuse(pos, fmt.Sprintf("nested more than %d deep", maxDepth), "")
		return &node{pos: pos}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.mapping(n.Values, pos, depth)
	case *ast.MappingValueNode:
		return b.mapping([]*ast.MappingValueNode{n}, pos, depth)
	case *ast.SequenceNode:
		out := &node{kind: listNode, pos: pos}
		for i, v := range n.Values {
			out.items = append(out.items, b.build(v, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return out
	case *ast.LiteralNode:
		out := &node{kind: scalarNode, pos: pos, quoted: true, inset: -1}
		if n.Value != nil {
			out.text = n.Value.Value
		}
		return out
	case *ast.NullNode, nil:
		return &node{pos: pos}
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		b.refuse(pos, "anchors, aliases and merge keys are not used here", `write the value out; a text that starts with & or * needs quotes: "*"`)
		return &node{pos: pos}
	case *ast.TagNode:
		b.refuse(pos, "YAML tags are not used here", "leave the tag out; a text that starts with ! needs quotes")
		return &node{pos: pos}
	case ast.ScalarNode:
		return b.scalar(n, pos)
	}
	b.refuse(pos, "this YAML construct is not used here", "")
	return &node{pos: pos}
}

func (b *builder) scalar(n ast.ScalarNode, pos Pos) *node {
	t := n.GetToken()
	out := &node{kind: scalarNode, pos: pos}
	if s, ok := n.(*ast.StringNode); ok {
		out.text = s.Value
		out.quoted = t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
	} else {
		out.text = t.Value
	}
	out.inset = b.inset(out)
	return out
}

// inset finds how far behind pos the text stands in its line.
func (b *builder) inset(n *node) int {
	if n.pos.Line < 1 || n.pos.Line > len(b.src.lines) {
		return -1
	}
	line := []rune(b.src.lines[n.pos.Line-1])
	skip := 0
	if n.quoted {
		skip = 1
	}
	from := n.pos.Col - 1 + skip
	if from > len(line) || !strings.HasPrefix(string(line[from:]), n.text) {
		return -1
	}
	return skip
}

func (b *builder) mapping(values []*ast.MappingValueNode, pos Pos, depth int) *node {
	out := &node{kind: mapNode, pos: pos}
	for _, mv := range values {
		key, kpos, ok := b.key(mv.Key, pos.Path)
		if !ok {
			continue
		}
		kpos.Path = joinPath(pos.Path, key)
		if old := out.entry(key); old != nil {
			b.refuse(kpos, fmt.Sprintf("the key %s is here twice", quote(key)), fmt.Sprintf("the first one is at %s; keep one", old.pos))
			continue
		}
		v := &node{pos: kpos}
		if mv.Value != nil {
			v = b.build(mv.Value, kpos.Path, depth+1)
		}
		if secretKey(key) {
			b.hide(v)
		}
		out.entries = append(out.entries, entry{key, kpos, v})
	}
	return out
}

func (b *builder) key(k ast.MapKeyNode, path string) (string, Pos, bool) {
	if k == nil {
		return "", Pos{}, false
	}
	pos := b.at(k, path)
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, pos, true
	case *ast.MappingKeyNode, *ast.MergeKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		b.refuse(pos, "this kind of key is not used here", "write a plain name before the colon")
		return "", pos, false
	case *ast.NullNode:
		return k.GetToken().Value, pos, true
	}
	return k.GetToken().Value, pos, true
}

func (b *builder) refuse(pos Pos, message, hint string) {
	*b.problems = append(*b.problems, pos.Problem(message, hint))
}

func secretKey(key string) bool {
	switch key {
	case "dsn", "password", "token", "api_key", "hash", "secret":
		return true
	}
	return false
}

// hide marks the lines of a secret's block scalar, which no pattern finds.
func (b *builder) hide(n *node) {
	if n.kind != scalarNode || n.inset >= 0 {
		return
	}
	lines := max(strings.Count(n.text, "\n"), 1)
	for i := range lines + 1 {
		b.src.secret[n.pos.Line+i] = true
	}
}
