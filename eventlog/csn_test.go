package eventlog

import (
	"testing"
	"time"
)

// TestCSNGolden pins the clock part of a CSN: 2^22 a second since 2020, below 2^53 until 2088.
func TestCSNGolden(t *testing.T) {
	for _, tt := range []struct {
		at   string
		want CSN
	}{
		{"2019-12-31T23:59:59Z", 0}, {"2020-01-01T00:00:00Z", 0}, {"2020-01-01T00:00:01Z", 1 << 22},
		{"2026-11-29T00:00:00Z", 914666972774400}, {"2087-12-31T00:00:00Z", 9000265030041600},
	} {
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := ClockCSN(at); got != tt.want || got > MaxCSN {
			t.Errorf("ClockCSN(%s) = %d, want %d", tt.at, got, tt.want)
		}
	}
	at := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	if got := ClockTime(ClockCSN(at) + 77); !got.Equal(at) {
		t.Errorf("ClockTime = %v", got)
	}
}

func TestApart(t *testing.T) {
	const skip = Offset(ForeignSkip)
	for _, tt := range []struct {
		what     string
		from, to Offset
		want     int64
	}{
		{"the same", 7, 7, 0},
		{"records between", 7, 10, 3},
		{"records before a cut and behind it", 7, 10 + skip, 3},
		{"two cuts", 7, 10 + 2*skip, 3},
		{"a cut alone", 7, 7 + skip, 0},
		{"a cut that took more than came since", 10, 7 + skip, 0},
		{"backward", 10, 7, 0},
	} {
		if got := Apart(tt.from, tt.to); got != tt.want {
			t.Errorf("%s: Apart(%d, %d) = %d, want %d", tt.what, tt.from, tt.to, got, tt.want)
		}
	}
}

func TestLostTail(t *testing.T) {
	const skip = Offset(ForeignSkip)
	for _, tt := range []struct {
		what             string
		remembered, next Offset
		lost             bool
	}{
		{"nothing behind it", 100, 100, false},
		{"records behind it", 100, 101, false},
		{"behind a hole that compaction left", 100, 1_000_000, false},
		{"a cut that took nothing of it", 100, 100 + skip, false},
		{"two cuts that took nothing of it", 100, 100 + 2*skip, false},
		{"a cut that took one record", 101, 100 + skip, true},
		{"a cut that took many", 1_000_100, 100 + skip, true},
		{"two cuts", 105, 100 + 2*skip, true},
	} {
		if got := LostTail(tt.remembered, tt.next); got != tt.lost {
			t.Errorf("%s: LostTail(%d, %d) = %v", tt.what, tt.remembered, tt.next, got)
		}
	}
}
