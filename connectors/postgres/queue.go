package postgres

import (
	"context"
	"sync"

	"github.com/tailwater/tailwater/change"
)

// item is one step of the stream.
type item struct {
	batch  *change.Batch // nil: the stream went on without rows
	passed LSN           // everything that committed at or below it is in this item or an earlier one; 0: inside a transaction
	layout *layoutChange // comes before a batch
	urgent bool          // the server waits for the position to become durable
	// signals come with the last batch of their transaction.
	signals []signalMessage
}

// queue holds the stream's items between reader and Next, bounded by the bytes
// of their batches. One goroutine puts, one takes.
type queue struct {
	limit int
	ready chan struct{} // capacity 1: there is an item or the end
	space chan struct{} // capacity 1: an item was taken

	mu    sync.Mutex // guards what follows
	items []item
	bytes int
	err   error // after the last item
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

// itemOverhead is counted for each batch beside its arena.
const itemOverhead = 512

func (it *item) size() int {
	if it.batch == nil {
		return 0
	}
	return it.batch.Size() + len(it.batch.Events)*48 + itemOverhead
}

// put adds an item, waiting while the queue is full. Progress is merged into
// progress that nobody has taken yet.
func (q *queue) put(ctx context.Context, it item) error {
	for {
		q.mu.Lock()
		if q.err != nil {
			q.mu.Unlock()
			return q.err
		}
		if n := len(q.items); n > 0 && it.batch == nil && it.layout == nil && q.items[n-1].batch == nil && q.items[n-1].layout == nil {
			last := &q.items[n-1]
			last.passed, last.urgent = max(last.passed, it.passed), last.urgent || it.urgent
			q.mu.Unlock()
			return nil
		}
		if q.bytes == 0 || q.bytes+it.size() <= q.limit {
			q.items = append(q.items, it)
			q.bytes += it.size()
			q.mu.Unlock()
			signal(q.ready)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns the next item; ok is false if there is none, and err then tells
// that there will be none.
func (q *queue) take() (it item, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false, q.err
	}
	it = q.items[0]
	q.items[0] = item{}
	if q.items = q.items[1:]; len(q.items) == 0 {
		q.items = nil
	}
	q.bytes -= it.size()
	signal(q.space)
	return it, true, nil
}

// end sets what comes after the items; the first call counts.
func (q *queue) end(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	q.mu.Unlock()
	signal(q.ready)
}

// signal sends to a channel of capacity 1 without waiting.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
