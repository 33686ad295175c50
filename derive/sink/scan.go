package sink

import (
	"context"
	"fmt"
)

// Scan calls fn for every document in the target that the worker has open,
// beside its writes: what they change meanwhile may show or not.
func (w *Worker) Scan(ctx context.Context, fn func(id string, doc []byte) error) error {
	w.mu.Lock()
	t, state := w.open, w.stats.String()
	w.mu.Unlock()
	if t == nil {
		return fmt.Errorf("sink %q has view %q not open: %s", w.opts.SinkName, w.opts.View.Name, state)
	}
	return t.Scan(ctx, fn)
}

// publish makes the open target known to Scan; nil withdraws it.
func (w *Worker) publish(t Target) {
	w.mu.Lock()
	w.open = t
	w.mu.Unlock()
}
