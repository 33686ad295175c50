package expr

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// Aggregate folds values into one. Nulls are ignored, as in SQL. It belongs to
// one goroutine.
type Aggregate interface {
	// Add takes one value of the kind that the aggregate was made for, or null.
	// The value's memory is not kept. An unchanged value is ErrUnchanged.
	Add(v change.Value) error
	// Result is the aggregate of what was added: for nothing 0 (count), else null.
	Result() (change.Value, error)
	// Reset forgets what was added.
	Reset()
}

// AggregateOptions of NewAggregate.
type AggregateOptions struct {
	Round       *int // digits kept behind the point, half away from zero; sum, avg, min and max of numbers
	Approximate bool // allows sum and avg of floats, whose result depends on the order
}

// ErrApproximate refuses a sum or average of floats.
var ErrApproximate = errors.New("a sum of floats depends on the order of its rows and is not exact")

// NewAggregate makes count, sum, avg, min or max over values of a kind, and
// says the kind of its result: int for count; decimal for sum and avg, exact
// for as many rows as there are; float64 for those of floats with Approximate;
// the kind itself for min and max; decimal for whatever is rounded.
func NewAggregate(fn string, kind change.Kind, opts AggregateOptions) (Aggregate, change.Kind, error) {
	if opts.Round != nil && (*opts.Round < 0 || *opts.Round > 1000) {
		return nil, 0, fmt.Errorf("round: %d: digits behind the point are 0 to 1000", *opts.Round)
	}
	var agg Aggregate
	result := kind
	switch fn {
	case "count":
		if opts.Round != nil {
			return nil, 0, errors.New("round has no meaning for count, which is a whole number")
		}
		return &countAggregate{}, change.KindInt, nil
	case "sum", "avg":
		if !kind.Numeric() {
			return nil, 0, fmt.Errorf("%s wants numbers, not %s", fn, kind)
		}
		if isFloat(kind) {
			if !opts.Approximate {
				return nil, 0, fmt.Errorf("%s of %s: %w; set approximate: true to accept that, or make the column numeric", fn, kind, ErrApproximate)
			}
			agg, result = &floatAggregate{average: fn == "avg"}, change.KindFloat64
			break
		}
		agg, result = &sumAggregate{average: fn == "avg"}, change.KindDecimal
	case "min", "max":
		if kind == change.KindJSON || !kind.Valid() {
			return nil, 0, fmt.Errorf("%s wants values that have an order, not %s", fn, kind)
		}
		agg = &extremeAggregate{kind: kind, sign: map[string]int{"min": -1, "max": 1}[fn]}
	default:
		return nil, 0, fmt.Errorf("there is no aggregate %q; use count, sum, avg, min or max", fn)
	}
	if opts.Round == nil {
		return agg, result, nil
	}
	if !kind.Numeric() {
		return nil, 0, fmt.Errorf("round wants numbers, not %s", kind)
	}
	return &roundAggregate{Aggregate: agg, digits: *opts.Round}, change.KindDecimal, nil
}

func isFloat(k change.Kind) bool { return k == change.KindFloat32 || k == change.KindFloat64 }

type countAggregate struct{ n int64 }

func (a *countAggregate) Add(v change.Value) error {
	switch {
	case v.IsUnchanged():
		return ErrUnchanged
	case !v.IsNull():
		a.n++
	}
	return nil
}

func (a *countAggregate) Result() (change.Value, error) { return change.Int(a.n), nil }
func (a *countAggregate) Reset()                        { a.n = 0 }

// sumAggregate adds exactly: in small while it fits 64 bits, else in total.
// scale is the largest number of digits behind the point that was added, as in PostgreSQL.
type sumAggregate struct {
	average bool
	small   int64
	total   decimal
	n       int64
}

func (a *sumAggregate) Reset() { *a = sumAggregate{average: a.average} }

func (a *sumAggregate) Add(v change.Value) error {
	switch {
	case v.IsUnchanged():
		return ErrUnchanged
	case v.IsNull():
		return nil
	case !v.Kind().Numeric() || isFloat(v.Kind()):
		return fmt.Errorf("expr: an exact sum was given a %s", v.Kind())
	}
	a.n++
	if v.Kind() == change.KindInt {
		if s := a.small + v.Int64(); (s > a.small) == (v.Int64() > 0) {
			a.small = s
			return nil
		}
	}
	d := toDecimal(&v)
	if a.total.coef == nil && a.total.form == finite {
		a.total.coef = new(big.Int)
	}
	a.total = a.total.add(d)
	return nil
}

func (a *sumAggregate) Result() (change.Value, error) {
	if a.n == 0 {
		return change.Null, nil
	}
	sum := decimal{coef: big.NewInt(a.small)}
	if a.total.coef != nil || a.total.form != finite {
		sum = sum.add(a.total)
	}
	if a.average {
		sum, _ = sum.divide(decimal{coef: big.NewInt(a.n)})
	}
	v, ok := sum.value()
	if !ok {
		return change.Null, errors.New("expr: a sum has more than 131072 digits before the point")
	}
	return v, nil
}

// floatAggregate is the sum or average of floats in the order given.
type floatAggregate struct {
	average bool
	sum     float64
	n       int64
}

func (a *floatAggregate) Reset() { *a = floatAggregate{average: a.average} }

func (a *floatAggregate) Add(v change.Value) error {
	switch v.Kind() {
	case change.KindFloat32:
		a.sum += float64(v.Float32())
	case change.KindFloat64:
		a.sum += v.Float64()
	case change.KindNull:
		return nil
	default:
		if v.IsUnchanged() {
			return ErrUnchanged
		}
		return fmt.Errorf("expr: a sum of floats was given a %s", v.Kind())
	}
	a.n++
	return nil
}

func (a *floatAggregate) Result() (change.Value, error) {
	switch {
	case a.n == 0:
		return change.Null, nil
	case a.average:
		return change.Float64(a.sum / float64(a.n)), nil
	}
	return change.Float64(a.sum), nil
}

// extremeAggregate keeps the least (sign -1) or greatest value. Of equal ones,
// such as 1.0 and 1.00, the one with fewer bytes stays, so that order does not matter.
type extremeAggregate struct {
	kind change.Kind
	sign int
	best change.Value
}

func (a *extremeAggregate) Reset() { a.best = change.Null }

func (a *extremeAggregate) Add(v change.Value) error {
	switch {
	case v.IsUnchanged():
		return ErrUnchanged
	case v.IsNull():
		return nil
	case v.Kind() != a.kind:
		return fmt.Errorf("expr: an aggregate over %s was given a %s", a.kind, v.Kind())
	case a.best.IsNull():
		a.best = owned(v)
		return nil
	}
	order, err := compareValues(&v, &a.best)
	if err != nil {
		return err
	}
	if order == a.sign || order == 0 && before(v, a.best) {
		a.best = owned(v)
	}
	return nil
}

// before orders equal values that print differently.
func before(v, than change.Value) bool {
	if v.Kind() == change.KindInterval || isFloat(v.Kind()) {
		return bytes.Compare(change.AppendText(nil, v), change.AppendText(nil, than)) < 0
	}
	return len(v.Raw()) < len(than.Raw())
}

// owned copies the memory that a value shares with its row.
func owned(v change.Value) change.Value {
	b := slices.Clone(v.Raw())
	switch v.Kind() {
	case change.KindText:
		return change.TextBytes(b)
	case change.KindBytes:
		return change.Bytes(b)
	case change.KindDecimal:
		return change.Decimal(b)
	case change.KindJSON:
		return change.JSON(b)
	case change.KindUUID:
		return change.UUID([16]byte(b))
	}
	return v
}

func (a *extremeAggregate) Result() (change.Value, error) { return a.best, nil }

// roundAggregate rounds another's result, as ROUND(avg(x), n) does.
type roundAggregate struct {
	Aggregate
	digits int
}

func (a *roundAggregate) Result() (change.Value, error) {
	v, err := a.Aggregate.Result()
	if err != nil || v.IsNull() {
		return v, err
	}
	rounded, ok := toDecimal(&v).rounded(a.digits).value()
	if !ok {
		return change.Null, errors.New("expr: a rounded number has more than 131072 digits before the point")
	}
	return rounded, nil
}

// floatResult is a float computed from numbers; ok is false where PostgreSQL says "out of range".
func floatResult(f float64, operands ...float64) (change.Value, bool) {
	if math.IsInf(f, 0) && !slices.ContainsFunc(operands, func(o float64) bool { return math.IsInf(o, 0) }) {
		return change.Null, false
	}
	return change.Float64(f), true
}

// toFloat reads a number of any kind as the nearest float64.
func toFloat(v *change.Value) float64 {
	switch v.Kind() {
	case change.KindInt:
		return float64(v.Int64())
	case change.KindUint:
		return float64(v.Uint64())
	case change.KindFloat64:
		return v.Float64()
	case change.KindFloat32:
		return float64(v.Float32())
	}
	f, _ := strconv.ParseFloat(string(v.Raw()), 64)
	return f
}
