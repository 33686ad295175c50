// Package snapshot joins the chunks of a snapshot with the change stream that
// runs meanwhile, once, before the append. It is a state machine without I/O:
// the connector tells it what it is about to append and what its chunk reader
// read, and asks what to do next. One Machine serves one source and belongs to
// one goroutine.
//
// # The rules that it keeps
//
// The order in which the connector calls Observe and takes batches from Next is
// the order of the log. A chunk is read in its own database snapshot, which the
// connector describes by a View.
//
//   - Touched keys are collected from before the chunk's snapshot is taken: the
//     collection is open when Next answers ActionRead.
//   - If a transaction appended before the collection began is not in the view,
//     the chunk is read again. Log positions never decide this: a transaction's
//     commit record precedes its visibility.
//   - The chunk is appended after the stream passed the end of the source's log
//     as read after the chunk's snapshot, so that all that the chunk saw has
//     been observed.
//   - A chunk row is left out if the stream, at any time since the collection
//     began, deleted the row, truncated the table or sent the row whole. If it
//     sent only partial rows, the chunk row is appended with the streamed values
//     winning.
//   - During a run the keys of partial records that no chunk row followed are
//     owed: they are read again, by key, before the sweep and the end. Keys
//     that first come partial after the last chunk was appended are not owed:
//     an update that carried a row past the reader precedes that chunk.
//   - The insert half of a key change with unchanged columns is owed at any
//     time: its request is a record of its own and outlives restarts.
//   - A run that is not its table's first and reads the whole table ends with a
//     sweep, which ingest decides at the append.
//   - Rows whose storage was exchanged since the run began are explained by a
//     streamed truncate of that very transaction, which empties the run; anything
//     else begins another run, which ends with a sweep.
//   - A table without a key is one chunk, which begins with a truncate and to
//     which the changes not in its view are applied as a multiset of rows.
//
// # Bytes
//
// The Cursor of a change.SnapshotMark, version 1, wraps the connector's own:
//
//	version u8 = 1
//	flags   u8 (1: every chunk was appended, only re-reads and the end are missing;
//	        2: the run ends with a sweep)
//	pending uvarint count, then each: uvarint length, transaction id
//	rest    the connector's cursor
//
// pending, in a Begun mark, names the transactions that were appended before it
// and not known to be visible, so that a restart knows them again.
package snapshot
