package expr

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// dateFields are the fields of EXTRACT; the ones of time are 0 for a date.
var dateFields = map[string]func(days, micros int64) change.Value{
	"YEAR":    func(d, _ int64) change.Value { y, _, _ := change.CivilDate(d); return change.Int(era(y)) },
	"QUARTER": func(d, _ int64) change.Value { _, m, _ := change.CivilDate(d); return change.Int(int64(m+2) / 3) },
	"MONTH":   func(d, _ int64) change.Value { _, m, _ := change.CivilDate(d); return change.Int(int64(m)) },
	"DAY":     func(d, _ int64) change.Value { _, _, day := change.CivilDate(d); return change.Int(int64(day)) },
	"DOW":     func(d, _ int64) change.Value { return change.Int(weekday(d)) },
	"ISODOW":  func(d, _ int64) change.Value { return change.Int((weekday(d)+6)%7 + 1) },
	"DOY": func(d, _ int64) change.Value {
		y, _, _ := change.CivilDate(d)
		return change.Int(d - change.DaysFromCivil(y, 1, 1) + 1)
	},
	"WEEK":    func(d, _ int64) change.Value { _, w := isoWeek(d); return change.Int(w) },
	"ISOYEAR": func(d, _ int64) change.Value { y, _ := isoWeek(d); return change.Int(era(y)) },
	"HOUR":    func(_, us int64) change.Value { return change.Int(us / 3600000000) },
	"MINUTE":  func(_, us int64) change.Value { return change.Int(us / 60000000 % 60) },
	"SECOND":  func(_, us int64) change.Value { return sixDigits(big.NewInt(us % 60000000)) },
	"EPOCH": func(d, us int64) change.Value {
		n := new(big.Int).Mul(big.NewInt(d), big.NewInt(microsPerDay))
		return sixDigits(n.Add(n, big.NewInt(us)))
	},
}

// era counts years as people do: there is no year 0, 1 BC is -1.
func era(year int64) int64 {
	if year <= 0 {
		return year - 1
	}
	return year
}

// weekday counts from Sunday, 0; 1970-01-01 was a Thursday.
func weekday(days int64) int64 { return ((days+4)%7 + 7) % 7 }

// isoWeek is the week of ISO 8601 and the year it belongs to, that of its Thursday.
func isoWeek(days int64) (year, week int64) {
	thursday := days - (weekday(days)+6)%7 + 3
	year, _, _ = change.CivilDate(thursday)
	return year, (thursday-change.DaysFromCivil(year, 1, 1))/7 + 1
}

// sixDigits is a number of µs as seconds, with six digits as PostgreSQL gives them.
func sixDigits(micros *big.Int) change.Value {
	v, _ := decimal{coef: micros, scale: 6}.value()
	return v
}

// extract is EXTRACT(field FROM x). Infinite and partial dates have no fields: null.
func (c *compiler) extract(t *sqldriver.Node, args []*node) (*node, *Error) {
	field := strings.ToUpper(t.Args[0].Text)
	run, ok := dateFields[field]
	if !ok || t.Args[0].Op != sqldriver.OpWord && t.Args[0].Op != sqldriver.OpString {
		return nil, c.fail(t.Args[0].Offset, "EXTRACT has no field "+t.Args[0].Text, "fields: year quarter month week day doy dow isodow isoyear hour minute second epoch")
	}
	x := args[1]
	if field == "EPOCH" && x.kind == change.KindDate { // whole days have whole seconds
		run = func(d, _ int64) change.Value { return change.Decimal(strconv.AppendInt(nil, d*86400, 10)) }
	}
	timely := field == "HOUR" || field == "MINUTE" || field == "SECOND"
	switch x.kind {
	case change.KindTimestamp, change.KindTimestampTZ, change.KindNull:
	case change.KindDate:
		if timely {
			return nil, c.fail(x.offset, "a date has no "+strings.ToLower(field), "")
		}
	case change.KindTime:
		if !timely && field != "EPOCH" {
			return nil, c.fail(x.offset, "a time has no "+strings.ToLower(field), "")
		}
	default:
		return nil, c.fail(x.offset, "EXTRACT wants a date, a time or a timestamp, not "+x.describe(), "write CAST(x AS timestamp)")
	}
	kind := change.KindInt
	if field == "SECOND" || field == "EPOCH" {
		kind = change.KindDecimal
	}
	text := "EXTRACT(" + field + " FROM " + x.text + ")"
	return strict(t.Offset, kind, text, args[1:], func(v []change.Value) (change.Value, error) {
		days, micros, ok := clock(&v[0])
		if !ok {
			return change.Null, nil
		}
		return run(days, micros), nil
	}), nil
}

// clock splits a value into days since 1970 and µs of the day; ok is false for what no calendar has.
func clock(v *change.Value) (days, micros int64, ok bool) {
	n := v.Int64()
	switch v.Kind() {
	case change.KindTime:
		return 0, n, true
	case change.KindDate:
		return n, 0, n != change.DateInfinity && n != change.DateNegInfinity && !partialDate(n)
	}
	if n == change.TimestampInfinity || n == change.TimestampNegInfinity || partialTimestamp(n) {
		return 0, 0, false
	}
	d := floorDiv(n, microsPerDay)
	return d + daysTo2000, n - d*microsPerDay, true
}
