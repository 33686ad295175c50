package expr

import (
	"bytes"
	"math/big"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// form says what a decimal is.
type form uint8

const (
	finite form = iota
	negInf
	posInf
	notANumber
)

// decimal is a number as PostgreSQL's numeric keeps it: coef · 10^-scale, where
// scale is the number of digits shown behind the point. apd is not used here:
// its contexts end at 100,000 digits, and it keeps no display scale.
type decimal struct {
	coef  *big.Int // finite only; never changed once shared
	scale int
	form  form
}

// toDecimal reads a number of any kind; a float by its printed digits.
func toDecimal(v *change.Value) decimal {
	switch v.Kind() {
	case change.KindInt:
		return decimal{coef: big.NewInt(v.Int64())}
	case change.KindUint:
		return decimal{coef: new(big.Int).SetUint64(v.Uint64())}
	}
	var scratch [40]byte
	return parseDecimal(appendDigits(scratch[:0], v))
}

// parseDecimal reads [-+]digits[.digits][e[-+]digits], NaN, [-]Infinity.
func parseDecimal(text []byte) decimal {
	switch readDigits(text).rank {
	case -2:
		return decimal{form: negInf}
	case 2:
		return decimal{form: posInf}
	case 3:
		return decimal{form: notANumber}
	}
	exponent := 0
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(string(text[i+1:]))
		text = text[:i]
	}
	d := decimal{coef: new(big.Int)}
	digits := text
	if i := bytes.IndexByte(text, '.'); i >= 0 {
		d.scale = len(text) - i - 1
		digits = append(append(make([]byte, 0, len(text)), text[:i]...), text[i+1:]...)
	}
	d.coef.SetString(string(digits), 10)
	if d.scale -= exponent; d.scale < 0 {
		d.coef.Mul(d.coef, pow10(-d.scale))
		d.scale = 0
	}
	return d
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// appendText appends the digits, exactly scale of them behind the point.
func (d decimal) appendText(dst []byte) []byte {
	switch d.form {
	case negInf:
		return append(dst, "-Infinity"...)
	case posInf:
		return append(dst, "Infinity"...)
	case notANumber:
		return append(dst, "NaN"...)
	}
	if d.coef.Sign() < 0 {
		dst = append(dst, '-')
	}
	text := new(big.Int).Abs(d.coef).Append(nil, 10)
	if pad := d.scale + 1 - len(text); pad > 0 {
		text = append(bytes.Repeat([]byte{'0'}, pad), text...)
	}
	point := len(text) - d.scale
	dst = append(dst, text[:point]...)
	if d.scale > 0 {
		dst = append(append(dst, '.'), text[point:]...)
	}
	return dst
}

// value returns the decimal as a Value; ok is false past PostgreSQL's 131,072 digits before the point.
func (d decimal) value() (v change.Value, ok bool) {
	text := d.appendText(nil)
	whole, _, _ := bytes.Cut(text, []byte("."))
	if d.form == finite && len(bytes.TrimPrefix(whole, []byte("-"))) > maxWhole {
		return change.Null, false
	}
	return change.Decimal(text), true
}

// rescaled returns the coefficient at another scale, which is not smaller.
func (d decimal) rescaled(scale int) *big.Int {
	if scale == d.scale {
		return d.coef
	}
	return new(big.Int).Mul(d.coef, pow10(scale-d.scale))
}

func (d decimal) sign() int {
	switch d.form {
	case negInf:
		return -1
	case posInf:
		return 1
	case notANumber:
		return 0
	}
	return d.coef.Sign()
}

func (d decimal) negated() decimal {
	switch d.form {
	case negInf:
		return decimal{form: posInf}
	case posInf:
		return decimal{form: negInf}
	case notANumber:
		return d
	}
	return decimal{coef: new(big.Int).Neg(d.coef), scale: d.scale}
}

func infinityOf(sign int) decimal {
	switch {
	case sign < 0:
		return decimal{form: negInf}
	case sign > 0:
		return decimal{form: posInf}
	}
	return decimal{form: notANumber}
}

func (d decimal) add(o decimal) decimal {
	switch {
	case d.form == notANumber || o.form == notANumber:
		return decimal{form: notANumber}
	case d.form != finite && o.form != finite:
		return infinityOf(d.sign() + o.sign())
	case d.form != finite:
		return d
	case o.form != finite:
		return o
	}
	scale := max(d.scale, o.scale)
	return decimal{coef: new(big.Int).Add(d.rescaled(scale), o.rescaled(scale)), scale: scale}
}

func (d decimal) multiply(o decimal) decimal {
	switch {
	case d.form == notANumber || o.form == notANumber:
		return decimal{form: notANumber}
	case d.form != finite || o.form != finite:
		return infinityOf(d.sign() * o.sign())
	}
	p := decimal{coef: new(big.Int).Mul(d.coef, o.coef), scale: d.scale + o.scale}
	if p.scale > maxFraction {
		return p.rounded(maxFraction)
	}
	return p
}

// divide is numeric division as PostgreSQL does it: the quotient has divScale
// digits behind the point, rounded half away from zero. ok is false for a zero divisor.
func (d decimal) divide(o decimal) (q decimal, ok bool) {
	switch {
	case d.form == notANumber || o.form == notANumber:
		return decimal{form: notANumber}, true
	case o.form != finite && d.form != finite:
		return decimal{form: notANumber}, true
	case o.form != finite:
		return decimal{coef: new(big.Int)}, true
	case o.coef.Sign() == 0:
		return decimal{}, false
	case d.form != finite:
		return infinityOf(d.sign() * o.sign()), true
	}
	scale := divScale(d, o)
	num, den := d.coef, o.coef
	if shift := scale + o.scale - d.scale; shift >= 0 {
		num = new(big.Int).Mul(num, pow10(shift))
	} else {
		den = new(big.Int).Mul(den, pow10(-shift))
	}
	return decimal{coef: divideHalfAway(num, den), scale: scale}, true
}

// modulo is the remainder of the division truncated towards zero; it has the dividend's sign.
func (d decimal) modulo(o decimal) (r decimal, ok bool) {
	switch {
	case d.form == notANumber || o.form == notANumber:
		return decimal{form: notANumber}, true
	case o.form == finite && o.coef.Sign() == 0:
		return decimal{}, false
	case d.form != finite:
		return decimal{form: notANumber}, true
	case o.form != finite:
		return d, true
	}
	scale := max(d.scale, o.scale)
	return decimal{coef: new(big.Int).Rem(d.rescaled(scale), o.rescaled(scale)), scale: scale}, true
}

// divideHalfAway is num/den rounded half away from zero.
func divideHalfAway(num, den *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(num, den, new(big.Int))
	if r.Lsh(r, 1).CmpAbs(den) >= 0 {
		if (num.Sign() < 0) == (den.Sign() < 0) {
			q.Add(q, big.NewInt(1))
		} else {
			q.Sub(q, big.NewInt(1))
		}
	}
	return q
}

// divScale is select_div_scale of PostgreSQL's numeric.c: at least 16
// significant digits of the quotient and no fewer digits behind the point than
// either operand, at most 1000. It counts in digits of base 10000, hence steps
// of four: 10/3 has 16 digits behind the point, 10000/3 has 12.
func divScale(a, b decimal) int {
	aw, af := leading(a)
	bw, bf := leading(b)
	weight := aw - bw
	if af <= bf {
		weight--
	}
	return min(max(16-weight*4, a.scale, b.scale, 0), 1000)
}

// leading returns the weight and the value of the first base-10000 digit.
func leading(d decimal) (weight, first int) {
	if d.coef.Sign() == 0 {
		return 0, 0
	}
	text := new(big.Int).Abs(d.coef).Append(nil, 10)
	power := len(text) - d.scale - 1 // of the first digit
	weight = int(floorDiv(int64(power), 4))
	for i := range power - weight*4 + 1 {
		first *= 10
		if i < len(text) {
			first += int(text[i] - '0')
		}
	}
	return weight, first
}

// rounded rounds half away from zero to n digits behind the point, and shows
// them; a negative n rounds before the point.
func (d decimal) rounded(n int) decimal {
	if d.form != finite {
		return d
	}
	if n >= d.scale {
		return decimal{coef: d.rescaled(n), scale: n}
	}
	q := divideHalfAway(d.coef, pow10(d.scale-n))
	if n < 0 {
		return decimal{coef: q.Mul(q, pow10(-n))}
	}
	return decimal{coef: q, scale: n}
}

// floor is the largest whole number not above d; ceil of d is -floor(-d).
func (d decimal) floor() decimal {
	if d.form != finite {
		return d
	}
	q, r := new(big.Int).QuoRem(d.coef, pow10(d.scale), new(big.Int))
	if r.Sign() < 0 {
		q.Sub(q, big.NewInt(1))
	}
	return decimal{coef: q}
}
