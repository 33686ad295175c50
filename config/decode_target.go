package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tailwater/tailwater/internal/keytemplate"
)

// targets takes a map of sinks to options, a list of sinks or one sink.
func (d *decoder) targets(n *node, pos Pos, v *View, cfg *Config) []*Target {
	if n == nil || n.kind == nullNode {
		return nil
	}
	var out []*Target
	add := func(name string, body *node, pos Pos) {
		for _, t := range out {
			if t.Sink == name {
				d.problem(pos, fmt.Sprintf("the sink %s is here twice", quote(name)), "")
				return
			}
		}
		if t := d.target(name, body, pos, v, cfg); t != nil {
			out = append(out, t)
		}
	}
	if n.kind == mapNode {
		for _, e := range n.entries {
			add(e.key, e.value, e.pos)
		}
		return out
	}
	for _, it := range d.list(n) {
		if name, ok := d.value(it); ok {
			add(name, nil, it.pos)
		}
	}
	return out
}

func (d *decoder) target(name string, body *node, pos Pos, v *View, cfg *Config) *Target {
	s := cfg.Sink(name)
	if s == nil {
		if _, ok := d.places[joinPath("sinks", name)]; !ok {
			known := names(cfg.Sinks, (*Sink).name)
			hint := didYouMean(name, known)
			if len(known) == 0 {
				hint = "add it: sinks: { " + name + ": { local: {} } }"
			}
			d.problem(pos, fmt.Sprintf("there is no sink %s", quote(name)), hint)
		}
		return nil
	}
	t := &Target{Sink: name, Pos: pos, definition: canonical(body, false)}
	o := d.object(body, pos)
	switch s.Kind {
	case Elasticsearch, OpenSearch:
		d.index(o, t, v)
		t.Mapping = d.mappings(o)
		d.settings(o, t)
		d.foreign(o, s, "key", "ttl")
	case Local:
		t.Mapping = d.mappings(o)
		d.foreign(o, s, "index", "settings", "key", "ttl")
	case Redis:
		d.redisKey(o, t, v)
		o.duration("ttl", &t.TTL, time.Second)
		d.foreign(o, s, "index", "settings", "mapping")
	}
	o.done()
	return t
}

// foreign reports options of other kinds of sinks.
func (d *decoder) foreign(o *object, s *Sink, keys ...string) {
	for _, key := range keys {
		if o.has(key) {
			o.child(key)
			d.problem(o.at(key), fmt.Sprintf("%s is not an option of %s sinks", key, s.Kind), "leave it out")
		}
	}
}

func (d *decoder) index(o *object, t *Target, v *View) {
	t.Index = strings.ToLower(v.Name)
	pos := t.Pos
	if n, text, ok := o.scalar("index"); ok {
		t.Index, pos = text, n.pos
	}
	if why := illegalIndex(t.Index); why != "" {
		d.problem(pos, fmt.Sprintf("%s cannot be the name of an index: %s", quote(t.Index), why), "")
	}
}

// illegalIndex is why a search engine would refuse an index of that name and
// its generations, or "".
func illegalIndex(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > 240:
		return "it is longer than 240 bytes"
	case strings.ToLower(name) != name:
		return "it must be lower case"
	case strings.ContainsAny(name, "\\/*?\"<>| ,#:\x00\n\t"):
		return `it must not hold \ / * ? " < > | , # : or blanks`
	case strings.ContainsRune("-_+.", rune(name[0])):
		return "it must not start with - _ + or ."
	}
	return ""
}

// mappings takes { field: type } and { field: { type: …, keyword: true, … } }.
func (d *decoder) mappings(o *object) []MappingField {
	m := d.object(o.child("mapping"), o.at("mapping"))
	if m.n == nil {
		return nil
	}
	var out []MappingField
	for _, e := range m.n.entries {
		f := MappingField{Field: e.key, Pos: e.pos, Params: map[string]any{}}
		if e.value.kind == scalarNode {
			f.Type, _ = d.value(e.value)
			out = append(out, f)
			continue
		}
		o := d.object(e.value, e.pos)
		o.str("type", &f.Type)
		o.boolean("keyword", &f.Keyword)
		if o.n != nil {
			for _, p := range o.n.entries {
				if p.key != "type" && p.key != "keyword" {
					f.Params[p.key] = d.any(p.value)
				}
			}
		}
		out = append(out, f)
	}
	return out
}

func (d *decoder) settings(o *object, t *Target) {
	m := d.object(o.child("settings"), o.at("settings"))
	if m.n == nil || len(m.n.entries) == 0 {
		return
	}
	t.Settings, _ = d.any(m.n).(map[string]any)
}

var decimalNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)

// any is a node for a server that knows more than we do: strings, booleans,
// int64, json.Number for decimals, nil, lists and maps.
func (d *decoder) any(n *node) any {
	switch n.kind {
	case mapNode:
		m := map[string]any{}
		for _, e := range n.entries {
			m[e.key] = d.any(e.value)
		}
		return m
	case listNode:
		l := []any{}
		for _, it := range n.items {
			l = append(l, d.any(it))
		}
		return l
	case nullNode:
		return nil
	}
	text, ok := d.value(n)
	if !ok || n.quoted {
		return text
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(v, 10) == text {
		return v
	}
	if decimalNumber.MatchString(text) {
		return json.Number(text)
	}
	return text
}

func (d *decoder) redisKey(o *object, t *Target, v *View) {
	t.Key = Template{Text: v.Name + ":{id}", Pos: t.Pos}
	if n, text, ok := o.scalar("key"); ok {
		t.Key = Template{Text: text, Pos: n.pos}
	}
	parts, err := keytemplate.Parse(t.Key.Text, columnName)
	if err != nil {
		d.problem(t.Key.Pos, fmt.Sprintf("the key %s is no template: %s", quote(t.Key.Text), err), `write names in braces, as in "product:{id}"; {{ is a literal brace`)
		return
	}
	t.Key.Parts = parts
	for _, p := range parts {
		if p.Field != "" {
			return
		}
	}
	d.problem(t.Key.Pos, "the key names no field, so all documents would share it", `write one in braces, as in "`+v.Name+`:{id}"`)
}
