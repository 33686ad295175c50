// Package local is the sink that keeps a full-text index of each view inside
// the data directory, with bleve.
//
// # Layout
//
//	DIR/VIEW/000001/    one generation: a bleve index (scorch)
//	DIR/VIEW/000002/    the next one while it is built
//
// VIEW is the view's name as change.EscapeName writes it. A generation holds,
// of each document, the field _doc with its JSON as the view made it (stored,
// not indexed), the field _id, the fields of the view as the mapping says, and
// _all with the words of all text fields. Its stamp is the internal value
// "tailwater.stamp" (sink.EncodeStamp) and is written in the batch it belongs
// to. The newest generation with a complete stamp is the one that is searched;
// those before it are removed.
//
// # Invariants
//
//   - A batch is durable when Write returns: the segment and the index's root
//     are synced (scorch's safe batches).
//   - A generation that cannot be opened, or has no readable stamp, is removed
//     and built again from the log. A locked one is not damaged.
//   - Documents come back byte for byte; numbers are indexed as float64, for
//     ranges and order only.
package local
