package crashlab

import (
	"errors"
	"fmt"
	"io"
)

// ErrFaults is returned when anything wrong was found.
var ErrFaults = errors.New("crashlab: the log broke its contract")

// Options of a Run.
type Options struct {
	Rounds int   // lives of a log; 0: none
	Seed   int64 // of all random numbers: the same seed does the same again
	Stride int   // every how many positions the sweep strikes; 0: no sweep, cuts or full disks
	Flips  int   // random bits flipped in large files; 0: no bits are flipped, in small ones neither
}

// Run breaks logs in all ways and prints a line for each of what it found.
func Run(o Options, out io.Writer) error {
	report := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	var all Faults
	for _, part := range []struct {
		name string
		do   bool
		run  func() (rounds int, f Faults)
	}{
		{"crash", o.Rounds > 0, func() (int, Faults) { return o.Rounds, lives(o, report) }},
		{"sweep", o.Stride > 0, func() (int, Faults) { return Sweep(o.Seed, o.Stride, report) }},
		{"cuts", o.Stride > 0, func() (int, Faults) { return Cuts(o.Seed, o.Stride, report) }},
		{"full", o.Stride > 0, func() (int, Faults) { return FullDisks(o.Seed, o.Stride, report) }},
		{"flips-small", o.Flips > 0, func() (int, Faults) { return FlipSmall(o.Seed, max(1, o.Stride), report) }},
		{"flips", o.Flips > 0, func() (int, Faults) { return o.Flips, FlipLarge(o.Seed, o.Flips, report) }},
	} {
		if !part.do {
			continue
		}
		rounds, f := part.run()
		report("%s rounds=%d lost=%d duplicate=%d reordered=%d wrong=%d seed=%d", part.name, rounds, f.Lost, f.Duplicate, f.Reordered, f.Wrong, o.Seed)
		all.add(f)
	}
	if all.Any() {
		return ErrFaults
	}
	return nil
}

type reporter func(format string, args ...any)

// within returns a reporter that says where.
func (r reporter) within(format string, args ...any) reporter {
	where := fmt.Sprintf(format, args...)
	return func(format string, args ...any) { r("%s", where+": "+fmt.Sprintf(format, args...)) }
}

func lives(o Options, report reporter) (all Faults) {
	for i := range o.Rounds {
		f := Round(uint64(o.Seed), uint64(i), report.within("round %d", i))
		if f.Any() {
			report("round %d of seed %d: %+v", i, o.Seed, f)
		}
		all.add(f)
	}
	return all
}
