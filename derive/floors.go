package derive

import (
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// floors follows the snapshot marks of the tables up to the applied position.
type floors struct {
	tables map[string]*tableFloor
	loaded map[string]bool // sources
}

// tableFloor is the newest floor run of a table.
type tableFloor struct {
	run   uint64
	done  bool
	begun eventlog.CSN
}

func newFloors() *floors {
	return &floors{tables: map[string]*tableFloor{}, loaded: map[string]bool{}}
}

// sourceOf returns the source's name in a table's topic.
func sourceOf(topic string) string {
	escaped, _, _ := strings.Cut(topic, ".")
	if name, err := change.UnescapeName(escaped); err == nil {
		return name
	}
	return escaped
}

// load reads the marks of a source up to and including upTo; it may be repeated.
func (f *floors) load(log eventlog.Log, source string, upTo eventlog.CSN) error {
	if f.loaded[source] {
		return nil
	}
	t, ok := log.Topic(change.TopicSnapshots + source)
	if !ok {
		return nil // whatever it will hold comes behind upTo
	}
	r, err := log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{t.ID}})
	if err != nil {
		return fmt.Errorf("read %s: %w", t.Spec.Name, err)
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil {
			return fmt.Errorf("read %s: %w", t.Spec.Name, err)
		}
		if tx == nil || tx.CSN > upTo {
			f.loaded[source] = true
			return nil
		}
		for i := range tx.Records {
			if err := f.add(&tx.Records[i]); err != nil {
				return fmt.Errorf("%s: %w", t.Spec.Name, err)
			}
		}
	}
}

// add takes a record of a _snapshots topic. Records that are no marks (re-read requests) are passed over.
func (f *floors) add(rec *eventlog.Record) error {
	if _, control := change.Key(rec.Key).Control(); control || rec.Value == nil {
		return nil
	}
	if !change.IsSnapshotMark(rec.Key) {
		return nil
	}
	m, err := change.DecodeSnapshotMark(rec.Key, rec.Value)
	if err != nil {
		return fmt.Errorf("offset %d: %w", rec.Offset, err)
	}
	if !m.Floor {
		return nil
	}
	t := f.tables[m.Topic]
	if t == nil {
		t = &tableFloor{}
		f.tables[m.Topic] = t
	}
	switch {
	case m.Run > t.run:
		*t = tableFloor{run: m.Run, begun: rec.CSN, done: m.State == change.SnapshotDone}
	case m.Run == t.run && m.State == change.SnapshotDone:
		t.done = true
	}
	return nil
}

// open returns a table whose newest floor run is not done, and the CSN before
// which its image was whole (0: never); ok is true if there is none.
func (f *floors) open(topics []string) (topic string, below eventlog.CSN, ok bool) {
	ok = true
	for _, name := range topics {
		t := f.tables[name]
		if t != nil && t.done {
			continue
		}
		begun := eventlog.CSN(0)
		if t != nil && t.run > 1 {
			begun = t.begun
		}
		if ok || begun < below {
			topic, below = name, begun
		}
		ok = false
	}
	return topic, below, ok
}
