package daemon

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/connectors/postgres"
	"github.com/tailwater/tailwater/eventlog"
)

// newConnector makes a source's connector; it does not connect.
func newConnector(s *config.Source, logger *slog.Logger) (connectors.Connector, error) {
	if s.Kind != config.Postgres {
		return nil, fmt.Errorf("source %q: %s is not built in this version", s.Name, s.Kind)
	}
	tick := s.Heartbeat
	if tick == 0 { // never, but for what Options.TickInterval says of a server that keeps much
		tick = math.MaxInt64
	}
	o := postgres.Options{
		Source: s.Name, DSN: s.DSN.Reveal(), Slot: s.Slot, Publication: s.Publication, InsecurePlaintext: s.InsecurePlaintext,
		TLS:      postgres.TLS{Mode: s.TLS.Mode, CA: s.TLS.CA, Cert: s.TLS.Cert, Key: s.TLS.Key, ServerName: s.TLS.ServerName},
		Discover: s.Discover, TickInterval: tick, HeartbeatMessage: s.HeartbeatMessage, Logger: logger,
		DecodingMemory: int(s.DecodingMemory), Messages: s.Messages, NoMessages: s.NoMessages, Signals: postgres.Signals(s.Signals),
		Snapshot: postgres.SnapshotOptions{Never: s.Snapshot.Mode == config.SnapshotNever, ChunkRows: s.Snapshot.ChunkRows, Workers: s.Snapshot.Workers, Rate: s.Snapshot.Rate},
	}
	for _, p := range s.Tables {
		o.Tables = append(o.Tables, p.Full())
	}
	for _, p := range s.Exclude {
		o.Exclude = append(o.Exclude, p.Full())
	}
	return postgres.New(o), nil
}

// topicSpec is what log.topics says of a topic.
func topicSpec(cfg *config.Config, topic string) eventlog.TopicSpec {
	o := cfg.Log.Topic(topic)
	return eventlog.TopicSpec{Name: topic, Partitions: o.Partitions, Cleanup: eventlog.Cleanup(o.Cleanup), Retention: o.Retention,
		RetentionBytes: int64(o.RetentionBytes), TombstoneRetention: o.TombstoneRetention}
}
