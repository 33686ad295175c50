// Package eventlog is the contract of the change log: topics, partitions,
// records, transactions and the frontier. It knows keys and offsets, never
// tables: it stores bytes. Package seglog keeps such a log on local disk;
// package logtest is the suite that every backend passes.
//
// # Invariants
//
//   - A transaction is visible whole or not at all, in every topic at once (C3).
//   - A streamed transaction is stored as it arrives and exists from its commit on.
//   - Append returns only when the group is durable; readers see nothing beyond
//     the frontier (C2, G2).
//   - Offsets never change or repeat (C4).
//   - One sequencer gives CSNs, strictly increasing over all sources, at each
//     start at least (Unix seconds - 1577836800) · 2^22.
package eventlog
