package expr

import (
	"math"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// compareNumbers compares two numbers of any kinds by the digits they are
// printed with: exactly, without rounding either. NaN is greatest and equals itself.
func compareNumbers(a, b *change.Value) int {
	switch ak, bk := a.Kind(), b.Kind(); {
	case ak == change.KindInt && bk == change.KindInt:
		return ordered(a.Int64(), b.Int64())
	case ak == change.KindUint && bk == change.KindUint:
		return ordered(a.Uint64(), b.Uint64())
	case ak == change.KindInt && bk == change.KindUint:
		return compareIntUint(a.Int64(), b.Uint64())
	case ak == change.KindUint && bk == change.KindInt:
		return -compareIntUint(b.Int64(), a.Uint64())
	case ak == change.KindFloat64 && bk == change.KindFloat64:
		return compareFloats(a.Float64(), b.Float64())
	case ak == change.KindFloat32 && bk == change.KindFloat32:
		return compareFloats(float64(a.Float32()), float64(b.Float32()))
	}
	var x, y [40]byte
	return compareDigits(appendDigits(x[:0], a), appendDigits(y[:0], b))
}

func ordered[T int | int64 | uint64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareIntUint(a int64, b uint64) int {
	if a < 0 {
		return -1
	}
	return ordered(uint64(a), b)
}

func compareFloats(a, b float64) int {
	an, bn := math.IsNaN(a), math.IsNaN(b)
	switch {
	case an && bn:
		return 0
	case an:
		return 1
	case bn:
		return -1
	}
	return ordered(a, b)
}

// appendDigits appends a number as text; a decimal's own text is returned as it is.
func appendDigits(dst []byte, v *change.Value) []byte {
	switch v.Kind() {
	case change.KindInt:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case change.KindUint:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case change.KindDecimal:
		return v.Raw()
	}
	return change.AppendText(dst, *v)
}

// digits is a number's text in parts: value = 0.d1d2d3… · 10^point, d1 not 0.
type digits struct {
	rank  int    // -2 -Infinity, -1 negative, 0 zero, 1 positive, 2 Infinity, 3 NaN
	whole []byte // significant digits, possibly with a point among them
	point int
}

// readDigits takes [-+]digits[.digits][e[-+]digits], NaN or [-]Infinity apart without copying.
func readDigits(text []byte) digits {
	d := digits{rank: 1}
	if len(text) == 0 {
		return digits{}
	}
	switch text[0] {
	case 'N', 'n':
		return digits{rank: 3}
	case '-':
		d.rank, text = -1, text[1:]
	case '+':
		text = text[1:]
	}
	if len(text) > 0 && (text[0] == 'I' || text[0] == 'i') {
		d.rank *= 2
		return d
	}
	exponent, end := 0, len(text)
	d.point = -1
	for i, c := range text {
		if c == '.' {
			d.point = i
		} else if c == 'e' || c == 'E' {
			exponent, _ = strconv.Atoi(string(text[i+1:]))
			end = i
			break
		}
	}
	text = text[:end]
	if d.point < 0 {
		d.point = end
	}
	start := 0
	for start < len(text) && (text[start] == '0' || text[start] == '.') {
		start++
	}
	if start == len(text) {
		return digits{}
	}
	d.whole = text[start:]
	if start > d.point {
		d.point++ // the point itself is no digit
	}
	d.point += exponent - start
	return d
}

func compareDigits(a, b []byte) int {
	x, y := readDigits(a), readDigits(b)
	return x.compare(&y)
}

func (d *digits) compare(o *digits) int {
	if d.rank != o.rank || d.rank != 1 && d.rank != -1 {
		return ordered(d.rank, o.rank)
	}
	c := ordered(d.point, o.point)
	if c == 0 {
		c = compareFraction(d.whole, o.whole)
	}
	return c * d.rank
}

// compareFraction compares digits from the left; what is missing at the end is 0.
func compareFraction(a, b []byte) int {
	for len(a) > 0 || len(b) > 0 {
		var x, y byte = '0', '0'
		if len(a) > 0 {
			if x, a = a[0], a[1:]; x == '.' {
				if len(a) == 0 {
					x = '0'
				} else {
					x, a = a[0], a[1:]
				}
			}
		}
		if len(b) > 0 {
			if y, b = b[0], b[1:]; y == '.' {
				if len(b) == 0 {
					y = '0'
				} else {
					y, b = b[0], b[1:]
				}
			}
		}
		if x != y {
			return ordered(int(x), int(y))
		}
	}
	return 0
}
