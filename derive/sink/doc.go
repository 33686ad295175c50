// Package sink is the contract of sinks, and Worker, which copies one view's
// topic into one target with batching, retry and dead letters. Packages
// elastic, cache and local implement it.
//
// # Invariants
//
//   - A write carries the CSN of its document; a stale one never wins over a
//     newer one (C6).
//   - The cursor is saved only after the target answered for everything before it.
//   - A rejected document goes to the topic _dlq.SINK and never stops the others.
package sink
