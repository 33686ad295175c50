package seglog

import (
	"context"
	"time"
)

// limiter slows background work down to a number of bytes a second, so that it
// leaves the disk and a core to appends.
type limiter struct {
	rate  int64 // bytes/s; 0: no limit
	begun time.Time
	spent int64
}

func newLimiter(rate int64) *limiter { return &limiter{rate: rate} }

// burst is how much may be spent before the limiter begins to look.
const burst = 1 << 20

// spend waits until n more bytes fit the rate.
func (m *limiter) spend(ctx context.Context, n int64) error {
	if m.rate <= 0 {
		return ctx.Err()
	}
	if m.begun.IsZero() {
		m.begun = time.Now()
	}
	m.spent += n
	due := time.Duration(float64(m.spent-burst) / float64(m.rate) * float64(time.Second))
	wait := due - time.Since(m.begun)
	if wait < 5*time.Millisecond {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
