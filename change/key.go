package change

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Key is the encoding of a tuple of values. Keys compare as the tuples do, and
// equal tuples have equal bytes. Each part is a tag and a body:
//
//	0x01            null
//	0x02 0x03       false, true
//	0x10            -Infinity
//	0x11 e digits   negative number, all bytes behind the tag inverted
//	0x12            zero
//	0x13 e digits   positive number: 0.d1d2… · 100^e, see number.go
//	0x14 0x15       Infinity, NaN
//	0x20 0x21 0x22  text, bytes, JSON: bytes with 0x00 as 0x00 0xFF, end 0x00 0x01
//	0x28            uuid, 16 bytes
//	0x30 … 0x33     date, timestamp, timestamptz, time: 8 bytes big-endian, sign bit inverted
//	0x34            timetz: UTC µs and offset, each as above
//	0x35            interval: whole days (30-day months), µs of day, then months, days, µs, each as above
type Key []byte

const (
	tagNull        = 0x01
	tagFalse       = 0x02
	tagTrue        = 0x03
	tagNegInf      = 0x10
	tagNegative    = 0x11
	tagZero        = 0x12
	tagPositive    = 0x13
	tagInf         = 0x14
	tagNaN         = 0x15
	tagText        = 0x20
	tagBytes       = 0x21
	tagJSON        = 0x22
	tagUUID        = 0x28
	tagDate        = 0x30
	tagTimestamp   = 0x31
	tagTimestampTZ = 0x32
	tagTime        = 0x33
	tagTimeTZ      = 0x34
	tagInterval    = 0x35
)

// Control keys are ControlKey and a kind.
const ControlKey byte = 0x00

// Kinds of control records.
const (
	ControlTruncate byte = 1 // every older row is gone
	ControlSweep    byte = 2 // every row last written before a CSN is gone
)

// Compare orders keys as their tuples.
func (k Key) Compare(o Key) int { return bytes.Compare(k, o) }

// Control reports whether the key is a control record's, and its kind.
func (k Key) Control() (kind byte, ok bool) {
	if len(k) == 2 && k[0] == ControlKey {
		return k[1], true
	}
	return 0, false
}

// String returns the key in hexadecimal; keys hold user data, so logs must not print it.
func (k Key) String() string { return hex.EncodeToString(k) }

// AppendKeyPart appends one part. With fold, text is lower-cased first.
func AppendKeyPart(dst Key, v Value, fold bool) Key {
	switch v.kind {
	case KindNull:
		return append(dst, tagNull)
	case KindBool:
		if v.n != 0 {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case KindInt, KindUint, KindDecimal, KindFloat32, KindFloat64:
		return appendNumber(dst, v)
	case KindText:
		b := v.b
		if fold {
			b = []byte(strings.ToLower(string(b)))
		}
		return appendEscaped(append(dst, tagText), b)
	case KindBytes:
		return appendEscaped(append(dst, tagBytes), v.b)
	case KindJSON:
		return appendEscaped(append(dst, tagJSON), v.b)
	case KindUUID:
		return append(append(dst, tagUUID), v.b...)
	case KindDate:
		return appendOrdered(append(dst, tagDate), v.n)
	case KindTimestamp:
		return appendOrdered(append(dst, tagTimestamp), v.n)
	case KindTimestampTZ:
		return appendOrdered(append(dst, tagTimestampTZ), v.n)
	case KindTime:
		return appendOrdered(append(dst, tagTime), v.n)
	case KindTimeTZ:
		return appendOrdered(appendOrdered(append(dst, tagTimeTZ), v.n-v.m*1000000), v.m)
	case KindInterval:
		return appendInterval(append(dst, tagInterval), v)
	}
	panic("change: key part of kind " + v.kind.String())
}

func appendOrdered(dst Key, n int64) Key {
	return binary.BigEndian.AppendUint64(dst, uint64(n)^1<<63)
}

// appendInterval orders as PostgreSQL compares: a month is 30 days, a day 24 hours.
func appendInterval(dst Key, v Value) Key {
	const day = 86400 * 1000000
	days, rest := int64(v.Months())*30+int64(v.Days())+v.n/day, v.n%day
	if rest < 0 {
		days, rest = days-1, rest+day
	}
	dst = appendOrdered(appendOrdered(dst, days), rest)
	dst = appendOrdered(appendOrdered(dst, int64(v.Months())), int64(v.Days()))
	return appendOrdered(dst, v.n)
}

func appendEscaped(dst Key, b []byte) Key {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, b[:i]...), 0x00, 0xFF)
		b = b[i+1:]
	}
	return append(append(dst, b...), 0x00, 0x01)
}

func readEscaped(b []byte) (v, rest []byte, err error) {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 >= len(b) {
			return nil, nil, damaged("key text without an end")
		}
		switch b[i+1] {
		case 0x01:
			if v == nil {
				return b[:i:i], b[i+2:], nil
			}
			return append(v, b[:i]...), b[i+2:], nil
		case 0xFF:
			v = append(append(v, b[:i]...), 0)
			b = b[i+2:]
		default:
			return nil, nil, damaged("key text escape")
		}
	}
}

func readOrdered(b []byte) (int64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, damaged("key shorter than its part")
	}
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63), b[8:], nil
}

// DecodeKey returns the parts of a row key. Numbers come as KindInt where they
// fit, else KindUint, else KindDecimal without trailing zeros.
func DecodeKey(k Key) ([]Value, error) {
	var parts []Value
	b := []byte(k)
	for len(b) > 0 {
		v, rest, err := decodeKeyPart(b)
		if err != nil {
			return nil, err
		}
		parts, b = append(parts, v), rest
	}
	return parts, nil
}

func decodeKeyPart(b []byte) (Value, []byte, error) {
	tag, b := b[0], b[1:]
	switch tag {
	case tagNull:
		return Null, b, nil
	case tagFalse, tagTrue:
		return Bool(tag == tagTrue), b, nil
	case tagNegInf:
		return Decimal([]byte("-Infinity")), b, nil
	case tagInf:
		return Decimal([]byte("Infinity")), b, nil
	case tagNaN:
		return Decimal([]byte("NaN")), b, nil
	case tagZero:
		return Int(0), b, nil
	case tagNegative, tagPositive:
		return decodeNumber(b, tag == tagNegative)
	case tagText, tagBytes, tagJSON:
		v, rest, err := readEscaped(b)
		return Value{kind: map[byte]Kind{tagText: KindText, tagBytes: KindBytes, tagJSON: KindJSON}[tag], b: v}, rest, err
	case tagUUID:
		if len(b) < 16 {
			return Null, nil, damaged("key uuid")
		}
		return Value{kind: KindUUID, b: b[:16:16]}, b[16:], nil
	case tagDate, tagTimestamp, tagTimestampTZ, tagTime:
		n, rest, err := readOrdered(b)
		return Value{kind: map[byte]Kind{tagDate: KindDate, tagTimestamp: KindTimestamp, tagTimestampTZ: KindTimestampTZ, tagTime: KindTime}[tag], n: n}, rest, err
	case tagTimeTZ:
		utc, rest, err := readOrdered(b)
		if err != nil {
			return Null, nil, err
		}
		offset, rest, err := readOrdered(rest)
		return TimeTZ(utc+offset*1000000, offset), rest, err
	case tagInterval:
		return decodeKeyInterval(b)
	}
	return Null, nil, damaged("key tag")
}

func decodeKeyInterval(b []byte) (Value, []byte, error) {
	var f [5]int64
	for i := range f {
		var err error
		if f[i], b, err = readOrdered(b); err != nil {
			return Null, nil, err
		}
	}
	return Interval(int32(f[2]), int32(f[3]), f[4]), b, nil
}
