package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// scripted returns one rate after the other, and notes its name in order.
func scripted(name string, order *[]string, rates ...float64) Contestant {
	return func(context.Context) (Sample, error) {
		*order = append(*order, name)
		if len(rates) == 0 {
			return Sample{}, fmt.Errorf("%s has no more rates", name)
		}
		r := rates[0]
		rates = rates[1:]
		return Sample{Rate: r, CPU: 1, RSS: 1 << 20}, nil
	}
}

func TestMeasureAlternates(t *testing.T) {
	var order []string
	row := Row{
		Name: "r", Goal: 0.9,
		Floor:   scripted("A", &order, 1, 100, 100, 120, 100, 100), // the first is the warm-up
		Product: scripted("B", &order, 1, 90, 80, 120, 110, 95),
	}
	res, err := row.Measure(context.Background(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "AB"+"ABBAABBAAB" {
		t.Errorf("order %s", got)
	}
	if res.Ratio != 0.95 || res.Min != 0.8 || res.Max != 1.1 || res.Verdict != OK {
		t.Errorf("result %+v", res)
	}
	if res.Control != 1.1 || res.Spread < 0.199 || res.Spread > 0.201 { // 120/100 and 100/100
		t.Errorf("control %v, spread %v", res.Control, res.Spread)
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name          string
		ratio, lo, hi float64
		spread, goal  float64
		want          string
	}{
		{"reaches it", 0.91, 0.5, 1, 0, 0.9, OK},
		{"inside the range", 0.85, 0.8, 0.95, 0, 0.9, Noise},
		{"inside the widened range", 0.85, 0.8, 0.88, 0.03, 0.9, Noise},
		{"outside", 0.85, 0.8, 0.88, 0.01, 0.9, Miss},
	} {
		res := Result{Ratio: tt.ratio, Min: tt.lo, Max: tt.hi, Spread: tt.spread, Goal: tt.goal}
		if got := verdict(&res); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestLine(t *testing.T) {
	res := Result{
		Name: "append", Ratio: 0.934, Min: 0.9, Max: 0.98, Control: 1.01, Goal: 0.9, Verdict: OK, Note: "1 GiB",
		Products: []Sample{{CPU: 1.25, RSS: 40 << 20}}, Floor: []Sample{{CPU: 0.5, RSS: 3 << 20}},
	}
	want := "append ratio=0.93 [0.90..0.98] aa=1.01 goal=0.90 ok cpu=1.25s/0.50s rss=40MiB/3MiB  1 GiB"
	if got := res.String(); got != want {
		t.Errorf("line\n%s\nwant\n%s", got, want)
	}
}
