package sqldriver

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

// The parser calls these for literals; they are package variables of its own,
// so whoever parses SQL with it imports this package.
func init() {
	ast.NewValueExpr = func(value any, _, _ string) ast.ValueExpr {
		if l, ok := value.(*Literal); ok {
			return l
		}
		return &Literal{value: value}
	}
	ast.NewParamMarkerExpr = func(offset int) ast.ParamMarkerExpr { return &paramMarker{Literal{value: offset}} }
	ast.NewDecimal = func(text string) (any, error) { return Digits(text), nil }
	ast.NewHexLiteral = func(text string) (any, error) { return decodeHex(text) }
	ast.NewBitLiteral = func(text string) (any, error) { return decodeBits(text) }
}

// Digits is the text of a decimal literal with all its digits.
type Digits string

// Bits is the value of a hexadecimal or bit literal.
type Bits []byte

// Literal is a literal in the parser's tree. Its value is nil, bool, int64,
// uint64, float64, string, Digits or Bits.
type Literal struct {
	ast.TexprNode
	value  any
	column int
}

var (
	_ ast.ValueExpr       = (*Literal)(nil)
	_ ast.ParamMarkerExpr = (*paramMarker)(nil)
)

// SetValue implements ast.ValueExpr.
func (l *Literal) SetValue(v any) { l.value = v }

// GetValue implements ast.ValueExpr.
func (l *Literal) GetValue() any { return l.value }

// GetDatumString implements ast.ValueExpr.
func (l *Literal) GetDatumString() string { return l.GetString() }

// GetString implements ast.ValueExpr: the literal as text, without quotes.
func (l *Literal) GetString() string {
	switch v := l.value.(type) {
	case nil:
		return ""
	case string:
		return v
	case Bits:
		return string(v)
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(l.value)
}

// GetProjectionOffset implements ast.ValueExpr.
func (l *Literal) GetProjectionOffset() int { return l.column }

// SetProjectionOffset implements ast.ValueExpr.
func (l *Literal) SetProjectionOffset(n int) { l.column = n }

// Restore implements ast.Node: it writes the literal as SQL.
func (l *Literal) Restore(ctx *format.RestoreCtx) error {
	switch v := l.value.(type) {
	case nil:
		ctx.WriteKeyWord("NULL")
	case string:
		ctx.WriteString(v)
	case Bits:
		ctx.WritePlain("x'" + hex.EncodeToString(v) + "'")
	default:
		ctx.WritePlain(l.GetString())
	}
	return nil
}

// Format implements ast.ExprNode.
func (l *Literal) Format(w io.Writer) {
	switch v := l.value.(type) {
	case nil:
		_, _ = io.WriteString(w, "NULL")
	case string:
		_, _ = io.WriteString(w, strconv.Quote(v))
	default:
		_, _ = io.WriteString(w, l.GetString())
	}
}

// Accept implements ast.Node.
func (l *Literal) Accept(v ast.Visitor) (ast.Node, bool) {
	n, skip := v.Enter(l)
	if skip {
		return v.Leave(n)
	}
	return v.Leave(n)
}

// paramMarker is a ? in the parser's tree.
type paramMarker struct{ Literal }

func (p *paramMarker) SetOrder(int) {}

func (p *paramMarker) Restore(ctx *format.RestoreCtx) error {
	ctx.WritePlain("?")
	return nil
}

func (p *paramMarker) Format(w io.Writer) { _, _ = io.WriteString(w, "?") }

func (p *paramMarker) Accept(v ast.Visitor) (ast.Node, bool) {
	n, _ := v.Enter(p)
	return v.Leave(n)
}

// decodeHex reads x'6162', X'6162' or 0x6162.
func decodeHex(text string) (Bits, error) {
	body := text
	switch {
	case len(text) >= 3 && (text[0] == 'x' || text[0] == 'X') && text[1] == '\'':
		body = strings.TrimSuffix(text[2:], "'")
		if len(body)%2 != 0 {
			return nil, fmt.Errorf("hexadecimal literal %s has an odd number of digits", text)
		}
	case strings.HasPrefix(text, "0x"):
		if body = text[2:]; len(body)%2 != 0 {
			body = "0" + body
		}
	}
	b, err := hex.DecodeString(body)
	if err != nil {
		return nil, fmt.Errorf("hexadecimal literal %s: %w", text, err)
	}
	return b, nil
}

// decodeBits reads b'101', B'101' or 0b101, most significant bit first.
func decodeBits(text string) (Bits, error) {
	body := text
	switch {
	case len(text) >= 3 && (text[0] == 'b' || text[0] == 'B') && text[1] == '\'':
		body = strings.TrimSuffix(text[2:], "'")
	case strings.HasPrefix(text, "0b"):
		body = text[2:]
	}
	b := make(Bits, (len(body)+7)/8)
	for i := range len(body) {
		if body[i] != '0' && body[i] != '1' {
			return nil, fmt.Errorf("bit literal %s has a digit that is neither 0 nor 1", text)
		}
		if at := len(body) - 1 - i; body[i] == '1' {
			b[len(b)-1-at/8] |= 1 << (at % 8)
		}
	}
	return b, nil
}
