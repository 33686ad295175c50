package daemon

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestDiskMeter: what status says of the data directory is new, unless measuring takes long.
func TestDiskMeter(t *testing.T) {
	for _, tt := range []struct{ takes, after time.Duration }{
		{time.Microsecond, 21 * time.Microsecond}, // a status right behind another
		{50 * time.Millisecond, 1050 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var used int64
			m := diskMeter{measure: func(string) int64 { time.Sleep(tt.takes); return used }} // of the bubble's clock
			m.use("x")
			used = 7
			if began := time.Now(); m.use("x") != 0 || time.Since(began) != 0 {
				t.Errorf("measuring takes %s and was done again at once", tt.takes)
			}
			time.Sleep(tt.after)
			if got := m.use("x"); got != 7 {
				t.Errorf("measuring takes %s; %s later it says %d, want 7", tt.takes, tt.after, got)
			}
		})
	}
	if got := new(diskMeter).use(t.TempDir()); got != 0 {
		t.Errorf("an empty directory takes %d bytes", got)
	}
}
