package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff doubles from First to Most; each pause is between half and all of
// that. The zero value starts at 100ms and ends at 30s.
type Backoff struct {
	First, Most time.Duration
	attempt     int
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	first, most := b.First, b.Most
	if first <= 0 {
		first = 100 * time.Millisecond
	}
	if most <= 0 {
		most = 30 * time.Second
	}
	d := most
	if b.attempt < 30 && first<<b.attempt < most {
		d = first << b.attempt
	}
	b.attempt++
	return d/2 + rand.N(d/2+1)
}

// Attempts returns how many pauses Next gave since Reset.
func (b *Backoff) Attempts() int { return b.attempt }

// Reset starts again at First, after a success.
func (b *Backoff) Reset() { b.attempt = 0 }

// Wait pauses for Next, or until ctx ends.
func (b *Backoff) Wait(ctx context.Context) error {
	t := time.NewTimer(b.Next())
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
