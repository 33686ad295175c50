package join_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
)

// All problems come at once, each with its place.
func TestCompileReportsAllProblems(t *testing.T) {
	w, _, products, reviews, def := shop(t)
	reviews.schema.ForeignKeys = append(reviews.schema.ForeignKeys, change.ForeignKey{Columns: []string{"rating"}, RefTopic: products.topic, RefColumns: []string{"id"}})
	def.Where = "nam = 'x'"
	def.Fields = append(def.Fields, join.Field{Name: "title", Column: "bodi"}, join.Field{Name: "e", Expr: "id +"})
	def.Nest = append(slices.Clone(def.Nest),
		join.Relation{Name: "b2", Kind: join.BelongsTo, Node: join.Node{Table: "db.public.brand"}},
		join.Relation{Name: "b3", Kind: join.BelongsTo, Node: join.Node{Table: "db.public.brands"}, By: []join.By{{Column: "name"}}},
		join.Relation{Name: "b4", Kind: "owns", Node: join.Node{Table: "db.public.brands"}},
	)
	def.Calc = append(def.Calc, join.Calc{Name: "s", Func: "sum", Relation: "reviews"}, join.Calc{Name: "m", Func: "min", Relation: "review", Column: "id"})
	_, err := join.Compile(def, func(topic string) (*change.Schema, bool) {
		tb := w.tables[strings.TrimPrefix(topic, "db.public.")]
		if tb == nil {
			return nil, false
		}
		return tb.schema, true
	}, "db.public.brands", products.topic)
	var ps join.Problems
	if !errors.As(err, &ps) {
		t.Fatal(err)
	}
	for _, want := range []struct{ path, message, hint string }{
		{"where", "nam", ""},
		{"fields.title", `no column "bodi"`, "did you mean body?"},
		{"fields.title", "already used", ""},
		{"fields.e", "", ""},
		{"nest.b2.belongs_to", "unknown table db.public.brand", "did you mean db.public.brands?"},
		{"nest.b3.by", "name is text", "comparable"},
		{"nest.b4", "unknown kind", ""},
		{"nest.reviews.by", "2 foreign keys", "product_id, rating"},
		{"calc.s", "needs a column", "sum: reviews.COLUMN"},
		{"calc.m", `no relation "review"`, "did you mean reviews?"},
	} {
		if !slices.ContainsFunc(ps, func(p join.Problem) bool {
			return strings.Join(p.Path, ".") == want.path && strings.Contains(p.Message, want.message) && strings.Contains(p.Hint, want.hint)
		}) {
			t.Errorf("no problem at %s with %q (%q) in\n%s", want.path, want.message, want.hint, strings.ReplaceAll(err.Error(), "; ", "\n"))
		}
	}
}

func TestInfoIsResolved(t *testing.T) {
	w, brands, products, reviews, def := shop(t)
	v, err := join.Compile(def, func(topic string) (*change.Schema, bool) {
		for _, tb := range w.tables {
			if tb.topic == topic {
				return tb.schema, true
			}
		}
		return nil, false
	})
	if err != nil {
		t.Fatal(err)
	}
	info := v.Info()
	if info.Root != products.topic || !slices.Equal(info.Topics, []string{products.topic, brands.topic, reviews.topic}) {
		t.Errorf("tables %v", info.Topics)
	}
	if len(info.Key) != 1 || info.Key[0].Name != "id" || info.Key[0].Kind != change.KindInt {
		t.Errorf("key %v", info.Key)
	}
	if r := info.Relations; len(r) != 2 || r[0].By[0] != (derive.ColumnPair{Holder: "brand_id", Refers: "id"}) || r[1].By[0] != (derive.ColumnPair{Holder: "product_id", Refers: "id"}) {
		t.Errorf("relations %+v", info.Relations)
	}
	if f := info.Fields; len(f) != 6 || f[2].Name != "brand" || f[2].List || !f[3].List || f[3].Fields[0].Kind != change.KindInt || f[4].Kind != change.KindInt || f[5].Kind != change.KindDecimal {
		t.Errorf("fields %+v", f)
	}
	again, err := join.Restore(mustDefinition(t, def))
	if err != nil || again.Name() != "search" {
		t.Errorf("restored %v, %v", again, err)
	}
}

func mustDefinition(t *testing.T, def join.Definition) []byte {
	b, err := join.New(def).Definition()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
