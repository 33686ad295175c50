// Package seglog keeps an event log on local disk: a journal in commit order
// and, for each partition, immutable segments sealed from it. Both hold Kafka
// record batches (version 2).
//
//	DIR/journal/000000000001.journal           journal files, numbered from 1
//	DIR/journal/000000000001-7.stream          streamed transaction that file 1 adopted
//	DIR/journal/000000000008.stream.tmp        one in progress
//	DIR/topics/000017-short-name/meta          full name and spec, for people
//	DIR/topics/000017-short-name/P-BASE-NEXT.seg         as sealed
//	DIR/topics/000017-short-name/P-BASE-NEXT-GEN.seg     after a compaction
//
// A journal file, version 1, is a 16-byte header ("TWJL", u16 version, u16 zero,
// u64 file number) and then entries to the end. Integers are little-endian and
// checksums are CRC-32C, seeded with the file's number so that an entry of a
// recycled file never looks like one of this.
//
//	0         4         8      9              9+n
//	+---------+---------+------+--------------+
//	| crc     | n       | kind | n payload    |   entry
//	+---------+---------+------+--------------+
//
// The crc covers everything behind it. Kind 1 is a group: new topics,
// consumers' marks, transactions and their batches, made durable by one sync.
// Kind 2 adopts a streamed transaction's file, kind 3 is the checkpoint that
// starts each file, kind 4 the sparse index of places, CSNs and commit times that
// ends a closed one. docs/log-format.md gives the payloads.
//
// A streamed file, version 1, is a header ("TWST", u16 version, u16 zero, u64
// number) and then entries of kind 5, chunks, seeded with its own number: batches
// whose offsets count from 0, and which records belong to which sub-transaction.
// The entry that adopts it gives CSN, times and first offsets, and names the
// sub-transactions that were aborted.
//
// # Invariants
//
//   - A group without its entry does not exist for readers; one with it exists whole.
//   - An entry is written only after the sync before it returned (V18), so that only
//     the last can be in doubt (Open writes it again before it syncs and shows it), and a bad
//     entry with a good one behind it is damage: a CorruptError. A bad last entry
//     was torn: Open cuts it, and every offset and the next CSN skip 2^32 (V20),
//     since it may have been acknowledged.
//   - A file and its directory are synced before anything in it is acknowledged (V17).
//     A newest file without a whole checkpoint never held anything and is dropped (V19).
//   - A closed file ends where the checkpoint of the next one says. Transactions follow
//     each other without a gap inside a file; between files only a cut leaves one.
//   - The sealed rows of _tx reach to where the journal begins, unless retention has deleted them all.
//   - An offset, once assigned, is never reused or moved; sealing and compaction leave gaps.
//   - A streamed file's contents are durable before it gets its name, its name
//     before an entry adopts it. It goes after its journal file has gone, durably.
//     A file that an entry may name is never removed before that; Open removes
//     all that no entry names.
//   - Each transaction has an ordinal, its offset in the topic _tx: the place of
//     readers, the same in the journal and behind it.
//   - Sealed records that the journal still holds are the same; either may be read.
//
// Of compaction and retention:
//
//   - Only records that have left the journal make older ones of their key go: a
//     reader that finds those gone reads on in segments, where partial records have
//     taken over what they lacked.
//   - A topic's horizon is durable before anything is removed (V21).
//   - Segments are written anew newest first, so that a survivor has the values of the
//     older records before those go.
//   - A tombstone goes only in a pass that began when all it hides had gone (the
//     clean mark, written when a pass is complete), after its retention, below every
//     cursor (V22), and under no pin.
//   - The records of a key that was changed stay until the row under its new key is whole.
//   - A new segment is durable under its name before those that it covers are
//     removed. Open removes covered ones.
//   - Damaged batches are removed only when asked (SetAside), behind the same horizon,
//     by the same way of writing a segment anew.
//   - Where rows of _tx begin is durable before older ones are deleted; transactions
//     without a row are read by merging partitions. Rows that an open reader will
//     ask for stay.
//
// # Goroutines
//
// Each caller of Append encodes its own batches; then requests, also those that
// commit streams, queue, and whoever holds the writer's token gives them their
// places and writes for all. A stream writes and syncs its file without the token.
// Readers take the log's read lock only to find their place. Run seals,
// compacts and deletes in the background; one compaction or deletion runs at a time.
//
// # Memory
//
// Entries lie in slabs, which the tail and the readers that are at them hold, and
// which are written again once nobody does. So what a reader returned is valid
// until its next call and no longer.
package seglog
