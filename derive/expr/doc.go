// Package expr compiles SQL expressions over a table's columns: the where of a
// view and its relations, computed fields, and the aggregates of calc. What may
// be written is in docs/expressions.md.
//
// An expression is parsed by internal/sqldriver, checked once against the
// columns, and compiled into closures over rows of change.Value. A comparison
// of a column with a literal reads the column in place: it copies no value and
// allocates nothing.
//
// # Invariants
//
//   - The result is a function of the row alone: no clock, no randomness, no
//     locale, no session setting. Views are rebuilt from the log and must come
//     to the same bytes.
//   - Truth is three-valued; True keeps a row only for true.
//   - Integers and decimals compare and compute exactly, and literals keep their
//     digits. Numbers of different kinds compare by the digits they print with,
//     as change's keys do, so a float8 0.1 equals a numeric 0.1.
//   - Numbers behave like PostgreSQL's: int / int truncates, a decimal quotient
//     has the scale of select_div_scale, ROUND of a decimal is half away from
//     zero. A server checks this in tests (TestPostgresAgrees).
//   - No value changes its type by itself: text is never taken for a number. A
//     string literal takes the type of what it is compared with, at compile time.
//   - An unchanged column is not null. A result that does not hang on it is
//     given (false AND unchanged is false); any other is ErrUnchanged.
//   - An operation without a result for a row (division by zero, out of range, a
//     cast that fails) is null and counted (Expr.Faults). It is no error: one bad
//     row must not stop a view, and a view that stopped could only be mended by
//     changing the source's data. PostgreSQL would refuse the whole query, MySQL
//     answers null as we do.
//   - String is a fixed point: an expression's text compiles to the same text.
package expr
