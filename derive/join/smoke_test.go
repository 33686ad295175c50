package join_test

import (
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
)

// shop is the small world of most tests: products with a brand and reviews.
func shop(t testing.TB) (w *world, brands, products, reviews *table, def join.Definition) {
	w = newWorld(t)
	brands = w.table("brands", 1, col(1, "id", change.KindInt), col(2, "name", change.KindText))
	products = w.table("products", 1, col(1, "id", change.KindInt), col(2, "name", change.KindText), col(3, "brand_id", change.KindInt), col(4, "body", change.KindText))
	reviews = w.table("reviews", 1, col(1, "id", change.KindInt), col(2, "product_id", change.KindInt), col(3, "rating", change.KindInt))
	products.schema.ForeignKeys = []change.ForeignKey{{Columns: []string{"brand_id"}, RefTopic: brands.topic, RefColumns: []string{"id"}}}
	reviews.schema.ForeignKeys = []change.ForeignKey{{Columns: []string{"product_id"}, RefTopic: products.topic, RefColumns: []string{"id"}}}
	def = join.Definition{Name: "search", Node: join.Node{
		Table:  products.topic,
		Fields: []join.Field{{Name: "id", Column: "id"}, {Name: "title", Column: "name"}},
		Nest: []join.Relation{
			{Name: "brand", Kind: join.BelongsTo, Node: join.Node{Table: brands.topic, Fields: []join.Field{{Name: "name", Column: "name"}}}},
			{Name: "reviews", Kind: join.HasMany, Order: []join.Order{{Column: "rating", Desc: true}}, Limit: 2,
				Node: join.Node{Table: reviews.topic, Where: "rating > 0", Fields: []join.Field{{Name: "rating", Column: "rating"}}}},
		},
		Calc: []join.Calc{{Name: "n", Func: "count", Relation: "reviews"}, {Name: "avg", Func: "avg", Relation: "reviews", Column: "rating", Round: new(int)}},
	}}
	*def.Calc[1].Round = 2
	w.describe()
	return w, brands, products, reviews, def
}

func TestRunnerServesNestedDocuments(t *testing.T) {
	w, brands, products, reviews, def := shop(t)
	tx := w.begin()
	tx.insert(brands, 1, "Acme")
	tx.insert(products, 1, "Pen", 1, "x")
	tx.insert(products, 2, "Ink", nil, "x")
	tx.insert(reviews, 1, 1, 4)
	tx.insert(reviews, 2, 1, 5)
	tx.insert(reviews, 3, 1, 1)
	tx.insert(reviews, 4, 1, 0)
	tx.commit()
	r := w.start(def)
	w.catchUp()
	if s := w.stats("search"); s.State != derive.StateWaiting || s.CompleteCSN != 0 {
		t.Fatalf("before the snapshot is done: %+v", s)
	}
	if len(w.sink("search").seen) != 0 {
		t.Fatal("output before the snapshot is done")
	}
	w.snapshotDone()
	w.catchUp()
	want := map[string]string{
		"1": `{"id":1,"title":"Pen","brand":{"name":"Acme"},"reviews":[{"rating":5},{"rating":4}],"n":3,"avg":3.33}`,
		"2": `{"id":2,"title":"Ink","brand":null,"reviews":[],"n":0,"avg":null}`,
	}
	for id, doc := range want {
		d, ok, err := r.Get("search", id)
		if err != nil || !ok || string(d.JSON) != doc {
			t.Errorf("Get %s = %s, %v, %v; want %s", id, d.JSON, ok, err, doc)
		}
	}
	if s := w.stats("search"); s.State != derive.StateLive || s.CompleteCSN != w.log.Frontier() || s.Documents != 2 {
		t.Errorf("live: %+v", s)
	}
	tx = w.begin()
	tx.update(brands, 1, "Acme2")
	tx.commit()
	w.catchUp()
	if s := w.sink("search"); len(s.docs) != 2 || s.docs[string(products.key(rowOf([]any{1})))] != `{"id":1,"title":"Pen","brand":{"name":"Acme2"},"reviews":[{"rating":5},{"rating":4}],"n":3,"avg":3.33}` {
		t.Errorf("sink %v", s.docs)
	}
}
