package join_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// A transaction that comes in pieces is one state: nothing is output of a half
// of it, however small batches are, and a moved row takes over the values that
// its other half, in the piece before, had.
func TestPiecesAreOneState(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.opts.MaxBatchBytes = 1
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "kept", "")
	tx.commit()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	w.sink("v")
	tx = w.begin()
	tx.insert(p, 2, "first", "")
	tx.update(p, 2, "second", "")
	tx.move(p, p.key(rowOf([]any{1})), 3, change.UnchangedValue, "")
	csn := tx.commitStreamed(1)
	w.catchUp()
	got := []string{}
	for _, o := range w.sink("v").seen {
		got = append(got, fmt.Sprintf("%s %s", change.Key(o.key), o.doc))
		if o.csn != csn {
			t.Errorf("output at %d, the transaction is %d", o.csn, csn)
		}
	}
	want := []string{
		fmt.Sprint(p.key(rowOf([]any{1})), " "),
		fmt.Sprint(p.key(rowOf([]any{2})), ` {"a":"second"}`),
		fmt.Sprint(p.key(rowOf([]any{3})), ` {"a":"kept"}`),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outputs %q, want %q", got, want)
	}
}

// A build reads a large transaction in pieces over several commits and turns,
// between which the views go on.
func TestBuildInPieces(t *testing.T) {
	const n, size = 640, 64 << 10
	log := &watchedLog{MemLog: logtest.Mem(), watch: func() {}}
	w := newWorldOn(t, log)
	p, def := one(w, "p")
	q, _ := one(w, "q")
	large := join.Definition{Name: "large", Node: join.Node{Table: q.topic, Fields: []join.Field{{Name: "a", Column: "a"}, {Name: "b", Column: "b"}}}}
	w.describe()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	tx := w.begin()
	for i := range n {
		tx.insert(q, i, "old", strings.Repeat("b", size))
	}
	tx.commitStreamed(16)
	w.catchUp()
	w.stop()
	w.start(def, large)
	reads, between := 0, false
	log.watch = func() {
		reads++
		between = between || w.stats("v").Documents > 0 && w.stats("large").State == derive.StateBuilding
		if reads%4 != 0 || reads > n/16 {
			return
		}
		tx := w.begin()
		tx.insert(p, reads, "x", "")
		tx.update(q, n-reads, "new", "short")
		tx.commit()
	}
	w.catchUp()
	if !between {
		t.Error("the views did not go on between the pieces")
	}
	docs := w.dump("large")
	for i := range n {
		id, want := string(q.key(rowOf([]any{i}))), fmt.Sprintf(`{"a":"old","b":"%s"}`, strings.Repeat("b", size))
		if k := n - i; k%4 == 0 && k <= n/16 {
			want = `{"a":"new","b":"short"}`
		}
		if docs[id] != want {
			t.Fatalf("document %q is %.40s of %d bytes, want %.40s", id, docs[id], len(docs[id]), want)
		}
	}
	if len(docs) != n {
		t.Errorf("%d documents of %d", len(docs), n)
	}
}
