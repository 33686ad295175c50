package change

import (
	"math"
	"strconv"
)

const (
	microsPerSecond = 1000000
	microsPerDay    = 86400 * microsPerSecond
	// daysTo2000 is the number of days from 1970-01-01 to 2000-01-01.
	daysTo2000 = 10957
)

// UnixMicros returns µs since 1970 of a timestamp in µs since 2000.
func UnixMicros(since2000 int64) int64 { return since2000 + unixToPostgresEpochMicros }

// FromUnixMicros returns µs since 2000 of a timestamp in µs since 1970.
func FromUnixMicros(micros int64) int64 { return micros - unixToPostgresEpochMicros }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// CivilDate returns the proleptic Gregorian date of a day counted from 1970-01-01; 1 BC is year 0.
func CivilDate(days int64) (year int64, month, day int) {
	z := days + 719468 // from 0000-03-01
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if mp >= 10 {
		month = int(mp - 9)
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// DaysFromCivil is the inverse of CivilDate.
func DaysFromCivil(year int64, month, day int) int64 {
	m := int64(month)
	if m <= 2 {
		year--
		m += 12
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*(m-3)+2)/5 + int64(day) - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

func appendPadded(dst []byte, n int64, width int) []byte {
	var scratch [20]byte
	text := strconv.AppendInt(scratch[:0], n, 10)
	for i := len(text); i < width; i++ {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

// appendYMD writes ISO 8601, with the expanded form outside years 1 to 9999 (0000 is 1 BC).
func appendYMD(dst []byte, year int64, month, day int) []byte {
	switch {
	case year < 0:
		dst = append(dst, '-')
		year = -year
	case year > 9999:
		dst = append(dst, '+')
	}
	dst = append(appendPadded(dst, year, 4), '-')
	dst = append(appendPadded(dst, int64(month), 2), '-')
	return appendPadded(dst, int64(day), 2)
}

func appendDate(dst []byte, days int64) []byte {
	switch {
	case days == DateInfinity:
		return append(dst, "infinity"...)
	case days == DateNegInfinity:
		return append(dst, "-infinity"...)
	case days >= DatePartial:
		p := days - DatePartial
		return appendYMD(dst, p/10000, int(p/100%100), int(p%100))
	}
	year, month, day := CivilDate(days)
	return appendYMD(dst, year, month, day)
}

// appendTime writes [-]HH:MM:SS[.f]; hours may exceed 23.
func appendTime(dst []byte, micros int64) []byte {
	if micros < 0 {
		dst = append(dst, '-')
		micros = -micros
	}
	s := micros / microsPerSecond
	dst = append(appendPadded(dst, s/3600, 2), ':')
	dst = append(appendPadded(dst, s/60%60, 2), ':')
	dst = appendPadded(dst, s%60, 2)
	return appendFraction(dst, micros%microsPerSecond)
}

func appendFraction(dst []byte, micros int64) []byte {
	if micros == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), micros, 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendOffset writes ±HH:MM, and :SS where there are seconds.
func appendOffset(dst []byte, seconds int64) []byte {
	sign := byte('+')
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	dst = append(appendPadded(append(dst, sign), seconds/3600, 2), ':')
	dst = appendPadded(dst, seconds/60%60, 2)
	if seconds%60 != 0 {
		dst = appendPadded(append(dst, ':'), seconds%60, 2)
	}
	return dst
}

func appendTimestamp(dst []byte, micros int64, utc bool) []byte {
	switch {
	case micros == TimestampInfinity:
		return append(dst, "infinity"...)
	case micros == TimestampNegInfinity:
		return append(dst, "-infinity"...)
	case micros <= TimestampPartial:
		return appendPartialTimestamp(dst, TimestampPartial-micros)
	}
	days := floorDiv(micros, microsPerDay)
	dst = append(appendDate(dst, days+daysTo2000), 'T')
	dst = appendTime(dst, micros-days*microsPerDay)
	if utc {
		dst = append(dst, 'Z')
	}
	return dst
}

// appendPartialTimestamp writes a zero or partial date of MySQL as the server prints it, with a blank (TYPES.md K8).
func appendPartialTimestamp(dst []byte, packed int64) []byte {
	ymd := packed / microsPerDay
	dst = appendYMD(dst, ymd/32/13, int(ymd/32%13), int(ymd%32))
	return appendTime(append(dst, ' '), packed%microsPerDay)
}

// appendIntervalText writes what PostgreSQL prints with IntervalStyle iso_8601.
func appendIntervalText(dst []byte, v Value) []byte {
	months, days, micros := int64(v.Months()), int64(v.Days()), v.n
	switch {
	case months == 0 && days == 0 && micros == 0:
		return append(dst, "PT0S"...)
	case months == math.MaxInt32 && days == math.MaxInt32 && micros == math.MaxInt64: // PostgreSQL 17 and later
		return append(dst, "infinity"...)
	case months == math.MinInt32 && days == math.MinInt32 && micros == math.MinInt64:
		return append(dst, "-infinity"...)
	}
	dst = append(dst, 'P')
	dst = appendUnit(dst, months/12, 'Y')
	dst = appendUnit(dst, months%12, 'M')
	dst = appendUnit(dst, days, 'D')
	if micros == 0 {
		return dst
	}
	dst = append(dst, 'T')
	dst = appendUnit(dst, micros/(3600*microsPerSecond), 'H')
	dst = appendUnit(dst, micros/(60*microsPerSecond)%60, 'M')
	if rest := micros % (60 * microsPerSecond); rest != 0 {
		if rest < 0 {
			dst = append(dst, '-')
			rest = -rest
		}
		dst = strconv.AppendInt(dst, rest/microsPerSecond, 10)
		dst = append(appendFraction(dst, rest%microsPerSecond), 'S')
	}
	return dst
}

func appendUnit(dst []byte, n int64, unit byte) []byte {
	if n == 0 {
		return dst
	}
	return append(strconv.AppendInt(dst, n, 10), unit)
}
