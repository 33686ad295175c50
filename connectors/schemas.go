package connectors

import (
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// schemaRegistry gives schema ids: equal layouts of a topic have the same id. It
// is read from the log at each Run, so that ids of groups that failed are forgotten.
type schemaRegistry struct {
	byLayout map[string]map[string]uint32 // topic, layout
	last     map[string]uint32            // highest id of a topic
	bySchema map[*change.Schema]uint32    // those seen, by identity
	current  map[string]uint32            // the id of the topic's newest record: its layout now
}

func openSchemas(log eventlog.Log) (*schemaRegistry, error) {
	r := &schemaRegistry{byLayout: map[string]map[string]uint32{}, last: map[string]uint32{}, bySchema: map[*change.Schema]uint32{}, current: map[string]uint32{}}
	err := readSchemas(log, func(s *change.Schema, layout []byte) { r.put(s.Topic, string(layout), s.ID) })
	return r, err
}

// readSchemas calls fn for every record of _schemas in order.
func readSchemas(log eventlog.Log, fn func(s *change.Schema, layout []byte)) error {
	return readControl(log, change.TopicSchemas, func(r eventlog.Record) error {
		if r.Value == nil {
			return nil
		}
		s, err := change.DecodeSchema(r.Key, r.Value)
		if err != nil {
			return fmt.Errorf("offset %d of %s: %w", r.Offset, change.TopicSchemas, err)
		}
		fn(s, r.Value)
		return nil
	})
}

// readControl calls fn for every record of a control topic; one that does not exist has none.
func readControl(log eventlog.Log, topic string, fn func(r eventlog.Record) error) error {
	t, ok := log.Topic(topic)
	if !ok {
		return nil
	}
	from := log.StartOffsets(t.ID)
	rd, err := log.ReadPartition(t.ID, 0, from[0])
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	defer rd.Close()
	for {
		r, ok, err := rd.Next()
		if err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
		if !ok {
			return nil
		}
		if err := fn(r); err != nil {
			return err
		}
	}
}

func (r *schemaRegistry) put(topic, layout string, id uint32) {
	m := r.byLayout[topic]
	if m == nil {
		m = map[string]uint32{}
		r.byLayout[topic] = m
	}
	m[layout] = id
	r.last[topic] = max(r.last[topic], id)
	r.current[topic] = id
}

// known reports whether s needs no record: it has an id, and is its topic's newest layout.
func (r *schemaRegistry) known(s *change.Schema) bool {
	id, ok := r.bySchema[s]
	return ok && r.current[s.Topic] == id
}

func (r *schemaRegistry) id(s *change.Schema) uint32 { return r.bySchema[s] }

// assign gives s its id; fresh tells that a record is due: the layout is new, or
// one that the topic returns to, so that the newest record is always its layout now.
func (r *schemaRegistry) assign(s *change.Schema) (id uint32, layout []byte, fresh bool) {
	layout = s.AppendLayout(nil)
	id, ok := r.byLayout[s.Topic][string(layout)]
	if !ok {
		id = r.last[s.Topic] + 1
	}
	fresh = r.current[s.Topic] != id
	r.put(s.Topic, string(layout), id)
	r.bySchema[s] = id
	return id, layout, fresh
}

// ReadSchemas calls fn for every schema of every topic, in the order they were made.
func ReadSchemas(log eventlog.Log, fn func(s *change.Schema)) error {
	return readSchemas(log, func(s *change.Schema, _ []byte) { fn(s) })
}
