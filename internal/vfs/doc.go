// Package vfs is the small part of a file system that the log needs: the
// operating system's (OS), and one in memory (Mem) that can lose power, run out
// of space and fail any operation.
//
// # What a power loss leaves
//
// Mem keeps for each file what was synced and the writes since, and for each
// directory the entries that were synced and the changes since. Crash returns
// what a disk may hold afterwards: everything synced, and of the rest nothing,
// all, or a random part, in any order, with writes torn at 512-byte sectors. A
// file or directory whose directory was not synced may be gone although the file
// itself was synced. What a sync that failed should have written is lost: no
// later sync writes it, though readers see it until the power goes.
//
// # Faults
//
// A Hook sees every operation and may fail it: FailNth fails the Nth, AtNth does
// anything at the Nth, such as taking a Crash. SetSpace fills the disk at any byte.
package vfs
