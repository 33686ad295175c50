// Package cache is the sink that keeps documents in Redis or Valkey: one key a
// document, its value the document's JSON and nothing beside it.
//
// # What is in the database
//
//	KEY         the template with the document's key columns filled in: its JSON
//	tw:VIEW     a hash: log (hex), epoch, csn, seq, time (µs), fp, complete (0, 1)
//
// In a template with several fields each value but the last has \ and the first
// character of what follows it escaped by \, so that no two documents share a
// key and a key can be parsed back. Epochs are kept in the log's checkpoint
// "redis/SINK/VIEW", as decimal digits, before they are used.
//
// # Invariants
//
//   - Each batch is one script. It refuses another log or epoch, and a csn and
//     seq that are not those of the batch before; it writes values and deletes
//     and then csn and seq. So nothing an old connection still holds, and
//     nothing sent out of order, takes effect (V31).
//   - A foreign target is taken over only by Begin (V30).
//   - After an error the epoch is raised before the next batch.
//
// A cluster is refused: the keys of one batch would lie in several slots.
package cache
