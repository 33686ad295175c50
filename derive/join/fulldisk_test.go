package join_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// cursorLog is a log that may refuse cursors.
type cursorLog struct {
	*logtest.MemLog
	refuse func(consumer string, c *eventlog.Cursor) error
}

func (l *cursorLog) SetCursor(consumer string, c *eventlog.Cursor) error {
	if err := l.refuse(consumer, c); err != nil {
		return fmt.Errorf("set cursor: %w", err)
	}
	return l.MemLog.SetCursor(consumer, c)
}

// A disk that is too full for the cursors of a build delays nothing; what was
// held stays so until the main cursor holds it, and goes with a later build.
func TestFullDiskInABuild(t *testing.T) {
	const build, main = "derive/build", "derive"
	for name, tt := range map[string]struct {
		refused func(consumer string, c *eventlog.Cursor) bool
		held    bool // the build's cursor is there in the end
	}{
		"nothing":              {func(string, *eventlog.Cursor) bool { return false }, false},
		"the build's":          {func(n string, c *eventlog.Cursor) bool { return n == build && c != nil }, false},
		"the main one":         {func(n string, c *eventlog.Cursor) bool { return n == main }, true},
		"the end of the build": {func(n string, c *eventlog.Cursor) bool { return n == build && c == nil }, true},
		"all":                  {func(string, *eventlog.Cursor) bool { return true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &cursorLog{MemLog: logtest.Mem()}
			full, refusals := true, 0
			log.refuse = func(n string, c *eventlog.Cursor) error {
				if full && tt.refused(n, c) {
					refusals++
					return eventlog.ErrFull
				}
				return nil
			}
			w := newWorldOn(t, log)
			p, def := one(w, "p")
			q, _ := one(w, "q")
			second := join.Definition{Name: "w", Node: join.Node{Table: q.topic, Fields: []join.Field{{Name: "a", Column: "a"}}}}
			w.describe()
			tx := w.begin()
			tx.insert(p, 1, "x", "")
			tx.insert(q, 2, "y", "")
			tx.commit()
			w.snapshotDone()
			w.start(def)
			w.catchUp()
			if s := w.sink("v"); len(s.docs) != 1 || (refusals > 0) != (name != "nothing") {
				t.Errorf("sink %v, %d refusals", s.docs, refusals)
			}
			if c, ok := log.Cursors()[build]; ok != tt.held || ok && !slices.Equal(c.Topics, []eventlog.TopicID{p.id}) {
				t.Errorf("the build's cursor is %+v, %v", c, ok)
			}
			full = false
			w.stop()
			w.start(def, second)
			w.catchUp()
			if s := w.sink("w"); len(s.docs) != 1 {
				t.Errorf("sink of the second view %v", s.docs)
			}
			c, ok := log.Cursors()[build]
			if m := log.Cursors()[main]; ok || !slices.Equal(m.Topics, []eventlog.TopicID{p.id, q.id}) {
				t.Errorf("with space again the build's cursor is %+v, %v, the main one %+v", c, ok, m)
			}
		})
	}
}

// Another error of the log's is no full disk: the views stop.
func TestCursorOfABuildFails(t *testing.T) {
	boom := errors.New("boom")
	for _, setting := range []bool{true, false} {
		log := &cursorLog{MemLog: logtest.Mem()}
		log.refuse = func(n string, c *eventlog.Cursor) error {
			if n == "derive/build" && (c != nil) == setting {
				return boom
			}
			return nil
		}
		w := newWorldOn(t, log)
		_, def := one(w, "p")
		w.describe()
		w.snapshotDone()
		w.opts.Views = append(w.opts.Views, join.New(def))
		err := w.tryCatchUp()
		if !errors.Is(err, boom) {
			t.Errorf("setting %v: CatchUp = %v", setting, err)
		}
	}
}

// tryCatchUp opens a Runner and lets it do all it can.
func (w *world) tryCatchUp() error {
	w.t.Helper()
	r, err := derive.Open(w.opts)
	if err != nil {
		return err
	}
	w.runner = r
	return r.CatchUp(context.Background())
}
