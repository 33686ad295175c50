package crashlab

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	rounds = flag.Int("rounds", 60, "lives of a log")
	stride = flag.Int("stride", 0, "also sweep, cut and fill disks, at every how many positions")
	flips  = flag.Int("flips", 0, "also flip so many bits")
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
	if _, f := Sweep(1, 9, t.Logf); f.Any() {
		t.Errorf("%+v", f)
	}
}

func TestFlipSmall(t *testing.T) {
	bits, f := FlipSmall(1, 29, t.Logf)
	if f.Any() || bits < 1000 {
		t.Errorf("%d bits: %+v", bits, f)
	}
}

func TestFlipLarge(t *testing.T) {
	if f := FlipLarge(1, 3000, t.Logf); f.Any() {
		t.Errorf("%+v", f)
	}
}

func TestCuts(t *testing.T) {
	if runs, f := Cuts(1, 37, t.Logf); f.Any() || runs < 200 {
		t.Errorf("%d runs: %+v", runs, f)
	}
}

func TestFullDisks(t *testing.T) {
	if runs, f := FullDisks(1, 5, t.Logf); f.Any() || runs < 10 {
		t.Errorf("%d runs: %+v", runs, f)
	}
}

// TestSameSeedSameLife lives lives twice: each does the same operations again.
func TestSameSeedSameLife(t *testing.T) {
	trace := func(round uint64) []string {
		var ops []string
		traceOp = func(op string) { ops = append(ops, op) }
		defer func() { traceOp = nil }()
		if f := Round(5, round, t.Logf); f.Any() {
			t.Errorf("round %d: %+v", round, f)
		}
		return ops
	}
	for round := range uint64(10) {
		first, again := trace(round), trace(round)
		if len(first) < 20 || !slices.Equal(first, again) {
			i := 0
			for i < min(len(first), len(again)) && first[i] == again[i] {
				i++
			}
			t.Errorf("round %d: %d operations, then %d; they differ from %v on", round, len(first), len(again), first[i:min(i+5, len(first))])
			t.Log(again[i:min(i+5, len(again))])
		}
	}
}
