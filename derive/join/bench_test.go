package join_test

import (
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/change"
)

// fill appends a shop of n products with two reviews each, in chunks.
func fill(w *world, brands, products, reviews *table, n int) {
	tx := w.begin()
	for i := range 100 {
		tx.insert(brands, i, fmt.Sprintf("brand %d", i))
	}
	tx.commit()
	for i := 0; i < n; {
		tx := w.begin()
		for range 1000 {
			tx.put(products, change.OpRead, change.FlagSnapshot, i, fmt.Sprintf("product %d", i), i%100, "a body of some length, as bodies are")
			tx.put(reviews, change.OpRead, change.FlagSnapshot, 2*i, i, i%5+1)
			tx.put(reviews, change.OpRead, change.FlagSnapshot, 2*i+1, i, i%3)
			i++
		}
		tx.commitOnly()
	}
	w.snapshotDone()
}

func BenchmarkFirstBuild(b *testing.B) {
	w, brands, products, reviews, def := shop(b)
	fill(w, brands, products, reviews, 100_000)
	b.ResetTimer()
	for i := range b.N {
		w.opts.StateDir = fmt.Sprintf("%s/state%d", w.dir, i)
		d := def
		d.Name = fmt.Sprintf("v%d", i)
		w.start(d)
		w.catchUp()
		if n := w.stats(d.Name).Documents; n != 100_000 {
			b.Fatal(n)
		}
		w.stop()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100_000, "µs/doc")
}

func BenchmarkUpdates(b *testing.B) {
	w, brands, products, reviews, def := shop(b)
	fill(w, brands, products, reviews, 20_000)
	w.start(def)
	w.catchUp()
	b.ResetTimer()
	for n := 0; n < b.N; {
		tx := w.begin()
		for range 10 {
			tx.update(reviews, n%40_000, n/2%20_000, n%7)
			n++
		}
		tx.commitOnly()
	}
	w.catchUp()
}
