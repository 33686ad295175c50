package eventlog

import (
	"fmt"
	"strings"
	"time"
)

// Limits of what can be appended.
const (
	MaxNote       = 64 << 10
	MaxPartitions = 4096
	// MaxRecord is the most that key and value of one record may hold together.
	MaxRecord = 1<<30 - 1<<20
)

// CompleteSpec checks a new topic's spec and fills in its defaults.
func CompleteSpec(s TopicSpec) (TopicSpec, error) {
	if s.Name == "" {
		return s, fmt.Errorf("make topic: it has no name")
	}
	if s.Partitions == 0 {
		s.Partitions = DefaultPartitions
		if strings.HasPrefix(s.Name, "_") {
			s.Partitions = 1
		}
	}
	if s.Partitions < 0 || s.Partitions > MaxPartitions {
		return s, fmt.Errorf("make topic %q: %d partitions; 1 to %d are possible", s.Name, s.Partitions, MaxPartitions)
	}
	if s.Cleanup == "" {
		s.Cleanup = CleanupNone
	}
	switch s.Cleanup {
	case CleanupCompact, CleanupDelete, CleanupNone:
	default:
		return s, fmt.Errorf("make topic %q: cleanup %q; it is compact, delete or none", s.Name, s.Cleanup)
	}
	if s.TombstoneRetention == 0 {
		s.TombstoneRetention = 24 * time.Hour
	}
	if s.Compression == "" {
		s.Compression = "zstd"
	}
	if _, err := ParseCompression(s.Compression); err != nil {
		return s, fmt.Errorf("make topic %q: %w", s.Name, err)
	}
	return s, nil
}

// MergeSpec returns the spec of an existing topic that is asked for again with
// want: its partition count is frozen, all else is taken from want. No count
// in want means the one that the topic has.
func MergeSpec(have, want TopicSpec) (TopicSpec, error) {
	if want.Partitions == 0 {
		want.Partitions = have.Partitions
	}
	if want.Partitions != have.Partitions {
		return have, fmt.Errorf("topic %q has %d partitions, asked for with %d: %w; set partitions: %d or capture under another name",
			have.Name, have.Partitions, want.Partitions, ErrPartitionCount, have.Partitions)
	}
	return CompleteSpec(want)
}

// CheckGroup reports what in a group no log can append; topic looks a topic up.
func CheckGroup(group []*Tx, frontier CSN, topic func(TopicID) (Topic, bool)) error {
	for _, tx := range group {
		if tx.Kind > TxOutput {
			return fmt.Errorf("append transaction: unknown kind %d", tx.Kind)
		}
		if tx.Kind == TxOutput && (tx.CSN > frontier || tx.Since > tx.CSN) {
			return fmt.Errorf("append outputs of (%d, %d]: they must not be ahead of the frontier %d", tx.Since, tx.CSN, frontier)
		}
		if tx.Kind == TxTick && len(tx.Records) > 0 {
			return fmt.Errorf("append tick: it has %d records", len(tx.Records))
		}
		if tx.Kind == TxOutput && tx.CSN == 0 {
			return fmt.Errorf("append outputs as of CSN 0: no transaction has it, no reader would show them")
		}
		if len(tx.Note) > MaxNote {
			return fmt.Errorf("append transaction: note of %d bytes; %d are possible", len(tx.Note), MaxNote)
		}
		known := TopicID(0)
		for i := range tx.Records {
			r := &tx.Records[i]
			if r.Topic != known || known == 0 {
				if _, ok := topic(r.Topic); !ok {
					return fmt.Errorf("append record to topic %d: %w", r.Topic, ErrUnknownTopic)
				}
				known = r.Topic
			}
			if len(r.Key)+len(r.Value) > MaxRecord {
				return fmt.Errorf("append record to topic %d: %d bytes; %d are possible", r.Topic, len(r.Key)+len(r.Value), MaxRecord)
			}
		}
	}
	return nil
}
