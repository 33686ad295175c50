package change

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
)

// AppendJSON appends the value's canonical JSON (TYPES.md 4.1). It is the only
// place where column values become JSON; numbers keep all their digits.
func AppendJSON(dst []byte, v Value) []byte {
	switch v.kind {
	case KindNull, kindUnchanged:
		return append(dst, "null"...)
	case KindBool:
		return strconv.AppendBool(dst, v.n != 0)
	case KindInt, KindUint:
		return appendNumberText(dst, v)
	case KindDecimal:
		return appendNumberOrName(dst, v.b)
	case KindFloat32, KindFloat64:
		var scratch [40]byte
		return appendNumberOrName(dst, appendNumberText(scratch[:0], v))
	case KindJSON:
		return append(dst, v.b...)
	case KindText:
		return AppendJSONString(dst, v.b)
	}
	return append(AppendText(append(dst, '"'), v), '"')
}

// appendNumberOrName quotes NaN and the infinities.
func appendNumberOrName(dst, text []byte) []byte {
	if n := len(text); n > 0 && (text[n-1] < '0' || text[n-1] > '9') {
		return append(append(append(dst, '"'), text...), '"')
	}
	return append(dst, text...)
}

// AppendText appends the value's canonical text: what AppendJSON gives, without
// quotes and escapes. Document ids and templates are made of it.
func AppendText(dst []byte, v Value) []byte {
	switch v.kind {
	case KindNull, kindUnchanged:
		return append(dst, "null"...)
	case KindBool:
		return strconv.AppendBool(dst, v.n != 0)
	case KindInt, KindUint, KindDecimal, KindFloat32, KindFloat64:
		return appendNumberText(dst, v)
	case KindText, KindJSON:
		return append(dst, v.b...)
	case KindBytes:
		return base64.StdEncoding.AppendEncode(dst, v.b)
	case KindUUID:
		return appendUUID(dst, v.b)
	case KindDate:
		return appendDate(dst, v.n)
	case KindTime:
		return appendTime(dst, v.n)
	case KindTimeTZ:
		return appendOffset(appendTime(dst, v.n), v.m)
	case KindTimestamp:
		return appendTimestamp(dst, v.n, false)
	case KindTimestampTZ:
		return appendTimestamp(dst, v.n, true)
	case KindInterval:
		return appendIntervalText(dst, v)
	}
	panic("change: text of kind " + v.kind.String())
}

// appendFloatText appends the shortest digits that round-trip for the width, laid out as ECMAScript does.
func appendFloatText(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	if abs := math.Abs(f); abs == 0 || abs >= 1e-5 && abs < 1e20 {
		return strconv.AppendFloat(dst, f, 'f', -1, bits)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, bits)
	// The layout goes by the exponent of these digits, not by f: the float32 1e21 is less than 1e21.
	mark := start + bytes.LastIndexByte(dst[start:], 'e')
	exp := 0
	for _, c := range dst[mark+2:] {
		exp = exp*10 + int(c-'0')
	}
	if dst[mark+1] == '-' {
		exp = -exp
	}
	switch {
	case exp >= -6 && exp < 21:
		return strconv.AppendFloat(dst[:start], f, 'f', -1, bits)
	case len(dst) == mark+4 && dst[mark+2] == '0': // Go writes e-07, ECMAScript e-7
		return append(dst[:mark+2], dst[mark+3])
	}
	return dst
}

func appendUUID(dst, b []byte) []byte {
	for i, n := range [...]int{4, 2, 2, 2, 6} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst, b = hex.AppendEncode(dst, b[:n]), b[n:]
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a JSON string, escaping only what JSON requires. s is UTF-8: sources check it.
func AppendJSONString[T []byte | string](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}
