package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
	"strings"
)

// Definition is the view as the file has it, without its targets, in a
// canonical JSON: references unresolved, comments and layout gone, the keys of
// maps sorted except under nest, calc and fields, whose order shapes documents.
// It is what state keeps and people read; Fingerprint tells whether the meaning
// changed.
func (v *View) Definition() string { return v.definition }

// Definition is the target as the file has it, as View.Definition.
func (t *Target) Definition() string { return t.definition }

// Fingerprint names what the view's documents are made of, with references
// resolved: equal for equal documents, however the file spells it. Targets, emit
// and partitions are not in it. 32 hex digits.
func (v *View) Fingerprint() string { return fingerprint(canonNode(&v.Node)) }

// Fingerprint names the target's options, with references resolved.
func (t *Target) Fingerprint() string {
	c := canonicalTarget{Index: t.Index, Settings: t.Settings, Key: t.Key.Text, TTL: int64(t.TTL)}
	for _, m := range t.Mapping {
		c.Mapping = append(c.Mapping, canonicalMapping{m.Field, m.Type, m.Keyword, m.Params})
	}
	sort.Slice(c.Mapping, func(i, j int) bool { return c.Mapping[i].Field < c.Mapping[j].Field })
	return fingerprint(c)
}

func fingerprint(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("config: a definition is no JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// canonical reports a tree of nodes as JSON.
func canonical(n *node, keepOrder bool, without ...string) string {
	var b strings.Builder
	writeCanonical(&b, n, keepOrder, without)
	return b.String()
}

func writeCanonical(b *strings.Builder, n *node, keepOrder bool, without []string) {
	if n == nil {
		b.WriteString("null")
		return
	}
	switch n.kind {
	case mapNode:
		writeCanonicalMap(b, n, keepOrder, without)
	case listNode:
		b.WriteByte('[')
		for i, it := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, it, keepOrder, nil)
		}
		b.WriteByte(']')
	case scalarNode:
		text, _ := json.Marshal(n.text)
		b.Write(text)
	default:
		b.WriteString("null")
	}
}

func writeCanonicalMap(b *strings.Builder, n *node, keepOrder bool, without []string) {
	entries := make([]entry, 0, len(n.entries))
	for _, e := range n.entries {
		if !contains(without, e.key) {
			entries = append(entries, e)
		}
	}
	if !keepOrder {
		sort.SliceStable(entries, func(i, j int) bool { return entries[i].key < entries[j].key })
	}
	b.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(e.key)
		b.Write(key)
		b.WriteByte(':')
		writeCanonical(b, e.value, e.key == "nest" || e.key == "calc" || e.key == "fields", nil)
	}
	b.WriteByte('}')
}

// The canonical structs spell a definition's meaning. A new option gets a field
// with omitempty whose zero value is the old meaning, so that fingerprints of
// files that do not use it stay.
type canonicalNode struct {
	From   string              `json:"from"`
	Where  string              `json:"where,omitempty"`
	Fields *[]canonicalField   `json:"fields,omitempty"`
	Nest   []canonicalRelation `json:"nest,omitempty"`
	Calc   []canonicalCalc     `json:"calc,omitempty"`
}

type canonicalField struct {
	Name   string `json:"name"`
	Column string `json:"column,omitempty"`
	Expr   string `json:"expr,omitempty"`
}

type canonicalRelation struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind"`
	Node    canonicalNode     `json:"node"`
	By      [][2]string       `json:"by,omitempty"`
	Fold    bool              `json:"fold,omitempty"`
	Through *canonicalThrough `json:"through,omitempty"`
	Order   []canonicalOrder  `json:"order,omitempty"`
	Limit   int               `json:"limit,omitempty"`
}

type canonicalThrough struct {
	Table string      `json:"table"`
	Near  [][2]string `json:"near,omitempty"`
	Far   [][2]string `json:"far,omitempty"`
	Where string      `json:"where,omitempty"`
}

type canonicalOrder struct {
	Column     string `json:"column"`
	Desc       bool   `json:"desc,omitempty"`
	NullsFirst bool   `json:"nulls_first,omitempty"`
}

type canonicalCalc struct {
	Name        string `json:"name"`
	Func        string `json:"func"`
	Relation    string `json:"relation"`
	Column      string `json:"column,omitempty"`
	Expr        string `json:"expr,omitempty"`
	Where       string `json:"where,omitempty"`
	Round       *int   `json:"round,omitempty"`
	Approximate bool   `json:"approximate,omitempty"`
}

type canonicalTarget struct {
	Index    string             `json:"index,omitempty"`
	Mapping  []canonicalMapping `json:"mapping,omitempty"`
	Settings map[string]any     `json:"settings,omitempty"`
	Key      string             `json:"key,omitempty"`
	TTL      int64              `json:"ttl,omitempty"`
}

type canonicalMapping struct {
	Field   string         `json:"field"`
	Type    string         `json:"type,omitempty"`
	Keyword bool           `json:"keyword,omitempty"`
	Params  map[string]any `json:"params,omitempty"`
}

func canonNode(n *Node) canonicalNode {
	out := canonicalNode{From: n.Table.String(), Where: exprText(n.Where)}
	if n.Fields != nil {
		fields := []canonicalField{}
		for _, f := range n.Fields {
			fields = append(fields, canonicalField{f.Name, f.Column, exprText(f.Expr)})
		}
		out.Fields = &fields
	}
	for _, r := range n.Nest {
		out.Nest = append(out.Nest, canonRelation(r))
	}
	for _, c := range n.Calc {
		out.Calc = append(out.Calc, canonicalCalc{
			Name: c.Name, Func: string(c.Func), Relation: c.Relation, Column: c.Column,
			Expr: exprText(c.Expr), Where: exprText(c.Where), Round: c.Round, Approximate: c.Approximate,
		})
	}
	return out
}

func canonRelation(r *Relation) canonicalRelation {
	out := canonicalRelation{
		Name: r.Name, Kind: string(r.Kind), Node: canonNode(&r.Node),
		By: canonBy(r.By), Fold: r.Fold, Limit: r.Limit,
	}
	if t := r.Through; t != nil {
		out.Through = &canonicalThrough{t.Table.String(), canonBy(t.Near), canonBy(t.Far), exprText(t.Where)}
	}
	for _, o := range r.Order {
		out.Order = append(out.Order, canonicalOrder{o.Column, o.Desc, o.NullsFirst})
	}
	return out
}

func canonBy(by []ByColumn) (out [][2]string) {
	for _, b := range by {
		out = append(out, [2]string{b.Column, b.Refers})
	}
	return out
}

func exprText(e *Expr) string {
	if e == nil {
		return ""
	}
	return strings.TrimSpace(e.Text)
}
