package server

import "time"

// Status is the daemon's state at some moment, as GET /v1/status and `tailwater status --json` give it.
type Status struct {
	Version string         `json:"version"`
	Started time.Time      `json:"started"`
	Ready   bool           `json:"ready"`
	Reasons []string       `json:"reasons,omitempty"` // why not ready
	Notices []string       `json:"notices,omitempty"` // shown in red: plaintext, no authentication
	Sources []SourceStatus `json:"sources"`
	Log     LogStatus      `json:"log"`
	Views   []ViewStatus   `json:"views"`
	Sinks   []SinkStatus   `json:"sinks"`
}

// SourceStatus describes one source.
type SourceStatus struct {
	Name          string           `json:"name"`
	Kind          string           `json:"kind"`
	State         string           `json:"state"` // connecting, snapshot, streaming, waiting for space, stopped
	Reason        string           `json:"reason,omitempty"`
	Received      string           `json:"received,omitempty"`
	Durable       string           `json:"durable,omitempty"`
	Confirmed     string           `json:"confirmed,omitempty"`
	LagBytes      int64            `json:"lag_bytes"`      // -1 unknown
	LagSeconds    float64          `json:"lag_seconds"`    // -1 unknown
	RetainedBytes int64            `json:"retained_bytes"` // -1 unknown
	Rows          map[string]int64 `json:"rows,omitempty"`
	Interruptions int64            `json:"interruptions"` // since the start
	Snapshots     []SnapshotStatus `json:"snapshots,omitempty"`
	Signals       []SignalStatus   `json:"signals,omitempty"` // the newest, oldest first
}

// SignalStatus describes a request that came from inside the database.
type SignalStatus struct {
	Position string    `json:"position"`
	Time     time.Time `json:"time"`
	Content  string    `json:"content"`           // shortened
	Refused  string    `json:"refused,omitempty"` // why it was not obeyed
}

// SnapshotStatus describes the snapshot of one table.
type SnapshotStatus struct {
	Topic      string  `json:"topic"`
	Run        uint64  `json:"run"`
	State      string  `json:"state"`
	Rows       int64   `json:"rows"`
	Bytes      int64   `json:"bytes"`
	Total      int64   `json:"total"` // estimate; 0 unknown
	Percent    float64 `json:"percent"`
	ETASeconds float64 `json:"eta_seconds"` // 0 unknown
}

// LogStatus describes the log.
type LogStatus struct {
	FrontierCSN   uint64 `json:"frontier_csn"`
	AppendedBytes int64  `json:"appended_bytes"`
	JournalBytes  int64  `json:"journal_bytes"`
	SegmentBytes  int64  `json:"segment_bytes"`
	DiskBytes     int64  `json:"disk_bytes"` // of the whole data directory
	QuotaBytes    int64  `json:"quota_bytes"`
	Topics        int    `json:"topics"`
	Compactions   int64  `json:"compactions"`     // passes over a partition, since the start
	Removed       int64  `json:"removed_records"` // by them
	DirtyBytes    int64  `json:"dirty_bytes"`     // sealed and not yet looked at by compaction
	// DirtySeconds is the age of the oldest of them.
	DirtySeconds float64 `json:"dirty_seconds"`
	Damaged      int     `json:"damaged_partitions"` // that are not compacted any more
	// Laggard is set while the quota is nearly used up.
	Laggard *Laggard `json:"laggard,omitempty"`
}

// Laggard is the consumer of the log furthest behind, for whose sake deletes stay that could go.
type Laggard struct {
	Consumer  string    `json:"consumer"` // sink/SINK/VIEW, derive (the views), derive/build, snapshots/SOURCE
	Topic     string    `json:"topic"`    // of which the most stays
	PassedCSN uint64    `json:"passed_csn"`
	Since     time.Time `json:"since"` // when the oldest that stays was committed
	Bytes     int64     `json:"bytes"` // that stay for consumers of the topic, about
}

// ViewStatus describes one view.
type ViewStatus struct {
	Name        string  `json:"name"`
	Fingerprint string  `json:"fingerprint,omitempty"` // of the definition that outputs
	State       string  `json:"state"`
	Reason      string  `json:"reason,omitempty"`
	Documents   int64   `json:"documents"`
	AppliedCSN  uint64  `json:"applied_csn"`
	CompleteCSN uint64  `json:"complete_csn"`
	Pending     int64   `json:"pending"`
	LagSeconds  float64 `json:"lag_seconds"` // -1 unknown
	Searchable  bool    `json:"searchable"`
}

// SinkStatus describes one view in one sink.
type SinkStatus struct {
	Sink        string  `json:"sink"`
	View        string  `json:"view"`
	State       string  `json:"state"`
	Reason      string  `json:"reason,omitempty"`
	Written     int64   `json:"written"`
	Stale       int64   `json:"stale"`
	Rejected    int64   `json:"rejected"`
	Retries     int64   `json:"retries"`
	LagRecords  int64   `json:"lag_records"`
	LagSeconds  float64 `json:"lag_seconds"` // -1 unknown
	DeadLetters int64   `json:"dead_letters"`
	// NeedsRebuild: the log, full or damaged, lacks deletes that it has not seen. It sends everything again
	// by itself as soon as it can.
	NeedsRebuild bool `json:"needs_rebuild,omitempty"`
}
