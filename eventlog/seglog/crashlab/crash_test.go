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

func TestSweep(t *testing.T) {
	if _, f := Sweep(1, 3, t.Logf); f.Any() {
		t.Errorf("%+v", f)
	}
}

func TestFlipSmall(t *testing.T) {
	bits, f := FlipSmall(1, 11, t.Logf)
	if f.Any() || bits < 3000 {
		t.Errorf("%d bits: %+v", bits, f)
	}
}

func TestFlipLarge(t *testing.T) {
	if f := FlipLarge(1, 3000, t.Logf); f.Any() {
		t.Errorf("%+v", f)
	}
}
