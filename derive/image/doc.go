// Package image keeps table images: local copies of the columns that views
// need, with the indexes that lead along the views' edges. All views of a log
// share them. It also owns the store that they and the views' own state live
// in, and hides its engine (Pebble).
//
// # Keys
//
// A key is one letter, a number that says whose it is (big-endian), and a tail.
// Integers in values are uvarints.
//
//	T table u32  row key                          CSN, row in the table's layout
//	X table u32  index u16  column parts, row key  (empty)
//	D view u32   root key                         hash 16 bytes, CSN
//	Q view u32   root key                         cause CSN, flags u8
//	R view u32   class u8  cause u64  root key    (empty)
//	M name                                        JSON of the program's own state
//
// A row key is the key of the row's records. Column parts and row keys are
// change.Key tuples: self-delimiting, in the order of their values, equal for
// equal values whatever numeric kind they have. An index leaves out rows in
// which one of its columns is null (null joins nothing) or not yet known.
//
// # Invariants
//
//   - T and X of a table agree in every committed batch.
//   - A table's layout and indexes never change; another need is another table number.
//   - A row that came partial is filled from the row before it; the insert half
//     of a key change from the row that its delete half removed. What no row
//     has filled stays unchanged, which is not null.
package image
