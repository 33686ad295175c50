package sink

import (
	"context"
	"errors"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// Field describes one field of a view's documents, for mappings.
type Field struct {
	Name       string
	Kind       change.Kind // KindNull for an object or a list of objects
	SourceType string      // of the column it comes from, "" if computed
	List       bool
	Fields     []Field // of an object or a list of objects
}

// View is what a sink is told about a view that it takes.
type View struct {
	Name        string
	Fingerprint string // changes with the definition
	Key         []KeyColumn
	Fields      []Field
	Options     any // the `to:` entry, in the sink's own options type
}

// KeyColumn is a part of the documents' key.
type KeyColumn struct {
	Name string
	Kind change.Kind
}

// Update is one document version to write.
type Update struct {
	ID      string // document id (DESIGN.md 6)
	Key     change.Key
	Doc     []byte // JSON object; nil deletes
	Version uint64 // CSN
}

// Outcome says what became of one Update.
type Outcome uint8

const (
	Written  Outcome = iota // stored, or deleted, or was not there to delete
	Stale                   // the target has a newer version: as good as written
	Rejected                // the target will never take this document; Result.Reason says why
	Retry                   // not now; send it again unless a newer one of its key exists
)

// Result is the outcome of one Update, at the same index.
type Result struct {
	Outcome Outcome
	Reason  string // for Rejected and Retry; holds no document body
}

// Stamp is the mark kept inside a target (DESIGN.md 5): which log wrote it and
// how far. Everything of the view up to CSN is in the target if Complete.
type Stamp struct {
	Log         [16]byte
	CSN         uint64
	Fingerprint string // of the view that the target's content was made for
	Complete    bool   // a first build onto this target has ended
	Time        int64  // when the log got the transaction at CSN, µs since 1970; 0 = unknown
	// Seq counts the writes of stamps into the target, so that a target that lost
	// the last of several writes at one CSN shows it. The target counts.
	Seq uint64
}

// Before reports whether s, found in a target, is older than o, which the log remembers having written.
func (s Stamp) Before(o Stamp) bool {
	return s.Log == o.Log && (s.CSN < o.CSN && s.Complete == o.Complete || s.Seq < o.Seq)
}

// Errors of sinks that stop a target.
var (
	// ErrOtherWriter means that another log writes to the target.
	ErrOtherWriter = errors.New("another writer owns this target")
	// ErrStopped means a fault that only a person can mend (authentication, a
	// refused mapping); the text says how. The worker probes from time to time.
	ErrStopped = errors.New("sink needs attention")
	// ErrWentBack means that the target does not hold what was last written to
	// it: it was restored, emptied or lost writes. The worker opens it anew and
	// sends again what is missing.
	ErrWentBack = errors.New("sink went back")
	// ErrAhead means that the target holds more than the log does.
	ErrAhead = errors.New("sink ahead of log")
)

// State keeps small marks of sinks durably; an eventlog.Log is one.
type State interface {
	SaveCheckpoint(consumer string, c eventlog.Checkpoint) error
	Checkpoint(consumer string) (eventlog.Checkpoint, error)
}

// Sink is one configured place to write to.
type Sink interface {
	// Check connects and reports what is wrong, with the way out.
	Check(ctx context.Context) error
	// Open prepares the target of a view and reads its stamp.
	Open(ctx context.Context, v View, log [16]byte) (Target, error)
	Close() error
}

// Target is one view in one sink. One goroutine uses it; Scan, Get and Search may be called beside it.
//
// A worker that finds no stamp, a foreign one or one of another fingerprint
// builds: Begin, then Write for everything, then Finish, which makes the new
// content the visible one where the target can have both (an alias), and else
// sweeps. After that it writes batches in the order of their CSNs.
type Target interface {
	// Stamp returns the stamp in the target as it was last read or written by
	// this Target; ok is false if there was none. If a build was left unfinished
	// by the same log, its stamp (Complete false) is the one returned.
	Stamp() (s Stamp, ok bool)
	// Begin starts a build, or goes on with one left unfinished for the same log and fingerprint.
	Begin(ctx context.Context, s Stamp) error
	// Write writes the updates, one a key, and then the stamp where that costs
	// little. len(results) == len(updates) unless err != nil; an error means
	// that nothing is known about any of them. After an error that matches none
	// of the sentinels the same updates may be written again.
	Write(ctx context.Context, updates []Update, s Stamp) ([]Result, error)
	// Finish ends a build. keep tells whether an id is a document of the view;
	// others found in the target are deleted. It may be repeated after an error.
	Finish(ctx context.Context, s Stamp, keep func(id string) (bool, error)) error
	// Flush makes what was written visible to searches and the stamp durable.
	Flush(ctx context.Context, s Stamp) error
	// Scan calls fn for every document in the target, for verify.
	Scan(ctx context.Context, fn func(id string, doc []byte) error) error
	// Drop removes the target and its stamp.
	Drop(ctx context.Context) error
	Close() error
}

// Hit is one result of a search.
type Hit struct {
	ID    string
	Score float64
	Doc   []byte
}

// Searcher is a Target that can be searched.
type Searcher interface {
	Search(ctx context.Context, query string, limit, offset int) (hits []Hit, total uint64, err error)
}
