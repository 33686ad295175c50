// Package crashlab breaks logs on a file system in memory and looks at what is
// left: power lost at any operation, with writes torn and directory entries
// gone; operations that fail; disks that are full for a while; flipped bits.
// It is for tests and `make crash`.
//
// A round is a log's life of several sessions. Each appends, streams (commits,
// aborts, discards), seals and saves checkpoints until its fault strikes, then the next opens what the disk holds
// and compares it with what was acknowledged:
//
//   - lost: an acknowledged transaction is not there
//   - duplicate: a transaction is there twice
//   - reordered: the order is not that of the appends
//   - wrong: anything else, such as half a transaction, other bytes, another
//     offset, a transaction whose append was refused, a log that does not open
package crashlab
