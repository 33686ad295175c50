package derive

import (
	"encoding/json"
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// Names under image.MemoryKey. Each holds JSON.
const (
	memMeta    = "meta"
	memApplied = "applied"
	memTable   = "table/"    // and the table's number
	memView    = "view/"     // and the view's name
	memPass    = "progress/" // and the view's name
)

// formatVersion is the version of everything in the store.
const formatVersion = 1

// meta describes the store.
type meta struct {
	Version   int      `json:"version"`
	Log       [16]byte `json:"log"`
	NextTable uint32   `json:"next_table"`
	NextView  uint32   `json:"next_view"`
}

// tableRecord is an image; one that is not live was being built and is built anew after a restart.
type tableRecord struct {
	Table *image.Table `json:"table"`
	Live  bool         `json:"live"`
}

// viewRecord is what is kept of a view besides its documents.
type viewRecord struct {
	ID      uint32      `json:"id"`
	Current *unitRecord `json:"current"`
	Old     *unitRecord `json:"old,omitempty"` // serves while Current's first pass runs
}

// unitRecord is a definition with the layouts that it was compiled against.
type unitRecord struct {
	Definition  []byte         `json:"definition"`
	Fingerprint string         `json:"fingerprint"`
	Schemas     []layoutRecord `json:"schemas"`
}

type layoutRecord struct {
	Topic  string `json:"topic"`
	ID     uint32 `json:"id"`
	Layout []byte `json:"layout"`
}

// progress changes with the steps of a view.
type progress struct {
	// Pass is set while every root behind Cursor is to be rebuilt; a nil Cursor is before the first.
	Pass bool `json:"pass"`
	// Fresh is set while no root behind Cursor has an output or is in the queue.
	Fresh  bool              `json:"fresh,omitempty"`
	Cursor []byte            `json:"cursor,omitempty"`
	Cause  eventlog.CSN      `json:"cause,omitempty"`
	Ends   []eventlog.Offset `json:"ends,omitempty"` // of the view's topic, behind the last output
	// Floor: nothing is output below this CSN (V24).
	Floor     eventlog.CSN `json:"floor,omitempty"`
	State     State        `json:"state"` // as of the commit, for readers of a stopped directory
	Documents int64        `json:"documents"`
	// Refill is set while the view's topic is being mended, until its consumers were let go; see Runner.Refill.
	Refill  bool  `json:"refill,omitempty"`
	Pending int64 `json:"pending"`
}

func remember(b *image.Batch, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("state %s: %w", name, err)
	}
	return b.Set(image.MemoryKey(name), text)
}

func recall(r image.Reader, name string, v any) (bool, error) {
	text, ok, err := r.Get(nil, image.MemoryKey(name))
	if err != nil || !ok {
		return false, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, fmt.Errorf("state %s: %w", name, err)
	}
	return true, nil
}

// recallAll calls fn for each piece of state whose name starts with prefix.
func recallAll(r image.Reader, prefix string, fn func(name string, text []byte) error) error {
	bounds := image.Prefixed(image.MemoryKey(prefix))
	return r.Scan(bounds[0], bounds[1], func(k, v []byte) (bool, error) {
		return true, fn(string(k[1+len(prefix):]), v)
	})
}

// schemas returns the layouts as a lookup.
func (u *unitRecord) schemas() (Schemas, error) {
	byTopic := map[string]*change.Schema{}
	for _, l := range u.Schemas {
		s, err := change.DecodeSchema(change.SchemaKey(l.Topic, l.ID), l.Layout)
		if err != nil {
			return nil, fmt.Errorf("kept layout of %s: %w", l.Topic, err)
		}
		byTopic[l.Topic] = s
	}
	return func(topic string) (*change.Schema, bool) { s, ok := byTopic[topic]; return s, ok }, nil
}
