// Package sqldriver stands between Tailwater and the SQL parser. It supplies
// the literal hooks that the parser needs, and ParseExpr, which turns one SQL
// expression into a small tree of our own.
//
// The hooks (hooks.go) keep the digits of every literal: the parser's own test
// driver panics on decimals past 81 digits.
//
// # How an expression is parsed
//
// The parser speaks MySQL's dialect, reads 1.5e3 as a float64, and remembers
// no positions. So it only ever sees the shape of an expression: our scanner
// splits the source into tokens, and each name, literal, function and type is
// replaced by the number of its token:
//
//	status != 'draft' and length(name) > 1e2
//	`c0` != 2 AND `f4` ( `c6` ) > 9
//
// The tree is then made from the parser's tree and our tokens, so that
//
//   - names are never taken for keywords, except those in the reserved list;
//   - literals of any length keep their digits, and have none of MySQL's
//     escapes, character sets and implicit concatenation;
//   - every node knows its byte in the source;
//   - comments, statements, subqueries, variables and parameters never reach
//     the parser: the scanner refuses them with their place.
//
// The operators that the parser lacks or reads differently (IS DISTINCT FROM,
// -> and ->> on any operand, ESCAPE) borrow the place of one that it has; the
// token tells which was meant.
package sqldriver
