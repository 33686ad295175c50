package expr

import (
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// floatOrder compares a float column with a number. Order is that of the
// printed digits (compareNumbers): if the literal, rounded to the column's
// width, differs from the value, then so do the digits, and the same way,
// because rounding keeps order; if it is the same, the digits decide, once.
func floatOrder(kind change.Kind, lit change.Value, set outcome) func(v *change.Value) tri {
	bits := 64
	if kind == change.KindFloat32 {
		bits = 32
	}
	near, err := strconv.ParseFloat(string(change.AppendText(nil, lit)), bits)
	rounded := change.Float64(near)
	if bits == 32 {
		rounded = change.Float32(float32(near))
	}
	if err != nil { // past the largest float: the infinities lie behind it
		return func(v *change.Value) tri { return set.of(compareNumbers(v, &lit)) }
	}
	atRounded := compareNumbers(&rounded, &lit)
	return func(v *change.Value) tri {
		var f float64
		if bits == 32 {
			f = float64(v.Float32())
		} else {
			f = v.Float64()
		}
		if order := compareFloats(f, near); order != 0 {
			return set.of(order)
		}
		return set.of(atRounded)
	}
}
