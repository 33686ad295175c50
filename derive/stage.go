package derive

import (
	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
)

// Schemas returns the newest layout of a topic.
type Schemas func(topic string) (*change.Schema, bool)

// View is a definition. It does not change once given to a Runner.
type View interface {
	Name() string
	// Definition returns the definition's canonical bytes; equal bytes are the
	// same view. Options.Restore is its inverse.
	Definition() ([]byte, error)
	// Topics returns the topics of the tables that the view reads.
	Topics() []string
	// Compile checks the definition against the tables' layouts.
	Compile(schemas Schemas) (Stage, error)
}

// Stage is a compiled view: it knows columns by their numbers, so that a rename
// leaves it valid.
type Stage interface {
	Info() *Info
	// Needs returns what the stage needs of each topic's image.
	Needs() map[string]image.Need
	// Bind readies the stage for these images, which serve its needs.
	Bind(tables func(topic string) *image.Table) (Bound, error)
}

// Bound is a Stage over certain images. One goroutine.
type Bound interface {
	// Root is the image whose rows own the documents.
	Root() *image.Table
	// Walk calls add for the key of each root whose document may show this row,
	// going up from it by what r holds. other is the row on the other side of
	// the change: places that use no column in which both differ are left out.
	Walk(r image.Reader, t *image.Table, key change.Key, row, other []change.Value, add func(root change.Key) error) error
	// Build appends the document of a root to dst.
	Build(r image.Reader, root change.Key, dst []byte) (doc []byte, outcome Outcome, err error)
}

// Outcome says what Build found.
type Outcome uint8

const (
	Absent  Outcome = iota // there is no such document
	Present                // doc is its JSON
	Held                   // it needs a column that no row has filled yet
)

// Info describes a compiled view.
type Info struct {
	Name        string
	Fingerprint string // of the resolved definition
	Root        string // topic
	Topics      []string
	Key         []KeyColumn
	Fields      []Field
	Relations   []Relation // all, in the order of the tree
}

// KeyColumn is a part of the documents' key.
type KeyColumn struct {
	Name string
	Kind change.Kind
	Fold bool
}

// Field describes one field of the documents.
type Field struct {
	Name       string
	Kind       change.Kind // KindNull for an object or a list of objects
	SourceType string      // of the column it comes from, "" if computed
	List       bool
	Fields     []Field // of an object or a list of objects
}

// Relation is an edge of the tree in its resolved form.
type Relation struct {
	Path    []string // names from the root
	Kind    string   // belongs_to, has_one, has_many
	Topic   string
	By      []ColumnPair // Holder refers to Refers
	Through string       // topic of the link table, "" if direct
	Near    []ColumnPair // with Through, instead of By
	Far     []ColumnPair
}

// ColumnPair is one column of a reference.
type ColumnPair struct{ Holder, Refers string }

// Doc is one document of a view.
type Doc struct {
	ID      string
	Key     change.Key
	Version uint64 // CSN
	JSON    []byte
}
