package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// decode reads a document with its numbers as they are written.
func decode(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// canonical appends the one spelling of a document.
func canonical(dst, doc []byte) ([]byte, error) {
	v, err := decode(doc)
	if err != nil {
		return dst, err
	}
	return appendCanonical(dst, v), nil
}

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(change.AppendJSONString(b, k), ':')
			b = appendCanonical(b, v[k])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, e)
		}
		return append(b, ']')
	case json.Number:
		return append(b, v...)
	case string:
		return change.AppendJSONString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

// Paths returns the paths at which two documents differ ("brand.name",
// "reviews[2].rating", "" for the whole), at most limit of them (0 = all). It
// tells no values.
func Paths(want, got []byte, limit int) ([]string, error) {
	w, err := decode(want)
	if err != nil {
		return nil, err
	}
	g, err := decode(got)
	if err != nil {
		return []string{""}, nil // what a sink holds may be anything
	}
	d := differ{limit: limit}
	d.compare("", w, g)
	return d.paths, nil
}

type differ struct {
	limit int
	paths []string
}

func (d *differ) add(path string) {
	if d.limit <= 0 || len(d.paths) < d.limit {
		d.paths = append(d.paths, path)
	}
}

func (d *differ) compare(path string, want, got any) {
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
	case json.Number, string, bool, nil:
		if want == nil && got == nil {
			return
		}
		switch got.(type) {
		case map[string]any, []any:
		default:
			if want == got {
				return
			}
		}
	}
	d.add(path)
}

func (d *differ) objects(path string, want, got map[string]any) {
	names := slices.Collect(maps.Keys(want))
	for k := range got {
		if _, ok := want[k]; !ok {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		p := k
		if path != "" {
			p = path + "." + k
		}
		w, inWant := want[k]
		g, inGot := got[k]
		if inWant != inGot {
			d.add(p)
			continue
		}
		d.compare(p, w, g)
	}
}

func (d *differ) lists(path string, want, got []any) {
	for i := range min(len(want), len(got)) {
		d.compare(path+"["+strconv.Itoa(i)+"]", want[i], got[i])
	}
	for i := min(len(want), len(got)); i < max(len(want), len(got)); i++ {
		d.add(path + "[" + strconv.Itoa(i) + "]")
	}
}
