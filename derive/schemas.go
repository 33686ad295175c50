package derive

import (
	"fmt"
	"sync"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// registry knows every layout that the log has. Its methods may be called from any goroutine.
type registry struct {
	log eventlog.Log

	mu     sync.Mutex
	byID   map[schemaID]*change.Schema
	newest map[string]*change.Schema
}

type schemaID struct {
	topic string
	id    uint32
}

func newRegistry(log eventlog.Log) *registry {
	return &registry{log: log, byID: map[schemaID]*change.Schema{}, newest: map[string]*change.Schema{}}
}

// load reads all layouts that the log has by now.
func (g *registry) load() error {
	t, ok := g.log.Topic(change.TopicSchemas)
	if !ok {
		return nil
	}
	r, err := g.log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{t.ID}})
	if err != nil {
		return fmt.Errorf("read %s: %w", change.TopicSchemas, err)
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil {
			return fmt.Errorf("read %s: %w", change.TopicSchemas, err)
		}
		if tx == nil {
			return nil
		}
		for i := range tx.Records {
			if _, err := g.add(&tx.Records[i]); err != nil {
				return err
			}
		}
	}
}

// add takes a record of _schemas; the topic is "" if it is none of a layout.
func (g *registry) add(rec *eventlog.Record) (topic string, err error) {
	if _, control := change.Key(rec.Key).Control(); control || rec.Value == nil {
		return "", nil
	}
	s, err := change.DecodeSchema(change.Key(append([]byte{}, rec.Key...)), rec.Value)
	if err != nil {
		return "", fmt.Errorf("%s offset %d: %w", change.TopicSchemas, rec.Offset, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byID[schemaID{s.Topic, s.ID}] = s
	if n := g.newest[s.Topic]; n == nil || n.ID <= s.ID {
		g.newest[s.Topic] = s
	}
	return s.Topic, nil
}

// schema finds a layout; one that is not known yet is looked for in the log.
func (g *registry) schema(topic string, id uint32) (*change.Schema, bool) {
	if s, ok := g.known(topic, id); ok {
		return s, true
	}
	if g.load() != nil {
		return nil, false
	}
	return g.known(topic, id)
}

func (g *registry) known(topic string, id uint32) (*change.Schema, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.byID[schemaID{topic, id}]
	return s, ok
}

// latest returns the newest layout of a topic.
func (g *registry) latest(topic string) (*change.Schema, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.newest[topic]
	return s, ok
}
