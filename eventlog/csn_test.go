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
