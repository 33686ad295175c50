// Package testkit is what tests, benches and the lab share: real servers, the
// daemon as a child process that can be killed, and the comparison of a view
// with SQL. Nothing that is shipped imports it; it imports the standard
// library, pgx and jsoncmp.
//
//   - A server is named by its URL in the environment (TAILWATER_TEST_POSTGRES
//     and so on; `dev/services env` prints them). Where one is unset the test
//     skips and says so; with TAILWATER_TEST_REQUIRED=1 it fails instead.
//   - What a test gets is its own: a fresh database, a fresh Redis database
//     number, a name of its own for indexes. Slots and publications belong to
//     the whole server, so a test names its source by Name (or sets slot).
//   - All that was started or made is removed at the test's end, processes by
//     their pid.
//   - Every function takes a T, which *testing.T and *testing.B satisfy;
//     Program makes one for a program that is no test.
package testkit
