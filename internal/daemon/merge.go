package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

// openLog opens the log of a data directory for writing, as the configuration wants it.
func openLog(cfg *config.Config, dir *dataDir, logger *slog.Logger) (*seglog.Log, error) {
	m := &merger{}
	journal, most := int64(cfg.Log.Journal), quota(int64(cfg.Log.Quota), dir.path)
	log, err := seglog.Open(dir.logDir(), seglog.Options{
		// A small journal wants small files, or nothing of it would ever be closed.
		JournalBytes: journal, FileBytes: min(max(journal/8, 128<<10), 64<<20), CompactLeast: min(journal/64, 1<<20), Quota: most, Merge: m.merge, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	m.log = log
	return log, nil
}

// ErrLostRecords matches the refusal to keep by compaction what retention has begun to delete.
var ErrLostRecords = errors.New("the topic is not whole")

// applyTopicRules gives the topics that there are what log.topics says of them
// now: new ones get it when they are made.
func applyTopicRules(cfg *config.Config, log eventlog.Log) error {
	for _, t := range log.Topics() {
		spec := topicSpec(cfg, t.Spec.Name)
		switch {
		case strings.HasPrefix(t.Spec.Name, change.TopicMessages):
			spec = connectors.MessageSpec(spec)
		case strings.HasPrefix(t.Spec.Name, "_"), strings.HasPrefix(t.Spec.Name, change.TopicView):
			continue // made and kept by those who write them
		case t.Spec.Cleanup == eventlog.CleanupDelete && spec.Cleanup != eventlog.CleanupDelete && slices.Max(log.StartOffsets(t.ID)) > 0:
			return fmt.Errorf("log.topics: %w: %s has lost its oldest records under cleanup: delete, so that a view of it would miss rows; leave cleanup: delete, or begin a new log: stop the daemon, tailwater drop --state --yes, tailwater run reads every table again",
				ErrLostRecords, t.Spec.Name)
		}
		if _, err := log.EnsureTopic(spec); err != nil {
			return fmt.Errorf("apply log.topics: %w", err)
		}
	}
	return nil
}

// merger completes partial records for compaction, with the layouts of _schemas.
type merger struct {
	log eventlog.Log

	mu      sync.Mutex
	schemas map[schemaID]*change.Schema
}

type schemaID struct {
	topic string
	id    uint32
}

func (m *merger) schema(topic string, id uint32) (*change.Schema, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.schemas[schemaID{topic, id}]; s != nil {
		return s, nil
	}
	m.schemas = map[schemaID]*change.Schema{}
	err := connectors.ReadSchemas(m.log, func(s *change.Schema) { m.schemas[schemaID{s.Topic, s.ID}] = s })
	if err != nil {
		return nil, err
	}
	if s := m.schemas[schemaID{topic, id}]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("schema %d of %s is not in the topic %s", id, topic, change.TopicSchemas)
}

func (m *merger) row(topic string, r *eventlog.Record) (before []byte, row change.Row, err error) {
	s, err := m.schema(topic, r.Schema)
	if err != nil {
		return nil, row, err
	}
	before, after, err := change.DecodeRecordValue(r.Value)
	return before, change.Row{Schema: s, Data: after}, err
}

// merge puts newer over older; see seglog.Options.
func (m *merger) merge(topic eventlog.Topic, older, newer eventlog.Record) (value []byte, whole bool, err error) {
	_, o, err := m.row(topic.Spec.Name, &older)
	if err != nil {
		return nil, false, err
	}
	before, n, err := m.row(topic.Spec.Name, &newer)
	if err != nil {
		return nil, false, err
	}
	data, err := change.Merge(n, o)
	if err != nil {
		return nil, false, err
	}
	whole = !change.Row{Schema: n.Schema, Data: data}.Partial()
	return change.AppendRecordValue(nil, before, data), whole, nil
}
