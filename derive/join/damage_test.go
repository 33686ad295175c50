package join_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// twoViews is a world of the views v and w over a table each, on a disk that can be damaged.
type twoViews struct {
	*world
	disk *vfs.Mem
	seg  *seglog.Log
	p    *table
	defs []join.Definition
}

func newTwoViews(t *testing.T) *twoViews {
	t.Helper()
	x := &twoViews{disk: vfs.NewMem()}
	var err error
	if x.seg, err = seglog.Open("log", seglog.Options{FS: x.disk}); err != nil {
		t.Fatal(err)
	}
	x.world = newWorldOn(t, x.seg)
	p, def := one(x.world, "p")
	q, _ := one(x.world, "q")
	x.p, x.defs = p, []join.Definition{def, {Name: "w", Node: join.Node{Table: q.topic, Fields: []join.Field{{Name: "a", Column: "a"}}}}}
	x.describe()
	tx := x.begin()
	for i := range 20 {
		tx.insert(p, i, "x", "")
		tx.insert(q, i, "y", "")
	}
	tx.commit()
	x.snapshotDone()
	return x
}

// reopen closes the log after sealing, damages the segments that match, and opens it again.
func (x *twoViews) reopen(match func(name string) bool) {
	x.t.Helper()
	if err := errors.Join(x.seg.SealAll(x.t.Context()), x.seg.Close()); err != nil {
		x.t.Fatal(err)
	}
	n := 0
	for name := range x.disk.Files() {
		if strings.HasSuffix(name, ".seg") && match(name) {
			x.disk.Flip(name, 8*80)
			n++
		}
	}
	if n == 0 {
		x.t.Fatal("nothing to damage")
	}
	var err error
	if x.seg, err = seglog.Open("log", seglog.Options{FS: x.disk}); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { x.seg.Close() })
	x.log, x.opts.Log = x.seg, x.seg
}

// TestDamagedTableLeavesOthersAlone: images that are built from a damaged topic
// wait; those of other tables, planned with it, are built.
func TestDamagedTableLeavesOthersAlone(t *testing.T) {
	x := newTwoViews(t)
	x.reopen(func(name string) bool { return strings.Contains(name, "public.p/") })
	x.start(x.defs...)
	x.catchUp()
	if s := x.stats("w"); s.State != derive.StateLive || s.Documents != 20 {
		t.Errorf("the view of the other table: %+v", s)
	}
	if s := x.stats("v"); s.State != derive.StateWaiting || !strings.Contains(s.Reason, "tailwater log check") {
		t.Errorf("the view of the damaged table: %+v", s)
	}
	x.stop()
}

// TestDamageBehindTheState: the state is older than the end of its view's topic,
// which is damaged: what was output there is not known, so all is output again.
func TestDamageBehindTheState(t *testing.T) {
	x := newTwoViews(t)
	x.start(x.defs...)
	x.catchUp()
	x.stop()
	before := map[string]bool{}
	if err := x.seg.SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name := range x.disk.Files() {
		before[name] = true
	}
	old := t.TempDir()
	if err := os.CopyFS(old+"/state", os.DirFS(x.opts.StateDir)); err != nil {
		t.Fatal(err)
	}
	tx := x.begin()
	tx.insert(x.p, 50, "new", "")
	tx.delete(x.p, 4)
	for i := range 3 {
		tx.update(x.p, i, "changed", "")
	}
	tx.commit()
	x.start(x.defs...)
	x.catchUp()
	x.stop()
	tx = x.begin()
	tx.delete(x.p, 50) // its document is known to the damaged part alone
	tx.commit()
	x.opts.StateDir = old + "/state"
	x.reopen(func(name string) bool { return strings.Contains(name, "view.v/") && !before[name] })
	x.start(x.defs...)
	x.catchUp()
	top, _ := x.log.Topic("view.v")
	if err := x.log.SealedDamage(t.Context(), top.ID); err != nil {
		t.Errorf("SealedDamage = %v", err)
	}
	if s := x.stats("v"); s.State != derive.StateLive || s.Documents != 19 {
		t.Errorf("%+v", s)
	}
	docs := x.newestOf("v")
	if len(docs) != 19 || docs[string(x.p.key(rowOf([]any{4})))] != "" || !strings.Contains(docs[string(x.p.key(rowOf([]any{1})))], "changed") {
		t.Errorf("the topic has %d documents: %v", len(docs), docs)
	}
	x.stop()
}
