package config

// How a view's documents follow the source's transactions.
const (
	EmitCoalesced        = "coalesced"         // each document exact at its own version (default)
	EmitTransactional    = "transactional"     // all documents of a batch at once
	EmitEveryTransaction = "every_transaction" // one batch a transaction
)

// View is a document view: one document per row of the root table.
type View struct {
	Name string
	Pos  Pos
	Node // the root; its Table is From

	Emit       string // EmitCoalesced by default
	Partitions int    // of the topic view.NAME; 0 = the rules of log.topics
	To         []*Target

	definition string
}

// From is the root table.
func (v *View) From() TableRef { return v.Table }

// Target is the target for a sink, or nil.
func (v *View) Target(sink string) *Target {
	for _, t := range v.To {
		if t.Sink == sink {
			return t
		}
	}
	return nil
}

// Node is one place in a view's tree: a table and what is taken from its rows.
type Node struct {
	Table  TableRef
	Where  *Expr   // nil = every row
	Fields []Field // nil = all columns; empty = none
	Nest   []*Relation
	Calc   []*Calc
}

// Relation is the relation of that name in this node, or nil.
func (n *Node) Relation(name string) *Relation {
	for _, r := range n.Nest {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// TableRef names a table: source, schema (database on MySQL) and table.
type TableRef struct {
	Source string
	Schema string
	Table  string
	Text   string // as written
	Pos    Pos
}

// String is source.schema.table.
func (t TableRef) String() string { return t.Source + "." + t.Schema + "." + t.Table }

// Expr is an SQL expression as written, references resolved.
type Expr struct {
	Text string
	Pos  Pos

	inset int // characters between Pos and the text; -1 = does not map
}

// At is the place of a byte of the text, where the file's line shows it.
func (e *Expr) At(offset int) Pos {
	p := e.Pos
	if e.inset >= 0 && offset >= 0 && offset <= len(e.Text) {
		p.Col += e.inset + len([]rune(e.Text[:offset]))
	}
	return p
}

// Field is one field of a document: a column, or an expression over the row's
// columns. Exactly one of Column and Expr is set.
type Field struct {
	Name   string // in the document
	Column string
	Expr   *Expr
	Pos    Pos
}

// RelationKind says which table holds the reference.
type RelationKind string

// The kinds of relations.
const (
	BelongsTo RelationKind = "belongs_to" // this row refers to the other: one object or null
	HasOne    RelationKind = "has_one"    // the other row refers to this: one object or null
	HasMany   RelationKind = "has_many"   // the other rows refer to this: a list
)

// Relation is a nested place.
type Relation struct {
	Name string
	Pos  Pos
	Kind RelationKind
	Node // the related table

	By      []ByColumn // nil = the one foreign key that fits. Unused with Through
	Fold    bool       // compare case-folded; default false
	Through *Through   // nil = direct
	Order   []OrderItem
	Limit   int // of the list; 0 = all. Calc sees every row
}

// ByColumn is a column that holds a reference and the column that it refers to.
type ByColumn struct {
	Column string // on the side that holds the reference
	Refers string // on the other side; "" = the key's column at the same place
	Pos    Pos
}

// Through is the link table of a many-to-many relation.
type Through struct {
	Table TableRef
	Near  []ByColumn // link columns that refer to this row; nil = the one foreign key that fits
	Far   []ByColumn // link columns that refer to the related row; nil = as Near
	Where *Expr      // over the link's columns; nil = every link
	Pos   Pos
}

// OrderItem is one part of a list's order.
type OrderItem struct {
	Column     string
	Desc       bool
	NullsFirst bool // default false, in both directions
	Pos        Pos
}

// CalcFunc is an aggregate function.
type CalcFunc string

// The aggregate functions.
const (
	Count CalcFunc = "count"
	Sum   CalcFunc = "sum"
	Avg   CalcFunc = "avg"
	Min   CalcFunc = "min"
	Max   CalcFunc = "max"
)

// Calc is an aggregate over a relation of the same node. It sees every row
// that the relation's Where takes, whatever its Limit.
type Calc struct {
	Name        string
	Pos         Pos
	Func        CalcFunc
	Relation    string // name in the node's Nest
	RelationPos Pos
	Column      string // column of the relation's table; Count: "" = rows, else values that are not null
	Expr        *Expr  // instead of Column: an expression over the relation's table
	Where       *Expr  // further filter; nil = none
	Round       *int   // decimals, half away from zero; nil = not rounded
	Approximate bool   // allows sums of floats; default false
}
