package expr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

func ints(list ...int64) []change.Value {
	var out []change.Value
	for _, n := range list {
		out = append(out, change.Int(n))
	}
	return out
}

func decs(list ...string) []change.Value {
	var out []change.Value
	for _, s := range list {
		out = append(out, dec(s))
	}
	return out
}

func TestAggregates(t *testing.T) {
	two, zero := 2, 0
	nines := strings.Repeat("9", 131072)
	for _, tt := range []struct {
		name  string
		fn    string
		kind  change.Kind
		opts  AggregateOptions
		in    []change.Value
		want  string
		wants change.Kind
	}{
		// The averages are what PostgreSQL 15 prints.
		{"avg of 1 2", "avg", change.KindInt, AggregateOptions{}, ints(1, 2), "1.5000000000000000", change.KindDecimal},
		{"avg of 4 5 4", "avg", change.KindInt, AggregateOptions{}, ints(4, 5, 4), "4.3333333333333333", change.KindDecimal},
		{"avg of large ones", "avg", change.KindInt, AggregateOptions{}, ints(10000, 10001), "10000.5000000000000000", change.KindDecimal},
		{"avg below one", "avg", change.KindInt, AggregateOptions{}, ints(1, 0, 0), "0.33333333333333333333", change.KindDecimal},
		{"avg of zeros", "avg", change.KindInt, AggregateOptions{}, ints(0, 0), "0.00000000000000000000", change.KindDecimal},
		{"avg past 64 bits", "avg", change.KindInt, AggregateOptions{}, ints(math.MaxInt64, math.MaxInt64), "9223372036854775807", change.KindDecimal},
		{"avg of decimals", "avg", change.KindDecimal, AggregateOptions{}, decs("1.10", "2.2", "0.0001"), "1.10003333333333333333", change.KindDecimal},
		{"avg rounded", "avg", change.KindInt, AggregateOptions{Round: &two}, ints(4, 5), "4.50", change.KindDecimal},
		{"avg rounded half away", "avg", change.KindDecimal, AggregateOptions{Round: &two}, decs("-0.005"), "-0.01", change.KindDecimal},
		{"avg rounded to none", "avg", change.KindDecimal, AggregateOptions{Round: &zero}, decs("2.5"), "3", change.KindDecimal},
		{"avg of none", "avg", change.KindInt, AggregateOptions{}, []change.Value{change.Null}, "null", change.KindDecimal},
		{"count", "count", change.KindText, AggregateOptions{}, []change.Value{change.Text("a"), change.Null, change.Text("")}, "2", change.KindInt},
		{"count of none", "count", change.KindJSON, AggregateOptions{}, nil, "0", change.KindInt},
		{"sum", "sum", change.KindInt, AggregateOptions{}, append(ints(1, 2), change.Null), "3", change.KindDecimal},
		{"sum past 64 bits", "sum", change.KindInt, AggregateOptions{}, ints(math.MaxInt64, 1, math.MaxInt64, -5), "18446744073709551610", change.KindDecimal},
		{"sum below 64 bits", "sum", change.KindInt, AggregateOptions{}, ints(math.MinInt64, math.MinInt64, 1), "-18446744073709551615", change.KindDecimal},
		{"sum of uints", "sum", change.KindUint, AggregateOptions{}, []change.Value{change.Uint(math.MaxUint64), change.Uint(1)}, "18446744073709551616", change.KindDecimal},
		{"sum keeps the scale", "sum", change.KindDecimal, AggregateOptions{}, decs("1.10", "-1.1", "0.000"), "0.000", change.KindDecimal},
		{"sum rounded", "sum", change.KindDecimal, AggregateOptions{Round: &two}, decs("1.005", "1"), "2.01", change.KindDecimal},
		{"sum with NaN", "sum", change.KindDecimal, AggregateOptions{}, decs("1", "NaN", "Infinity"), "NaN", change.KindDecimal},
		{"sum with infinities", "sum", change.KindDecimal, AggregateOptions{}, decs("1", "Infinity", "-Infinity"), "NaN", change.KindDecimal},
		{"sum of 131,072 digits", "sum", change.KindDecimal, AggregateOptions{}, decs(nines, "-"+nines, "0.5"), "0.5", change.KindDecimal},
		{"sum of floats", "sum", change.KindFloat64, AggregateOptions{Approximate: true}, []change.Value{change.Float64(0.1), change.Float64(0.2)}, "0.30000000000000004", change.KindFloat64},
		{"avg of float32", "avg", change.KindFloat32, AggregateOptions{Approximate: true, Round: &two}, []change.Value{change.Float32(1.5), change.Float32(2)}, "1.75", change.KindDecimal},
		{"min", "min", change.KindText, AggregateOptions{}, []change.Value{change.Text("b"), change.Text("B"), change.Null}, "B", change.KindText},
		{"max", "max", change.KindDecimal, AggregateOptions{}, decs("9", "10.0", "10"), "10", change.KindDecimal},
		{"max in another order", "max", change.KindDecimal, AggregateOptions{}, decs("10", "10.0", "9"), "10", change.KindDecimal},
		{"max NaN", "max", change.KindDecimal, AggregateOptions{}, decs("9", "NaN", "Infinity"), "NaN", change.KindDecimal},
		{"min rounded", "min", change.KindFloat64, AggregateOptions{Round: &two}, []change.Value{change.Float64(0.125)}, "0.13", change.KindDecimal},
		{"max of dates", "max", change.KindDate, AggregateOptions{}, []change.Value{change.Date(1), change.Date(change.DateInfinity)}, "infinity", change.KindDate},
		{"min of bools", "min", change.KindBool, AggregateOptions{}, []change.Value{change.Bool(true), change.Bool(false)}, "false", change.KindBool},
		{"min of none", "min", change.KindUUID, AggregateOptions{}, nil, "null", change.KindUUID},
	} {
		agg, kind, err := NewAggregate(tt.fn, tt.kind, tt.opts)
		if err != nil || kind != tt.wants {
			t.Errorf("%s: kind %v, %v; want %v", tt.name, kind, err, tt.wants)
			continue
		}
		for round := range 2 { // again after Reset
			for _, v := range tt.in {
				if err := agg.Add(v); err != nil {
					t.Errorf("%s: %v", tt.name, err)
				}
			}
			v, err := agg.Result()
			if got := string(change.AppendText(nil, v)); err != nil || got != tt.want {
				t.Errorf("%s, round %d: %.50s, %v; want %.50s", tt.name, round, got, err, tt.want)
			}
			agg.Reset()
		}
		if err := agg.Add(change.UnchangedValue); !errors.Is(err, ErrUnchanged) {
			t.Errorf("%s: adding an unchanged value: %v", tt.name, err)
		}
	}
}

func TestAggregateRefused(t *testing.T) {
	minus := -1
	for _, tt := range []struct {
		fn   string
		kind change.Kind
		opts AggregateOptions
		want string
	}{
		{"sum", change.KindFloat64, AggregateOptions{}, "approximate: true"}, {"avg", change.KindFloat32, AggregateOptions{}, "approximate: true"}, {"sum", change.KindText, AggregateOptions{}, "numbers, not text"},
		{"min", change.KindJSON, AggregateOptions{}, "order"}, {"median", change.KindInt, AggregateOptions{}, "no aggregate"}, {"avg", change.KindInt, AggregateOptions{Round: &minus}, "0 to 1000"},
		{"count", change.KindInt, AggregateOptions{Round: new(int)}, "count"}, {"max", change.KindDate, AggregateOptions{Round: new(int)}, "numbers, not date"},
	} {
		if _, _, err := NewAggregate(tt.fn, tt.kind, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %v; want it to mention %q", tt.fn, tt.kind, err, tt.want)
		}
	}
	agg, _, _ := NewAggregate("sum", change.KindInt, AggregateOptions{})
	if agg.Add(change.Text("1")) == nil || agg.Add(change.Float64(1)) == nil {
		t.Error("a sum of ints took text or a float")
	}
}

// TestAggregateMemory checks that nothing added is kept by reference.
func TestAggregateMemory(t *testing.T) {
	for _, fn := range []string{"min", "max", "sum"} {
		agg, _, _ := NewAggregate(fn, change.KindDecimal, AggregateOptions{})
		b := []byte("1.50")
		_ = agg.Add(change.Decimal(b))
		copy(b, "9.99")
		if v, _ := agg.Result(); string(v.Raw()) != "1.50" {
			t.Errorf("%s = %s after its input was overwritten", fn, v.Raw())
		}
	}
}

// TestPostgresAggregates compares sums and averages of random numbers with a server's.
func TestPostgresAggregates(t *testing.T) {
	url := testkit.Postgres(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(ctx)
	rng := rand.New(rand.NewPCG(11, 3))
	t.Log("seed=11,3")
	for list, want := range map[string]string{"1,2": "1.5000000000000000", "4,5,4": "4.3333333333333333", "10000,10001": "10000.5000000000000000", "1,0,0": "0.33333333333333333333", "0,0": "0.00000000000000000000",
		"9223372036854775807,9223372036854775807": "9223372036854775807", "1.10,2.2,0.0001": "1.10003333333333333333"} { // as in TestAggregates
		var got string
		if err := conn.QueryRow(ctx, "SELECT avg(x)::text FROM unnest(ARRAY["+list+"]) AS u(x)").Scan(&got); err != nil || got != want {
			t.Errorf("avg of %s: PostgreSQL has %s, %v; TestAggregates %s", list, got, err, want)
		}
	}
	for range 1500 {
		compareAggregates(ctx, t, conn, rng)
	}
}

func compareAggregates(ctx context.Context, t *testing.T, conn *pgx.Conn, rng *rand.Rand) {
	t.Helper()
	var list []string
	for range 1 + rng.IntN(5) {
		n := []byte(fmt.Sprint(rng.Uint64() >> rng.IntN(64)))
		if rng.IntN(3) > 0 {
			n = append(n, '.')
			for range rng.IntN(20) {
				n = append(n, byte('0'+rng.IntN(10)))
			}
			n = append(n, byte('0'+rng.IntN(10)))
		}
		if rng.IntN(4) == 0 {
			n = append([]byte("0."), append([]byte(strings.Repeat("0", rng.IntN(30))), n[:1]...)...)
		}
		if rng.IntN(3) == 0 {
			n = append([]byte{'-'}, n...)
		}
		list = append(list, string(n))
	}
	sql := "SELECT sum(x)::text, avg(x)::text, round(avg(x), 2)::text, min(x) = %s, max(x) = %s, (sum(x) / nullif(max(x), 0))::text FROM unnest(ARRAY[" + strings.Join(list, ",") + "]::numeric[]) AS u(x)"
	two := 2
	results := map[string]string{}
	for _, a := range []struct {
		fn   string
		opts AggregateOptions
	}{{"sum", AggregateOptions{}}, {"avg", AggregateOptions{}}, {"avg", AggregateOptions{Round: &two}}, {"min", AggregateOptions{}}, {"max", AggregateOptions{}}} {
		agg, _, err := NewAggregate(a.fn, change.KindDecimal, a.opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if err := agg.Add(dec(s)); err != nil {
				t.Fatal(err)
			}
		}
		v, err := agg.Result()
		if err != nil {
			t.Fatal(err)
		}
		name := a.fn
		if a.opts.Round != nil {
			name += " rounded"
		}
		results[name] = string(v.Raw())
	}
	var sum, avg, rounded string
	var least, most bool
	var ratio *string
	if err := conn.QueryRow(ctx, fmt.Sprintf(sql, results["min"], results["max"])).Scan(&sum, &avg, &rounded, &least, &most, &ratio); err != nil {
		t.Fatal(err)
	}
	if sum != results["sum"] || avg != results["avg"] || rounded != results["avg rounded"] || !least || !most {
		t.Errorf("%v: %v; PostgreSQL has %s, %s, %s, %v, %v", list, results, sum, avg, rounded, least, most)
	}
	q, ok := parseDecimal([]byte(results["sum"])).divide(parseDecimal([]byte(results["max"])))
	if ok != (ratio != nil) || ok && string(q.appendText(nil)) != *ratio {
		t.Errorf("%s / %s = %s; PostgreSQL has %v", results["sum"], results["max"], q.appendText(nil), deref(ratio))
	}
}
