// Package verify compares the documents of a view with those in a sink, all of
// them, without ever turning a number into a float.
//
// # Invariants
//
//   - Objects are equal when they have the same members, in any order; lists in
//     order; texts after unescaping; number tokens digit by digit, so 1.0 and
//     1.00 differ: sinks keep our bytes, and a changed digit is a change.
//   - Memory is bounded by 40 bytes or so a document and the differences that
//     are found, not by the documents.
//   - What changes while it is compared is read again, so a difference in the
//     report was there twice.
package verify
