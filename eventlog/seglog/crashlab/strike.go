package crashlab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// fault is what happens to a session.
type fault uint8

const (
	noFault   fault = iota
	powerLoss       // at an operation; of what is not synced a random part survives, in any order
	blackout        // at an operation; nothing unsynced survives
	killed          // at an operation; the system's cache survives
	ioErr           // an operation fails, a write half done; the next succeed
	ioErrs          // some operations fail
	syncErr         // the next sync fails, and loses what it should have written; those after it succeed
	readErr         // an operation that only reads fails
	diskFull        // no space for a number of operations
	diskByte        // the disk is full some bytes further on, for a number of operations
	faults
)

var faultNames = [...]string{"none", "power loss", "blackout", "kill", "EIO", "EIO several times", "EIO of a sync", "EIO of a read", "ENOSPC", "ENOSPC at a byte"}

func (f fault) String() string { return faultNames[f] }

var errDead = errors.New("power is lost")

// strike is a session's fault: the kind, and the operation at which it happens.
type strike struct {
	fault fault
	at    int // operations of the kind that the fault looks at, before it strikes; < 0: never
	times int // operations that fail, or for which the disk stays full
	rng   *rand.Rand

	changes, reads int      // operations seen
	struck         int      // how often it did
	crashed        *vfs.Mem // what the disk held when power was lost
	tear           bool     // power is lost at the next sync, whatever the fault
}

func randomStrike(rng *rand.Rand) strike {
	s := strike{fault: fault(rng.IntN(int(faults))), at: rng.IntN(150), times: 1 + rng.IntN(6), rng: rng}
	if rng.IntN(4) == 0 {
		s.at = rng.IntN(15) // strike while the log opens
	}
	if s.fault == readErr {
		s.at *= 5 // there are more of these
	}
	return s
}

// hook strikes at the chosen operation.
func (s *strike) hook(fs *vfs.Mem, op vfs.Op) (short int, err error) {
	if s.crashed != nil {
		return 0, errDead
	}
	seen := &s.changes
	if !op.Changes() {
		seen = &s.reads
	}
	*seen++
	if s.tear && op.Kind == "sync" && fs.Crash(nil).Files()[op.Name] > 0 { // an entry, not a file's beginning
		s.crashed = tornCrash(fs, op.Name)
		return 0, errDead
	}
	if s.fault == noFault || op.Changes() == (s.fault == readErr) || *seen <= s.at {
		return 0, nil
	}
	return s.hit(fs, op)
}

// hit does what the fault does to an operation at or behind its place.
func (s *strike) hit(fs *vfs.Mem, op vfs.Op) (short int, err error) {
	switch s.fault {
	case powerLoss:
		s.crashed = fs.Crash(s.rng)
	case blackout:
		s.crashed = fs.Crash(nil)
	case killed:
		s.crashed = fs.Clone()
	case diskByte:
		return 0, s.fill(fs)
	case diskFull:
		if !op.Grows() && op.Kind != "sync" || s.struck >= s.times {
			return 0, nil
		}
		s.struck++
		return s.rng.IntN(op.N + 1), syscall.ENOSPC
	case ioErrs:
		if s.struck >= s.times {
			return 0, nil
		}
	case syncErr:
		if op.Kind != "sync" || s.struck > 0 {
			return 0, nil
		}
	default:
		if s.struck > 0 {
			return 0, nil
		}
	}
	s.struck++
	if s.crashed != nil {
		return 0, errDead
	}
	return s.rng.IntN(op.N + 1), syscall.EIO
}

// fill leaves a few bytes free at first, and all again when it was met often enough.
func (s *strike) fill(fs *vfs.Mem) error {
	switch s.struck++; s.struck {
	case 1:
		fs.SetSpace(fs.Used() + int64(s.rng.IntN(600)))
	case 1 + 3*s.times:
		fs.SetSpace(-1)
	}
	return nil
}

// freeSpace ends a full disk.
func (s *strike) freeSpace(fs *vfs.Mem) {
	fs.SetSpace(-1)
	if s.fault == diskFull {
		s.struck = s.times
	}
}

// explains reports whether the fault is the reason of an error.
func (s *strike) explains(err error) bool {
	if s.fault != noFault && s.struck > 0 && errors.Is(err, eventlog.ErrStreamLost) {
		return true
	}
	switch s.fault {
	case ioErr, ioErrs, syncErr, readErr:
		return errors.Is(err, syscall.EIO)
	case diskFull, diskByte:
		return vfs.IsFull(err)
	}
	return false
}

// tornCrash loses power so that something of the last write to a file, but not
// all of it, is on the disk; where there was no write, so that all unsynced is lost.
func tornCrash(fs *vfs.Mem, name string) *vfs.Mem {
	least, most := fs.Crash(nil).Files()[name], fs.Files()[name]
	for seed := uint64(0); least < most && seed < 1000; seed++ {
		after := fs.Crash(rand.New(rand.NewPCG(seed, 0)))
		if n := after.Files()[name]; n > least && n < most {
			return after
		}
	}
	return fs.Crash(nil)
}

func collect(lines *[]string) reporter {
	return func(format string, args ...any) { *lines = append(*lines, fmt.Sprintf(format, args...)) }
}
