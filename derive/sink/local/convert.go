package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// convert prepares a document for bleve: only what the mapping indexes, numbers
// as float64, dates as time.Time. The document itself is kept as it is in _doc.
func (m *indexMapping) convert(doc []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber() // a number passes through float64 for the index only
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("the document is not a JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the document is more than one JSON value")
	}
	out, _ := m.root.value(v).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	out[fieldDoc] = string(doc)
	return out, nil
}

// value converts one value; nil leaves it out.
func (n *node) value(v any) any {
	if list, ok := v.([]any); ok && n.shape != shapeAnyText {
		var out []any
		for _, e := range list {
			if c := n.value(e); c != nil {
				out = append(out, c)
			}
		}
		if out == nil {
			return nil
		}
		return out
	}
	switch n.shape {
	case shapeObject:
		obj, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		out := map[string]any{}
		for name, f := range n.fields {
			if c := f.value(obj[name]); c != nil {
				out[name] = c
			}
		}
		return out
	case shapeText, shapeKeyword:
		return scalarText(v)
	case shapeNumber:
		return number(v)
	case shapeDate:
		return date(v)
	case shapeBool:
		if b, ok := v.(bool); ok {
			return strconv.FormatBool(b)
		}
	case shapeAnyText:
		if words := appendTexts(nil, v); len(words) > 0 {
			return words
		}
	}
	return nil
}

func scalarText(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return nil
}

func number(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return nil // NaN and the infinities are texts
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return nil // beyond float64: found by its text only, in _doc
	}
	return f
}

// dateLayouts are the spellings of TYPES.md K4 and K5. Others (infinity, years beyond 9999, partial dates) are not indexed.
var dateLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02"}

// Times that bleve can index: nanoseconds in 64 bits.
var (
	minTime = time.Unix(0, -1<<63)
	maxTime = time.Unix(0, 1<<63-1)
)

func date(v any) any {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			if t.Before(minTime) || t.After(maxTime) {
				return nil
			}
			return t
		}
	}
	return nil
}

// appendTexts collects the texts of any JSON value.
func appendTexts(dst []any, v any) []any {
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return append(dst, v)
		}
	case []any:
		for _, e := range v {
			dst = appendTexts(dst, e)
		}
	case map[string]any:
		for _, e := range v {
			dst = appendTexts(dst, e)
		}
	}
	return dst
}
