package crashlab

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	rounds = flag.Int("rounds", 60, "lives of a log")
	stride = flag.Int("stride", 7, "positions of the sweep: every how many")
	flips  = flag.Int("flips", 0, "flipped bits")
	seed   = flag.Int64("seed", 1, "seed of the random numbers")
)

func TestCrash(t *testing.T) {
	var out strings.Builder
	err := Run(Options{Rounds: *rounds, Seed: *seed, Stride: *stride, Flips: *flips}, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}

// TestMixedHasEveryOperation: what the lab can do, the sweep does.
func TestMixedHasEveryOperation(t *testing.T) {
	all := slices.Concat(mixed...)
	for _, op := range operations {
		if !slices.Contains(all, op.name) {
			t.Errorf("the sweep's workload has no %q", op.name)
		}
	}
}
