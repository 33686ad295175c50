// Package postgres captures the changes of one PostgreSQL database, versions 13
// to 18, through a logical replication slot and the plug-in pgoutput. It is a
// connectors.Connector; the snapshot chunks between the transactions come from
// a coordinator in the same package (hook.go says what the two owe each other).
//
// # The path of a change
//
// A reader goroutine takes messages off the replication connection, which is
// taken over from pgconn right before START_REPLICATION, and decodes them into
// change.Batch, one a transaction (several with More set above 8 MiB). They wait
// in a queue bounded by bytes until Next takes them. A second goroutine, the
// keeper, tells the server what is durable: it goes on while the reader is
// blocked by a full queue, so that the server never takes us for dead.
//
// Logical messages (message.go) are events of the topic _messages.SOURCE at their
// place in their transaction; one that belongs to none is a transaction of its own,
// without an id. One with the prefix "tailwater" is a signal (signal.go): what it
// begins is recorded in the batch that it came with.
//
// Protocol 2 of pgoutput is spoken to PostgreSQL 14 and later, 1 to 13. Transactions
// arrive at their commit, in commit order, but for large ones, whose blocks arrive while
// they are in progress (inprogress.go) and pass through at once: ingest streams them
// into the log's storage, the coordinator is told at their commit. Such a block is
// read with the layout that its table has in the stream. A transaction that may have
// made another ends the source, to be opened again without blocks (known.go), since
// nothing tells that layout before its commit. Values come as text, in the stream and
// in chunks, and go through one decoder per type, so that a row is the same bytes both ways.
//
// # Positions
//
// A change.Position of this package has as Name the LSN of the commit record's
// beginning ("0/16B3748", as the server calls the commit LSN) and as Resume
//
//	SYSTEM_ID/TIMELINE/END_LSN_HIGH/END_LSN_LOW      "7312…/1/0/16B3778"
//
// where the end LSN is that of the byte behind the commit record. Replication
// resumes at the end LSN; a transaction whose commit LSN is below the last end
// LSN is held already and dropped. Ticks, and messages outside of transactions,
// have their LSN as both: a message's is the end of its record.
//
// # Invariants
//
//   - The server is told nothing but what Confirm was told (C2).
//   - The publication exists, with all its tables, before the slot does; a table
//     added later is locked against writers while it is added (V1).
//   - A slot is made only after a note of it is durable (V15), and its first
//     position goes into the log as a tick before any row.
//   - Every session pins the settings that shape text (session.go) and reads
//     them back: the server's, database's or role's own settings change nothing.
//   - What changes stored values without an event (a rewrite, a renamed label, an
//     altered composite type) reads the table again (chunk_storage.go, shape.go).
//   - Generated columns are left out, of the stream and of chunks, on all versions.
//   - Parsers of wire bytes never panic and allocate no more than they were sent.
package postgres
