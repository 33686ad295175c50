// Package join makes document views: trees of belongs_to, has_one and has_many
// relations over table images, one document for each row of the root table.
//
// Compile checks a Definition against the tables' layouts and reports all
// problems at once. The Stage that it returns finds, for a changed row, the
// roots that show it (walk.go: up the tree along indexes), and builds the
// document of a root (build.go: down the tree).
//
// # Semantics
//
//   - A relation is an equality of columns. Numbers of all kinds compare by
//     value, citext case-folded, null joins nothing.
//   - where cuts off a row, and what hangs below it, at this place only.
//   - A list has a total order: order, text by bytes, nulls last unless said
//     otherwise, then the related row's key, then the link's. Through a link
//     table a row appears once for each link row, as in SQL; a link without its
//     row is invisible.
//   - limit limits the list; calc sees every row that where accepts.
//   - belongs_to and has_one show the first row in that order, or null.
//   - A list of none is []; count of none is 0, other aggregates are null.
//   - The document has fields, then nest, then calc, each as declared.
package join
