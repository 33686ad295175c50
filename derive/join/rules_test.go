package join_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// The scripts of rules and acceptance tests under the names of the tables that list them.

func TestV10FloorHoldsOutputs(t *testing.T)   { runScript(t, "testdata/v10_floor.txt") }
func TestV26UnfilledIsHeld(t *testing.T)      { runScript(t, "testdata/v26_unfilled.txt") }
func TestAT21SameKeyJoin(t *testing.T)        { runScript(t, "testdata/at21_same_key.txt") }
func TestAT22ForeignKeyJoin(t *testing.T)     { runScript(t, "testdata/at22_foreign_key.txt") }
func TestAT25NestedDocuments(t *testing.T)    { runScript(t, "testdata/at25_nested.txt") }
func TestToastValueSurvivesMove(t *testing.T) { runScript(t, "testdata/toast_move.txt") }

// V10, for readers: while a table is read anew they see the documents as they
// were before, also those whose rows changed meanwhile.
func TestV10ReadersSeeTheOldDocuments(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "b")
	tx.commit()
	w.snapshotDone()
	r := w.start(def)
	w.catchUp()
	before := w.stats("v").CompleteCSN
	tx = w.begin()
	tx.mark(p, 2, change.SnapshotBegun)
	begun := tx.commit()
	tx = w.begin()
	tx.put(p, change.OpRead, change.FlagSnapshot, 1, "y", "b")
	tx.put(p, change.OpRead, change.FlagSnapshot, 2, "z", "b")
	tx.commit()
	w.catchUp()
	st := w.stats("v")
	if st.State != derive.StateHeld || st.CompleteCSN < before || st.CompleteCSN >= begun {
		t.Fatalf("%+v", st)
	}
	if d, ok, err := r.Get("v", "1"); err != nil || !ok || string(d.JSON) != `{"a":"x"}` || uint64(begun) <= d.Version {
		t.Fatalf("%s at %d, %v %v", d.JSON, d.Version, ok, err)
	}
	if got := w.dump("v"); len(got) != 1 {
		t.Fatalf("dump %v", got)
	}
	w.stop() // what was before is gone with the process: no document rather than a mixed one
	r = w.start(def)
	w.catchUp()
	if _, _, err := r.Get("v", "1"); !errors.Is(err, derive.ErrNotReady) {
		t.Fatal(err)
	}
	tx = w.begin()
	tx.mark(p, 2, change.SnapshotDone)
	tx.commit()
	w.catchUp()
	if d, _, err := r.Get("v", "1"); err != nil || string(d.JSON) != `{"a":"y"}` {
		t.Fatalf("%s %v", d.JSON, err)
	}
	if s := w.sink("v"); len(s.docs) != 2 {
		t.Fatalf("%v", s.docs)
	}
}

// A row that many documents show: the change of another row does not wait behind
// it, each document is sent once, and complete tells when all are.
func TestHotParentDoesNotBlock(t *testing.T) {
	w, brands, products, reviews, def := shop(t)
	fill(w, brands, products, reviews, 2000)
	w.opts.InlineLimit, w.opts.DrainRoots, w.opts.MaxBatchTx = 5, 5, 1
	w.start(def)
	w.catchUp()
	w.sink("search")
	tx := w.begin()
	tx.update(brands, 3, "renamed")
	hot := tx.commit()
	tx = w.begin()
	tx.update(products, 1, "other", 1, "b")
	other := tx.commit()
	w.catchUp()
	s := w.sink("search")
	seen := map[string]int{}
	place := 0
	for i, o := range s.seen {
		if seen[o.key]++; seen[o.key] > 1 {
			t.Errorf("%s is sent again", change.Key(o.key))
		}
		if o.key == string(products.key(rowOf([]any{1}))) {
			place = i + 1
			if o.csn != other {
				t.Errorf("the other document has version %d, not %d", o.csn, other)
			}
		}
	}
	if len(s.seen) != 21 || place == 0 || place > 12 {
		t.Errorf("%d documents, the other one is number %d", len(s.seen), place)
	}
	if st := w.stats("search"); st.CompleteCSN < hot || st.Pending != 0 {
		t.Errorf("%+v", st)
	}
}

// watchedLog calls watch before each transaction that is read from it.
type watchedLog struct {
	*logtest.MemLog
	watch func()
}

func (l *watchedLog) Read(spec eventlog.ReadSpec) (eventlog.Reader, error) {
	r, err := l.MemLog.Read(spec)
	return &watchedReader{r, l.watch}, err
}

type watchedReader struct {
	eventlog.Reader
	watch func()
}

func (r *watchedReader) Next() (*eventlog.Tx, error) {
	r.watch()
	return r.Reader.Next()
}

// V21: the state is at the order's first version and its payment is yet to come;
// compaction removed the version of the payment. The order must not be output
// with the payment and a status that it did not have then.
func TestV21NothingIsOutputBelowTheHorizon(t *testing.T) {
	t.Run("compacted while it was down", func(t *testing.T) { testBelowHorizon(t, true) })
	t.Run("compacted while it reads", func(t *testing.T) { testBelowHorizon(t, false) })
}

func testBelowHorizon(t *testing.T, down bool) {
	w := newWorld(t)
	orders := w.table("orders", 1, col(1, "id", change.KindInt), col(2, "status", change.KindText))
	payments := w.table("payments", 1, col(1, "id", change.KindInt), col(2, "order_id", change.KindInt))
	def := join.Definition{Name: "v", Node: join.Node{
		Table: orders.topic, Fields: []join.Field{{Name: "status", Column: "status"}},
		Nest: []join.Relation{{Name: "payments", Kind: join.HasMany, By: []join.By{{Column: "order_id"}},
			Node: join.Node{Table: payments.topic, Fields: []join.Field{{Name: "id", Column: "id"}}}}},
	}}
	w.describe()
	tx := w.begin()
	tx.insert(orders, 1, "new")
	tx.commit()
	w.snapshotDone()
	var watch func()
	w.opts.Log = &watchedLog{w.mem, func() { watch() }}
	watch = func() {}
	w.opts.MaxBatchTx = 1
	r := w.start(def)
	w.catchUp()
	w.sink("v")
	before := w.stats("v").CompleteCSN

	tx = w.begin()
	tx.update(orders, 1, "paid")
	tx.insert(payments, 1, 1)
	tx.commit()
	for i := range 5 { // what comes between the payment and the horizon, in steps of its own
		tx = w.begin()
		tx.insert(orders, 2+i, "other")
		tx.commit()
	}
	tx = w.begin()
	tx.update(orders, 1, "shipped")
	shipped := tx.commit()
	looked := 0
	look := func() {
		st := r.Stats()[0]
		if st.Applied >= shipped {
			return
		}
		if looked++; looked == 1 && !down {
			w.mem.Compact(orders.id)
			return
		}
		if st.CompleteCSN > before || st.State == derive.StateLive {
			t.Errorf("at %d, below the horizon %d: %+v", st.Applied, shipped, st)
		}
		d, ok, err := r.Get("v", "1")
		switch {
		case down && !errors.Is(err, derive.ErrNotReady): // what it was before is not known to be exact
			t.Errorf("at %d readers see %s, %v", st.Applied, d.JSON, err)
		case !down && (err != nil || !ok || string(d.JSON) != `{"status":"new","payments":[]}`):
			t.Errorf("at %d readers see %s, %v", st.Applied, d.JSON, err)
		}
	}
	if down {
		w.stop()
		w.mem.Compact(orders.id)
		r = w.start(def)
	}
	watch = look
	w.catchUp()
	if looked < 6 {
		t.Errorf("looked %d times below the horizon: the test tests nothing", looked)
	}
	for _, o := range w.sink("v").seen {
		if o.csn < shipped {
			t.Errorf("output %s at %d, below the horizon %d", o.doc, o.csn, shipped)
		}
	}
	if d, _, err := r.Get("v", "1"); err != nil || string(d.JSON) != `{"status":"shipped","payments":[{"id":1}]}` {
		t.Errorf("in the end %s, %v", d.JSON, err)
	}
	if st := w.stats("v"); st.CompleteCSN < shipped || st.State != derive.StateLive {
		t.Errorf("in the end %+v", st)
	}
}

// V22: the log may drop tombstones that a cursor has passed, so only what would
// survive a power loss counts.
func TestV22OnlySyncedStateIsPassed(t *testing.T) {
	w := newWorld(t)
	orders := w.table("orders", 1, col(1, "id", change.KindInt), col(2, "status", change.KindText))
	def := join.Definition{Name: "v", Node: join.Node{Table: orders.topic, Fields: []join.Field{{Name: "status", Column: "status"}}}}
	passed := func() eventlog.CSN {
		var max eventlog.CSN
		for _, c := range w.mem.Cursors() {
			if c.Passed > max {
				max = c.Passed
			}
		}
		return max
	}
	other := w.table("other", 1, col(1, "id", change.KindInt))
	second := join.Definition{Name: "w", Node: join.Node{Table: other.topic, Fields: []join.Field{{Name: "id", Column: "id"}}}}
	w.describe()
	tx := w.begin()
	tx.insert(orders, 1, "new")
	tx.commit()
	w.snapshotDone()
	sync := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := w.runner.Run(ctx); err != nil { // the end of Run syncs, nothing else here does
			t.Fatal(err)
		}
	}
	w.start(def)
	w.catchUp()
	sync()
	synced := passed()
	if synced == 0 {
		t.Fatal("a state that was synced counts for nothing")
	}
	for n := range 3 {
		tx = w.begin()
		tx.insert(orders, 2+n, "more")
		last := tx.commit()
		w.catchUp()
		if st := w.stats("v"); st.Applied < last {
			t.Fatalf("applied is %d, want %d", st.Applied, last)
		}
		if got := passed(); got != synced {
			t.Errorf("the cursor is at %d, synced was %d", got, synced)
		}
		w.stop() // the process ends, the system does not
		w.start(def)
		w.catchUp()
		if got := passed(); got != synced {
			t.Errorf("after a restart the cursor is at %d, synced was %d", got, synced)
		}
	}
	w.stop()
	w.start(def, second) // the cursor is to hold another table too
	w.catchUp()
	if got := passed(); got != synced {
		t.Errorf("with another table the cursor is at %d, synced was %d", got, synced)
	}
	sync()
	if got := passed(); got <= synced {
		t.Errorf("after a sync the cursor is at %d, as before", got)
	}
}
