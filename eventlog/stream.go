package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// Sentinels of streams.
var (
	// ErrStreamEnded matches a call of a stream that was committed or discarded.
	ErrStreamEnded = errors.New("eventlog: streamed transaction has ended")
	// ErrStreamLost matches the error of a stream whose records are not known to
	// be whole any more: discard it and stream the transaction again.
	ErrStreamLost = errors.New("eventlog: streamed transaction must be streamed again")
)

// Streamer begins transactions whose records arrive before their commit.
type Streamer interface {
	// Stream begins a transaction. Any number may be in progress beside appends.
	// One that was not committed when the log closes, or the process ends, never existed.
	Stream(ctx context.Context) (Stream, error)
}

// Stream is a transaction in progress. It keeps its records in the log's
// storage, not in memory; nobody sees them before Commit has returned. Its
// methods may be called from any goroutine.
type Stream interface {
	// Add takes records of one sub-transaction (the transaction itself is one
	// too; the caller numbers them). Seq is set by the caller and increases over
	// the whole stream; Partition may be EveryPartition. Nothing is filled in and
	// the caller's memory is not kept. After an error that matches ErrFull the same
	// call may be repeated: records that it had taken are not taken twice.
	Add(sub uint32, records []Record) error

	// Abort takes back a sub-transaction: its records, those to come too, are
	// never shown. The offsets that they took stay unused.
	Abort(sub uint32) error

	// Size returns what was added so far, what was aborted included.
	Size() (records, bytes int64)

	// Commit ends the stream: like an Append of tx, which has no Records, with
	// all records that were not aborted. It fills in CSN and IngestTime. After
	// an error nothing is or will become visible (but for a failed sync, as for
	// Append), and the stream can be committed again or discarded, unless the error
	// matches ErrStreamLost.
	Commit(ctx context.Context, tx *Tx) error

	// Discard ends the stream without a trace and frees its space. It may be
	// repeated, and follow a Commit that succeeded, without effect.
	Discard() error
}

// CheckStream reports what no log can commit as the end of a stream with that many records.
func CheckStream(tx *Tx, records int64, frontier CSN) error {
	if len(tx.Records) > 0 {
		return fmt.Errorf("commit streamed transaction: it has %d records outside the stream", len(tx.Records))
	}
	if tx.Kind == TxTick && records > 0 {
		return fmt.Errorf("commit streamed transaction as a tick: it has %d records", records)
	}
	return CheckGroup([]*Tx{tx}, frontier, nil)
}

// CheckStreamed reports what in records cannot follow a record with seq last (-1: none) in a
// stream; topic looks a topic up.
func CheckStreamed(records []Record, last int64, topic func(TopicID) (Topic, bool)) error {
	for i := range records {
		r := &records[i]
		if int64(r.Seq) <= last {
			return fmt.Errorf("stream record to topic %d: seq %d behind %d", r.Topic, r.Seq, last)
		}
		last = int64(r.Seq)
		if _, ok := topic(r.Topic); !ok {
			return fmt.Errorf("stream record to topic %d: %w", r.Topic, ErrUnknownTopic)
		}
		if len(r.Key)+len(r.Value) > MaxRecord {
			return fmt.Errorf("stream record to topic %d: %d bytes; %d are possible", r.Topic, len(r.Key)+len(r.Value), MaxRecord)
		}
	}
	return nil
}
