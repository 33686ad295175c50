package config

import "time"

// What is removed from a topic.
const (
	CleanupCompact = "compact" // all but the last value of each key
	CleanupDelete  = "delete"  // what is older than the retention
	CleanupNone    = "none"    // nothing
)

// Log says how the change log keeps its topics.
type Log struct {
	Quota   Size // 0 = 80 % of the file system
	Journal Size // how much the journal keeps for live readers; default 1GiB
	Topics  []TopicRule
	Pos     Pos
}

// TopicRule sets options of the topics whose name the glob matches. Every rule
// that matches counts; the first one that sets an option decides it.
type TopicRule struct {
	Pattern            string // * crosses dots, case counts
	Pos                Pos
	Partitions         int           // 0 = not set
	Cleanup            string        // "" = not set
	Retention          time.Duration // 0 = not set
	RetentionBytes     Size          // 0 = not set
	TombstoneRetention time.Duration // 0 = not set
}

// TopicOptions are the options of one topic.
type TopicOptions struct {
	Partitions         int           // 0 = not set: what the topic has, 4 when it is made
	Cleanup            string        // default CleanupCompact
	Retention          time.Duration // CleanupDelete; 0 = no limit by time
	RetentionBytes     Size          // CleanupDelete; 0 = no limit by size
	TombstoneRetention time.Duration // CleanupCompact; default 24h
}

// Topic is the options of a topic by the rules and the defaults.
func (l *Log) Topic(name string) TopicOptions {
	var o TopicOptions
	for _, r := range l.Topics {
		if !glob(r.Pattern, name) {
			continue
		}
		setDefault(&o.Partitions, r.Partitions)
		setDefault(&o.Cleanup, r.Cleanup)
		setDefault(&o.Retention, r.Retention)
		setDefault(&o.RetentionBytes, r.RetentionBytes)
		setDefault(&o.TombstoneRetention, r.TombstoneRetention)
	}
	setDefault(&o.Cleanup, CleanupCompact)
	setDefault(&o.TombstoneRetention, 24*time.Hour)
	return o
}

func setDefault[T comparable](dst *T, v T) {
	var zero T
	if *dst == zero {
		*dst = v
	}
}

// Server says where the HTTP API listens.
type Server struct {
	Listen            string // host:port; default 127.0.0.1:7171
	ListenPos         Pos
	Token             Secret // bearer token; empty = none
	TLSCert           string // file of PEM certificates; empty = plain HTTP
	TLSKey            string // file with its key
	InsecurePlaintext bool   // outside loopback without TLS; default false
	InsecureNoAuth    bool   // outside loopback without a token; default false
	Pos               Pos
}
