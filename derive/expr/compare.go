package expr

import (
	"bytes"
	"fmt"

	"github.com/tailwater/tailwater/change"
)

// Compare orders two values, neither of them null: numbers exactly over all
// numeric kinds and NaN greatest, text and bytes by bytes, false before true,
// dates and timestamps by time, a timetz by its instant and then its offset,
// intervals as PostgreSQL does (a month is 30 days, a day 24 hours). A date
// compares with a timestamp as its midnight. Anything else is an error.
func Compare(a, b change.Value) (int, error) {
	return compareValues(&a, &b)
}

func compareValues(a, b *change.Value) (int, error) {
	ak, bk := a.Kind(), b.Kind()
	if ak.Numeric() && bk.Numeric() {
		return compareNumbers(a, b), nil
	}
	if ak != bk {
		switch {
		case ak == change.KindDate && bk == change.KindTimestamp:
			return compareTimestamps(dateMicros(a.Int64()), b.Int64()), nil
		case ak == change.KindTimestamp && bk == change.KindDate:
			return compareTimestamps(a.Int64(), dateMicros(b.Int64())), nil
		}
		return 0, incomparable(a, b)
	}
	switch ak {
	case change.KindText, change.KindBytes, change.KindUUID:
		return bytes.Compare(a.Raw(), b.Raw()), nil
	case change.KindBool, change.KindTime:
		return ordered(a.Int64(), b.Int64()), nil
	case change.KindDate:
		return compareDates(a.Int64(), b.Int64()), nil
	case change.KindTimestamp, change.KindTimestampTZ:
		return compareTimestamps(a.Int64(), b.Int64()), nil
	case change.KindTimeTZ:
		const second = 1000000
		if c := ordered(a.Int64()-a.Offset()*second, b.Int64()-b.Offset()*second); c != 0 {
			return c, nil
		}
		return ordered(b.Offset(), a.Offset()), nil
	case change.KindInterval:
		return compareIntervals(a, b), nil
	}
	return 0, incomparable(a, b)
}

func incomparable(a, b *change.Value) error {
	if a.IsUnchanged() || b.IsUnchanged() {
		return ErrUnchanged
	}
	return fmt.Errorf("expr: a %s does not compare with a %s", a.Kind(), b.Kind())
}

func compareIntervals(a, b *change.Value) int {
	const day = 86400 * 1000000
	parts := func(v *change.Value) (days, rest int64) {
		days, rest = int64(v.Months())*30+int64(v.Days())+v.Int64()/day, v.Int64()%day
		if rest < 0 {
			days, rest = days-1, rest+day
		}
		return days, rest
	}
	ad, ar := parts(a)
	bd, br := parts(b)
	if c := ordered(ad, bd); c != 0 {
		return c
	}
	return ordered(ar, br)
}
