package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffGrowsToItsBound(t *testing.T) {
	b := Backoff{First: time.Second, Most: 10 * time.Second}
	for i, most := range []time.Duration{1, 2, 4, 8, 10, 10} {
		if d := b.Next(); d < most*time.Second/2 || d > most*time.Second {
			t.Errorf("pause %d is %v, not between half and all of %ds", i, d, most)
		}
	}
	for range 100 {
		b.Next()
	}
	if d := b.Next(); d > 10*time.Second || d < 5*time.Second {
		t.Errorf("late pause %v", d)
	}
	b.Reset()
	if d := b.Next(); d > time.Second {
		t.Errorf("pause after a success %v", d)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		b := Backoff{First: time.Hour, Most: time.Hour}
		if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v", err)
		}
		b = Backoff{First: time.Second}
		if err := b.Wait(t.Context()); err != nil {
			t.Errorf("Wait = %v", err)
		}
	})
}
