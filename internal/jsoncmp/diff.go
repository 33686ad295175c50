package jsoncmp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

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
	d := differ{limit: limit, number: expand, values: true}
	d.compare("", w, g)
	return d.found, nil
}

// Paths returns the paths at which two documents differ ("brand.name",
// "reviews[2].rating", "" for the whole), at most limit of them (0 = all). It
// tells no values, and takes numbers as they are written. A got that is no
// document differs as a whole.
func Paths(want, got []byte, limit int) ([]string, error) {
	w, err := decode(want)
	if err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	g, err := decode(got)
	if err != nil {
		return []string{""}, nil
	}
	d := differ{limit: limit, number: asWritten}
	d.compare("", w, g)
	return d.found, nil
}

// differ collects differences in document order.
type differ struct {
	limit  int
	number func(string) string // spells numbers
	values bool                // both sides beside the path, and one line for lists of other lengths
	found  []string
}

func (d *differ) full() bool { return d.limit > 0 && len(d.found) >= d.limit }

func (d *differ) add(path string, want, got string) {
	if d.full() {
		return
	}
	if d.values {
		if path == "" {
			path = "(document)"
		}
		path = fmt.Sprintf("%s: want %s, found %s", path, want, got)
	}
	d.found = append(d.found, path)
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
	w, g := d.text(want), d.text(got)
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
		p := k
		if path != "" {
			p = path + "." + k
		}
		w, inWant := want[k]
		g, inGot := got[k]
		switch {
		case !inWant:
			d.add(p, "nothing", d.text(g))
		case !inGot:
			d.add(p, d.text(w), "nothing")
		default:
			d.compare(p, w, g)
		}
	}
}

func (d *differ) lists(path string, want, got []any) {
	at := func(i int) string { return path + "[" + strconv.Itoa(i) + "]" }
	shorter, longer := min(len(want), len(got)), max(len(want), len(got))
	for i := range shorter {
		d.compare(at(i), want[i], got[i])
	}
	switch {
	case shorter == longer:
	case d.values:
		d.add(path, strconv.Itoa(len(want))+" elements", strconv.Itoa(len(got)))
	default:
		for i := shorter; i < longer && !d.full(); i++ {
			d.add(at(i), "", "")
		}
	}
}

func (d *differ) text(v any) string { return string(appendValue(nil, v, d.number)) }
