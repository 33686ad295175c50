package seglog

import (
	"log/slog"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// Options of a log. The zero value works.
type Options struct {
	FS    vfs.FS           // default: the operating system's
	Clock func() time.Time // default time.Now
	// FileBytes closes a journal file that has grown to it: default 64 MiB.
	FileBytes int64
	// JournalBytes is what sealing leaves in the journal for live readers: default 1 GiB.
	JournalBytes int64
	// TailBytes bounds the newest groups kept in memory: default 16 MiB.
	TailBytes int64
	// SealBatch is the size, uncompressed, at which a sealed batch ends: default 64 KiB.
	SealBatch int
	// GroupBytes bounds what small concurrent appends put into one group: default
	// 4 MiB. One append is never split, and a large one is a group of its own.
	GroupBytes int
	// Quota bounds what the log has on disk, in bytes; 0: no limit. See SetQuota.
	Quota int64
	// Merge puts a partial record over an older one of its key: the value is that
	// of newer, in newer's schema, with what it lacks taken from older; whole tells
	// that nothing is lacking any more. Without it a topic with partial records is
	// not compacted.
	Merge func(topic eventlog.Topic, older, newer eventlog.Record) (value []byte, whole bool, err error)
	// CompactRate bounds the bytes that background compaction reads and writes in
	// a second: default 64 MiB.
	CompactRate int64
	// CompactLeast is how many dirty bytes of a partition are worth a compaction: default 1 MiB.
	CompactLeast int64
	// CompactBytes bounds the memory for the keys of one pass: default 16 MiB,
	// some 900,000 keys.
	CompactBytes int64
	// MergeBytes bounds the memory for partial records being merged: default 16 MiB.
	MergeBytes int64
	// SegmentBytes bounds the segments that compaction joins: default 256 MiB.
	SegmentBytes int64
	// Compression of the journal's batches: default none. Segments have their topic's.
	Compression eventlog.Compression
	// StreamChunk is the size at which a chunk of a streamed transaction ends, and
	// about that of the pieces in which it is read: default 1 MiB.
	StreamChunk int
	// TrustClock accepts a clock more than a year past the last record.
	TrustClock bool
	Logger     *slog.Logger // default: discards
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.FileBytes <= 0 {
		o.FileBytes = 64 << 20
	}
	if o.JournalBytes <= 0 {
		o.JournalBytes = 1 << 30
	}
	if o.TailBytes <= 0 {
		o.TailBytes = 16 << 20
	}
	if o.SealBatch <= 0 {
		o.SealBatch = 64 << 10
	}
	if o.GroupBytes <= 0 {
		o.GroupBytes = 4 << 20
	}
	if o.CompactRate <= 0 {
		o.CompactRate = 64 << 20
	}
	if o.CompactLeast <= 0 {
		o.CompactLeast = 1 << 20
	}
	if o.CompactBytes <= 0 {
		o.CompactBytes = 16 << 20
	}
	if o.MergeBytes <= 0 {
		o.MergeBytes = 16 << 20
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 256 << 20
	}
	if o.StreamChunk <= 0 {
		o.StreamChunk = 1 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
