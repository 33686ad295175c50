package connectors

import (
	"encoding/json"
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

// SnapshotAction is what people can do to snapshots.
type SnapshotAction string

// The actions.
const (
	SnapshotPause  SnapshotAction = "pause"  // no further chunk is read until resume
	SnapshotResume SnapshotAction = "resume" // ends pause
	SnapshotStop   SnapshotAction = "stop"   // the unfinished run is given up
)

// PauseHistory is a History that also keeps which snapshots are paused, by their
// topics. LogHistory is one.
type PauseHistory interface {
	Paused() ([]string, error)
	SetPaused(topics []string) error
}

var _ PauseHistory = (*LogHistory)(nil)

// Paused returns the topics of SetPaused.
func (h *LogHistory) Paused() ([]string, error) {
	text, err := h.Log.Checkpoint("paused/" + h.Source)
	if err != nil || text == nil {
		return nil, err
	}
	var topics []string
	if err := json.Unmarshal(text, &topics); err != nil {
		return nil, fmt.Errorf("the checkpoint paused/%s: %w", h.Source, err)
	}
	return topics, nil
}

// SetPaused durably keeps the topics.
func (h *LogHistory) SetPaused(topics []string) error {
	if len(topics) == 0 {
		return h.Log.SaveCheckpoint("paused/"+h.Source, nil)
	}
	text, err := json.Marshal(topics)
	if err != nil {
		return err
	}
	return h.Log.SaveCheckpoint("paused/"+h.Source, text)
}
