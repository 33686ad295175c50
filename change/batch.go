package change

import (
	"encoding/binary"
)

// Op says what happened to a row.
type Op uint8

// The operations; their numbers are stored in the log.
const (
	OpRead     Op = 0 // a row of a snapshot
	OpInsert   Op = 1
	OpUpdate   Op = 2
	OpDelete   Op = 3
	OpTruncate Op = 4
	OpMessage  Op = 5
	OpSchema   Op = 6 // DDL, or a control record's own value
	OpSweep    Op = 7 // rows last written before a CSN are no more: see SweepValue
)

// String returns the name that the command line prints.
func (o Op) String() string {
	names := [...]string{"read", "insert", "update", "delete", "truncate", "message", "schema", "sweep"}
	if int(o) < len(names) {
		return names[o]
	}
	return "op?"
}

// Flags of a record; their bits are stored in the log.
type Flags uint8

const (
	FlagPartial  Flags = 1 // the after row has unchanged columns
	FlagMoved    Flags = 2 // half of a key change: a delete and an insert with consecutive seq
	FlagSnapshot Flags = 4 // written by a snapshot: a chunk, a re-read or a sweep
)

// Position names a place in a source's own log. It is opaque outside its
// connector, which alone can compare two.
type Position struct {
	// Name is the transaction as the source names it and as people see it:
	// a commit LSN "0/16B3748", a GTID.
	Name string
	// Resume is what the connector needs to go on behind it: system
	// identifier, timeline and end LSN, or a GTID set with file and byte.
	Resume string
}

// IsZero reports whether there is no position.
func (p Position) IsZero() bool { return p == Position{} }

// String returns the part that people see.
func (p Position) String() string { return p.Name }

// Append appends the position's encoding: two strings, each a uvarint length and bytes.
func (p Position) Append(dst []byte) []byte { return appendString(appendString(dst, p.Name), p.Resume) }

// DecodePosition is the inverse of Append; no bytes are the zero Position.
func DecodePosition(b []byte) (Position, error) {
	if len(b) == 0 {
		return Position{}, nil
	}
	d := &decoder{b: b}
	p := Position{Name: d.string(), Resume: d.string()}
	if d.err == nil && len(d.b) != 0 {
		d.fail("bytes after a position")
	}
	return p, d.err
}

// BatchKind says what a Batch is.
type BatchKind uint8

const (
	Transaction BatchKind = 0 // a committed transaction of the source
	Chunk       BatchKind = 1 // reconciled snapshot rows: a pseudo-transaction without a position of its own
	Tick        BatchKind = 2 // no rows: the source is known to have nothing before Pos
)

// Stage says how the transaction of a batch stands. One that is large may come
// while it is in progress: its batches InProgress, of sub-transactions in turns and
// with those of other transactions between them, then one RolledBack or Adopted.
// All name it by Tx. Until it is Adopted nothing of it counts; then all of it comes
// at that place, but for sub-transactions that were RolledBack.
type Stage uint8

const (
	Ended      Stage = 0 // committed: the batch, with those before it that have More, is all of it
	InProgress Stage = 1 // events of its sub-transaction Sub; Pos and CommitTime are not known
	RolledBack Stage = 2 // its sub-transaction Sub; with Sub 0 the transaction itself
	Adopted    Stage = 3 // committed at Pos; what this batch holds comes behind the rest
)

// Batch is one transaction, or a run of one, in an arena: its events are
// offsets over one buffer into which decoders write keys and rows encoded. A
// Batch is handed over whole: whoever received it last owns its memory.
type Batch struct {
	Source     string
	Kind       BatchKind
	Tx         string   // the transaction's id as the source prints it: an xid, a GTID
	Pos        Position // of the commit; zero for a chunk
	CommitTime int64    // µs since 1970; for a chunk, when it was read by the server's clock
	// More is set when further batches of the same transaction follow. Nothing
	// of the transaction counts before one without it came.
	More     bool
	Stage    Stage
	Sub      uint32 // of a batch InProgress or RolledBack
	Events   []Event
	Controls []Control
	// Schemas become known in the log with this batch, whether or not an event
	// uses them: a table without rows has a layout too.
	Schemas []*Schema
	// Sweep, in a batch of kind Chunk without events, asks ingest to append a
	// tombstone for each key of Topic whose newest record is older than the
	// control record Since of the topic _snapshots.SOURCE.
	Sweep *Sweep

	buf []byte
}

// Event is one row change inside a Batch.
type Event struct {
	Schema *Schema
	Op     Op
	Flags  Flags

	key, before, after span
}

type span struct{ start, end int }

// Control is a record for a control topic (its name begins with _), appended
// in the same transaction. A nil Value is a tombstone.
type Control struct {
	Topic string
	Key   Key
	Value []byte
}

// Sweep asks for the tombstones of rows that a full re-snapshot did not find.
type Sweep struct {
	Topic string
	Since Key
}

// Key returns the event's key; it is empty for a table without one and for truncate.
func (b *Batch) Key(e *Event) Key { return Key(b.buf[e.key.start:e.key.end:e.key.end]) }

// After returns the row after the change; ok is false for delete and truncate.
func (b *Batch) After(e *Event) (row Row, ok bool) {
	if e.after.end == 0 {
		return Row{}, false
	}
	return Row{Schema: e.Schema, Data: b.buf[e.after.start:e.after.end:e.after.end]}, true
}

// Before returns the row before the change, where the source sent it whole.
func (b *Batch) Before(e *Event) (row Row, ok bool) {
	if e.before.end == 0 {
		return Row{}, false
	}
	return Row{Schema: e.Schema, Data: b.buf[e.before.start:e.before.end:e.before.end]}, true
}

// Size returns the bytes that the batch's arena holds.
func (b *Batch) Size() int { return len(b.buf) }

// Add appends an event with this key and rows, already encoded; a nil row is
// absent. FlagPartial is set by the caller. Rows of tables without columns are not nil but empty.
func (b *Batch) Add(s *Schema, op Op, flags Flags, key Key, before, after []byte) {
	e := Event{Schema: s, Op: op, Flags: flags}
	if len(b.buf) == 0 {
		b.buf = append(b.buf, 0) // so that no span of a present row ends at 0
	}
	e.key = b.put(key)
	if before != nil {
		e.before = b.put(before)
	}
	if after != nil {
		e.after = b.put(after)
	}
	b.Events = append(b.Events, e)
}

func (b *Batch) put(p []byte) span {
	start := len(b.buf)
	b.buf = append(b.buf, p...)
	return span{start, len(b.buf)}
}

// Buffer gives the arena to decoders that append keys and rows in place.
func (b *Batch) Buffer() []byte {
	if len(b.buf) == 0 {
		b.buf = append(b.buf, 0)
	}
	return b.buf
}

// AddInPlace takes the arena back with an event whose key, before and after
// were appended to it, one behind the other, up to these ends. A before or
// after of a present row is never empty: a zero length means absent.
func (b *Batch) AddInPlace(buf []byte, s *Schema, op Op, flags Flags, keyStart, keyEnd, beforeEnd, afterEnd int) {
	b.buf = buf
	e := Event{Schema: s, Op: op, Flags: flags, key: span{keyStart, keyEnd}}
	if beforeEnd > keyEnd {
		e.before = span{keyEnd, beforeEnd}
	}
	if afterEnd > beforeEnd {
		e.after = span{beforeEnd, afterEnd}
	}
	b.Events = append(b.Events, e)
}

// Reset empties the batch for reuse, keeping its memory.
func (b *Batch) Reset() {
	*b = Batch{Events: b.Events[:0], Controls: b.Controls[:0], buf: b.buf[:0]}
}

// SnapshotState is the state of one run of a table's snapshot.
type SnapshotState uint8

const (
	SnapshotBegun    SnapshotState = 0
	SnapshotProgress SnapshotState = 1
	SnapshotDone     SnapshotState = 2
	SnapshotStopped  SnapshotState = 3 // given up; another run took its place
)

// SnapshotMark is a record of the topic _snapshots.SOURCE: how far a run has
// come. Its CSN is that of the chunk it is appended with, so that the Begun
// mark carries the run's first CSN and the Done mark its last.
type SnapshotMark struct {
	Topic string // the table's topic
	Run   uint64 // counts from 1 for each topic
	State SnapshotState
	// Floor: views of this table emit nothing from the Begun mark to the Done
	// mark (a first snapshot, one that heals a gap or a rewrite).
	Floor  bool
	Where  string // condition of an ad-hoc run; empty: the whole table
	Rows   int64  // read so far
	Bytes  int64
	Total  int64  // estimate of all rows; 0 unknown
	Cursor []byte // the connector's own resume state
}

// Key returns the mark's key: topic, run and whether it is the run's beginning,
// its progress (overwritten by each chunk) or its end.
func (m *SnapshotMark) Key() Key {
	k := AppendKeyPart(nil, Text(m.Topic), false)
	k = AppendKeyPart(k, Uint(m.Run), false)
	return AppendKeyPart(k, Int(int64(m.State)), false)
}

// Append appends the mark's value.
//
//	version u8 = 1, u8 flags (1 floor), string where, varints rows, bytes, total, bytes cursor
func (m *SnapshotMark) Append(dst []byte) []byte {
	var flags byte
	if m.Floor {
		flags |= 1
	}
	dst = appendString(append(dst, 1, flags), m.Where)
	dst = binary.AppendVarint(dst, m.Rows)
	dst = binary.AppendVarint(dst, m.Bytes)
	dst = binary.AppendVarint(dst, m.Total)
	return appendString(dst, string(m.Cursor))
}

// IsSnapshotMark reports whether a key of a _snapshots topic is a mark's; other
// records there are requests.
func IsSnapshotMark(key Key) bool {
	parts, err := DecodeKey(key)
	return err == nil && len(parts) == 3 && parts[0].Kind() == KindText && parts[1].Kind() == KindInt && parts[2].Kind() == KindInt
}

// DecodeSnapshotMark reads a record of a _snapshots topic.
func DecodeSnapshotMark(key Key, value []byte) (*SnapshotMark, error) {
	parts, err := DecodeKey(key)
	if err != nil {
		return nil, err
	}
	if len(parts) != 3 || parts[0].Kind() != KindText || parts[1].Kind() != KindInt || parts[2].Kind() != KindInt {
		return nil, damaged("snapshot mark key")
	}
	d := &decoder{b: value}
	if d.byte() != 1 {
		return nil, damaged("snapshot mark version")
	}
	flags := d.byte()
	m := &SnapshotMark{Topic: parts[0].TextValue(), Run: uint64(parts[1].Int64()), State: SnapshotState(parts[2].Int64()), Floor: flags&1 != 0,
		Where: d.string(), Rows: d.varint(), Bytes: d.varint(), Total: d.varint()}
	if c := d.string(); c != "" {
		m.Cursor = []byte(c)
	}
	if d.err == nil && len(d.b) != 0 {
		d.fail("bytes after a snapshot mark")
	}
	return m, d.err
}
