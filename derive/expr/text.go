package expr

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// textArgs checks that arguments are text and takes the blanks of char(n) off.
func (c *compiler) textArgs(t *sqldriver.Node, args []*node) *Error {
	for i, n := range args {
		if n.kind != change.KindText && n.kind != change.KindNull {
			return c.fail(n.offset, t.Name+" wants text, not "+n.describe(), "write CAST(x AS text)")
		}
		args[i] = trimmed(n)
	}
	return nil
}

// overText makes a node that computes bytes of text; null if an argument is.
func overText(t *sqldriver.Node, args []*node, run func(v []change.Value) (change.Value, error)) *node {
	return strict(t.Offset, change.KindText, callText(t.Name, args), args, run)
}

// strict makes a node over values none of which is null. It holds up to four
// arguments without an allocation.
func strict(offset int, kind change.Kind, text string, args []*node, run func(v []change.Value) (change.Value, error)) *node {
	return computed(offset, kind, text, func(row []change.Value) (change.Value, error) {
		var room [4]change.Value
		values := room[:0]
		for _, n := range args {
			v, err := n.eval(row)
			if err != nil || v.IsNull() {
				return change.Null, err
			}
			values = append(values, v)
		}
		return run(values)
	})
}

func (c *compiler) textFunction(t *sqldriver.Node, args []*node, run func(v []change.Value) (change.Value, error)) (*node, *Error) {
	if err := c.textArgs(t, args); err != nil {
		return nil, err
	}
	return overText(t, args, run), nil
}

func (c *compiler) lower(t *sqldriver.Node, args []*node) (*node, *Error) {
	return c.textFunction(t, args, func(v []change.Value) (change.Value, error) { return change.TextBytes(bytes.ToLower(v[0].Raw())), nil })
}

func (c *compiler) upper(t *sqldriver.Node, args []*node) (*node, *Error) {
	return c.textFunction(t, args, func(v []change.Value) (change.Value, error) { return change.TextBytes(bytes.ToUpper(v[0].Raw())), nil })
}

func (c *compiler) replace(t *sqldriver.Node, args []*node) (*node, *Error) {
	return c.textFunction(t, args, func(v []change.Value) (change.Value, error) {
		if len(v[1].Raw()) == 0 {
			return v[0], nil
		}
		return change.TextBytes(bytes.ReplaceAll(v[0].Raw(), v[1].Raw(), v[2].Raw())), nil
	})
}

// length counts the characters of text, the bytes of bytes.
func (c *compiler) length(t *sqldriver.Node, args []*node) (*node, *Error) {
	if args[0].kind == change.KindBytes {
		return c.octetLength(t, args)
	}
	if err := c.textArgs(t, args); err != nil {
		return nil, err
	}
	return strict(t.Offset, change.KindInt, callText(t.Name, args), args, func(v []change.Value) (change.Value, error) {
		return change.Int(int64(utf8.RuneCount(v[0].Raw()))), nil
	}), nil
}

func (c *compiler) octetLength(t *sqldriver.Node, args []*node) (*node, *Error) {
	if args[0].kind != change.KindBytes {
		if err := c.textArgs(t, args); err != nil {
			return nil, err
		}
	}
	return strict(t.Offset, change.KindInt, callText(t.Name, args), args, func(v []change.Value) (change.Value, error) {
		return change.Int(int64(len(v[0].Raw()))), nil
	}), nil
}

// trim is TRIM(x), TRIM([BOTH | LEADING | TRAILING] [characters] FROM x),
// BTRIM, LTRIM and RTRIM(x [, characters]). Characters are blanks unless given.
func (c *compiler) trim(t *sqldriver.Node, args []*node) (*node, *Error) {
	name := t.Name
	if len(t.Args) > 1 && name == "TRIM" {
		var err *Error
		if name, args, err = c.trimWords(t, args); err != nil {
			return nil, err
		}
	}
	named := *t
	named.Name = name
	left, right := name != "RTRIM", name != "LTRIM"
	return c.textFunction(&named, args, func(v []change.Value) (change.Value, error) {
		cut := " "
		if len(v) > 1 {
			cut = string(v[1].Raw())
		}
		b := v[0].Raw()
		if left {
			b = bytes.TrimLeft(b, cut)
		}
		if right {
			b = bytes.TrimRight(b, cut)
		}
		return change.TextBytes(b), nil
	})
}

// trimWords brings the arguments of TRIM's own grammar, and of BTRIM, into one order: x, characters.
func (c *compiler) trimWords(t *sqldriver.Node, args []*node) (string, []*node, *Error) {
	name := "BTRIM"
	if t.Separated {
		if t.Args[0].Op == sqldriver.OpWord {
			switch strings.ToUpper(t.Args[0].Text) {
			case "LEADING":
				name = "LTRIM"
			case "TRAILING":
				name = "RTRIM"
			}
			args = args[1:]
		}
		if len(args) == 2 {
			args = []*node{args[1], args[0]}
		}
	}
	if len(args) > 2 {
		return "", nil, c.fail(t.Offset, "TRIM takes a text and the characters to take off", "write TRIM(BOTH 'x' FROM name)")
	}
	if name == "BTRIM" && len(args) == 1 {
		name = "TRIM"
	}
	return name, args, nil
}

// integer checks an argument that counts characters.
func (c *compiler) integer(t *sqldriver.Node, n *node) *Error {
	if n.kind != change.KindInt && n.kind != change.KindNull {
		return c.fail(n.offset, t.Name+" wants a whole number, not "+n.describe(), "")
	}
	return nil
}

// substring is SUBSTRING(x, from [, count]): characters count from 1, and the
// part that lies before the first or behind the last is empty.
func (c *compiler) substring(t *sqldriver.Node, args []*node) (*node, *Error) {
	if err := c.textArgs(t, args[:1]); err != nil {
		return nil, err
	}
	for _, n := range args[1:] {
		if err := c.integer(t, n); err != nil {
			return nil, err
		}
	}
	failed := c.fault(t.Offset, "SUBSTRING with a negative length")
	return overText(t, args, func(v []change.Value) (change.Value, error) {
		from, end := v[1].Int64(), int64(1)<<62
		if len(v) == 3 {
			n := v[2].Int64()
			if n < 0 {
				return failed()
			}
			if from < end-n {
				end = from + n
			}
		}
		return change.TextBytes(characters(v[0].Raw(), from-1, end-1)), nil
	}), nil
}

// characters returns the characters from (counted from 0) up to end.
func characters(b []byte, from, end int64) []byte {
	from, end = max(from, 0), min(max(end, 0), int64(len(b)))
	if from >= end {
		return b[:0]
	}
	start := skipCharacters(b, from)
	return b[start : start+skipCharacters(b[start:], end-from)]
}

func skipCharacters(b []byte, n int64) int {
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, width := utf8.DecodeRune(b[at:])
		at += width
	}
	return at
}

// leftRight is the first or last n characters; a negative n leaves as many out on the other side.
func (c *compiler) leftRight(t *sqldriver.Node, args []*node) (*node, *Error) {
	if err := c.textArgs(t, args[:1]); err != nil {
		return nil, err
	}
	if err := c.integer(t, args[1]); err != nil {
		return nil, err
	}
	left := t.Name == "LEFT"
	return overText(t, args, func(v []change.Value) (change.Value, error) {
		b, n := v[0].Raw(), v[1].Int64()
		total := int64(utf8.RuneCount(b))
		if n < 0 {
			n = max(total+n, 0)
		}
		n = min(n, total)
		if left {
			return change.TextBytes(characters(b, 0, n)), nil
		}
		return change.TextBytes(characters(b, total-n, total)), nil
	}), nil
}

// position is where a text first occurs in another, counted from 1; 0 if nowhere.
func (c *compiler) position(t *sqldriver.Node, args []*node) (*node, *Error) {
	if err := c.textArgs(t, args); err != nil {
		return nil, err
	}
	return strict(t.Offset, change.KindInt, callText(t.Name, args), args, func(v []change.Value) (change.Value, error) {
		i := bytes.Index(v[1].Raw(), v[0].Raw())
		if i < 0 {
			return change.Int(0), nil
		}
		return change.Int(int64(utf8.RuneCount(v[1].Raw()[:i])) + 1), nil
	}), nil
}

// concat is ||: text with text, or with any value that has a plain text; null if a side is.
func (c *compiler) concat(t *sqldriver.Node, args []*node) (*node, *Error) {
	l, r := args[0], args[1]
	if l.kind != change.KindText && r.kind != change.KindText && l.kind != change.KindNull && r.kind != change.KindNull {
		return nil, c.fail(t.Offset, "|| joins text, but "+l.text+" is "+l.describe()+" and "+r.text+" is "+r.describe(), "write CAST(x AS text)")
	}
	for i, n := range args {
		if err := c.printable(n, "||"); err != nil {
			return nil, err
		}
		args[i] = trimmed(n)
	}
	text := "(" + l.text + " || " + r.text + ")"
	return strict(t.Offset, change.KindText, text, args, func(v []change.Value) (change.Value, error) {
		return change.TextBytes(change.AppendText(change.AppendText(nil, v[0]), v[1])), nil
	}), nil
}

// concatCall is CONCAT, which leaves nulls out.
func (c *compiler) concatCall(t *sqldriver.Node, args []*node) (*node, *Error) {
	for i, n := range args {
		if err := c.printable(n, "CONCAT"); err != nil {
			return nil, err
		}
		args[i] = trimmed(n)
	}
	return computed(t.Offset, change.KindText, callText(t.Name, args), func(row []change.Value) (change.Value, error) {
		text := []byte{}
		for _, n := range args {
			v, err := n.eval(row)
			if err != nil {
				return change.Null, err
			}
			if !v.IsNull() {
				text = change.AppendText(text, v)
			}
		}
		return change.TextBytes(text), nil
	}), nil
}

// printable refuses values whose text is a matter of encoding.
func (c *compiler) printable(n *node, what string) *Error {
	if n.kind == change.KindBytes || n.kind == change.KindJSON {
		return c.fail(n.offset, what+" does not join "+n.describe(), "write CAST(x AS text), or take a value out of json with ->> 'key'")
	}
	return nil
}
