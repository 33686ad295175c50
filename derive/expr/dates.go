package expr

import (
	"math"

	"github.com/tailwater/tailwater/change"
)

const (
	microsPerDay = 86400 * 1000000
	daysTo2000   = 10957 // from 1970-01-01, where dates count from, to 2000-01-01, where timestamps do

	// The years that PostgreSQL's date and timestamp can hold.
	minYear = -4713
	maxYear = 5874897
)

func partialDate(n int64) bool { return n >= change.DatePartial }

func partialTimestamp(n int64) bool {
	return n <= change.TimestampPartial && n != change.TimestampNegInfinity
}

// compareDates orders days; MySQL's zero and partial dates stand by year, month
// and day, so that 0000-00-00 is the least.
func compareDates(a, b int64) int {
	if partialDate(a) || partialDate(b) {
		return ordered(datePlace(a), datePlace(b))
	}
	return ordered(a, b)
}

// datePlace is a number that orders real and partial dates together.
func datePlace(n int64) int64 {
	switch {
	case n == change.DateInfinity:
		return math.MaxInt64
	case n == change.DateNegInfinity:
		return math.MinInt64
	case partialDate(n):
		return n - change.DatePartial
	}
	y, m, d := change.CivilDate(n)
	return y*10000 + int64(m)*100 + int64(d)
}

func compareTimestamps(a, b int64) int {
	if partialTimestamp(a) || partialTimestamp(b) {
		ad, ar := timestampPlace(a)
		bd, br := timestampPlace(b)
		if c := ordered(ad, bd); c != 0 {
			return c
		}
		return ordered(ar, br)
	}
	return ordered(a, b)
}

// timestampPlace is a date's place and the µs of the day.
func timestampPlace(n int64) (place, micros int64) {
	switch {
	case n == change.TimestampInfinity:
		return math.MaxInt64, 0
	case n == change.TimestampNegInfinity:
		return math.MinInt64, 0
	case partialTimestamp(n):
		packed := change.TimestampPartial - n
		ymd := packed / microsPerDay
		return ymd/32/13*10000 + ymd/32%13*100 + ymd%32, packed % microsPerDay
	}
	days := floorDiv(n, microsPerDay)
	return datePlace(days + daysTo2000), n - days*microsPerDay
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// dateMicros is the midnight at which a date begins, as a timestamp. A date
// past what a timestamp can hold is next to the infinity.
func dateMicros(days int64) int64 {
	switch {
	case days == change.DateInfinity:
		return change.TimestampInfinity
	case days == change.DateNegInfinity:
		return change.TimestampNegInfinity
	case partialDate(days):
		p := days - change.DatePartial
		return change.TimestampPartial - ((p/10000*13+p/100%100)*32+p%100)*microsPerDay
	}
	d := days - daysTo2000
	if d > math.MaxInt64/microsPerDay {
		return change.TimestampInfinity - 1
	}
	return d * microsPerDay // PostgreSQL's dates begin at 4714 BC, which fits
}

// timestampDate is the date of a timestamp.
func timestampDate(micros int64) int64 {
	switch {
	case micros == change.TimestampInfinity:
		return change.DateInfinity
	case micros == change.TimestampNegInfinity:
		return change.DateNegInfinity
	case partialTimestamp(micros):
		place, _ := timestampPlace(micros)
		return change.DatePartial + place
	}
	return floorDiv(micros, microsPerDay) + daysTo2000
}

// dateText reads dates and times in ISO 8601, as documented: with T or a blank
// between date and time, BC behind or a sign before the year, infinity.
type dateText struct {
	s  string
	ok bool
}

func (p *dateText) fail() int64 {
	p.ok = false
	return 0
}

func (p *dateText) take(lit string) bool {
	if len(p.s) >= len(lit) && equalFold(p.s[:len(lit)], lit) {
		p.s = p.s[len(lit):]
		return true
	}
	return false
}

func equalFold(a, b string) bool {
	for i := range len(a) {
		x, y := a[i], b[i]
		if x >= 'A' && x <= 'Z' {
			x += 'a' - 'A'
		}
		if y >= 'A' && y <= 'Z' {
			y += 'a' - 'A'
		}
		if x != y {
			return false
		}
	}
	return true
}

// digits reads between least and most digits.
func (p *dateText) digits(least, most int) int64 {
	n, i := int64(0), 0
	for i < len(p.s) && i < most && p.s[i] >= '0' && p.s[i] <= '9' {
		n = n*10 + int64(p.s[i]-'0')
		i++
	}
	if i < least {
		return p.fail()
	}
	p.s = p.s[i:]
	return n
}

// date reads [±]Y-MM-DD; the era comes at the end of the text.
func (p *dateText) date(bc bool) int64 {
	sign := int64(1)
	if p.take("-") {
		sign = -1
	} else {
		p.take("+")
	}
	year := sign * p.digits(4, 7)
	if !p.take("-") {
		return p.fail()
	}
	month := p.digits(1, 2)
	if !p.take("-") {
		return p.fail()
	}
	day := p.digits(1, 2)
	if bc {
		if year <= 0 {
			return p.fail()
		}
		year = 1 - year
	}
	if !p.ok || year < minYear || year > maxYear || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return p.fail()
	}
	return change.DaysFromCivil(year, int(month), int(day))
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// time reads HH:MM[:SS[.f]] as µs; 24:00:00 is the end of the day.
func (p *dateText) time() int64 {
	h := p.digits(1, 2)
	if !p.take(":") {
		return p.fail()
	}
	m, s, f := p.digits(2, 2), int64(0), int64(0)
	if p.take(":") {
		s = p.digits(2, 2)
		if p.take(".") {
			f = p.fraction()
		}
	}
	if m > 59 || s > 59 || h > 24 || h == 24 && m+s+f > 0 {
		return p.fail()
	}
	return ((h*60+m)*60+s)*1000000 + f
}

// fraction reads digits behind the point and rounds to µs, half up.
func (p *dateText) fraction() int64 {
	n, i := int64(0), 0
	for ; i < len(p.s) && p.s[i] >= '0' && p.s[i] <= '9'; i++ {
		if i < 6 {
			n = n*10 + int64(p.s[i]-'0')
		} else if i == 6 && p.s[i] >= '5' {
			n++
		}
	}
	if i == 0 {
		return p.fail()
	}
	p.s = p.s[i:]
	for ; i < 6; i++ {
		n *= 10
	}
	return n
}

// offset reads Z, UTC, GMT or ±HH[:MM[:SS]] as seconds east of UTC.
func (p *dateText) offset() (seconds int64, given bool) {
	if p.take("Z") || p.take("UTC") || p.take("GMT") {
		return 0, true
	}
	sign := int64(1)
	switch {
	case p.take("-"):
		sign = -1
	case !p.take("+"):
		return 0, false
	}
	seconds = p.digits(1, 2) * 3600
	if p.take(":") || len(p.s) >= 2 {
		seconds += p.digits(2, 2) * 60
	}
	if p.take(":") {
		seconds += p.digits(2, 2)
	}
	if seconds >= 16*3600 {
		return p.fail(), true
	}
	return sign * seconds, true
}

// trimText takes blanks and the era off.
func trimText(s string) (rest string, bc bool) {
	trim := func(s string) string {
		for len(s) > 0 && s[0] == ' ' {
			s = s[1:]
		}
		for len(s) > 0 && s[len(s)-1] == ' ' {
			s = s[:len(s)-1]
		}
		return s
	}
	s = trim(s)
	if n := len(s) - 2; n > 0 && equalFold(s[n:], "BC") && s[n-1] == ' ' {
		return trim(s[:n]), true
	}
	return s, false
}

func parseDate(text string) (change.Value, bool) {
	s, bc := trimText(text)
	switch {
	case len(s) == 8 && equalFold(s, "infinity"):
		return change.Date(change.DateInfinity), true
	case len(s) == 9 && equalFold(s, "-infinity"):
		return change.Date(change.DateNegInfinity), true
	}
	p := dateText{s, true}
	days := p.date(bc)
	return change.Date(days), p.ok && p.s == ""
}

func parseTime(text string) (change.Value, bool) {
	s, _ := trimText(text)
	p := dateText{s, true}
	micros := p.time()
	return change.Time(micros), p.ok && p.s == ""
}

func parseTimeTZ(text string) (change.Value, bool) {
	s, _ := trimText(text)
	p := dateText{s, true}
	micros := p.time()
	p.take(" ")
	offset, _ := p.offset()
	return change.TimeTZ(micros, offset), p.ok && p.s == ""
}

// parseTimestamp reads a timestamp. Without a zone a text is UTC; with one a
// timestamp without a zone refuses it, since dropping it would change the time.
func parseTimestamp(text string, zoned bool) (change.Value, bool) {
	of := change.Timestamp
	if zoned {
		of = change.TimestampTZ
	}
	s, bc := trimText(text)
	switch {
	case len(s) == 8 && equalFold(s, "infinity"):
		return of(change.TimestampInfinity), true
	case len(s) == 9 && equalFold(s, "-infinity"):
		return of(change.TimestampNegInfinity), true
	}
	p := dateText{s, true}
	micros := dateMicros(p.date(bc))
	if p.ok && (p.take("T") || p.take(" ")) {
		at := p.time()
		p.take(" ")
		offset, given := p.offset()
		if given && !zoned {
			p.fail()
		}
		micros += at - offset*1000000
	}
	if micros >= change.TimestampInfinity-1-2*microsPerDay {
		p.fail()
	}
	return of(micros), p.ok && p.s == ""
}
