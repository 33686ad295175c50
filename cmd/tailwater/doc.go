// Command tailwater keeps search indexes, caches and other derived data in step
// with PostgreSQL.
//
// The package is thin. Each subcommand has a file; what it needs from the rest
// of the program is a function of deps, which wire.go fills in. Commands about a
// running daemon speak HTTP with it, over the unix socket of its data directory
// or the address of --addr; view get, dump and list and the log commands open
// the data directory themselves when no daemon runs.
//
// Results go to stdout, everything else to stderr. Exit codes are 0 done, 1
// failed or found what it looks for, 2 misuse (flags, config), 3 cannot reach
// something outside, 4 timed out waiting, 5 refused since data or history would
// be lost. A failure prints one line that says what was being done, to what, why,
// and the way out; problems of the configuration print with their excerpts.
package main
