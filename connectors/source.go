package connectors

import (
	"context"
	"errors"
	"time"

	"github.com/tailwater/tailwater/change"
)

// Errors of sources. Each wraps a text that says the way out.
var (
	// ErrPositionLost means that the server no longer has, or never had, the
	// log to resume from: only a new snapshot helps (contract C7).
	ErrPositionLost = errors.New("source history is lost")
	// ErrRewound means that another history answers: another system, a
	// timeline that forked before our end, a restored backup.
	ErrRewound = errors.New("source was rewound")
	// ErrUnknownSlot means a slot, or the like, that our log does not know.
	ErrUnknownSlot = errors.New("slot is not ours")
	// ErrBusy means that another process holds the slot.
	ErrBusy = errors.New("source is held by another process")
	// ErrUnreachable means that the server did not answer; trying again may help.
	ErrUnreachable = errors.New("source does not answer")
	// ErrPrerequisite means that the server or the role must be changed first.
	ErrPrerequisite = errors.New("source is not ready for capture")
	// ErrBeyondRefill means damage in what a snapshot run itself has appended to its topic.
	ErrBeyondRefill = errors.New("a snapshot run cannot mend its topic")
)

// Source is one database's change stream. Committed transactions come in commit
// order, snapshot chunks between them, already reconciled: what Next returns is
// appended in that order. Next and Close belong to a single goroutine; Confirm
// and Stats may be called while Next blocks.
type Source interface {
	// Next blocks for the next batch; the caller keeps it. Errors that match
	// one of the sentinels above stop the source; others may be retried by
	// opening a new Source.
	Next(ctx context.Context) (*change.Batch, error)

	// Confirm records, without I/O, that everything up to pos is durable in
	// the event log, so that the server may discard it. Positions never decrease.
	Confirm(pos change.Position)

	Stats() SourceStats

	Close() error // may be repeated, and follow any error
}

// Connector makes Sources of one configured database and answers questions about it.
type Connector interface {
	// Open connects and starts behind the log's last position of this source,
	// with the snapshot runs that the log says are unfinished.
	Open(ctx context.Context, h History) (Source, error)

	// Describe reads the captured tables' layouts and all problems that would
	// stop Open, each with the statement that mends it.
	Describe(ctx context.Context) (*Description, error)

	// End returns the source's current end (PostgreSQL: the insert LSN), for `wait`.
	End(ctx context.Context) (change.Position, error)

	// Reached reports whether a log at position durable has everything up to end.
	Reached(durable, end change.Position) bool

	// Drop removes what Open made in the database (slot, publication). It may be repeated.
	Drop(ctx context.Context) error
}

// History is what a source may ask of the log about itself.
type History interface {
	// LogID names the log.
	LogID() [16]byte
	// Last returns the last durable position; ok is false if there is none.
	Last() (pos change.Position, ok bool)
	// Marks returns the newest marks of each table's runs, in log order.
	Marks() ([]*change.SnapshotMark, error)
	// Recent calls fn for the source's transactions with their keys, newest
	// ones last, from the beginning of the oldest unfinished snapshot run (all
	// that are still in the journal if there is none). A large transaction may
	// come in several pieces, one behind the other.
	Recent(fn func(r RecentTx) error) error
	// Intent and SetIntent keep a small durable note, for V15: written before
	// something is made in the database. nil removes it.
	Intent() ([]byte, error)
	SetIntent(note []byte) error
	// Schemas returns the newest schema of each topic of this source.
	Schemas() (map[string]*change.Schema, error)
	// ReadNewest calls fn for each key of the topic with its newest record
	// merged over older ones (partial tells whether columns are still unfilled).
	ReadNewest(topic string, fn func(key change.Key, row change.Row, partial bool) error) error
}

// RecentTx is one transaction that the log holds, or a piece of one.
type RecentTx struct {
	Tx     string // the id as change.Batch.Tx gave it
	Kind   change.BatchKind
	Pos    change.Position
	CSN    uint64
	Events []RecentEvent
}

// RecentEvent is one of its rows.
type RecentEvent struct {
	Topic string
	Op    change.Op
	Flags change.Flags
	Key   change.Key
}

// Problem is something that Describe found wrong.
type Problem struct {
	Table   string // "" for the server or role
	Message string // what is wrong
	Fix     string // the statements or the setting that mend it, one a line; "" if there are none
	Warning bool   // true: capture goes on without it
}

// Description is what a database offers for capture.
type Description struct {
	Server   string // "PostgreSQL 15.18"
	Tables   []*change.Schema
	Rows     map[string]int64 // estimate by topic
	Problems []Problem
}

// TableProgress is a table's snapshot, for status.
type TableProgress struct {
	Topic string
	Run   uint64
	State string // waiting, running, done
	Rows  int64
	Bytes int64
	Total int64 // estimate; 0 unknown
	Since time.Time
	ETA   time.Duration // 0 unknown
}

// SourceStats describes a source at some moment.
type SourceStats struct {
	State         string // connecting, snapshot, streaming, stopped
	Received      string // last position received, for people
	Confirmed     string
	LagBytes      int64 // server's end minus last received; -1 unknown
	RetainedBytes int64 // log that the server keeps for us; -1 unknown
	LastCommit    time.Time
	Rows          map[string]int64 // by op name, since Open
	Tables        []TableProgress
	Signals       []Signal // the newest ones, oldest first
}

// Signal is a request that came from inside the database.
type Signal struct {
	Position string
	Time     time.Time
	Content  string // shortened
	Refused  string // why it was not obeyed; "": it was
}
