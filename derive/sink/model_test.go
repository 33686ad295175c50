package sink

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestModel drives a worker through random outputs, faults, kills, restarts,
// restores and definition changes, and then compares the target with the view.
func TestModel(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { model(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func model(t *testing.T, rnd *rand.Rand) {
	l, f := newViewLog(t), newFakeSink()
	var faulty, stuck atomic.Bool
	dice := rand.New(rand.NewPCG(rnd.Uint64(), 2)) // the worker's
	fault := func([]Update) error {
		if stuck.Load() || faulty.Load() && dice.IntN(4) == 0 {
			return errors.New("cut")
		}
		return nil
	}
	f.before, f.after = fault, fault
	rejected := map[string]uint64{}
	f.outcome = func(u Update) Result {
		if faulty.Load() && dice.IntN(6) == 0 {
			return Result{Outcome: Retry, Reason: "429"}
		}
		if string(u.Doc) == `{"bad":1}` {
			rejected[u.ID] = u.Version
			return Result{Outcome: Rejected, Reason: "bad"}
		}
		if u.Version >= rejected[u.ID] {
			delete(rejected, u.ID)
		}
		return Result{}
	}
	view := testView
	begin := func() *runner {
		return start(t, l, f, func(o *WorkerOptions) { o.View, o.BatchCount = view, 1+rnd.IntN(8) })
	}
	r := begin()
	backupDocs, backupStamp := map[string]fakeDoc{}, (*Stamp)(nil)
	for step := range 60 {
		faulty.Store(rnd.IntN(3) > 0)
		var docs []any
		for range 1 + rnd.IntN(6) {
			body := doc(step)
			switch rnd.IntN(8) {
			case 0:
				body = ""
			case 1:
				body = `{"bad":1}`
			}
			docs = append(docs, rnd.IntN(30), body)
		}
		l.output(docs...)
		switch rnd.IntN(13) {
		case 12:
			if rnd.IntN(2) == 0 { // it cannot work while the log loses what it has not seen
				stuck.Store(rnd.IntN(4) > 0)
				l.output(rnd.IntN(30), "", rnd.IntN(30), "")
				l.crowd(kept)
				stuck.Store(false)
			}
		case 0: // clean restart
			r.stop()
			r = begin()
		case 1: // kill
			l.dead.Store(true)
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			r.stop()
			l.dead.Store(false)
			r = begin()
		case 2:
			time.Sleep(time.Duration(rnd.IntN(5000)) * time.Millisecond)
		case 3: // backup
			if docs, stamp := f.copyState(); stamp != nil {
				backupDocs, backupStamp = docs, stamp
			}
		case 4: // restore
			if backupStamp != nil {
				r.stop()
				f.docs, f.stamp = map[string]fakeDoc{}, nil
				for id, d := range backupDocs {
					f.docs[id] = d
				}
				s := *backupStamp
				f.stamp = &s
				r = begin()
			}
		case 5:
			if rnd.IntN(4) == 0 { // emptied
				r.stop()
				f.docs, f.stamp = map[string]fakeDoc{}, nil
				r = begin()
			}
		case 6:
			if rnd.IntN(3) == 0 { // another definition
				r.stop()
				view.Fingerprint += "x"
				r = begin()
			}
		}
	}
	faulty.Store(false)
	r.sync()
	for id := range rejected { // the target keeps what it had of them
		if _, live := l.model[id]; live && l.model[id] == `{"bad":1}` {
			delete(f.docs, id)
			delete(l.model, id)
			if _, ok := l.letters("search")[id]; !ok {
				t.Errorf("document %s is rejected and not in the dead letters", id)
			}
		}
	}
	same(t, l, f)
	for id := range l.letters("search") {
		if rejected[id] == 0 {
			t.Errorf("document %s is in the dead letters and not rejected", id)
		}
	}
}
