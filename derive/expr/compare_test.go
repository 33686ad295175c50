package expr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
)

func dec(s string) change.Value { return change.Decimal([]byte(s)) }

// TestCompareOrder lists values in ascending order; those in one group are equal.
func TestCompareOrder(t *testing.T) {
	nines := strings.Repeat("9", 131072)
	date := func(s string) change.Value {
		v, ok := parseDate(s)
		if !ok {
			t.Fatalf("date %s", s)
		}
		return v
	}
	stamp := func(s string) change.Value {
		v, ok := parseTimestamp(s, false)
		if !ok {
			t.Fatalf("timestamp %s", s)
		}
		return v
	}
	partial := func(y, m, d int64) change.Value { return change.Date(change.DatePartial + y*10000 + m*100 + d) }
	partialAt := func(y, m, d, us int64) change.Value {
		return change.Timestamp(change.TimestampPartial - (((y*13+m)*32+d)*86400000000 + us))
	}
	orders := map[string][][]change.Value{
		"numbers": {
			{dec("-Infinity"), change.Float64(math.Inf(-1)), change.Float32(float32(math.Inf(-1)))},
			{dec("-" + nines)}, {change.Float64(-1e300)}, {change.Int(math.MinInt64), dec("-9223372036854775808"), dec("-9223372036854775808.000")}, {change.Int(math.MinInt64 + 1)},
			{dec("-2"), change.Int(-2), change.Float64(-2)}, {dec("-1.5"), change.Float32(-1.5)}, {dec("-0.00012")}, {change.Float64(-5e-324)},
			{change.Int(0), change.Uint(0), dec("0"), dec("0.000"), change.Float64(0), change.Float64(math.Copysign(0, -1))},
			{dec("0." + strings.Repeat("0", 16382) + "1")}, {dec("0.00001"), change.Float64(1e-5)}, {dec("0.09999999999999999999")}, {dec("0.1"), dec("0.10"), change.Float64(0.1), change.Float32(0.1)}, {dec("0.10000000000000000001")},
			{dec("1.09")}, {dec("1.1"), dec("1.10")}, {dec("9.99")}, {change.Int(10), dec("10.0")}, {change.Int(9007199254740992), change.Float64(9007199254740992)}, {change.Int(9007199254740993), change.Uint(9007199254740993)},
			{change.Int(math.MaxInt64), change.Uint(math.MaxInt64)}, {change.Uint(1 << 63), dec("9223372036854775808")}, {change.Uint(1<<63 + 1), dec("9223372036854775809")}, {change.Uint(math.MaxUint64), dec("18446744073709551615.0")}, {dec("18446744073709551616")},
			{change.Float64(1e300)}, {dec(nines)}, {dec(nines + ".5")}, {dec("Infinity"), change.Float64(math.Inf(1))}, {dec("NaN"), change.Float64(math.NaN()), change.Float32(float32(math.NaN()))},
		},
		"text":       {{change.Text("")}, {change.Text("A")}, {change.Text("Z")}, {change.Text("a")}, {change.Text("ab")}, {change.Text("é")}, {change.Text("日")}},
		"bools":      {{change.Bool(false)}, {change.Bool(true)}},
		"dates":      {{date("-infinity"), stamp("-infinity")}, {date("0044-03-15 BC"), stamp("0044-03-15 00:00:00 BC")}, {partial(0, 0, 0), partialAt(0, 0, 0, 0)}, {date("0001-01-01")}, {partial(2024, 0, 0)}, {date("2024-01-01"), stamp("2024-01-01")}, {stamp("2024-01-01 00:00:00.000001")}, {partial(2024, 2, 0)}, {date("2024-02-01")}, {date("9999-12-31")}, {date("294276-12-31")}, {date("5874897-12-31")}, {date("infinity"), stamp("infinity")}},
		"timestamps": {{stamp("4713-01-01 BC")}, {partialAt(0, 0, 0, 0)}, {partialAt(0, 0, 0, 1)}, {partialAt(2024, 0, 1, 0)}, {stamp("2024-01-01T00:00:00")}, {stamp("2024-01-01 24:00:00"), stamp("2024-01-02")}},
		"timetz":     {{change.TimeTZ(3600e6, 3600), change.TimeTZ(3600e6, 3600)}, {change.TimeTZ(0, 0)}, {change.TimeTZ(3600e6, 0)}},
		"intervals":  {{change.Interval(0, -1, 0)}, {change.Interval(0, 0, 0)}, {change.Interval(0, 1, 0), change.Interval(0, 0, 86400e6)}, {change.Interval(1, 0, 0), change.Interval(0, 30, 0)}, {change.Interval(1, 0, 1)}},
	}
	for name, groups := range orders {
		for i, g := range groups {
			for j, h := range groups {
				for _, a := range g {
					for _, b := range h {
						got, err := Compare(a, b)
						if err != nil || got != ordered(i, j) {
							t.Errorf("%s: Compare(%.60q, %.60q) = %d, %v; want %d", name, change.AppendText(nil, a), change.AppendText(nil, b), got, err, ordered(i, j))
						}
					}
				}
			}
		}
	}
	for _, pair := range [][2]change.Value{{change.Int(1), change.Text("1")}, {change.Null, change.Int(1)}, {change.JSON([]byte("1")), change.JSON([]byte("1"))}, {change.Bool(true), change.Int(1)}, {change.UnchangedValue, change.Int(1)}, {change.Timestamp(0), change.TimestampTZ(0)}} {
		if _, err := Compare(pair[0], pair[1]); err == nil {
			t.Errorf("Compare(%s, %s) has an order", pair[0].Kind(), pair[1].Kind())
		}
	}
}

// TestCompareDigits checks the comparison of digits against exact rationals,
// and that the fast path over a literal gives the same.
func TestCompareDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	t.Log("seed=7")
	random := func() change.Value {
		switch rng.IntN(6) {
		case 0:
			return change.Int(int64(rng.Uint64()) >> rng.IntN(64))
		case 1:
			return change.Uint(rng.Uint64() >> rng.IntN(64))
		case 2:
			return change.Float64(math.Float64frombits(0x3ff0000000000000+uint64(rng.IntN(8))) * math.Pow10(rng.IntN(9)-4))
		case 3:
			return change.Float32(float32(rng.IntN(2000)-1000) / 8)
		}
		b := []byte{byte('0' + rng.IntN(10))}
		for range rng.IntN(4) {
			b = append(b, byte('0'+rng.IntN(3)))
		}
		if b = append(b, '.', byte('0'+rng.IntN(3))); rng.IntN(2) == 0 {
			b = append([]byte{'-'}, b...)
		}
		return change.Decimal(b)
	}
	for range 20000 {
		a, b := random(), random()
		x, _ := new(big.Rat).SetString(string(change.AppendText(nil, a)))
		y, _ := new(big.Rat).SetString(string(change.AppendText(nil, b)))
		want := x.Cmp(y)
		if got, err := Compare(a, b); got != want || err != nil {
			t.Fatalf("Compare(%s %s, %s %s) = %d, want %d", a.Kind(), change.AppendText(nil, a), b.Kind(), change.AppendText(nil, b), got, want)
		}
		if order := literalOrder(a.Kind(), b, 1); order(&a) != triOf(want < 0) {
			t.Fatalf("fast path: %s %s < %s %s is %d", a.Kind(), change.AppendText(nil, a), b.Kind(), change.AppendText(nil, b), order(&a))
		}
	}
}

func TestDateTexts(t *testing.T) {
	for in, want := range map[string]string{"2024-02-29": "2024-02-29", "2024-2-9": "2024-02-09", " 2024-02-29 ": "2024-02-29", "0001-01-01 BC": "0000-01-01", "-0001-01-01": "-0001-01-01", "+10000-01-01": "+10000-01-01", "10000-01-01": "+10000-01-01",
		"4713-01-01 BC": "-4712-01-01", "INFINITY": "infinity", "2023-02-29": "", "2024-13-01": "", "2024-00-01": "", "24-01-01": "", "2024-01-01x": "", "2024-01": "", "": "", "20240101": "", "-infinity": "-infinity", "5874898-01-01": ""} {
		v, ok := parseDate(in)
		if ok != (want != "") || ok && string(change.AppendText(nil, v)) != want {
			t.Errorf("date %q = %s, %v; want %q", in, change.AppendText(nil, v), ok, want)
		}
	}
	for in, want := range map[string]string{"2024-02-29": "2024-02-29T00:00:00Z", "2024-02-29 12:34": "2024-02-29T12:34:00Z", "2024-02-29T12:34:56.7891239+05:30": "2024-02-29T07:04:56.789124Z", "2024-02-29 00:00:00 -08": "2024-02-29T08:00:00Z",
		"0001-01-01 00:00:00 BC": "0000-01-01T00:00:00Z", "2024-02-29T00:00:00Z": "2024-02-29T00:00:00Z", "2024-02-29 24:00:00": "2024-03-01T00:00:00Z", "2024-02-29 25:00": "", "2024-02-29 12:60": "", "2024-02-29 12": "", "2024-02-29T12:00+17": "", "2024-02-29T": "", "2024-02-29 00:00:00UTC": "2024-02-29T00:00:00Z", "2024-02-29 00:00:00+0530": "2024-02-28T18:30:00Z"} {
		v, ok := parseTimestamp(in, true)
		if ok != (want != "") || ok && string(change.AppendText(nil, v)) != want {
			t.Errorf("timestamptz %q = %s, %v; want %q", in, change.AppendText(nil, v), ok, want)
		}
	}
}

// TestNoAllocation checks the conditions that run for every row.
func TestNoAllocation(t *testing.T) {
	row := testRow()
	for _, src := range []string{"status != 'draft'", "qty > 3 and approved", "status IN ('a', 'b', 'Draft')", "price > 1.05", "price > 1", "big > 5", "ratio > 0.05", "small <= 0.1", "day >= '2024-01-01' AND at < '2025-01-01'",
		"none IS NULL OR qty IN (1, 2, 3)", "NOT (approved AND qty = 4)", "status LIKE '%ra%'", "qty BETWEEN 1 AND 5", "uid = 'c0ffee00-0000-4000-8000-000000000001'", "qty + id > 3", "seen > '2024-01-01'", "qty = price", "qty < ratio", "qty IS DISTINCT FROM id"} {
		e, err := CompilePredicate(src, testColumns)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = e.True(row) }); n != 0 {
			t.Errorf("%s: %v allocations a row", src, n)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"status != 'draft'", "qty / 0 > price", "case when approved then price else qty end > 1.5e3", "cast(status as decimal(3,1)) + 1 is null", "data -> 'a' ->> -1 like '%x_' escape '!'", "trim(both 'x' from status) || code", "extract(week from at) = 3", "round(price, 2) * big % 7", "day between '2024-01-01' and 'infinity'", "1e131071 + 0.1", "substring(status from -5 for 9223372036854775807)"} {
		f.Add(s)
	}
	row := testRow()
	f.Fuzz(func(t *testing.T, src string) {
		e, err := Compile(src, testColumns)
		if err != nil {
			var ee *Error
			if ee, _ = err.(*Error); ee == nil || ee.Offset < 0 || ee.Offset > len(src) {
				t.Fatalf("%q: error %#v", src, err)
			}
			return
		}
		v, verr := e.Eval(row)
		if verr == nil && !v.IsNull() && v.Kind() != e.Kind() {
			t.Fatalf("%q: a value of kind %s instead of %s", src, v.Kind(), e.Kind())
		}
		again, err := Compile(e.String(), testColumns)
		if err != nil || again.String() != e.String() || !slices.Equal(again.Columns(), e.Columns()) {
			t.Fatalf("%q: its canonical text %q does not compile to itself: %v", src, e, err)
		}
		w, werr := again.Eval(row)
		if (verr == nil) != (werr == nil) || string(change.AppendText(nil, v)) != string(change.AppendText(nil, w)) {
			t.Fatalf("%q: its canonical text %q gives another value", src, e)
		}
	})
}

func benchmark(b *testing.B, src string) {
	e, err := CompilePredicate(src, testColumns)
	if err != nil {
		b.Fatal(err)
	}
	row := testRow()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.True(row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatusNotDraft(b *testing.B)    { benchmark(b, "status != 'draft'") }
func BenchmarkQtyAndApproved(b *testing.B)    { benchmark(b, "qty > 3 and approved") }
func BenchmarkDecimalGreater(b *testing.B)    { benchmark(b, "price > 1.05") }
func BenchmarkDateRange(b *testing.B)         { benchmark(b, "day >= '2024-01-01' and day < '2025-01-01'") }
func BenchmarkTextIn(b *testing.B)            { benchmark(b, "status in ('a', 'b', 'c', 'd', 'Draft')") }
func BenchmarkDecimalArithmetic(b *testing.B) { benchmark(b, "qty * price > 100") }

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CompilePredicate("status != 'draft' and (qty > 3 or price < 1.5)", testColumns); err != nil {
			b.Fatal(err)
		}
	}
}
