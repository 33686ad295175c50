package eventlog

import "errors"

// ErrLetGo matches SetCursor of a consumer whose cursor the log let go: it must
// begin anew, and says so by removing the cursor first.
var ErrLetGo = errors.New("eventlog: the consumer is too far behind and must begin anew")

// Flags of a record that the log itself heeds; the rest of the byte is its
// writer's. They are those of package change, as is TruncateKey.
const (
	// FlagPartial: the value lacks columns; older records of its key have them.
	FlagPartial uint8 = 1
	// FlagMoved: one half of a key change, a delete and an insert with the same CSN.
	FlagMoved uint8 = 2
)

// TruncateKey is the key of a record that makes all older ones of its partition
// go. Control records, whose keys begin with a zero byte, are kept otherwise.
const TruncateKey = "\x00\x01"

// Cursor says how far a consumer has come in the topics that it reads. Cursors
// outlive the process: a registered consumer that does not run pins too.
type Cursor struct {
	Topics []TopicID
	// Passed: the consumer will never again ask for a record with a CSN at or
	// below it. Only what its own state has durably taken in counts (V22).
	Passed CSN
	// Values pins every value above Passed too, not only tombstones: for
	// consumers that need each change and not just the newest.
	Values bool
	// Rebuilds: the consumer can begin anew from the topics' beginning. If the
	// quota is used up, and what such consumers have not passed is what it takes
	// to make room, the log lets the one furthest behind go.
	Rebuilds bool
	// LetGo is set by the log: the cursor keeps nothing any more, and tombstones
	// above Passed may be missing.
	LetGo bool
}

// Laggard is the consumer furthest behind in a topic, for whose sake the log
// keeps what could go.
type Laggard struct {
	Consumer string
	Topic    string
	Passed   CSN
	Since    int64 // commit time, µs since 1970, of the oldest that is kept
	Bytes    int64 // on disk, about, that are kept for consumers of the topic
}

// Cleaner is the part of a log that keeps it small.
//
// Compaction removes a value that a newer record of its key supersedes, and a
// tombstone once it is older than the topic's TombstoneRetention and every
// cursor on the topic has passed it. Offsets do not move. Partial records take
// the values they lack from the older ones that go.
type Cleaner interface {
	// SetCursor durably registers or moves a consumer's cursor; nil removes it.
	// One that was let go does not move: ErrLetGo.
	SetCursor(consumer string, c *Cursor) error
	Cursors() map[string]Cursor

	// Horizon is the largest CSN of a record for whose sake an older value of
	// the topic may have been removed: a state between 0 and the horizon cannot
	// be read from the topic any more, only the one at the horizon and later
	// ones (V21). It is set before anything is removed.
	Horizon(topic TopicID) CSN

	// Pin keeps the topics as they are for a reader that starts from their
	// beginning: until release is called no compaction begins that removes a
	// tombstone, or a value for the sake of a record above upTo. One that has begun
	// goes on; its horizon is set. Pins end with the process.
	Pin(topics []TopicID, upTo CSN) (release func())
}
