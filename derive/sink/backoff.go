package sink

import (
	"math/rand/v2"
	"time"
)

// backoff is exponential with full jitter on its upper half.
type backoff struct {
	min, max time.Duration
	n        int
}

// next returns how long to wait before the next attempt.
func (b *backoff) next() time.Duration {
	d := b.max
	if b.n < 32 && b.min<<b.n < b.max {
		d = b.min << b.n
	}
	b.n++
	return d/2 + rand.N(d/2+1)
}

func (b *backoff) reset() { b.n = 0 }
