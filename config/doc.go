// Package config reads Tailwater's YAML file into typed structs.
//
// Loading has four steps, each in a file of its own: the YAML text becomes a
// tree of nodes that know their place (tree.go), files of a directory are
// merged (load.go), references are resolved (resolve.go), and the tree is
// decoded into the structs and checked (decode*.go, check*.go).
//
// Invariants:
//
//   - All problems are reported at once, as Problems, in the order of the files.
//     Each has its file, line, column, an excerpt, the key path and, where one
//     is known, the way out.
//   - References (${VAR}, ${VAR:-default}, ${file:path}) are values. They are
//     resolved after the YAML was parsed, so a value never becomes YAML, and
//     take the type of the field they stand in. Definition and the excerpts
//     keep them unresolved.
//   - A Secret prints as *** through every verb and every marshaller, and
//     excerpts and messages never hold the text of a secret field.
//   - Load reads files and environment; it opens no connection and changes
//     nothing. What only a database can tell (does the column exist?) is checked
//     by other packages, which report through Pos.Problem.
//   - Optional fields that were left out hold their default; the comment of
//     each field states it.
//
// The package imports nothing of Tailwater's.
package config
