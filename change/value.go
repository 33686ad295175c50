package change

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kind says how a column's values are stored.
type Kind uint8

// The kinds. Their numbers are stored in schemas and never change.
const (
	KindNull        Kind = 0 // no value; never a column's kind
	KindBool        Kind = 1
	KindInt         Kind = 2 // signed, up to 64 bits
	KindUint        Kind = 3 // unsigned, up to 64 bits
	KindDecimal     Kind = 4 // exact digits as the database prints them
	KindFloat32     Kind = 5
	KindFloat64     Kind = 6
	KindText        Kind = 7 // UTF-8; also enums, ranges, addresses and unknown types
	KindBytes       Kind = 8
	KindDate        Kind = 9
	KindTime        Kind = 10
	KindTimeTZ      Kind = 11
	KindTimestamp   Kind = 12
	KindTimestampTZ Kind = 13
	KindInterval    Kind = 14
	KindUUID        Kind = 15
	KindJSON        Kind = 16 // JSON text: json, arrays, composites, spatial
	kindUnchanged   Kind = 255
)

var kindNames = [...]string{"null", "bool", "int", "uint", "decimal", "float32", "float64", "text", "bytes",
	"date", "time", "timetz", "timestamp", "timestamptz", "interval", "uuid", "json"}

// String returns the kind's name, for example "decimal".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	if k == kindUnchanged {
		return "unchanged"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Numeric reports whether values of the kind are numbers, comparable with those of every other numeric kind.
func (k Kind) Numeric() bool {
	switch k {
	case KindInt, KindUint, KindDecimal, KindFloat32, KindFloat64:
		return true
	}
	return false
}

// Valid reports whether k is a kind that a column may have.
func (k Kind) Valid() bool { return k >= KindBool && k <= KindJSON }

// Reserved numbers of dates (days) and timestamps (µs), for values that no
// calendar has. Partial dates of MySQL (zero year, month or day) are stored
// as DatePartial + year*10000 + month*100 + day, and as TimestampPartial minus
// (((year*13+month)*32+day)*86400000000 + µs of day).
const (
	DateInfinity              int64 = 1 << 40
	DateNegInfinity           int64 = -(1 << 40)
	DatePartial               int64 = 1 << 41
	TimestampInfinity         int64 = math.MaxInt64
	TimestampNegInfinity      int64 = math.MinInt64
	TimestampPartial          int64 = -(1 << 61)
	unixToPostgresEpochMicros       = 946684800 * 1000000
)

// ErrDecode matches every error about bytes that are no encoding of ours.
var ErrDecode = errors.New("change: damaged encoding")

func damaged(what string) error { return fmt.Errorf("%w: %s", ErrDecode, what) }

// Value is one column's value: a small union without pointers but b. The zero
// Value is null. A Value read from a Row shares the Row's memory.
type Value struct {
	b    []byte
	n    int64 // bool, ints, days, µs, float bits
	m    int64 // timetz: offset seconds; interval: months<<32 | uint32(days)
	kind Kind
}

// Null is the null Value.
var Null Value

// UnchangedValue stands for a column that the source did not send. It only
// occurs when a whole row is decoded; it is not null.
var UnchangedValue = Value{kind: kindUnchanged}

// Constructors, one a kind.

func Bool(v bool) Value {
	if v {
		return Value{kind: KindBool, n: 1}
	}
	return Value{kind: KindBool}
}
func Int(v int64) Value         { return Value{kind: KindInt, n: v} }
func Uint(v uint64) Value       { return Value{kind: KindUint, n: int64(v)} }
func Float32(v float32) Value   { return Value{kind: KindFloat32, n: int64(math.Float32bits(v))} }
func Float64(v float64) Value   { return Value{kind: KindFloat64, n: int64(math.Float64bits(v))} }
func Text(v string) Value       { return Value{kind: KindText, b: []byte(v)} }
func TextBytes(v []byte) Value  { return Value{kind: KindText, b: v} }
func Bytes(v []byte) Value      { return Value{kind: KindBytes, b: v} }
func Date(days int64) Value     { return Value{kind: KindDate, n: days} }
func Time(micros int64) Value   { return Value{kind: KindTime, n: micros} }
func UUID(v [16]byte) Value     { return Value{kind: KindUUID, b: v[:]} }
func JSON(text []byte) Value    { return Value{kind: KindJSON, b: text} }
func Decimal(text []byte) Value { return Value{kind: KindDecimal, b: text} }

// TimeTZ is a time of day in µs with its offset in seconds east of UTC.
func TimeTZ(micros, offset int64) Value { return Value{kind: KindTimeTZ, n: micros, m: offset} }

// Timestamp is µs since 2000-01-01T00:00:00 without a zone.
func Timestamp(micros int64) Value { return Value{kind: KindTimestamp, n: micros} }

// TimestampTZ is µs since 2000-01-01T00:00:00Z.
func TimestampTZ(micros int64) Value { return Value{kind: KindTimestampTZ, n: micros} }

// Interval is PostgreSQL's interval: months, days and µs, each signed.
func Interval(months, days int32, micros int64) Value {
	return Value{kind: KindInterval, n: micros, m: int64(months)<<32 | int64(uint32(days))}
}

// Kind returns the value's kind; KindNull for null.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is null. An unchanged value is not null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// IsUnchanged reports whether the source left the column out.
func (v Value) IsUnchanged() bool { return v.kind == kindUnchanged }

// Bool, Int64, Uint64 and the other getters return the payload; which one holds it is said at the constructors.
func (v Value) Bool() bool        { return v.n != 0 }
func (v Value) Int64() int64      { return v.n }
func (v Value) Uint64() uint64    { return uint64(v.n) }
func (v Value) Float32() float32  { return math.Float32frombits(uint32(v.n)) }
func (v Value) Float64() float64  { return math.Float64frombits(uint64(v.n)) }
func (v Value) Raw() []byte       { return v.b }
func (v Value) Offset() int64     { return v.m }
func (v Value) Months() int32     { return int32(v.m >> 32) }
func (v Value) Days() int32       { return int32(uint32(v.m)) }
func (v Value) TextValue() string { return string(v.b) }

// AppendValue appends the encoding of v, which is neither null nor unchanged.
func AppendValue(dst []byte, v Value) []byte {
	switch v.kind {
	case KindBool:
		return append(dst, byte(v.n))
	case KindInt, KindDate, KindTime, KindTimestamp, KindTimestampTZ:
		return binary.AppendVarint(dst, v.n)
	case KindUint:
		return binary.AppendUvarint(dst, uint64(v.n))
	case KindFloat32:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.n))
	case KindFloat64:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.n))
	case KindTimeTZ:
		return binary.AppendVarint(binary.AppendVarint(dst, v.n), v.m)
	case KindInterval:
		dst = binary.AppendVarint(dst, int64(v.Months()))
		dst = binary.AppendVarint(dst, int64(v.Days()))
		return binary.AppendVarint(dst, v.n)
	case KindUUID:
		return append(dst, v.b...)
	case KindDecimal, KindText, KindBytes, KindJSON:
		dst = binary.AppendUvarint(dst, uint64(len(v.b)))
		return append(dst, v.b...)
	}
	panic("change: AppendValue of " + v.kind.String())
}

// DecodeValue reads a value of kind k at the start of b and returns what follows it. The Value shares b.
func DecodeValue(k Kind, b []byte) (Value, []byte, error) {
	v := Value{kind: k}
	var err error
	switch k {
	case KindBool:
		if len(b) < 1 || b[0] > 1 {
			return Null, nil, damaged("bool")
		}
		v.n = int64(b[0])
		return v, b[1:], nil
	case KindInt, KindDate, KindTime, KindTimestamp, KindTimestampTZ:
		v.n, b, err = readVarint(b)
	case KindUint:
		var u uint64
		u, b, err = readUvarint(b)
		v.n = int64(u)
	case KindFloat32:
		if len(b) < 4 {
			return Null, nil, damaged("float32")
		}
		v.n = int64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	case KindFloat64:
		if len(b) < 8 {
			return Null, nil, damaged("float64")
		}
		v.n = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	case KindTimeTZ:
		if v.n, b, err = readVarint(b); err == nil {
			v.m, b, err = readVarint(b)
		}
	case KindInterval:
		return decodeInterval(b)
	case KindUUID:
		if len(b) < 16 {
			return Null, nil, damaged("uuid")
		}
		v.b, b = b[:16:16], b[16:]
	case KindDecimal, KindText, KindBytes, KindJSON:
		v.b, b, err = readBytes(b)
	default:
		return Null, nil, damaged("column kind " + k.String())
	}
	if err != nil {
		return Null, nil, err
	}
	return v, b, nil
}

func decodeInterval(b []byte) (Value, []byte, error) {
	months, b, err := readVarint(b)
	if err != nil {
		return Null, nil, err
	}
	days, b, err := readVarint(b)
	if err != nil {
		return Null, nil, err
	}
	micros, b, err := readVarint(b)
	if err != nil {
		return Null, nil, err
	}
	if months != int64(int32(months)) || days != int64(int32(days)) {
		return Null, nil, damaged("interval")
	}
	return Interval(int32(months), int32(days), micros), b, nil
}

func readVarint(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, damaged("varint")
	}
	return v, b[n:], nil
}

func readUvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, damaged("uvarint")
	}
	return v, b[n:], nil
}

func readBytes(b []byte) ([]byte, []byte, error) {
	n, b, err := readUvarint(b)
	if err != nil {
		return nil, nil, err
	}
	if n > uint64(len(b)) {
		return nil, nil, damaged("length past the end")
	}
	return b[:n:n], b[n:], nil
}
