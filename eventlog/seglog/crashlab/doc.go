// Package crashlab breaks logs on a file system in memory and looks at what is
// left. It is for tests and `make crash`; the same seed does the same again.
//
//   - Round lives a log's life of random sessions. Each does what operations lists
//     until its fault strikes, then the next opens what the disk holds.
//   - Sweep puts every fault at every operation of one mixed workload.
//   - Cuts ends the journal at every byte, FullDisks runs on disks of every size.
//   - FlipSmall and FlipLarge flip bits.
//
// What a log shows is compared with what was acknowledged:
//
//   - lost: an acknowledged transaction is not there
//   - duplicate: a transaction is there twice
//   - reordered: the order is not that of the appends
//   - wrong: anything else, such as half a transaction, other bytes, another
//     offset, a record gone that compaction or retention must not take (see
//     admit.go), a transaction whose append was refused, a log that does not open,
//     an error of reading that is called damage, an answer after a failed sync
package crashlab
