package sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

func TestWorkerBuildsAndFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1), 2, doc(2))
		l.output(2, doc(22), 3, doc(3))
		l.output(3, "")
		r := start(t, l, f)
		r.sync()
		same(t, l, f)
		if f.sent != 2 || f.begins != 1 {
			t.Errorf("the build sent %d updates in %d builds; want the newest of each document, 2, in 1", f.sent, f.begins)
		}
		l.output(4, doc(4), 1, "")
		r.sync()
		same(t, l, f)
		s := r.Stats()
		if s.State != StateLive || s.LagRecords != 0 || s.Written != 4 || s.LastVersion == 0 {
			t.Errorf("stats %+v", s)
		}
		r.stop()
		if !f.stamp.Complete || f.stamp.CSN != uint64(l.Frontier()) {
			t.Errorf("stamp %+v; want complete at %d", f.stamp, l.Frontier())
		}
	})
}

func TestWorkerResendsNothingAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		r := start(t, l, f)
		for i := range 20 {
			l.output(i, doc(i))
			r.sync()
		}
		r.stop()
		sent := f.sent
		l.output(5, doc(55))
		r = start(t, l, f)
		r.sync()
		same(t, l, f)
		if f.sent != sent+1 || f.begins != 1 {
			t.Errorf("after a clean restart %d updates were sent again (%d builds)", f.sent-sent-1, f.begins)
		}
	})
}

func TestWorkerKillRepeatsOnlyTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		r := start(t, l, f)
		for i := range 100 {
			l.output(i, doc(i))
		}
		r.sync()
		time.Sleep(2 * time.Second) // the fake clock: the cursor is saved once idle for a second
		l.dead.Store(true)          // kill -9 from here on
		l.output(100, doc(100))
		l.output(101, doc(101))
		r.sync()
		r.stop()
		l.dead.Store(false)
		sent := f.sent
		r = start(t, l, f)
		r.sync()
		same(t, l, f)
		if again := f.sent - sent; again != 2 {
			t.Errorf("%d updates were repeated; want the 2 behind the saved cursor", again)
		}
	})
}

// TestLagOfASinkThatNeverOpened: how old what it lacks is, nobody knows yet.
func TestLagOfASinkThatNeverOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(0))
		f.openErr = func() error { return errors.New("connection refused") }
		r := start(t, l, f)
		synctest.Wait()
		if s := r.Stats(); s.State != StateRetrying || s.LagRecords != 1 || s.LagSeconds != -1 {
			t.Errorf("%s: %d records, %gs behind; want 1 record, -1 s", s, s.LagRecords, s.LagSeconds)
		}
		r.stop()
	})
}

// cutLog is a log of which a tail was cut: its offsets have skipped 2^32.
type cutLog struct{ *viewLog }

func (l cutLog) EndOffsets(topic eventlog.TopicID) []eventlog.Offset {
	ends := l.viewLog.EndOffsets(topic)
	for p := range ends {
		ends[p] += eventlog.ForeignSkip
	}
	return ends
}

// TestLagAfterACut: the offsets that a cut skips are no records.
func TestLagAfterACut(t *testing.T) {
	l := newViewLog(t)
	for i := range 5 {
		l.output(i, doc(i))
	}
	w := &Worker{opts: WorkerOptions{Log: cutLog{l}, Topic: "view.products"}}
	if s := w.Stats(); s.LagRecords != 5 {
		t.Errorf("without a cursor %d records behind, want 5", s.LagRecords)
	}
	w.acked = l.EndOffsets(l.topic.ID)
	if s := w.Stats(); s.LagRecords != 0 {
		t.Errorf("at the end %d records behind, want 0", s.LagRecords)
	}
}

func TestWorkerCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		r := start(t, l, f)
		l.output(1, doc(0))
		r.sync()
		down := true
		f.before = func([]Update) error {
			if down {
				return errors.New("connection refused")
			}
			return nil
		}
		sent := 0
		for i := range 1000 {
			l.output(1+i%20, doc(i))
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := r.Stats(); s.State != StateRetrying || !strings.Contains(s.String(), "retrying: connection refused") || s.Retries == 0 || s.LagRecords == 0 || s.LagSeconds < 59 {
			t.Errorf("while the target is down: %+v", s)
		}
		down, sent = false, f.sent
		r.sync()
		same(t, l, f)
		if n := f.sent - sent; n > 60 {
			t.Errorf("1000 versions of 20 documents were sent as %d updates", n)
		}
	})
}

func TestWorkerSplitsHugeTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		r := start(t, l, f, func(o *WorkerOptions) { o.BatchCount = 10 })
		l.output(0, doc(0))
		r.sync()
		var docs []any
		for i := range 1000 {
			docs = append(docs, i, doc(i))
		}
		largest := 0
		f.before = func(u []Update) error { largest = max(largest, len(u)); return nil }
		l.output(docs...)
		r.sync()
		same(t, l, f)
		if largest > 10 {
			t.Errorf("a write had %d documents; the bound is 10", largest)
		}
	})
}

func TestWorkerDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1), 2, `{"n":"bad"}`, 3, doc(3))
		f.outcome = func(u Update) Result {
			if strings.Contains(string(u.Doc), "bad") {
				return Result{Outcome: Rejected, Reason: `field "n" is no number`}
			}
			return Result{}
		}
		r := start(t, l, f)
		r.sync()
		want := map[string]string{"2": fmt.Sprintf(`{"reason":"field \"n\" is no number","version":%d}`, uint64(1))}
		if got := l.letters("search"); !maps.Equal(got, want) {
			t.Errorf("dead letters %v; want %v", got, want)
		}
		if s := r.Stats(); s.State != StateDegraded || s.DeadLetters != 1 || s.Rejected != 1 {
			t.Errorf("stats %+v; want degraded", s)
		}
		r.stop()
		r = start(t, l, f) // what is in the dead letters is known after a restart
		l.output(2, doc(22))
		r.sync()
		if got := l.letters("search"); len(got) != 0 {
			t.Errorf("dead letters %v; the next good version clears them", got)
		}
		if s := r.Stats(); s.State != StateLive || s.DeadLetters != 0 {
			t.Errorf("stats %+v; want live", s)
		}
		same(t, l, f)
	})
}

func TestWorkerRejectStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		bad := true
		f.outcome = func(u Update) Result {
			if bad {
				return Result{Outcome: Rejected, Reason: "too long"}
			}
			return Result{}
		}
		r := start(t, l, f, func(o *WorkerOptions) { o.RejectStops = true })
		synctest.Wait()
		if s := r.Stats(); s.State != StateStopped || !strings.Contains(s.Reason, "too long") {
			t.Errorf("stats %+v; want stopped", s)
		}
		bad = false // mended in the target; the probe finds it
		r.sync()
		same(t, l, f)
	})
}

func TestWorkerStoppedSinkIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		tries := 0
		f.openErr = func() error {
			if tries++; tries < 4 {
				return fmt.Errorf("%w: wrong password", ErrStopped)
			}
			return nil
		}
		r := start(t, l, f)
		synctest.Wait()
		if s := r.Stats(); s.State != StateStopped || !strings.Contains(s.Reason, "wrong password") {
			t.Errorf("stats %+v; want stopped", s)
		}
		begin := time.Now()
		r.sync()
		if took := time.Since(begin); tries != 4 || took < 2*time.Minute {
			t.Errorf("%d attempts in %v; want one a minute", tries, took)
		}
	})
}

func TestWorkerRetriesItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(0, doc(0))
		r := start(t, l, f)
		r.sync()
		busy := map[string]int{}
		f.outcome = func(u Update) Result {
			if busy[u.ID]++; busy[u.ID] < 3 && u.ID != "7" {
				return Result{Outcome: Retry, Reason: "429"}
			}
			return Result{}
		}
		var docs []any
		for i := range 50 {
			docs = append(docs, i, doc(100+i))
		}
		l.output(docs...)
		l.output(3, doc(333))
		r.sync()
		same(t, l, f)
	})
}

// A view whose first build has output nothing yet is not built: its target
// would be swept empty.
func TestWorkerWaitsForTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		f.docs["9"] = fakeDoc{"old", 1}
		ready := make(chan struct{})
		r := start(t, l, f, func(o *WorkerOptions) { o.Ready = ready })
		synctest.Wait()
		if s := r.Stats(); s.State != StateWaiting || f.begins != 0 || f.docs["9"].doc == "" {
			t.Fatalf("before the view is live: %+v, %d builds", s, f.begins)
		}
		l.output(1, doc(1))
		close(ready)
		r.sync()
		same(t, l, f)
	})
}

func TestWorkerWaitsForTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		v := testView
		v.Name = "orders"
		r := start(t, l, f, func(o *WorkerOptions) { o.View = v })
		synctest.Wait()
		if s := r.Stats(); s.State != StateWaiting {
			t.Fatalf("without a topic: %+v", s)
		}
		if _, err := l.EnsureTopic(eventlog.TopicSpec{Name: "view.orders"}); err != nil {
			t.Fatal(err)
		}
		r.sync()
		if f.begins != 1 {
			t.Errorf("%d builds; want 1", f.begins)
		}
	})
}

func TestWorkerRebuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1), 2, doc(2))
		r := start(t, l, f)
		r.sync()
		f.docs["1"] = fakeDoc{"tampered", 0}
		f.docs["5"] = fakeDoc{"tampered", 0}
		r.Rebuild()
		synctest.Wait()
		time.Sleep(time.Second)
		r.sync()
		same(t, l, f)
		if f.begins != 2 {
			t.Errorf("%d builds; want 2", f.begins)
		}
	})
}

func TestWorkerChangedDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1), 2, doc(2))
		r := start(t, l, f)
		r.sync()
		r.stop()
		l.output(1, doc(11), 2, "")
		v := testView
		v.Fingerprint = "f2"
		r = start(t, l, f, func(o *WorkerOptions) { o.View = v })
		r.sync()
		same(t, l, f)
		if f.begins != 2 || f.stamp.Fingerprint != "f2" {
			t.Errorf("%d builds, stamp %+v; want a second build for f2", f.begins, f.stamp)
		}
	})
}

func TestWorkerLogFaultEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		f.outcome = func(Update) Result { return Result{Outcome: Rejected, Reason: "x"} }
		l.FailAppend = func() error { return eventlog.ErrCorrupt }
		w := NewWorker(WorkerOptions{Log: l, Sink: f, SinkName: "search", View: testView})
		if err := w.Run(context.Background()); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("Run = %v; want the log's error", err)
		}
	})
}

// A full disk holds the cursor back at the dead letter; nothing is lost.
func TestWorkerFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		f.outcome = func(Update) Result { return Result{Outcome: Rejected, Reason: "x"} }
		full := true
		l.FailAppend = func() error {
			if full {
				return eventlog.ErrFull
			}
			return nil
		}
		l.ensure = l.FailAppend // the topic of dead letters is not there yet
		r := start(t, l, f)
		synctest.Wait()
		if s := r.Stats(); s.State != StateRetrying {
			t.Errorf("with a full disk: %+v", s)
		}
		full = false
		r.sync()
		if len(l.letters("search")) != 1 {
			t.Error("the dead letter is missing")
		}
	})
}
