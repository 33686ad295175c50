package join

import (
	"encoding/json"
	"fmt"
)

// Definition is a document view as its owner wrote it, table names resolved to
// topics. Its JSON is kept with the view's state: fields are added, not changed.
type Definition struct {
	Name string `json:"name"`
	Node
}

// Node is one place in the tree: a table and what is taken from its rows.
type Node struct {
	Table  string     `json:"table"`           // topic
	Where  string     `json:"where,omitempty"` // SQL predicate; empty: every row
	Fields []Field    `json:"fields"`          // nil: all columns; empty: none
	Nest   []Relation `json:"nest,omitempty"`
	Calc   []Calc     `json:"calc,omitempty"`
}

// Field is a field of a document: a column, or an SQL expression.
type Field struct {
	Name   string `json:"name"`
	Column string `json:"column,omitempty"`
	Expr   string `json:"expr,omitempty"` // instead of Column
}

// Kind says which side of a relation holds the reference.
type Kind string

// The kinds of relations.
const (
	BelongsTo Kind = "belongs_to" // this row refers to the other
	HasOne    Kind = "has_one"    // the other row refers to this one
	HasMany   Kind = "has_many"   // the other rows refer to this one
)

// Relation is a nested place.
type Relation struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	Node
	By      []By     `json:"by,omitempty"` // nil: the one foreign key that fits
	Fold    bool     `json:"fold,omitempty"`
	Through *Through `json:"through,omitempty"`
	Order   []Order  `json:"order,omitempty"`
	Limit   int      `json:"limit,omitempty"` // 0: all
}

// By is one column of a reference: Column on the side that holds it, Refers on
// the other; an empty Refers is what the declared foreign key of these columns
// says, else the key column at the same place.
type By struct {
	Column string `json:"column"`
	Refers string `json:"refers,omitempty"`
}

// Through is a link table.
type Through struct {
	Table string `json:"table"`          // topic
	Near  []By   `json:"near,omitempty"` // link columns that refer to this row
	Far   []By   `json:"far,omitempty"`  // link columns that refer to the related row
	Where string `json:"where,omitempty"`
}

// Order is one part of a list's order.
type Order struct {
	Column     string `json:"column"`
	Desc       bool   `json:"desc,omitempty"`
	NullsFirst bool   `json:"nulls_first,omitempty"`
}

// Calc is an aggregate over a relation of the same node.
type Calc struct {
	Name        string `json:"name"`
	Func        string `json:"func"`             // count sum avg min max
	Relation    string `json:"relation"`         // name in Nest
	Column      string `json:"column,omitempty"` // of the related table; count without one counts rows
	Expr        string `json:"expr,omitempty"`   // instead of Column
	Where       string `json:"where,omitempty"`
	Round       *int   `json:"round,omitempty"`
	Approximate bool   `json:"approximate,omitempty"` // allows sums of floats
}

// Topics returns the topics of all tables in the definition, each once.
func (d *Definition) Topics() []string {
	var topics []string
	seen := map[string]bool{}
	add := func(topic string) {
		if !seen[topic] {
			seen[topic] = true
			topics = append(topics, topic)
		}
	}
	var visit func(n *Node)
	visit = func(n *Node) {
		add(n.Table)
		for i := range n.Nest {
			if t := n.Nest[i].Through; t != nil {
				add(t.Table)
			}
			visit(&n.Nest[i].Node)
		}
	}
	visit(&d.Node)
	return topics
}

// marshal returns the definition's canonical bytes.
func (d *Definition) marshal() ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("view %s: %w", d.Name, err)
	}
	return b, nil
}
