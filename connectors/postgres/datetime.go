package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/tailwater/tailwater/change"
)

// Decoders of dates, times and intervals in DateStyle ISO, IntervalStyle
// iso_8601 and TimeZone UTC.

var (
	errDate     = errors.New("not a date in ISO form")
	errTime     = errors.New("not a time in ISO form")
	errInterval = errors.New("not an interval in ISO 8601 form")
)

const (
	second     = int64(1000000) // in µs, as all of the following
	minute     = 60 * second
	hour       = 60 * minute
	day        = 24 * hour
	daysTo2000 = 10957 // from 1970-01-01
)

var suffixBC = []byte(" BC")

func appendDate(dst, text []byte) ([]byte, error) {
	switch string(text) {
	case "infinity":
		return binary.AppendVarint(dst, change.DateInfinity), nil
	case "-infinity":
		return binary.AppendVarint(dst, change.DateNegInfinity), nil
	}
	text, bc := bytes.CutSuffix(text, suffixBC)
	days, rest, err := readDate(text, bc)
	if err != nil || len(rest) != 0 {
		return nil, errDate
	}
	return binary.AppendVarint(dst, days), nil
}

// readDate reads YYYY-MM-DD with at least four digits of year.
func readDate(text []byte, bc bool) (days int64, rest []byte, err error) {
	year, n := readDigits(text)
	if n < 4 || n > 7 || len(text) < n+6 || text[n] != '-' || text[n+3] != '-' {
		return 0, nil, errDate
	}
	month, m := readDigits(text[n+1 : n+3])
	d, k := readDigits(text[n+4 : n+6])
	if m != 2 || k != 2 || month < 1 || month > 12 || d < 1 || d > 31 || year == 0 {
		return 0, nil, errDate
	}
	if bc {
		year = 1 - year
	}
	return change.DaysFromCivil(year, int(month), int(d)), text[n+6:], nil
}

// readDigits reads the digits that text starts with, up to 18.
func readDigits(text []byte) (v int64, n int) {
	for n < len(text) && n < 18 && text[n] >= '0' && text[n] <= '9' {
		v = v*10 + int64(text[n]-'0')
		n++
	}
	return v, n
}

// readTime reads HH:MM:SS[.ffffff].
func readTime(text []byte) (micros int64, rest []byte, err error) {
	if len(text) < 8 || text[2] != ':' || text[5] != ':' {
		return 0, nil, errTime
	}
	h, a := readDigits(text[0:2])
	m, b := readDigits(text[3:5])
	s, c := readDigits(text[6:8])
	if a != 2 || b != 2 || c != 2 || h > 24 || m > 59 || s > 60 {
		return 0, nil, errTime
	}
	micros, rest, err = readFraction(text[8:])
	return micros + h*hour + m*minute + s*second, rest, err
}

// readFraction reads [.ffffff] as µs.
func readFraction(text []byte) (micros int64, rest []byte, err error) {
	if len(text) == 0 || text[0] != '.' {
		return 0, text, nil
	}
	v, n := readDigits(text[1:])
	if n < 1 || n > 6 {
		return 0, nil, errTime
	}
	for i := n; i < 6; i++ {
		v *= 10
	}
	return v, text[1+n:], nil
}

// readOffset reads ±HH[:MM[:SS]] as seconds.
func readOffset(text []byte) (seconds int64, err error) {
	if len(text) < 3 || text[0] != '+' && text[0] != '-' {
		return 0, errTime
	}
	negative := text[0] == '-'
	unit := int64(3600)
	for text = text[1:]; ; text = text[3:] {
		v, n := readDigits(text[:min(2, len(text))])
		if n != 2 || unit == 0 {
			return 0, errTime
		}
		seconds += v * unit
		unit /= 60
		if len(text) == 2 {
			break
		}
		if text[2] != ':' || len(text) < 5 {
			return 0, errTime
		}
	}
	if negative {
		return -seconds, nil
	}
	return seconds, nil
}

func appendTime(dst, text []byte) ([]byte, error) {
	micros, rest, err := readTime(text)
	if err != nil || len(rest) != 0 {
		return nil, errTime
	}
	return binary.AppendVarint(dst, micros), nil
}

func appendTimeTZ(dst, text []byte) ([]byte, error) {
	micros, rest, err := readTime(text)
	if err != nil {
		return nil, err
	}
	offset, err := readOffset(rest)
	if err != nil {
		return nil, err
	}
	return binary.AppendVarint(binary.AppendVarint(dst, micros), offset), nil
}

// appendTimestamp takes timestamps with and without zone.
func appendTimestamp(dst, text []byte) ([]byte, error) {
	switch string(text) {
	case "infinity":
		return binary.AppendVarint(dst, change.TimestampInfinity), nil
	case "-infinity":
		return binary.AppendVarint(dst, change.TimestampNegInfinity), nil
	}
	text, bc := bytes.CutSuffix(text, suffixBC)
	days, rest, err := readDate(text, bc)
	if err != nil {
		return nil, err
	}
	if len(rest) == 0 || rest[0] != ' ' {
		return nil, errDate
	}
	micros, rest, err := readTime(rest[1:])
	if err != nil {
		return nil, err
	}
	offset := int64(0)
	if len(rest) != 0 {
		if offset, err = readOffset(rest); err != nil {
			return nil, err
		}
	}
	return binary.AppendVarint(dst, (days-daysTo2000)*day+micros-offset*second), nil
}

// appendInterval takes P[nY][nM][nD][T[nH][nM][n[.f]S]], each number signed.
// The infinite intervals of PostgreSQL 17 are the extreme values of all three
// fields, as the server has them.
func appendInterval(dst, text []byte) ([]byte, error) {
	switch string(text) {
	case "infinity":
		return appendIntervalFields(dst, math.MaxInt32, math.MaxInt32, math.MaxInt64), nil
	case "-infinity":
		return appendIntervalFields(dst, math.MinInt32, math.MinInt32, math.MinInt64), nil
	}
	if len(text) < 3 || text[0] != 'P' {
		return nil, errInterval
	}
	text = text[1:]
	var months, days, micros int64
	inTime := false
	for len(text) > 0 {
		if text[0] == 'T' && !inTime {
			inTime, text = true, text[1:]
			continue
		}
		whole, fraction, unit, rest, err := readIntervalField(text)
		if err != nil {
			return nil, err
		}
		switch {
		case unit == 'Y' && !inTime:
			months += whole * 12
		case unit == 'M' && !inTime:
			months += whole
		case unit == 'D' && !inTime:
			days += whole
		case unit == 'H' && inTime:
			micros += whole * hour
		case unit == 'M' && inTime:
			micros += whole * minute
		case unit == 'S' && inTime:
			micros += whole*second + fraction
		default:
			return nil, errInterval
		}
		text = rest
	}
	if months != int64(int32(months)) || days != int64(int32(days)) {
		return nil, errInterval
	}
	return appendIntervalFields(dst, months, days, micros), nil
}

func appendIntervalFields(dst []byte, months, days, micros int64) []byte {
	return binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(dst, months), days), micros)
}

// readIntervalField reads [-]digits[.digits] and a unit; the fraction has the number's sign.
func readIntervalField(text []byte) (whole, fraction int64, unit byte, rest []byte, err error) {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	whole, n := readDigits(text)
	if n == 0 {
		return 0, 0, 0, nil, errInterval
	}
	fraction, rest, err = readFraction(text[n:])
	if err != nil || len(rest) == 0 {
		return 0, 0, 0, nil, errInterval
	}
	if fraction != 0 && rest[0] != 'S' {
		return 0, 0, 0, nil, errInterval
	}
	if negative {
		whole, fraction = -whole, -fraction
	}
	return whole, fraction, rest[0], rest[1:], nil
}
