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
	var b strings.Builder
	appendCanonical(&b, v)
	return b.String(), nil
}

// Diff returns the paths at which two documents differ, each with both sides,
// at most limit of them (0 = all). Nothing means that they are equal.
func Diff(want, got []byte, limit int) ([]string, error) {
	w, err := decode(want)
	if err != nil {
		return nil, fmt.Errorf("read the wanted document: %w", err)
	}
	g, err := decode(got)
	if err != nil {
		return nil, fmt.Errorf("read the document found: %w", err)
	}
	d := differ{limit: limit}
	d.compare("", w, g)
	return d.found, nil
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

func appendCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			appendString(b, k)
			b.WriteByte(':')
			appendCanonical(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			appendCanonical(b, e)
		}
		b.WriteByte(']')
	case json.Number:
		b.WriteString(canonicalNumber(v.String()))
	case string:
		appendString(b, v)
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case nil:
		b.WriteString("null")
	}
}

func appendString(b *strings.Builder, s string) {
	q, _ := json.Marshal(s) // a string always marshals
	b.Write(q)
}

// canonicalNumber expands an exponent: 1.5e+3 becomes 1500, 25e-4 becomes
// 0.0025. Tokens without one are returned as they are.
func canonicalNumber(tok string) string {
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

// differ collects differences in document order.
type differ struct {
	limit int
	found []string
}

func (d *differ) full() bool { return d.limit > 0 && len(d.found) >= d.limit }

func (d *differ) add(path string, want, got string) {
	if path == "" {
		path = "(document)"
	}
	if !d.full() {
		d.found = append(d.found, fmt.Sprintf("%s: want %s, found %s", path, want, got))
	}
}

func (d *differ) compare(path string, want, got any) {
	if d.full() {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			d.objects(path, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			d.lists(path, w, g)
			return
		}
	}
	w, g := text(want), text(got)
	if w != g {
		d.add(path, w, g)
	}
}

func (d *differ) objects(path string, want, got map[string]any) {
	names := slices.Collect(maps.Keys(want))
	for k := range got {
		if _, both := want[k]; !both {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		p := strings.TrimPrefix(path+"."+k, ".")
		w, inWant := want[k]
		g, inGot := got[k]
		switch {
		case !inWant:
			d.add(p, "nothing", text(g))
		case !inGot:
			d.add(p, text(w), "nothing")
		default:
			d.compare(p, w, g)
		}
	}
}

func (d *differ) lists(path string, want, got []any) {
	for i := range min(len(want), len(got)) {
		d.compare(path+"["+strconv.Itoa(i)+"]", want[i], got[i])
	}
	if len(want) != len(got) {
		d.add(path, strconv.Itoa(len(want))+" elements", strconv.Itoa(len(got)))
	}
}

func text(v any) string {
	var b strings.Builder
	appendCanonical(&b, v)
	return b.String()
}
