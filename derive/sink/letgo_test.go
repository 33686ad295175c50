package sink

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// letGo has a target with documents 1, 2 and 7 that refuses writes while stuck
// is set, and a log that then loses the delete of 7, of that age, for want of space.
func letGo(t *testing.T, running bool, age time.Duration) (l *viewLog, f *fakeSink, r *runner) {
	l, f = newViewLog(t), newFakeSink()
	var stuck atomic.Bool
	f.before = func([]Update) error {
		if stuck.Load() {
			return errors.New("target is down")
		}
		return nil
	}
	l.output(1, doc(1), 2, doc(2), 7, doc(7))
	r = start(t, l, f)
	r.sync()
	if running {
		stuck.Store(true)
	} else {
		r.stop()
	}
	l.output(1, doc(10))
	synctest.Wait() // it tries to write that, and has not read on
	l.output(7, "")
	l.output(2, doc(20))
	l.crowd(age)
	stuck.Store(false)
	return l, f, r
}

// A sink whose cursor the log let go is built anew, and what was deleted
// meanwhile is swept: whether it runs, is started later or is killed on the way.
func TestLetGoIsBuiltAnew(t *testing.T) {
	for _, name := range []string{"running", "stopped", "killed"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, f, r := letGo(t, name == "running", kept)
				if name == "killed" { // before its first save
					f.begin = func() error {
						l.dead.Store(true)
						return errors.New("cut")
					}
					r = start(t, l, f)
					synctest.Wait()
					r.stop()
					l.dead.Store(false)
					f.begin = nil
				}
				var logged bytes.Buffer
				if name != "running" {
					r = start(t, l, f, func(o *WorkerOptions) { o.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
				}
				r.sync()
				same(t, l, f)
				time.Sleep(2 * holdEvery)
				r.stop()
				if name != "running" && !strings.Contains(logged.String(), `because="the log let its cursor go"`) {
					t.Errorf("logged %s", logged.String())
				}
				if c, ok := l.Cursors()[CheckpointName("search", testView.Name)]; !ok || c.LetGo || !c.Rebuilds {
					t.Errorf("the log keeps %+v for it now", c)
				}
			})
		})
	}
}

// Nothing is said to be reached of a target that lacks a delete, also before the
// next save would find out.
func TestLetGoIsNotReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f, r := letGo(t, true, 0)
		r.sync()
		same(t, l, f)
	})
}

// V30: a target that another log took over while our cursor was let go has two writers all the same.
func TestLetGoKnowsAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f, _ := letGo(t, false, kept)
		other := newViewLog(t)
		other.output(2, doc(2))
		r := start(t, other, f)
		r.sync()
		r.stop()
		r = start(t, l, f)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s := r.Stats(); s.State != StateStopped || !strings.Contains(s.Reason, "another writer") {
			t.Errorf("stats %+v; want stopped", s)
		}
		same(t, other, f)
	})
}

// fullLog has no space for marks at first.
type fullLog struct {
	*viewLog
	saves, cursors int // so many are refused
}

func (l *fullLog) SaveCheckpoint(name string, c eventlog.Checkpoint) error {
	if l.saves > 0 {
		l.saves--
		return eventlog.ErrFull
	}
	return l.viewLog.SaveCheckpoint(name, c)
}

func (l *fullLog) SetCursor(name string, c *eventlog.Cursor) error {
	if l.cursors > 0 {
		l.cursors--
		return eventlog.ErrFull
	}
	return l.viewLog.SetCursor(name, c)
}

// A full disk only delays the build.
func TestLetGoOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f, _ := letGo(t, false, kept)
		r := start(t, l, f, func(o *WorkerOptions) { o.Log = &fullLog{l, 2, 2} })
		r.sync()
		same(t, l, f)
	})
}
