package crashlab

import (
	"errors"
	"math/rand/v2"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// diskStep is the distance of the sizes of disk that FullDisks fills.
const diskStep = 4096

// FullDisks runs a workload on disks of 0, 4096, 8192 ... bytes until one is
// large enough. On a full one every append says so and nothing is lost; with
// space again the same log, or after a restart on the full disk the next one, goes on.
func FullDisks(seed int64, stride int, report reporter) (runs int, all Faults) {
	for size := int64(0); ; size += int64(stride) * diskStep {
		for _, restart := range []bool{false, true} {
			runs++
			l := newLife(rand.New(rand.NewPCG(uint64(seed), 1<<43)), report.within("disk of %d bytes", size))
			l.opts.FileBytes, l.opts.TailBytes, l.opts.SealBatch, l.values = 20_000, 5000, 4000, 4000
			met := l.fullDisk(size, restart)
			all.add(l.faults)
			if !met || all.Any() {
				return runs, all
			}
		}
	}
}

// fullDisk lives on a disk of that size until it is full, and then on a larger one; false if it never was full.
func (l *life) fullDisk(size int64, restart bool) (met bool) {
	l.fs.SetSpace(size)
	l.opts.FS = l.fs
	s := strike{fault: diskByte, at: 1 << 60} // explains ENOSPC, never strikes
	l.session(s, func() {
		for range 12 {
			for _, name := range mixed[1] {
				op := operationNamed(name)
				if len(l.model.topic) == 0 {
					op = operationNamed("topic")
				}
				met = l.fullStep(op) || met
			}
			if met && restart {
				break
			}
		}
		if !restart {
			l.fs.SetSpace(-1)
			l.resumes()
		}
		l.strike.crashed = l.fs.Clone() // killed
	})
	l.fs.SetSpace(-1)
	l.session(strike{}, l.resumes)
	l.last()
	return met || size == 0
}

// fullStep does an operation; true if it found no space.
func (l *life) fullStep(op operation) bool {
	err := op.run(l)
	switch {
	case err == nil:
		return false
	case !vfs.IsFull(err):
		l.wrong("%s: %v", op.name, err)
	case op.name == "append" && !errors.Is(err, eventlog.ErrFull):
		l.wrong("append: %v; not ErrFull", err)
	}
	return true
}

// resumes works with space again: nothing may fail.
func (l *life) resumes() {
	for _, name := range []string{"topic", "append", "mark", "append", "seal all", "append", "look"} {
		if err := operationNamed(name).run(l); err != nil {
			l.wrong("%s with space again: %v", name, err)
		}
	}
	l.doubtful = nil
}
