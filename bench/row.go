package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Verdicts of a row.
const (
	OK    = "ok"
	Noise = "noise"
	Miss  = "MISS"
	Skip  = "skip"
)

// Row is one line of a bench: a product against its floor.
type Row struct {
	Name    string
	Goal    float64 // the least ratio of rates that is ok; 0: the row only tells
	Floor   Contestant
	Product Contestant
	// FixedFloor says that the floor is a figure: it is not run in turn, and
	// the control is the product with itself.
	FixedFloor bool
	// Note says in words what the medians amount to.
	Note func(floor, product Sample) string
	// Skipped is the reason why the row is not run.
	Skipped string
}

// Result is what a row came to.
type Result struct {
	Name     string   `json:"name"`
	Ratio    float64  `json:"ratio"`
	Min      float64  `json:"min"`
	Max      float64  `json:"max"`
	Control  float64  `json:"aa"`
	Spread   float64  `json:"aa_spread"` // the control's greatest distance from 1
	Goal     float64  `json:"goal"`
	Verdict  string   `json:"verdict"`
	Note     string   `json:"note,omitempty"`
	Floor    []Sample `json:"floor,omitempty"`
	Products []Sample `json:"product,omitempty"`
}

// Measure runs a row: a warm-up of each side that does not count, then pairs in
// the order A B B A.
func (r *Row) Measure(ctx context.Context, pairs int) (Result, error) {
	res := Result{Name: r.Name, Goal: r.Goal, Verdict: Skip, Note: r.Skipped}
	if r.Skipped != "" {
		return res, nil
	}
	for _, c := range []Contestant{r.Floor, r.Product} {
		if _, err := c(ctx); err != nil {
			return res, fmt.Errorf("%s: warm up: %w", r.Name, err)
		}
	}
	for i := range pairs {
		order := []Contestant{r.Floor, r.Product}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for k, c := range order {
			s, err := c(ctx)
			if err != nil {
				return res, fmt.Errorf("%s: pair %d: %w", r.Name, i+1, err)
			}
			if floor := (k == 0) == (i%2 == 0); floor {
				res.Floor = append(res.Floor, s)
			} else {
				res.Products = append(res.Products, s)
			}
		}
	}
	res.judge(r)
	return res, nil
}

func (res *Result) judge(r *Row) {
	var ratios, control []float64
	for i, p := range res.Products {
		ratios = append(ratios, p.Rate/res.Floor[i].Rate)
	}
	// In A B B A A B B A the runs 2 and 3, 4 and 5, ... of either side follow each other.
	same, first := res.Floor, 1
	if r.FixedFloor {
		same, first = res.Products, 0
	}
	for i := first; i+1 < len(same); i += 2 {
		control = append(control, same[i+1].Rate/same[i].Rate)
	}
	res.Ratio, res.Min, res.Max = median(ratios), slices.Min(ratios), slices.Max(ratios)
	res.Control = 1
	if len(control) > 0 {
		res.Control = median(control)
	}
	for _, c := range control {
		res.Spread = max(res.Spread, c-1, 1-c)
	}
	if r.Note != nil {
		res.Note = r.Note(middle(res.Floor), middle(res.Products))
	}
	res.Verdict = verdict(res)
}

func verdict(res *Result) string {
	switch {
	case res.Ratio >= res.Goal:
		return OK
	case res.Goal >= res.Min*(1-res.Spread) && res.Goal <= res.Max*(1+res.Spread):
		return Noise
	}
	return Miss
}

// middle returns the medians of each figure of the samples.
func middle(samples []Sample) Sample {
	pick := func(f func(Sample) float64) float64 {
		var v []float64
		for _, s := range samples {
			v = append(v, f(s))
		}
		return median(v)
	}
	m := Sample{
		Rate: pick(func(s Sample) float64 { return s.Rate }),
		CPU:  pick(func(s Sample) float64 { return s.CPU }),
		RSS:  int64(pick(func(s Sample) float64 { return float64(s.RSS) })),
	}
	for name := range samples[0].Extra {
		if m.Extra == nil {
			m.Extra = map[string]float64{}
		}
		m.Extra[name] = pick(func(s Sample) float64 { return s.Extra[name] })
	}
	return m
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// String is the row's line.
func (res *Result) String() string {
	if res.Verdict == Skip {
		return fmt.Sprintf("%s skip goal=%.2f  %s", res.Name, res.Goal, res.Note)
	}
	p, f := middle(res.Products), middle(res.Floor)
	line := fmt.Sprintf("%s ratio=%.2f [%.2f..%.2f] aa=%.2f goal=%.2f %s cpu=%.2fs/%.2fs rss=%dMiB/%dMiB  %s",
		res.Name, res.Ratio, res.Min, res.Max, res.Control, res.Goal, res.Verdict, p.CPU, f.CPU, p.RSS>>20, f.RSS>>20, res.Note)
	return strings.TrimRight(line, " ")
}
