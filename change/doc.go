// Package change is the model of a change: a Value, a Schema, a Row over
// encoded bytes, a Key, a Position, and the Batch in which a source hands over
// one transaction. It owns their encodings, which are stored in the log and
// therefore final. It imports nothing of ours and does no I/O.
//
// # Row, version 1
//
// A row is read with its Schema, which gives the number and kinds of columns:
//
//	state   2 bits a column, four columns a byte, lowest bits first:
//	        0 value, 1 null, 2 unchanged (3 is damage)
//	values  of the columns in state 0, in column order, by kind:
//	        bool                       1 byte, 0 or 1
//	        int                        zigzag varint
//	        uint                       uvarint
//	        float32, float64           IEEE 754 bits, little-endian
//	        date                       zigzag varint, days since 1970-01-01
//	        timestamp, timestamptz     zigzag varint, µs since 2000-01-01 (UTC)
//	        time                       zigzag varint, µs since midnight
//	        timetz                     two zigzag varints: µs, seconds east of UTC
//	        interval                   three zigzag varints: months, days, µs
//	        uuid                       16 bytes
//	        decimal, text, bytes, json uvarint length, bytes
//
// A decimal is its ASCII digits exactly as the database prints them, or NaN,
// Infinity, -Infinity. JSON is text with object keys unique. Arrays, composites,
// ranges lists and spatial values are stored as the JSON that TYPES.md gives.
// Dates and timestamps that no calendar has (infinity, MySQL's zero and partial
// dates) use the reserved numbers documented at DateInfinity.
//
// # Record value
//
// The value of a row record is one byte of layout and the rows:
//
//	0  after
//	1  uvarint length of before, before, after
//
// A record without a value is a tombstone.
//
// # Key
//
// A key is a tuple of self-describing parts, each a tag byte and a body, whose
// byte order is the order of the values; see key.go. Keys of rows start with a
// byte >= 0x01; a control record's key is 0x00 and a kind.
//
// # Invariants
//
//   - Equal values have equal key bytes, whether they came from a snapshot or
//     the stream: numbers are normalised over all numeric kinds.
//   - Unchanged is never null: asking a Row for an unchanged column is an error.
//   - Decoders never panic and never allocate more than their input's length.
package change
