package crashlab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// life is one log's: sessions, each of which opens it, works, and ends by its fault or by itself.
type life struct {
	rng    *rand.Rand
	fs     *vfs.Mem
	opts   seglog.Options
	model  *model
	now    time.Time
	report reporter
	log    *seglog.Log // of the session at hand
	strike strike      // its fault
	faults Faults
	spools []*spooled // streamed transactions in progress
	pin    *pinned    // nil: none is held
	tables map[eventlog.TopicID]*table
	values int // largest size of a record's value
	// doubtful are transactions refused for want of space, or by another fault,
	// since the last entry was written: a power loss may leave them whole.
	doubtful []string
}

// newLife makes a life in an empty file system; rng decides what is written.
func newLife(rng *rand.Rand, report reporter) *life {
	l := &life{rng: rng, fs: vfs.NewMem(), model: newModel(), now: time.Unix(1_800_000_000, 0), report: report, values: 300, tables: map[eventlog.TopicID]*table{}}
	l.opts = seglog.Options{Clock: func() time.Time { return l.now }, StreamChunk: 300, Merge: mergeRows}
	return l
}

// Round lives one life of several sessions and returns what was wrong in it.
func Round(seed, round uint64, report func(format string, args ...any)) Faults {
	rng := rand.New(rand.NewPCG(seed, round))
	l := newLife(rng, report)
	l.opts.FileBytes, l.opts.TailBytes, l.opts.SealBatch = int64(500+rng.IntN(6000)), int64(1+rng.IntN(4000)), 100+rng.IntN(2000)
	l.opts.StreamChunk = 50 + rng.IntN(1000)
	l.opts.SegmentBytes, l.opts.MergeBytes = int64(1+rng.IntN(4000)), int64(60+rng.IntN(5000))
	l.opts.CompactBytes = int64(16 * (16 + rng.IntN(3)*10))
	for range 2 + rng.IntN(4) {
		l.now = l.now.Add(time.Duration(rng.IntN(3)-1) * time.Minute)
		l.session(randomStrike(rng), l.work)
		if l.faults.Any() {
			return l.faults
		}
	}
	l.last()
	return l.faults
}

// traceOp, if set, sees each operation of a session.
var traceOp func(op string)

// session opens the log, compares, works, and leaves the disk behind. Its fault
// may strike in any of these.
func (l *life) session(s strike, work func()) {
	if l.strike = s; s.fault != diskByte {
		l.fs.SetSpace(-1) // else what the session before had full may be so still
	}
	l.fs.SetHook(func(op vfs.Op) (int, error) {
		if traceOp != nil {
			traceOp(fmt.Sprint(op))
		}
		return l.strike.hook(l.fs, op)
	})
	if l.open() && l.compare() {
		work()
	}
	l.fs.SetHook(nil)
	for _, id := range l.doubtful {
		l.model.doubt(id)
	}
	l.doubtful = nil
	switch {
	case l.strike.crashed != nil:
		l.fs = l.strike.crashed
	case l.rng.IntN(2) == 0:
		l.fs = l.fs.Crash(l.rng) // power fails when the process has gone
	case l.rng.IntN(2) == 0:
		l.fs = l.fs.Clone()
	}
	l.log, l.pin, l.model.pin = nil, nil, nil
	clear(l.tables)
}

// wrong reports what is not as it must be.
func (l *life) wrong(format string, args ...any) {
	l.report(format, args...)
	l.faults.Wrong++
}

// open opens the log; where a fault stopped it, until that has passed. False if the
// session is over.
func (l *life) open() bool {
	l.opts.FS = l.fs
	for range 10 {
		log, err := seglog.Open("log", l.opts)
		if err == nil {
			l.log, l.spools = log, nil
			return true
		}
		switch {
		case l.strike.crashed != nil:
			return false
		case errors.Is(err, eventlog.ErrCorrupt) || !l.strike.explains(err):
			l.wrong("Open: %v", err)
			return false
		case vfs.IsFull(err):
			l.strike.freeSpace(l.fs)
		}
	}
	l.wrong("Open: not even when the fault had passed")
	return false
}

// compare compares the log with the model; false if the session is over. An
// error of reading is the fault's, not damage, and passes with it.
func (l *life) compare() bool {
	before := l.strike.struck
	var lines []string
	f, err := l.model.compare(l.log, collect(&lines))
	if l.strike.crashed != nil {
		return false // what it read after the lights went out does not count
	}
	if err != nil && l.strike.struck > before && l.strike.explains(err) && !errors.Is(err, eventlog.ErrCorrupt) {
		lines = nil
		f, err = l.model.compare(l.log, collect(&lines))
	}
	if err != nil {
		l.wrong("read: %v", err)
	}
	for _, line := range lines {
		l.report("%s", line)
	}
	l.faults.add(f)
	return !l.faults.Any()
}

// last opens the log once more, without faults, compares and checks it.
func (l *life) last() {
	l.strike = strike{}
	l.fs.SetHook(nil)
	l.fs.SetSpace(-1)
	if !l.open() || !l.compare() {
		return
	}
	defer l.log.Close()
	if err := l.log.SealAll(context.Background()); err != nil {
		l.wrong("SealAll: %v", err)
	}
	if l.compare() {
		l.check()
	}
}

// check lets the log look for damage: there is none.
func (l *life) check() error {
	_, err := l.log.Check(context.Background(), func(err error) { l.wrong("Check: %v", err) })
	return err
}

// dead reports that the session is over.
func (l *life) dead(err error) bool {
	return l.strike.crashed != nil || errors.Is(err, seglog.ErrSync)
}
