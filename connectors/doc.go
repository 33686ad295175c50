// Package connectors is the contract of sources, and Ingest, which copies one
// Source into the log. Package postgres implements it.
//
// # Invariants
//
//   - What Next returns is appended in that order, by one Ingest a source.
//   - A position is confirmed only after the log has synced it (C2).
//   - Ingest gives schema ids: a layout that the topic has not had becomes a
//     record of _schemas in the same group, before its first use.
package connectors
