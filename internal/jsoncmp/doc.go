// Package jsoncmp compares JSON documents without ever turning a number into a
// float, for checks of what a view holds against what the database says.
//
//   - Objects are equal when they have the same members, in any order; lists
//     are compared in order. Of a name that is given twice the last counts.
//   - Number tokens without an exponent are compared digit by digit, so 1.0
//     and 1.00 differ: a document carries exactly the digits that the database
//     prints. A token with an exponent is expanded first, since the database
//     and we spell floats differently (1e+21 equals 1000000000000000000000).
//   - Strings are compared after unescaping.
//
// It imports nothing of ours.
package jsoncmp
