package sink

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// V29: the data directory was lost and product 7 deleted meanwhile; the new
// build never knew 7.
func TestV29ForeignStampIsSweptAfterTheBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSink()
		old := newViewLog(t)
		old.output(1, doc(1), 7, doc(7))
		r := start(t, old, f)
		r.sync()
		r.stop()

		l := newViewLog(t)
		l.output(1, doc(1), 2, doc(2))
		r = start(t, l, f)
		r.sync()
		same(t, l, f)
		if f.stamp.Log != l.ID() {
			t.Error("the stamp is not ours after the build")
		}
	})
}

// V29: a target restored from a copy younger than the kept tombstones is sent
// what is missing; from an older one, everything, and is swept.
func TestV29RestoredTarget(t *testing.T) {
	for _, tt := range []struct {
		name   string
		age    time.Duration
		builds int
	}{{"young", time.Hour, 1}, {"old", 48 * time.Hour, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, f := newViewLog(t), newFakeSink()
				l.output(1, doc(1), 7, doc(7))
				r := start(t, l, f)
				r.sync()
				docs, stamp := f.copyState()
				l.output(2, doc(2))
				l.output(7, "", 1, doc(11))
				r.sync()
				r.stop()
				time.Sleep(tt.age)
				f.docs, f.stamp = docs, stamp
				r = start(t, l, f)
				r.sync()
				same(t, l, f)
				if f.begins != tt.builds {
					t.Errorf("%d builds; want %d", f.begins, tt.builds)
				}
				r.stop()
				sent := f.sent
				r = start(t, l, f)
				r.sync()
				if f.sent != sent {
					t.Errorf("%d updates sent again after the resend ended", f.sent-sent)
				}
			})
		})
	}
}

// V29: killed in the middle of a resend, it starts again from the stamp.
func TestV29KilledInAResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		r := start(t, l, f, func(o *WorkerOptions) { o.BatchCount = 2 })
		l.output(0, doc(0))
		r.sync()
		docs, stamp := f.copyState()
		for i := range 20 {
			l.output(i, doc(100+i))
		}
		r.sync()
		r.stop()
		f.docs, f.stamp = docs, stamp
		n := 0
		f.before = func([]Update) error {
			if n++; n > 4 {
				l.dead.Store(true)
				return errors.New("cut")
			}
			return nil
		}
		r = start(t, l, f, func(o *WorkerOptions) { o.BatchCount = 2 })
		time.Sleep(time.Minute)
		r.stop()
		l.dead.Store(false)
		f.before = nil
		r = start(t, l, f, func(o *WorkerOptions) { o.BatchCount = 2 })
		r.sync()
		same(t, l, f)
	})
}

// V30: what we have written is foreign now: two writers. It stops, and Rebuild takes it back.
func TestV30SecondWriterStopsUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSink()
		a, b := newViewLog(t), newViewLog(t)
		a.output(1, doc(1))
		b.output(2, doc(2))
		r := start(t, a, f)
		r.sync()
		r.stop()
		r = start(t, b, f) // takes over once
		r.sync()
		same(t, b, f)
		r.stop()
		r = start(t, a, f)
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s := r.Stats(); s.State != StateStopped || !strings.Contains(s.Reason, "another writer") {
			t.Fatalf("stats %+v; want stopped", s)
		}
		same(t, b, f)
		r.Rebuild()
		r.sync()
		same(t, a, f)
	})
}

// V31: a target that lost the last of several writes at one CSN is found out by its count of writes.
func TestV31LostWriteAtTheSameCSN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		few := func(o *WorkerOptions) { o.BatchCount = 2 }
		r := start(t, l, f, few)
		l.output(0, doc(0))
		r.sync()
		var docs map[string]fakeDoc
		var stamp *Stamp
		writes := 0
		f.before = func([]Update) error {
			if writes++; writes == 3 { // the lock is held
				s := *f.stamp
				docs, stamp = maps.Clone(f.docs), &s
			}
			return nil
		}
		l.output(1, doc(1), 2, doc(2), 3, doc(3), 4, doc(4), 5, doc(5), 6, doc(6))
		r.sync()
		r.stop()
		if stamp.CSN != f.stamp.CSN {
			t.Fatalf("the copy is at CSN %d, the target at %d: the test is wrong", stamp.CSN, f.stamp.CSN)
		}
		f.docs, f.stamp = docs, stamp
		r = start(t, l, f, few)
		r.sync()
		same(t, l, f)
	})
}

// V32: a retry of a document never runs after a later version of it was sent.
func TestV32RetryNeverOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(0))
		r := start(t, l, f)
		r.sync()
		last, tries := map[string]uint64{}, 0
		f.before = func(updates []Update) error {
			for _, u := range updates {
				if u.Version < last[u.ID] {
					t.Errorf("version %d of %s sent after %d", u.Version, u.ID, last[u.ID])
				}
				last[u.ID] = u.Version
			}
			return nil
		}
		f.outcome = func(u Update) Result {
			if tries++; tries%3 != 0 {
				return Result{Outcome: Retry, Reason: "503"}
			}
			return Result{}
		}
		for i := range 30 {
			l.output(i%3, doc(i), 10+i, doc(i))
		}
		r.sync()
		same(t, l, f)
	})
}

// V33: the versions of a log rebuilt under a clock set back lie below those in
// the target: the log skips past the stamp and the view outputs again.
func TestV33ForeignStampAboveOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		const theirs = 1 << 40
		f.docs["1"] = fakeDoc{"theirs", theirs}
		f.docs["7"] = fakeDoc{"theirs", theirs}
		f.stamp = &Stamp{Log: [16]byte{1}, CSN: theirs, Fingerprint: testFingerprint, Complete: true}
		l.output(1, doc(1))
		asked := eventlog.CSN(0)
		r := start(t, l, f, func(o *WorkerOptions) {
			o.Restamp = func(_ context.Context, csn eventlog.CSN) error {
				asked = csn
				if v := l.output(1, doc(1)); v < theirs+eventlog.ForeignSkip {
					t.Errorf("output at %d; want at or above the stamp + 2^32", v)
				}
				return nil
			}
		})
		r.sync()
		same(t, l, f)
		if asked != theirs {
			t.Errorf("the view was asked to output again above %d; want %d", asked, theirs)
		}
	})
}

// Our own stamp above the frontier: the data directory is an older copy.
func TestV33AheadOfLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		r := start(t, l, f)
		r.sync()
		r.stop()
		f.stamp.CSN += 1000
		sent := f.sent
		r = start(t, l, f)
		synctest.Wait()
		if s := r.Stats(); s.State != StateAhead || f.sent != sent {
			t.Fatalf("stats %+v; want %q and nothing sent", s, StateAhead)
		}
		r.Rebuild()
		r.sync()
		same(t, l, f)
	})
}

// A target that was emptied while nothing changed is found out by the flush that comes by time.
func TestV29EmptiedWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newViewLog(t), newFakeSink()
		l.output(1, doc(1))
		r := start(t, l, f)
		r.sync()
		f.mu.Lock()
		f.docs, f.stamp, f.lost = map[string]fakeDoc{}, nil, true
		f.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, l, f)
		if f.begins != 2 {
			t.Errorf("%d builds; want 2", f.begins)
		}
	})
}
