package config

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder turns nodes into the structs and collects problems and warnings.
type decoder struct {
	env      func(string) (string, bool)
	file     string // as it was named
	baseDir  string
	problems Problems
	warnings Problems
	places   map[string]Pos
	keys     map[string]bool // every key that was asked for, if not nil
}

func (d *decoder) problem(pos Pos, message, hint string) {
	d.problems = append(d.problems, pos.Problem(message, hint))
}

func (d *decoder) warn(pos Pos, message, hint string) {
	d.warnings = append(d.warnings, pos.Problem(message, hint))
}

// value is the text of a scalar with its references resolved; ok is false
// after a problem was reported.
func (d *decoder) value(n *node) (text string, ok bool) {
	if n.kind != scalarNode {
		word := "expected a single value, this is " + n.word()
		if n.kind == nullNode {
			word = "no value is given"
		}
		d.problem(n.pos, word, "")
		return "", false
	}
	if !hasRef(n.text) {
		return n.text, true
	}
	r := &resolver{env: d.env, dir: n.pos.src.dir}
	text, err := r.resolve(n.text)
	if err != nil {
		hint := ""
		if re, isRef := err.(*refError); isRef {
			hint = re.hint
		}
		d.problem(n.pos, err.Error(), hint)
		return "", false
	}
	for _, f := range r.worldReadable {
		d.warn(n.pos, fmt.Sprintf("everyone on this machine may read the file %s", f), "chmod 600 "+f)
	}
	return text, true
}

// shown is a value in a message: as it stands in the file, so that what a
// reference hides stays hidden.
func shown(n *node, text string) string {
	if hasRef(n.text) {
		return "the value of " + n.text
	}
	return quote(text)
}

// object walks the keys of a map. A key that was not asked for is unknown.
type object struct {
	d     *decoder
	n     *node
	pos   Pos
	known []string
}

// object opens a map; null and nil count as an empty one, anything else is a
// problem.
func (d *decoder) object(n *node, pos Pos) *object {
	o := &object{d: d, n: n, pos: pos}
	if n == nil {
		return o
	}
	if n.kind != mapNode && n.kind != nullNode {
		d.problem(n.pos, "expected a map, this is "+n.word(), "")
		o.n = nil
	}
	return o
}

// child is the value of a key, or nil if it is absent.
func (o *object) child(key string) *node {
	o.known = append(o.known, key)
	if o.d.keys != nil {
		o.d.keys[key] = true
	}
	if e := o.n.entry(key); e != nil {
		return e.value
	}
	return nil
}

// has tells whether the map has the key, which may have no value.
func (o *object) has(key string) bool { return o.n.entry(key) != nil }

// at is the place of a key, or of the map if it is absent.
func (o *object) at(key string) Pos {
	if e := o.n.entry(key); e != nil {
		return e.pos
	}
	return o.pos.in(key)
}

// done reports the keys that nothing asked for.
func (o *object) done() {
	if o.n == nil {
		return
	}
	for _, e := range o.n.entries {
		if !slices.Contains(o.known, e.key) {
			o.d.problem(e.pos, "unknown key "+quote(e.key), didYouMean(e.key, o.known))
		}
	}
}

// later reports a key that a coming version will have.
func (o *object) later(keys ...string) {
	for _, key := range keys {
		if e := o.n.entry(key); e != nil {
			o.d.problem(e.pos, key+" is not in this version yet", "leave it out")
			o.known = append(o.known, key)
		}
	}
}

func (o *object) scalar(key string) (n *node, text string, ok bool) {
	n = o.child(key)
	if n == nil {
		return nil, "", false
	}
	text, ok = o.d.value(n)
	return n, text, ok
}

func (o *object) str(key string, dst *string) {
	if _, text, ok := o.scalar(key); ok {
		*dst = text
	}
}

func (o *object) secret(key string, dst *Secret) {
	if _, text, ok := o.scalar(key); ok {
		*dst = NewSecret(text)
	}
}

// path reads a file name; a relative one starts at its file's directory.
func (o *object) path(key string, dst *string) {
	n, text, ok := o.scalar(key)
	if !ok {
		return
	}
	if text == "" || strings.ContainsAny(text, "\x00\n") {
		o.d.problem(n.pos, fmt.Sprintf("%s is not a path", shown(n, text)), "")
		return
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(n.pos.src.dir, text)
	}
	*dst = filepath.Clean(text)
}

func (o *object) enum(key string, dst *string, allowed ...string) {
	n, text, ok := o.scalar(key)
	if !ok {
		return
	}
	if !slices.Contains(allowed, text) {
		o.d.problem(n.pos, fmt.Sprintf("%s must be one of %s, not %s", key, strings.Join(allowed, ", "), shown(n, text)), didYouMean(text, allowed))
		return
	}
	*dst = text
}

func (o *object) boolean(key string, dst *bool) {
	n, text, ok := o.scalar(key)
	if !ok {
		return
	}
	if text != "true" && text != "false" || n.quoted && !hasRef(n.text) {
		o.d.problem(n.pos, fmt.Sprintf("%s must be true or false, not %s", key, shown(n, text)), "")
		return
	}
	*dst = text == "true"
}

func (o *object) integer(key string, dst *int, low, high int) {
	n, text, ok := o.scalar(key)
	if !ok {
		return
	}
	v, err := strconv.ParseInt(text, 10, 64)
	plain := err == nil && strconv.FormatInt(v, 10) == text
	switch {
	case !plain || n.quoted && !hasRef(n.text):
		o.d.problem(n.pos, fmt.Sprintf("%s must be a whole number, not %s", key, shown(n, text)), "")
	case v < int64(low) || v > int64(high):
		o.d.problem(n.pos, fmt.Sprintf("%s must be %s, not %d", key, between(low, high), v), "")
	default:
		*dst = int(v)
	}
}

func between(low, high int) string {
	if high == math.MaxInt32 || high == math.MaxInt {
		return fmt.Sprintf("at least %d", low)
	}
	return fmt.Sprintf("between %d and %d", low, high)
}

func (o *object) size(key string, dst *Size, low Size) {
	n, text, ok := o.scalar(key)
	if !ok {
		return
	}
	v, err := ParseSize(text)
	switch {
	case err != nil:
		o.d.problem(n.pos, o.measure(n, text, "size", err), "")
	case v < low:
		o.d.problem(n.pos, fmt.Sprintf("%s must be at least %s, not %s", key, low, v), "")
	default:
		*dst = v
	}
}

func (o *object) duration(key string, dst *time.Duration, low time.Duration) {
	n, text, ok := o.scalar(key)
	if !ok {
		return
	}
	v, err := ParseDuration(text)
	switch {
	case err != nil:
		o.d.problem(n.pos, o.measure(n, text, "duration", err), "")
	case v < low:
		o.d.problem(n.pos, fmt.Sprintf("%s must be at least %s, not %s", key, low, v), "")
	default:
		*dst = v
	}
}

func (o *object) measure(n *node, text, what string, err error) string {
	if hasRef(n.text) {
		return fmt.Sprintf("%s is not a %s", shown(n, text), what)
	}
	return err.Error()
}

// list is the items of a list; a single value counts as a list of one.
func (d *decoder) list(n *node) []*node {
	switch {
	case n == nil || n.kind == nullNode:
		return nil
	case n.kind == listNode:
		return n.items
	case n.kind == scalarNode:
		return []*node{n}
	}
	d.problem(n.pos, "expected a list, this is "+n.word(), "")
	return nil
}
