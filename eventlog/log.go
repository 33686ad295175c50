package eventlog

import (
	"context"
	"errors"
	"time"
)

// CSN is a commit sequence number: one a transaction or snapshot chunk, strictly increasing in a log, below 2^53.
type CSN uint64

// Offset is a record's place in its partition; once given it is never reused or moved.
type Offset int64

// TopicID numbers the topics of one log, from 1; it is the number of the topic's directory.
type TopicID uint32

// Cleanup says how a topic is kept small.
type Cleanup string

const (
	CleanupCompact Cleanup = "compact"
	CleanupDelete  Cleanup = "delete"
	CleanupNone    Cleanup = "none"
)

// TopicTx is the control topic with a row for each transaction, in logs that have one.
const TopicTx = "_tx"

// DefaultPartitions is the partition count of a topic that says nothing else.
const DefaultPartitions = 4

// TopicSpec says how a topic is made. The partition count is frozen at creation.
type TopicSpec struct {
	Name               string // full name, "shop.public.products"
	Partitions         int    // default 4; control topics have 1
	Cleanup            Cleanup
	Retention          time.Duration // 0: for ever
	RetentionBytes     int64         // 0: no limit
	TombstoneRetention time.Duration // default 24h
	Compression        string        // of sealed segments: none, snappy, lz4, zstd (default)
}

// Topic is a topic of a log.
type Topic struct {
	ID   TopicID
	Spec TopicSpec
}

// Record is a record to append, or one read. Its bytes are not interpreted.
type Record struct {
	Topic TopicID
	// Partition is given by the log when appending: PartitionOf the key, 0 for a nil key, or
	// every partition where the caller set EveryPartition (truncate).
	Partition int32
	Offset    Offset // given by the log
	CSN       CSN    // given by the log
	Seq       uint32 // place in the transaction; set by the caller
	Op        uint8  // change.Op
	Flags     uint8  // change.Flags
	Schema    uint32 // schema id, 0 for none
	Time      int64  // commit time, µs since 1970; given by the log from the transaction
	Key       []byte
	Value     []byte // nil: tombstone
}

// EveryPartition, as the Partition of a record to append, puts one copy into
// each partition, all with the same CSN and seq; a transaction read shows it once, as of partition 0.
const EveryPartition int32 = -1

// TxKind says what a transaction of the log is.
type TxKind uint8

const (
	TxSource TxKind = 0 // of a source: advances the source's position
	TxChunk  TxKind = 1 // a snapshot chunk, or another append of our own that takes a CSN
	TxTick   TxKind = 2 // no records, takes a CSN: a source's position while it is idle, or a clock tick
	// TxOutput carries the outputs of views: it takes no CSN; CSN is set by the
	// caller to b of the batch (a, b], Since to a.
	TxOutput TxKind = 3
)

// Tx is a transaction, appended and read as a whole.
type Tx struct {
	Kind   TxKind
	Source string // name of the source; "" for our own
	// Position is the encoded change.Position of the source behind this
	// transaction; empty where it has none (chunks, outputs).
	Position   []byte
	ID         string // transaction id as the source names it
	CommitTime int64  // µs since 1970
	IngestTime int64  // µs since 1970; given by the log
	CSN        CSN    // given by the log, but for TxOutput
	Since      CSN    // TxOutput: a of the batch (a, b]
	// Note is an opaque word of the writer, kept with the transaction; 64 KiB at most.
	Note    []byte
	Records []Record
	// More, in what a reader returns, says that further records of this
	// transaction follow in the next Tx, with the same CSN: see ReadSpec.Pieces.
	More bool
}

// SourceState is the last durable transaction of a source.
type SourceState struct {
	Position   []byte // of the last transaction or tick with one
	CSN        CSN
	CommitTime int64
}

// Checkpoint is a consumer's durable mark, opaque to the log.
type Checkpoint []byte

// Sentinels.
var (
	ErrClosed       = errors.New("eventlog: log is closed")
	ErrUnknownTopic = errors.New("eventlog: unknown topic")
	// ErrFull matches an append that found no space; what was written of it is cut
	// off again, and a later append may succeed. Should power be lost before one
	// does, while there is not even space to make the cut durable, the group may be
	// there after the restart, whole.
	ErrFull = errors.New("eventlog: no space for the log")
	// ErrTooLarge matches a group that no entry of the log can hold; trying again
	// does not help, streaming the transaction does.
	ErrTooLarge = errors.New("eventlog: transaction is too large")
	// ErrCorrupt matches damage that was found before it was served.
	ErrCorrupt = errors.New("eventlog: damaged log")
	// ErrOutOfRange matches a read below what retention has kept.
	ErrOutOfRange = errors.New("eventlog: offset is no longer in the log")
	// ErrPartitionCount matches EnsureTopic with another count than the topic was made with.
	ErrPartitionCount = errors.New("eventlog: partition count is frozen")
)

// Log is a partitioned log in which transactions over any number of topics
// become visible whole or not at all. All methods may be called from any
// goroutine.
type Log interface {
	Cleaner
	Seeker
	Repairer

	// ID names the log for as long as its directory lives.
	ID() [16]byte

	// EnsureTopic returns the topic of that name, making it if needed; durable
	// before the first record in it is acknowledged.
	EnsureTopic(spec TopicSpec) (Topic, error)
	Topic(name string) (Topic, bool)
	Topics() []Topic

	// Append appends the group in order, as one entry with one sync, fills in
	// CSN, IngestTime, partitions and offsets, and returns once it is durable
	// and the frontier has moved. After an error nothing of the group is or
	// will become visible (but for a failed sync, after which the log only
	// answers that error and the process must exit). The log does not keep the
	// caller's memory. Concurrent calls may share one sync.
	Append(ctx context.Context, group []*Tx) error

	// Streamer begins transactions whose records arrive before their commit.
	Streamer

	// Frontier is the largest CSN for which every record with CSN <= it is durable.
	Frontier() CSN

	// Changed returns a channel that is closed at the next append (of any kind).
	// Take it before looking, then wait on it.
	Changed() <-chan struct{}

	// SourceState returns the last durable position of a source.
	SourceState(source string) (SourceState, bool)

	// EndOffsets returns the next offset of each partition of the topic;
	// StartOffsets the first still kept.
	EndOffsets(topic TopicID) []Offset
	StartOffsets(topic TopicID) []Offset

	// Read starts a reader. Close it.
	Read(spec ReadSpec) (Reader, error)

	// ReadPartition starts at an offset of one partition, in offset order. An
	// offset that retention has deleted is ErrOutOfRange, here and in Read's
	// From; what compaction has left out is passed over.
	ReadPartition(topic TopicID, partition int32, from Offset) (PartitionReader, error)

	// NewestByKey calls fn for every key with the CSN of its newest record;
	// tombstone tells whether that is one. It reads the whole topic; control records are left out.
	NewestByKey(topic TopicID, fn func(key []byte, csn CSN, tombstone bool) error) error

	// SaveCheckpoint durably replaces the mark of a consumer; a nil mark removes it.
	SaveCheckpoint(consumer string, c Checkpoint) error
	Checkpoint(consumer string) (Checkpoint, error) // nil if there is none
	Checkpoints() (map[string]Checkpoint, error)

	// Skip moves the next CSN to at least csn, durably (a tick is appended).
	Skip(ctx context.Context, csn CSN) error

	Stats() Stats

	// Close waits for appends in flight. It may be repeated.
	Close() error
}

// ReadSpec says where a Reader starts and what it shows.
type ReadSpec struct {
	// Topics limits the records shown; transactions without any of them are
	// left out. nil shows all records and also transactions without records.
	Topics []TopicID
	// After: only transactions with CSN > After are shown (TxOutput: likewise, by their CSN).
	After CSN
	// FromTime, where not 0, leaves out transactions committed before it (µs since 1970).
	FromTime int64
	// From, where set for a topic, shows that topic's records from these
	// offsets on (one a partition), whatever their CSN.
	From map[TopicID][]Offset
	// Outputs also shows transactions of kind TxOutput. They come in the order
	// of their appends.
	Outputs bool
	// Pieces shows a streamed transaction in pieces of bounded memory, in seq
	// order; all but the last have More set. A large transaction that was not
	// streamed may come in pieces too. False: every transaction comes whole.
	Pieces bool
}

// Reader reads whole transactions in log order: by CSN; outputs behind the
// transactions that caused them. One goroutine.
type Reader interface {
	// Next returns the next transaction; nil without an error when the reader
	// has caught up with the frontier. The Tx and its bytes are valid until the
	// next call, also of Close.
	Next() (*Tx, error)
	Close() error
}

// PartitionReader reads one partition in offset order. One goroutine.
type PartitionReader interface {
	// Next returns the next record; ok is false at the end. The bytes are valid until the next call, also of Close.
	Next() (r Record, ok bool, err error)
	Close() error
}

// TopicStats describes one topic.
type TopicStats struct {
	Name       string
	Partitions int
	Records    int64 // end offset minus start offset over all partitions, compaction holes included, skips of cuts not
	Bytes      int64 // on disk, sealed
	Dirty      int64 // bytes that compaction has not looked at
	Horizon    CSN   // see Cleaner
}

// Stats describes the log at some moment.
type Stats struct {
	Frontier      CSN
	AppendedBytes int64 // since Open
	Appends       int64 // groups since Open
	Syncs         int64
	JournalBytes  int64 // on disk
	SegmentBytes  int64 // on disk
	JournalFiles  int
	OldestCSN     CSN // first transaction still in the journal
	// Of compaction, since Open.
	Compactions int64
	Removed     int64 // records
	DirtyBytes  int64 // in segments that compaction has not looked at, of topics that it keeps small
	// DirtySince is when the oldest of them came, µs since 1970; 0: there are none.
	DirtySince int64
	// Laggard is who keeps the most while the quota is nearly used up; nil: nobody.
	Laggard *Laggard
	// Damaged are the partitions that are not compacted any more, with the reason.
	Damaged []error
	Topics  []TopicStats
}
