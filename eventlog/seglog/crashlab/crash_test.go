package crashlab

import (
	"flag"
	"strings"
	"testing"
)

var (
	rounds = flag.Int("rounds", 30, "lives of a log")
	flips  = flag.Int("flips", 500, "flipped bits")
	seed   = flag.Int64("seed", 1, "seed of the random numbers")
)

func TestCrash(t *testing.T) {
	var out strings.Builder
	err := Run(*rounds, *seed, *flips, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
}
