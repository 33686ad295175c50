package join_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// damagedView is a world of the views v and w, each with 20 documents, whose log
// has a flipped bit in each partition of v's topic. Nothing runs.
func damagedView(t *testing.T) (*world, *table) {
	t.Helper()
	disk := vfs.NewMem()
	log, err := seglog.Open("log", seglog.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, log)
	p, def := one(w, "p")
	q, _ := one(w, "q")
	other := join.Definition{Name: "w", Node: join.Node{Table: q.topic, Fields: []join.Field{{Name: "a", Column: "a"}}}}
	w.describe()
	tx := w.begin()
	for i := range 20 {
		tx.insert(p, i, "x", "")
		tx.insert(q, i, "y", "")
	}
	tx.commit()
	w.snapshotDone()
	w.start(def, other)
	w.catchUp()
	w.stop()
	if err := errors.Join(log.SealAll(t.Context()), log.Close()); err != nil {
		t.Fatal(err)
	}
	for name := range disk.Files() {
		if strings.Contains(name, "view.v/") && strings.HasSuffix(name, ".seg") {
			disk.Flip(name, 8*80)
		}
	}
	if log, err = seglog.Open("log", seglog.Options{FS: disk}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	w.log, w.opts.Log = log, log
	return w, p
}

// run lets the Runner work until stop, which returns what Run returned.
func (w *world) run() (stop func() error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.runner.Run(ctx) }()
	return func() error { cancel(); return <-ran }
}

// hold registers a cursor on a view's topic.
func (w *world) hold(name, view string, rebuilds bool) {
	w.t.Helper()
	top, _ := w.log.Topic(change.TopicView + view)
	if err := w.log.SetCursor(name, &eventlog.Cursor{Topics: []eventlog.TopicID{top.ID}, Passed: w.log.Frontier(), Rebuilds: rebuilds}); err != nil {
		w.t.Fatal(err)
	}
}

// newestOf returns the newest documents of a view's topic.
func (w *world) newestOf(view string) map[string]string {
	w.t.Helper()
	delete(w.sinks, view)
	return maps.Clone(w.sink(view).docs)
}

// A view without state whose topic is damaged waits with the way out, and others
// go on. Asked to, it outputs everything, and takes back what is no more.
func TestDamagedTopicOfAViewWithoutState(t *testing.T) {
	w, p := damagedView(t)
	if err := os.RemoveAll(w.opts.StateDir); err != nil {
		t.Fatal(err)
	}
	tx := w.begin()
	tx.delete(p, 3)
	tx.commit()
	r, err := derive.Open(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	w.runner = r
	w.catchUp()
	if s := w.stats("w"); s.State != derive.StateLive || s.Documents != 20 {
		t.Errorf("the other view: %+v", s)
	}
	if s := w.stats("v"); s.State != derive.StateStopped || !strings.Contains(s.Reason, "tailwater view rebuild v") {
		t.Errorf("the view of the damaged topic: %+v", s)
	}
	w.hold("sink/x/v", "v", true)
	stop := w.run()
	damaged, err := r.Refill(t.Context(), "v")
	if !damaged || err != nil {
		t.Errorf("Refill = %v, %v", damaged, err)
	}
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if c := w.log.Cursors()["sink/x/v"]; !c.LetGo {
		t.Errorf("the cursor of a sink is %+v", c)
	}
	w.stop()
	if w.runner, err = derive.Open(w.opts); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	if s := w.stats("v"); s.State != derive.StateLive || s.Documents != 19 {
		t.Errorf("mended: %+v", s)
	}
	if docs := w.newestOf("v"); len(docs) != 19 || docs[string(p.key(rowOf([]any{3})))] != "" {
		t.Errorf("the topic has %d documents: %v", len(docs), docs)
	}
}

// asideLog is a log without space to set anything aside.
type asideLog struct {
	eventlog.Log
	asked chan struct{} // closed at the first try
	once  sync.Once
}

func (l *asideLog) SetAside(context.Context, eventlog.TopicID, []eventlog.Offset) (int, error) {
	l.once.Do(func() { close(l.asked) })
	return 0, eventlog.ErrFull
}

// Mending waits for space. A stop meanwhile is a stop like any other, and the next
// Runner goes on with it. One that is closed mends nothing, and says so.
func TestRefillIsCutShort(t *testing.T) {
	w, p := damagedView(t)
	log := w.log
	aside := &asideLog{Log: log, asked: make(chan struct{})}
	w.opts.Log = aside
	r, err := derive.Open(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	w.runner = r
	stop := w.run()
	asked := make(chan error, 1)
	go func() {
		_, err := r.Refill(context.Background(), "v")
		asked <- err
	}()
	<-aside.asked
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("Refill = %v", err)
	}
	w.stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Refill(ctx, "v"); !errors.Is(err, derive.ErrNotReady) {
		t.Errorf("Refill of a closed Runner = %v", err)
	}
	w.opts.Log = log
	if r, err = derive.Open(w.opts); err != nil {
		t.Fatal(err)
	}
	w.runner = r
	w.catchUp()
	if docs := w.newestOf("v"); len(docs) != 20 || docs[string(p.key(rowOf([]any{3})))] == "" {
		t.Errorf("the topic has %d documents: %v", len(docs), fmt.Sprint(docs))
	}
}

// letGoLog tells what it is asked to let go, and may refuse.
type letGoLog struct {
	eventlog.Log
	letGo func(topic eventlog.TopicID) error
}

func (l *letGoLog) LetGoAll(topic eventlog.TopicID) error {
	if err := l.letGo(topic); err != nil {
		return err
	}
	return l.Log.LetGoAll(topic)
}

// V29: who reads a mended topic may lack deletes that were lost with the damage. It
// begins anew, once all documents are there again, and also if the process ends
// before it was told so.
func TestRefillMakesConsumersBeginAnew(t *testing.T) {
	w, _ := damagedView(t)
	w.hold("sink/x/v", "v", true)
	w.hold("other", "v", false)
	w.hold("sink/x/w", "w", true)
	boom, docs := errors.New("boom"), 0
	log := &letGoLog{Log: w.log}
	log.letGo = func(eventlog.TopicID) error {
		docs = 0
		top, _ := w.log.Topic(change.TopicView + "v")
		err := w.log.NewestByKey(top.ID, func(_ []byte, _ eventlog.CSN, tombstone bool) error {
			if !tombstone {
				docs++
			}
			return nil
		})
		return errors.Join(boom, err)
	}
	w.opts.Log, w.opts.DrainRoots = log, 1
	r, err := derive.Open(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	w.runner = r
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	if damaged, err := r.Refill(t.Context(), "v"); !damaged || err != nil {
		t.Errorf("Refill = %v, %v", damaged, err)
	}
	if err := <-ran; !errors.Is(err, boom) || docs != 20 {
		t.Errorf("Run = %v, when %d documents of 20 were there", err, docs)
	}
	w.stop()
	log.letGo = func(eventlog.TopicID) error { return nil }
	if w.runner, err = derive.Open(w.opts); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	letGo := func() (names []string) {
		for name, c := range w.log.Cursors() {
			if c.LetGo {
				names = append(names, name)
			}
		}
		return names
	}
	if names := letGo(); fmt.Sprint(names) != "[sink/x/v]" {
		t.Errorf("%q must begin anew", names)
	}
	if err := w.log.SetCursor("sink/x/v", nil); err != nil {
		t.Fatal(err)
	}
	w.hold("sink/x/v", "v", true)
	w.stop()
	if w.runner, err = derive.Open(w.opts); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	if names := letGo(); names != nil {
		t.Errorf("%q must begin anew once more", names)
	}
}
