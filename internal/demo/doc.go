// Package demo is the shop: a database of products, brands, countries, reviews
// and categories from a seeded generator, live traffic on it, the view of the
// README over it, and the SQL that says what every document has to be. The
// command `tailwater demo` and the kill tests stand on it.
//
//   - The generator is a function of its seed and sizes alone; nothing in it
//     reads a clock.
//   - Load touches only tables that carry the shop's mark (a comment on the
//     table); a database in which a table of the same name lacks it is refused.
//   - The view in tailwater.yaml and the query in view.sql say the same.
//   - Slot and publication are named tailwater_demo and are removed when the
//     demo ends: a trial never makes its owner's disk fill up.
//   - Every process that Run starts is stopped by its pid.
package demo
