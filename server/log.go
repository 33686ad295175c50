package server

import (
	"context"
	"time"
)

// LogReader answers what is asked about the log.
type LogReader interface {
	// Topics lists the topics by name.
	Topics(ctx context.Context) ([]TopicStatus, error)
	// Records calls fn with the JSON line of each record that q asks for;
	// ErrNotFound if no topic matches, ErrGone where retention has deleted FromOffset.
	Records(ctx context.Context, q RecordQuery, fn func(line []byte) error) error
	// Batches calls fn with the JSON line of each record batch that q asks for.
	Batches(ctx context.Context, q BatchQuery, fn func(line []byte) error) error
	// LogStats describes the log and its topics; it reads the whole journal.
	LogStats(ctx context.Context) (LogDetail, error)
	// CheckLog reads everything and calls fn for each damaged place.
	CheckLog(ctx context.Context, fn func(Damage) error) (CheckResult, error)
	// Compact compacts the topics that the glob matches and calls fn after each.
	Compact(ctx context.Context, glob string, fn func(Compacted) error) error
}

// RecordQuery chooses records of the log.
type RecordQuery struct {
	Topic         string // a glob
	FromOffset    int64  // -1: from the start
	ToOffset      int64  // the one behind the last; -1: to the end
	FromCSN       uint64
	FromTime      time.Time
	Partition     int    // -1: all
	Key           string // the document-id form of the key; "" all
	Limit         int    // 0: all
	Follow        bool
	CurrentSchema bool
	// Tail begins with the newest Last records of those, 0 of them being none.
	Tail bool
	Last int
	// Begun, if set, is called once the query is known to be possible.
	Begun func()
}

// BatchQuery chooses record batches: those with any record that it asks for.
type BatchQuery struct {
	Topic      string // a glob
	FromOffset int64  // -1: from the start
	ToOffset   int64  // the one behind the last; -1: to the end
	FromCSN    uint64
	FromTime   time.Time
	Partition  int // -1: all
	Limit      int // batches; 0: all
	Records    bool
}

// BatchLine is a line of `log dump --json`: a record batch.
type BatchLine struct {
	Topic       string        `json:"topic"`
	Partition   int32         `json:"partition"` // -1: not known
	File        string        `json:"file"`
	Byte        int64         `json:"byte"`
	BaseOffset  int64         `json:"base_offset"`
	LastOffset  int64         `json:"last_offset"`
	Count       int           `json:"count"`
	MinCSN      uint64        `json:"min_csn"`
	MaxCSN      uint64        `json:"max_csn"`
	MinTime     string        `json:"min_time,omitempty"`
	MaxTime     string        `json:"max_time,omitempty"`
	Compression string        `json:"compression"`
	Size        int           `json:"size"`
	CRCOK       bool          `json:"crc_ok"`
	Damage      string        `json:"damage,omitempty"`
	Records     []BatchRecord `json:"records,omitempty"`
}

// BatchRecord is what a batch says of a record; key and value are in hexadecimal, null where there is none.
type BatchRecord struct {
	Offset int64   `json:"offset"`
	CSN    uint64  `json:"csn"`
	Seq    uint32  `json:"seq"`
	Op     string  `json:"op"`
	Flags  uint8   `json:"flags"`
	Schema uint32  `json:"schema"`
	Time   string  `json:"time"`
	Key    *string `json:"key"`
	Value  *string `json:"value"`
}

// TopicStatus describes one topic of the log.
type TopicStatus struct {
	Name           string  `json:"name"`
	Partitions     int     `json:"partitions"`
	Records        int64   `json:"records"` // kept
	Bytes          int64   `json:"bytes"`   // of its segments
	Segments       int     `json:"segments"`
	JournalRecords int64   `json:"journal_records"` // of Records: in no segment yet
	Cleanup        string  `json:"cleanup"`
	Start          []int64 `json:"start"` // first kept offset of each partition
	End            []int64 `json:"end"`   // next offset of each partition
	HorizonCSN     uint64  `json:"horizon_csn,omitempty"`

	// Of LogStats alone.
	JournalBytes int64      `json:"journal_bytes,omitempty"`
	Newest       *time.Time `json:"newest,omitempty"` // commit time
}

// LogDetail describes the log.
type LogDetail struct {
	FrontierCSN  uint64     `json:"frontier_csn"`
	OldestCSN    uint64     `json:"oldest_journal_csn"` // the first that the journal may hold
	JournalBytes int64      `json:"journal_bytes"`
	JournalFiles int        `json:"journal_files"`
	SegmentBytes int64      `json:"segment_bytes"`
	Segments     int        `json:"segments"`
	Records      int64      `json:"records"`
	Newest       *time.Time `json:"newest,omitempty"`
	Laggard      *Laggard   `json:"laggard,omitempty"`
	// Live counts since the daemon's start; nil where no daemon answered.
	Live   *LogCounters  `json:"live,omitempty"`
	Topics []TopicStatus `json:"topics"`
}

// LogCounters are counts since the log was opened.
type LogCounters struct {
	Appends       int64 `json:"appends"` // groups
	AppendedBytes int64 `json:"appended_bytes"`
	Syncs         int64 `json:"syncs"`
}

// Damage is a place in a file that is not as it was written.
type Damage struct {
	File   string `json:"file"`
	Byte   int64  `json:"byte"`
	Reason string `json:"reason"`
	Topic  string `json:"topic,omitempty"` // "" in the journal
	Fix    string `json:"fix"`             // the way out
}

// CheckResult is what a check has read.
type CheckResult struct {
	OK      bool  `json:"ok"`
	Damages int   `json:"damages"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	Files   int   `json:"files"`
	Torn    int64 `json:"torn_bytes,omitempty"` // behind the journal's last whole entry; the next start cuts them off
}

// Compacted is what compacting a topic came to.
type Compacted struct {
	Topic         string `json:"topic"`
	RecordsBefore int64  `json:"records_before"`
	RecordsAfter  int64  `json:"records_after"`
	BytesBefore   int64  `json:"bytes_before"` // of segments
	BytesAfter    int64  `json:"bytes_after"`
}
