package join_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// one is a view of one table.
func one(w *world, name string) (*table, join.Definition) {
	tb := w.table(name, 1, col(1, "id", change.KindInt), col(2, "a", change.KindText), col(3, "b", change.KindText))
	return tb, join.Definition{Name: "v", Node: join.Node{Table: tb.topic, Fields: []join.Field{{Name: "a", Column: "a"}}}}
}

func (w *world) keepState(to string) {
	w.stop()
	if err := os.CopyFS(to, os.DirFS(w.opts.StateDir)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) bringBack(from string) {
	w.stop()
	if err := os.RemoveAll(w.opts.StateDir); err != nil {
		w.t.Fatal(err)
	}
	if err := os.CopyFS(w.opts.StateDir, os.DirFS(from)); err != nil {
		w.t.Fatal(err)
	}
}

// V24: outputs reached the log, the commit did not, and the row went back to
// what the state remembers (or is gone again): the sink must hear of it, and of
// nothing below the highest version it has.
func TestV24OutputsBeyondTheCommittedState(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "")
	tx.commit()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	w.keepState(w.dir + "/old")
	w.start(def)
	tx = w.begin()
	tx.update(p, 1, "y", "")
	tx.insert(p, 2, "new", "")
	first := tx.commit()
	w.catchUp()
	if s := w.sink("v"); len(s.docs) != 2 {
		t.Fatalf("sink %v", s.docs)
	}
	w.bringBack(w.dir + "/old")
	tx = w.begin()
	tx.update(p, 1, "x", "")
	tx.delete(p, 2)
	tx.commit()
	w.opts.MaxBatchTx = 1
	w.start(def)
	if st := w.stats("v"); st.Pending != 2 || st.CompleteCSN >= first {
		t.Fatalf("after the crash: %+v", st)
	}
	w.catchUp()
	s := w.sink("v")
	if len(s.docs) != 1 || s.docs[string(p.key(rowOf([]any{1})))] != `{"a":"x"}` {
		t.Fatalf("sink %v", s.docs)
	}
	for _, o := range s.seen {
		if o.csn < first {
			t.Errorf("output at %d, below %d", o.csn, first)
		}
	}
}

// V28: the new definition has fewer documents; equal ones are not sent again.
func TestV28SwitchOfADefinition(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "keep")
	tx.insert(p, 2, "y", "lose")
	tx.insert(p, 3, "z", "keep")
	tx.commit()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	if s := w.sink("v"); len(s.docs) != 3 {
		t.Fatalf("sink %v", s.docs)
	}
	w.stop()
	changed := def
	changed.Where = "b = 'keep'" // needs a column that the image does not have
	r := w.start(changed)
	if d, ok, err := r.Get("v", "2"); err != nil || !ok || string(d.JSON) != `{"a":"y"}` {
		t.Fatalf("before the switch the old definition serves: %s %v %v", d.JSON, ok, err)
	}
	if st := w.stats("v"); st.State != derive.StateBuilding || !st.Switching || st.Info.Fingerprint != st.Fingerprint {
		t.Fatalf("before the switch: %+v", st)
	}
	w.catchUp()
	s := w.sink("v")
	if len(s.seen) != 1 || s.seen[0].doc != "" || len(s.docs) != 2 {
		t.Fatalf("outputs of the switch %+v", s.seen)
	}
	if st := w.stats("v"); st.State != derive.StateLive || st.Documents != 2 || st.Switching || st.CompleteCSN != w.log.Frontier() {
		t.Fatalf("stats %+v", st)
	}
	if _, ok, err := r.Get("v", "2"); ok || err != nil {
		t.Fatalf("document of the old definition: %v %v", ok, err)
	}
}

// A switch in the middle of which the daemon dies goes on; readers see the old definition until it ends.
func TestSwitchIsResumed(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	for i := range 50 {
		tx.insert(p, i, "x", "y")
	}
	tx.commit()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	w.stop()
	changed := def
	changed.Fields = []join.Field{{Name: "b", Column: "b"}}
	w.opts.DrainRoots = 1
	r := w.start(changed)
	boom, appends := errors.New("boom"), 0
	w.mem.FailAppend = func() error {
		if appends++; appends > 20 {
			return boom
		}
		return nil
	}
	if err := r.CatchUp(context.Background()); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	w.mem.FailAppend = nil
	if st := w.stats("v"); !st.Switching || st.CompleteCSN != 0 {
		t.Fatalf("stats %+v", st)
	}
	w.stop()
	r = w.start(changed)
	if st := w.stats("v"); !st.Switching {
		t.Fatalf("after the restart: %+v", st)
	}
	if d, _, err := r.Get("v", "3"); err != nil || string(d.JSON) != `{"a":"x"}` {
		t.Fatalf("%s %v", d.JSON, err)
	}
	w.catchUp()
	s := w.sink("v")
	for k, doc := range s.docs {
		if doc != `{"b":"y"}` {
			t.Errorf("%s is %s", change.Key(k), doc)
		}
	}
	if len(s.versions) != 50 || len(s.seen) != 100 {
		t.Errorf("%d outputs of %d documents", len(s.seen), len(s.versions))
	}
}

func TestViewsAddedAndRemoved(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "b")
	tx.commit()
	w.snapshotDone()
	second := def
	second.Name, second.Fields = "w", nil
	w.start(def)
	w.catchUp()
	w.stop()
	w.start(def, second)
	w.catchUp()
	if got := w.dump("w"); len(got) != 1 || w.stats("v").State != derive.StateLive {
		t.Fatalf("added view %v", got)
	}
	w.stop()
	w.start(second)
	tx = w.begin()
	tx.update(p, 1, "x2", "b")
	tx.insert(p, 2, "y", "b")
	tx.commit()
	w.catchUp()
	w.stop()
	w.start(def, second) // v missed changes while it was not asked for
	w.catchUp()
	if s := w.sink("v"); len(s.docs) != 2 || s.docs[string(p.key(rowOf([]any{1})))] != `{"a":"x2"}` {
		t.Fatalf("view asked for again: %v", s.docs)
	}
	w.stop()
	r := w.start(second)
	if got := r.Unused(); len(got) != 1 || got[0] != "v" {
		t.Fatalf("unused %v", got)
	}
	names, err := r.DropUnused()
	if err != nil || len(names) != 1 || names[0] != "v" {
		t.Fatalf("dropped %v, %v", names, err)
	}
	if _, _, err := r.Get("v", "1"); !errors.Is(err, derive.ErrUnknownView) {
		t.Fatal(err)
	}
}

func TestLayoutChanges(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	other, def2 := one(w, "q")
	def2.Name = "other"
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "b")
	tx.insert(other, 1, "o", "b")
	tx.commit()
	w.snapshotDone()
	r := w.start(def, def2)
	w.catchUp()

	relayout := func(columns ...change.Column) *txn {
		s := *p.schema
		s.ID++
		s.Columns = columns
		p.schema = &s
		tx := w.begin()
		tx.schema(p)
		return tx
	}
	id, a, b, c := p.schema.Columns[0], p.schema.Columns[1], p.schema.Columns[2], col(4, "c", change.KindInt)
	tx = relayout(id, a, b, c)
	tx.update(p, 1, "x1", "b", 5)
	tx.commit()
	w.catchUp()
	if d, _, err := r.Get("v", "1"); err != nil || string(d.JSON) != `{"a":"x1"}` {
		t.Fatalf("column added: %s %v", d.JSON, err)
	}
	a.Name = "renamed"
	tx = relayout(id, a, b, c)
	tx.update(p, 1, "x2", "b", 5)
	tx.commit()
	w.catchUp()
	w.stop()
	r = w.start(def, def2) // the same definition goes on by the column's number
	w.catchUp()
	if d, _, err := r.Get("v", "1"); err != nil || string(d.JSON) != `{"a":"x2"}` {
		t.Fatalf("column renamed: %s %v", d.JSON, err)
	}
	tx = relayout(id, b, c)
	tx.update(p, 1, "b", 6)
	tx.update(other, 1, "o2", "b")
	tx.commit()
	w.catchUp()
	if st := w.stats("v"); st.State != derive.StateStopped || !strings.Contains(st.Reason, "dropped") {
		t.Fatalf("column dropped: %+v", st)
	}
	if _, _, err := r.Get("v", "1"); !errors.Is(err, derive.ErrNotReady) {
		t.Fatal(err)
	}
	if d, _, err := r.Get("other", "1"); err != nil || string(d.JSON) != `{"a":"o2"}` {
		t.Fatalf("the other view: %s %v", d.JSON, err)
	}
	w.stop()
	def.Fields = []join.Field{{Name: "b", Column: "b"}}
	r = w.start(def, def2)
	w.catchUp()
	if d, _, err := r.Get("v", "1"); err != nil || string(d.JSON) != `{"b":"b"}` {
		t.Fatalf("mended: %s %v", d.JSON, err)
	}
	if s := w.sink("v"); s.docs[string(p.key(rowOf([]any{1, "", nil})))] != `{"b":"b"}` {
		t.Fatalf("sink %v", s.docs)
	}
}

func TestTablesCapturedLater(t *testing.T) {
	w := newWorld(t)
	topic := "db.public.late"
	def := join.Definition{Name: "v", Node: join.Node{Table: topic, Fields: []join.Field{{Name: "a", Column: "a"}}}}
	w.start(def)
	w.catchUp()
	if st := w.stats("v"); st.State != derive.StateWaiting || !strings.Contains(st.Reason, topic) {
		t.Fatalf("%+v", st)
	}
	p, _ := one(w, "late")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "b")
	tx.commit()
	w.snapshotDone()
	w.catchUp()
	if st := w.stats("v"); st.State != derive.StateLive || st.Documents != 1 {
		t.Fatalf("%+v", st)
	}
}

func TestReadOnly(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "b")
	tx.insert(p, -2, "y", "b")
	tx.commit()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	version := w.sink("v").versions[string(p.key(rowOf([]any{1})))]
	w.stop()
	r, err := derive.OpenReadOnly(w.opts.StateDir, join.Restore)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d, ok, err := r.Get("v", "1")
	if err != nil || !ok || string(d.JSON) != `{"a":"x"}` || eventlog.CSN(d.Version) != version {
		t.Errorf("%s at %d, %v %v", d.JSON, d.Version, ok, err)
	}
	if d, ok, err = r.Get("v", "-2"); err != nil || !ok || d.ID != "-2" {
		t.Errorf("%+v %v %v", d, ok, err)
	}
	if st := r.Stats(); len(st) != 1 || st[0].State != derive.StateLive || st[0].Documents != 2 {
		t.Errorf("%+v", st)
	}
}

func TestStateAheadOfTheLog(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	tx := w.begin()
	tx.insert(p, 1, "x", "b")
	tx.commit()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	w.stop()
	if err := derive.CheckState(w.opts.StateDir, w.log); err != nil {
		t.Fatalf("its own log: %v", err)
	}
	if err := derive.CheckState(w.opts.StateDir+"/none", w.log); err != nil {
		t.Fatalf("no state: %v", err)
	}
	if err := derive.CheckState(w.opts.StateDir, &shortLog{w.log}); !errors.Is(err, derive.ErrStateAhead) {
		t.Fatalf("a log that lost its end: %v", err)
	}
	other := newWorld(t)
	if err := derive.CheckState(w.opts.StateDir, other.log); !errors.Is(err, derive.ErrStateAhead) {
		t.Fatalf("another log: %v", err)
	}
	w.opts.Log = other.log
	if _, err := derive.Open(w.opts); !errors.Is(err, derive.ErrStateAhead) {
		t.Fatalf("another log: %v", err)
	}
}

// shortLog has lost its last transaction.
type shortLog struct{ eventlog.Log }

func (l *shortLog) Frontier() eventlog.CSN { return l.Log.Frontier() - 1 }

// Readers go on while the views run; each document is one that the view had.
func TestReadersBesideRun(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	w.snapshotDone()
	r := w.start(def)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	for i := range 100 {
		tx := w.begin()
		tx.update(p, i%7, "x", "b")
		end := tx.commit()
		for w.stats("v").CompleteCSN < end {
			changed := w.log.Changed()
			if w.stats("v").CompleteCSN >= end {
				break
			}
			if w.stats("v").State == derive.StateLive && i > 0 {
				if err := r.Dump("v", func(d derive.Doc) error {
					if string(d.JSON) != `{"a":"x"}` {
						t.Errorf("%s", d.JSON)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-changed:
			default:
			}
		}
	}
	cancel()
	wg.Wait()
}

// A full disk keeps the outputs waiting; nothing is lost.
func TestAppendFails(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	w.snapshotDone()
	w.start(def)
	w.catchUp()
	tx := w.begin()
	tx.update(p, 1, "x", "b")
	tx.commit()
	boom := errors.New("boom")
	w.mem.FailAppend = func() error { return boom }
	if err := w.runner.CatchUp(context.Background()); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	w.mem.FailAppend = nil
	w.stop()
	w.start(def)
	w.catchUp()
	if s := w.sink("v"); len(s.docs) != 1 {
		t.Fatalf("%v", s.docs)
	}
}

// fullMarks is a log on a full disk: what is small no longer fits either.
type fullMarks struct{ *logtest.MemLog }

func (fullMarks) SaveCheckpoint(string, eventlog.Checkpoint) error {
	return fmt.Errorf("save: %w", eventlog.ErrFull)
}

// A full disk delays the views' cursor and nothing else (C8).
func TestFullDiskDelaysTheCursor(t *testing.T) {
	w := newWorld(t)
	p, def := one(w, "p")
	w.describe()
	w.snapshotDone()
	w.opts.Log, w.opts.SyncEvery = fullMarks{w.mem}, 1
	w.start(def)
	tx := w.begin()
	tx.insert(p, 1, "x", "")
	tx.commit()
	w.catchUp()
	if s := w.sink("v"); len(s.docs) != 1 {
		t.Errorf("sink %v", s.docs)
	}
}
