// Package sink is the contract of sinks, and Worker, which copies one view's
// topic into one target with batching, retry and dead letters. Packages
// elastic, cache and local implement it.
//
// # Cursor
//
// How far a view is in a target is the log's checkpoint "sink/SINK/VIEW"
// (names as change.EscapeName writes them), version 1:
//
//	version      1 byte, 1
//	phase        1 byte: 0 live, 1 resend, 2 build
//	fingerprint  uvarint length, bytes
//	stamp        the last one known to be in the target
//	offsets      uvarint count, each a uvarint: the next record of each partition
//	after        uvarint: everything at or below this CSN is answered for; in phase
//	             resend what is above is sent again
//	part, next   uvarints: phase build, partitions below part are sent, of part
//	             everything below next
//	crc          4 bytes little-endian, CRC-32C of all before
//
// A stamp is 16 bytes log id, uvarint CSN, uvarint seq, varint time (µs),
// fingerprint, 1 byte complete. EncodeStamp puts the version before it and the
// CRC behind it.
//
// # Dead letters
//
// A document that the target rejects is a record in the topic _dlq.SINK with
// key (view, id) and value {"reason":…,"version":…}; the next good version of
// the document appends its tombstone.
//
// # Invariants
//
//   - A write carries the CSN of its document; a stale one never wins over a
//     newer one (C6).
//   - The cursor is saved only after the target answered for everything before
//     it, and the dead letters among that are durable.
//   - Nothing is read while a write is retried: memory is bounded by one batch,
//     and no later version of a document can overtake a retry (V32).
//   - A target whose stamp is not what the log remembers is never written to as
//     if it were: it is built, resent to, or left alone (V29, V30, V33).
package sink
