package expr

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// Digits that PostgreSQL's numeric can hold before and behind the point.
const (
	maxWhole    = 131072
	maxFraction = 16383
)

// number makes the literal an int, else a uint, else a decimal with its digits.
func (c *compiler) number(t *sqldriver.Node) (*node, *Error) {
	v, ok := parseNumber(t.Text)
	if !ok {
		return nil, c.fail(t.Offset, "the number has more than 131072 digits before or 16383 behind the point", "")
	}
	return constant(t.Offset, v, numberText(v)), nil
}

// numberText is a literal that is read as the same kind again: 1e2 is a
// decimal, 100 an int.
func numberText(v change.Value) string {
	text := string(change.AppendText(nil, v))
	if v.Kind() == change.KindDecimal && !strings.Contains(text, ".") {
		text += "e0"
	}
	return text
}

// parseNumber reads digits[.digits][e±digits], without a sign.
func parseNumber(text string) (change.Value, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return change.Int(n), true
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return change.Uint(n), true
	}
	exponent := 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.Atoi(text[i+1:])
		if err != nil || n > 2*maxWhole || n < -2*maxWhole {
			return change.Null, false
		}
		text, exponent = text[:i], n
	}
	whole, fraction, _ := strings.Cut(text, ".")
	all, point := whole+fraction, len(whole)+exponent
	if point <= 0 {
		all, point = strings.Repeat("0", 1-point)+all, 1
	}
	if point > len(all) {
		all += strings.Repeat("0", point-len(all))
	}
	whole, fraction = strings.TrimLeft(all[:point], "0"), all[point:]
	if len(whole) > maxWhole || len(fraction) > maxFraction {
		return change.Null, false
	}
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return change.Decimal([]byte(whole)), true
}

// typedLiteral is DATE '…' and its like.
func (c *compiler) typedLiteral(t *sqldriver.Node) (*node, *Error) {
	kinds := map[string]change.Kind{"DATE": change.KindDate, "TIME": change.KindTime, "TIMETZ": change.KindTimeTZ,
		"TIMESTAMP": change.KindTimestamp, "TIMESTAMPTZ": change.KindTimestampTZ, "UUID": change.KindUUID}
	n := constant(t.Offset, change.Text(t.Text), quoteString(t.Text))
	n.loose = true
	return c.adapt(n, kinds[t.Name])
}

// literalOf is the canonical text of a literal that was read from a string.
func literalOf(v change.Value, text string) string {
	switch v.Kind() {
	case change.KindText:
		return quoteString(text)
	case change.KindBytes:
		return quoteString("\\x" + hex.EncodeToString(v.Raw()))
	}
	names := map[change.Kind]string{change.KindDate: "DATE ", change.KindTime: "TIME ", change.KindTimeTZ: "TIMETZ ",
		change.KindTimestamp: "TIMESTAMP ", change.KindTimestampTZ: "TIMESTAMPTZ ", change.KindUUID: "UUID "}
	return names[v.Kind()] + quoteString(string(change.AppendText(nil, v)))
}

// adapt gives a string literal the kind of its neighbour.
func (c *compiler) adapt(n *node, kind change.Kind) (*node, *Error) {
	text := string(n.value.Raw())
	v, ok := readText(text, kind)
	if !ok {
		return nil, c.mismatch(n, kind)
	}
	if kind == change.KindText {
		return n, nil
	}
	return constant(n.offset, v, literalOf(v, text)), nil
}

// readText reads a string as a value of a kind that strings may stand for.
func readText(text string, kind change.Kind) (change.Value, bool) {
	switch kind {
	case change.KindText:
		return change.Text(text), true
	case change.KindDate:
		return parseDate(text)
	case change.KindTime:
		return parseTime(text)
	case change.KindTimeTZ:
		return parseTimeTZ(text)
	case change.KindTimestamp:
		return parseTimestamp(text, false)
	case change.KindTimestampTZ:
		return parseTimestamp(text, true)
	case change.KindUUID:
		return parseUUID(text)
	case change.KindBytes:
		b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
		return change.Bytes(b), err == nil && strings.HasPrefix(text, `\x`)
	}
	return change.Null, false
}

// mismatch explains why a string does not fit a kind.
func (c *compiler) mismatch(n *node, kind change.Kind) *Error {
	hint := ""
	switch kind {
	case change.KindDate:
		hint = "write a date as '2024-05-31'"
	case change.KindTimestamp:
		hint = "write a timestamp without a zone as '2024-05-31 12:00:00'"
	case change.KindTimestampTZ:
		hint = "write a timestamp as '2024-05-31T12:00:00Z'"
	case change.KindTime, change.KindTimeTZ:
		hint = "write a time as '12:00:00'"
	case change.KindBytes:
		hint = `write bytes as '\x00ff'`
	case change.KindUUID:
		hint = "write a uuid as '00000000-0000-0000-0000-000000000000'"
	case change.KindBool:
		hint = "write TRUE or FALSE without quotes"
	case change.KindJSON:
		hint = "take a value out of it with ->> 'key' first"
	default:
		if kind.Numeric() {
			hint = "write the number without quotes, or CAST(… AS text) on the other side"
		}
	}
	return c.fail(n.offset, "a "+kind.String()+" does not go with "+n.describe(), hint)
}

// parseUUID reads 32 hexadecimal digits in groups, in braces or without dashes.
func parseUUID(text string) (change.Value, bool) {
	s := text
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return change.Null, false
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return change.Null, false
	}
	return change.UUID([16]byte(b)), true
}
