package connectors

import (
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// RequestHistory is a History that also knows the open re-read requests
// (change.RereadRequest). LogHistory is one.
type RequestHistory interface {
	History
	// Requests calls fn for each request of the source that was not answered.
	Requests(fn func(topic string, key change.Key) error) error
}

var _ RequestHistory = (*LogHistory)(nil)

// Requests calls fn for each re-read request of the source that was not answered.
func (h *LogHistory) Requests(fn func(topic string, key change.Key) error) error {
	open := map[string]bool{}
	var order []string
	err := readControl(h.Log, change.TopicSnapshots+h.Source, func(r eventlog.Record) error {
		if change.IsSnapshotMark(r.Key) {
			return nil
		}
		if r.Value == nil {
			delete(open, string(r.Key))
			return nil
		}
		if !open[string(r.Key)] {
			order = append(order, string(r.Key))
		}
		open[string(r.Key)] = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the re-read requests of source %q: %w", h.Source, err)
	}
	for _, k := range order {
		topic, key, ok := change.DecodeRereadKey(change.Key(k))
		if !ok || !open[k] {
			continue
		}
		delete(open, k)
		if err := fn(topic, key); err != nil {
			return err
		}
	}
	return nil
}
