package postgres

import (
	"context"
	"log/slog"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/snapshot"
)

// coordinator reconciles snapshot chunks with the stream. The source makes one
// at Open (newCoordinator, in snapshot.go) and is its only caller.
//
// The methods but Run, Wanted and Progress are called by the goroutine that
// calls Next, one at a time, and must not wait for the network: a chunk is read
// by Run's goroutines and reconciled in Chunk.
//
// What the stream promises: a transaction is handed to Transaction in commit
// order, each before Next returns it. Passed(lsn) means that every transaction
// whose commit record ends at or below lsn has been through Transaction and was
// returned by Next before; it never decreases. Between the parts of one transaction (More) neither
// Passed nor Chunk is called. The batches InProgress and RolledBack of a transaction
// that is not committed pass by the coordinator: they may come at any time, also
// with chunks between them, and nothing of them counts before Streamed.
type coordinator interface {
	// Transaction sees a batch of kind Transaction (each part of one with More).
	// b.Tx is the transaction id in decimal, 64 bits wide. It may add Controls,
	// such as a re-read request for the insert half of a move that has
	// FlagPartial, and keeps nothing of b's memory.
	Transaction(b *change.Batch) error

	// Streamed sees, in the place of Transaction, a transaction whose rows were
	// returned while it was in progress, at its commit: b, of stage Adopted, is its
	// last batch and takes Controls. s is what was kept of its rows (bounded: no
	// rows, and only the keys that the books need).
	Streamed(b *change.Batch, s *snapshot.Streamed) error

	// Signal begins a run of the table "schema.table" that a signal in b's
	// transaction asks for; where is a condition or empty. b is the batch that
	// Transaction saw last, without More, and takes the run's first record: the
	// run and its request become durable together. An error refuses the signal.
	Signal(b *change.Batch, table, where string) error

	// Passed tells how far the stream has come, by commits and by keepalives.
	Passed(lsn LSN)

	// Layout tells that from here on events of the table have the layout of now
	// (was is what they had before, never nil; the change may lie inside the next
	// transaction). retyped: a column's type changed by a rewrite, or the key's
	// columns changed, so that the rows in the log no longer tell what is in the table.
	Layout(was, now *table, retyped bool)

	// Chunk returns the next batch that can be appended now (of kind Chunk, or
	// an other one without position), nil if there is none.
	Chunk() (*change.Batch, error)

	// Ready has capacity 1 and is sent to, without blocking, when Chunk may
	// return what it did not return before.
	Ready() <-chan struct{}

	// Run reads chunks until ctx ends; it owns what it starts. An error stops
	// the source: it comes out of Next.
	Run(ctx context.Context) error

	// Wanted returns the LSN that the coordinator waits for the stream to pass,
	// 0 for none. The keeper asks for it often and makes the server tell its
	// progress while Passed is below it. Any goroutine.
	Wanted() LSN

	// Progress is for status. Any goroutine.
	Progress() []connectors.TableProgress
}

// coordinatorStart is what a coordinator starts with.
type coordinatorStart struct {
	options *Options
	logger  *slog.Logger
	history connectors.History
	server  *server // version, system id, timeline, whether it is a standby
	// tables are the captured tables, by the catalogue at Open; all of them are
	// in the publication. The replication connection was made after they were
	// and after the slot was: before the first chunk of a table that is new to
	// the log, wait for every transaction in progress in a
	// pg_current_snapshot() taken now or later (V1, V2).
	tables []*table
	// logged are the newest layouts in the log, by topic.
	logged map[string]*change.Schema
	// added are those (by oid) that this Open put into the publication:
	// what changed before was not streamed, so that a snapshot of theirs that is
	// finished counts no more.
	added map[uint32]bool
	// published tells how each table (by oid) is published, see readPublished.
	published map[uint32]string
	// shapes are those of the tables' types, by the table's oid, see readShapes.
	shapes map[uint32]shape
	// retype makes the stream look up the types of its columns anew. Any goroutine.
	retype func()
	// connect opens a session with the pins of this package and row_security
	// off, text results. The caller closes it.
	connect func(ctx context.Context) (*session, error)
	// current returns the table in the layout of the catalogue now, nil if it
	// is gone; s must not be inside a transaction whose snapshot is older than
	// the table's lock.
	current func(ctx context.Context, s *session, oid uint32) (*table, error)
	// poke tells the keeper that Wanted changed. It does not block.
	poke func()
}
