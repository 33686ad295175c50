package jsoncmp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxExpanded bounds the digits that an exponent may expand to; beyond it the
// token is kept as it is.
const maxExpanded = 200_000

// Canonical returns the one spelling of a document: members sorted by name,
// no space, numbers as the package's rules say. Equal documents have equal
// canonical forms.
func Canonical(doc []byte) (string, error) {
	v, err := decode(doc)
	if err != nil {
		return "", err
	}
	return string(appendValue(nil, v, expand)), nil
}

// AppendExact appends the one spelling of a document whose numbers stay as they
// are written: exponents, too.
func AppendExact(dst, doc []byte) ([]byte, error) {
	v, err := decode(doc)
	if err != nil {
		return dst, fmt.Errorf("no JSON: %w", err)
	}
	return appendValue(dst, v, asWritten), nil
}

func decode(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// appendValue appends the one spelling of a value; number spells its numbers.
func appendValue(b []byte, v any, number func(string) string) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, k), ':')
			b = appendValue(b, v[k], number)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e, number)
		}
		return append(b, ']')
	case json.Number:
		return append(b, number(v.String())...)
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || strings.IndexByte(`"\<>&`, c) >= 0 {
			q, _ := json.Marshal(s) // a string always marshals
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func asWritten(tok string) string { return tok }

// expand expands an exponent: 1.5e+3 becomes 1500, 25e-4 becomes
// 0.0025. Tokens without one are returned as they are.
func expand(tok string) string {
	mantissa, expText, has := cutExponent(tok)
	if !has {
		return tok
	}
	exp, err := strconv.Atoi(expText)
	if err != nil || exp > maxExpanded || exp < -maxExpanded {
		return tok
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits, point := whole+frac, len(whole)+exp
	switch {
	case point <= 0:
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	case point > len(digits):
		digits += strings.Repeat("0", point-len(digits))
	}
	whole, frac = strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
	if whole == "" {
		whole = "0"
	}
	if frac != "" {
		frac = "." + frac
	}
	return sign + whole + frac
}

func cutExponent(tok string) (mantissa, exp string, has bool) {
	i := strings.IndexAny(tok, "eE")
	if i < 0 {
		return tok, "", false
	}
	return tok[:i], tok[i+1:], true
}
