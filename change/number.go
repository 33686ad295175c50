package change

import (
	"encoding/binary"
	"strconv"
)

// Numbers in keys. Every numeric kind is brought to one decimal form, so that
// 1, 1.00 and 1e0 have the same bytes and order is by value. A number is
// ±0.d1d2d3… · 100^e with base-100 digits, d1 and the last digit not 0:
//
//	e        one byte 0x80+e for |e| <= 100; above, 0xF0 and 4 bytes e
//	         big-endian; below, 0x08 and 4 bytes e+2^31
//	digits   2d+1 each, the last one 2d
//
// Behind the tag of a negative number every byte is inverted.

// decimalForm is a number's sign, significant ASCII digits and the power of ten
// behind them: digits · 10^exp.
type decimalForm struct {
	negative bool
	digits   []byte
	exp      int
}

func appendNumber(dst Key, v Value) Key {
	var scratch [40]byte
	text := appendNumberText(scratch[:0], v)
	switch string(text) {
	case "NaN":
		return append(dst, tagNaN)
	case "Infinity":
		return append(dst, tagInf)
	case "-Infinity":
		return append(dst, tagNegInf)
	}
	var digits [40]byte
	f := parseDecimal(digits[:0], text)
	if len(f.digits) == 0 {
		return append(dst, tagZero)
	}
	if !f.negative {
		return f.append(append(dst, tagPositive))
	}
	start := len(dst) + 1
	dst = f.append(append(dst, tagNegative))
	for i := start; i < len(dst); i++ {
		dst[i] = ^dst[i]
	}
	return dst
}

// appendNumberText appends the number's shortest exact text.
func appendNumberText(dst []byte, v Value) []byte {
	switch v.kind {
	case KindInt:
		return strconv.AppendInt(dst, v.n, 10)
	case KindUint:
		return strconv.AppendUint(dst, uint64(v.n), 10)
	case KindFloat32:
		return appendFloatText(dst, float64(v.Float32()), 32)
	case KindFloat64:
		return appendFloatText(dst, v.Float64(), 64)
	}
	return append(dst, v.b...)
}

// parseDecimal reads [-+]digits[.digits][e[-+]digits]; digits without leading and trailing zeros go to buf.
func parseDecimal(buf, text []byte) decimalForm {
	f := decimalForm{digits: buf}
	i, point := 0, false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		f.negative = text[i] == '-'
		i++
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.':
			point = true
		case c >= '0' && c <= '9':
			if c != '0' || len(f.digits) > 0 {
				f.digits = append(f.digits, c)
			}
			if point {
				f.exp--
			}
		default: // the exponent
			e, _ := strconv.Atoi(string(text[i+1:]))
			f.exp += e
			i = len(text)
		}
	}
	for n := len(f.digits); n > 0 && f.digits[n-1] == '0'; n = len(f.digits) {
		f.digits = f.digits[:n-1]
		f.exp++
	}
	return f
}

func (f decimalForm) append(dst Key) Key {
	// The point stands after the first len(digits)+exp digits; in pairs it must fall between two.
	point := len(f.digits) + f.exp
	e := (point + 1) >> 1 // ceil(point/2), also below 0
	switch {
	case e > 100:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xF0), uint32(e))
	case e < -100:
		dst = binary.BigEndian.AppendUint32(append(dst, 0x08), uint32(int64(e)+1<<31))
	default:
		dst = append(dst, byte(0x80+e))
	}
	digits := f.digits
	pair := byte(0)
	if point&1 != 0 { // the first pair has one digit
		pair, digits = digits[0]-'0', digits[1:]
	} else {
		pair, digits = twoDigits(digits)
	}
	for len(digits) > 0 {
		dst = append(dst, pair*2+1)
		pair, digits = twoDigits(digits)
	}
	return append(dst, pair*2)
}

func twoDigits(d []byte) (byte, []byte) {
	if len(d) == 1 {
		return (d[0] - '0') * 10, nil
	}
	return (d[0]-'0')*10 + d[1] - '0', d[2:]
}

func decodeNumber(b []byte, negative bool) (Value, []byte, error) {
	var invert byte
	if negative {
		invert = 0xFF
	}
	if len(b) == 0 {
		return Null, nil, damaged("key number")
	}
	e := int(b[0]^invert) - 0x80
	first := b[0] ^ invert
	b = b[1:]
	if first == 0xF0 || first == 0x08 {
		if len(b) < 4 {
			return Null, nil, damaged("key number exponent")
		}
		raw := binary.BigEndian.Uint32(b)
		if negative {
			raw = ^raw
		}
		if e = int(raw); first == 0x08 {
			e = int(int64(raw) - 1<<31)
		}
		b = b[4:]
	}
	if e > 100000 || e < -100000 { // PostgreSQL's numeric ends at 131,072 digits before and 16,383 behind the point
		return Null, nil, damaged("key number exponent")
	}
	var digits []byte
	for {
		if len(b) == 0 {
			return Null, nil, damaged("key number without an end")
		}
		d := b[0] ^ invert
		b = b[1:]
		if d>>1 > 99 {
			return Null, nil, damaged("key number digit")
		}
		digits = append(digits, d>>1/10+'0', d>>1%10+'0')
		if d&1 == 0 {
			break
		}
	}
	return numberValue(negative, digits, e*2), b, nil
}

// numberValue returns 0.digits · 10^point as the narrowest kind.
func numberValue(negative bool, digits []byte, point int) Value {
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	lead := 0
	for lead < len(digits) && digits[lead] == '0' {
		lead++
	}
	digits, point = digits[lead:], point-lead
	text := make([]byte, 0, len(digits)+8)
	if negative {
		text = append(text, '-')
	}
	switch {
	case point <= 0:
		text = append(text, "0."...)
		for range -point {
			text = append(text, '0')
		}
		return Decimal(append(text, digits...))
	case point < len(digits):
		text = append(append(text, digits[:point]...), '.')
		return Decimal(append(text, digits[point:]...))
	}
	text = append(text, digits...)
	for range point - len(digits) {
		text = append(text, '0')
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return Int(n)
	}
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return Uint(n)
	}
	return Decimal(text)
}
