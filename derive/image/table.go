package image

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// Need is what a view needs of a table.
type Need struct {
	Schema  *change.Schema // the layout that the view was compiled against
	Columns []uint32       // column numbers
	Indexes []IndexNeed
}

// IndexNeed is an index over columns, in this order.
type IndexNeed struct {
	Columns []uint32
	Fold    []bool // compares case-folded
}

// Equal reports whether both are the same index.
func (n IndexNeed) Equal(o IndexNeed) bool {
	return slices.Equal(n.Columns, o.Columns) && slices.Equal(n.Fold, o.Fold)
}

// Index is an index of a Table.
type Index struct {
	ID      uint16
	Need    IndexNeed
	Columns []int // positions in the table's layout
}

// Table is one image: the rows of a topic in a layout of their own.
type Table struct {
	ID      uint32
	Topic   string
	Layout  *change.Schema // the needed columns; Key holds the key columns among them, or is nil if not all are
	Indexes []Index
}

// NewTable lays out a table for these needs. Names and kinds come from base,
// the newest schema that the needs know, columns of others from their own.
func NewTable(id uint32, topic string, needs []Need) *Table {
	t := &Table{ID: id, Topic: topic, Layout: &change.Schema{Topic: topic}}
	for _, n := range slices.Backward(needs) { // the newest need is last and names the columns
		for i := range n.Schema.Columns {
			c := &n.Schema.Columns[i]
			if slices.Contains(n.Columns, c.Number) && t.Layout.ByNumber(c.Number) < 0 {
				t.Layout.Columns = append(t.Layout.Columns, *c)
			}
		}
		t.Layout.ID = max(t.Layout.ID, n.Schema.ID)
	}
	slices.SortFunc(t.Layout.Columns, func(a, b change.Column) int { return int(a.Number) - int(b.Number) })
	for _, n := range needs {
		for _, x := range n.Indexes {
			if t.Index(x) == nil {
				t.addIndex(x)
			}
		}
	}
	return t
}

func (t *Table) addIndex(x IndexNeed) {
	cols := make([]int, len(x.Columns))
	for i, number := range x.Columns {
		cols[i] = t.Layout.ByNumber(number)
	}
	t.Indexes = append(t.Indexes, Index{ID: uint16(len(t.Indexes) + 1), Need: x, Columns: cols})
}

// Index returns the index that serves the need, or nil.
func (t *Table) Index(x IndexNeed) *Index {
	for i := range t.Indexes {
		if t.Indexes[i].Need.Equal(x) {
			return &t.Indexes[i]
		}
	}
	return nil
}

// Serves reports whether the table has all that the need asks for.
func (t *Table) Serves(n Need) bool {
	for _, number := range n.Columns {
		i, j := t.Layout.ByNumber(number), n.Schema.ByNumber(number)
		if i < 0 || j < 0 || t.Layout.Columns[i].Kind != n.Schema.Columns[j].Kind {
			return false
		}
	}
	for _, x := range n.Indexes {
		if t.Index(x) == nil {
			return false
		}
	}
	return true
}

// Prefix starts the keys of the table's rows.
func (t *Table) Prefix(dst []byte) []byte { return appendSpace(dst, spaceTable, t.ID) }

// RowKey returns the row key inside a key of the table.
func (t *Table) RowKey(key []byte) change.Key { return change.Key(key[spaceLen:]) }

// IndexPrefix starts the keys of an index.
func (t *Table) IndexPrefix(dst []byte, x *Index) []byte {
	return binary.BigEndian.AppendUint16(appendSpace(dst, spaceIndex, t.ID), x.ID)
}

// Ranges returns the ranges of all keys of the table.
func (t *Table) Ranges() [][2][]byte {
	return [][2][]byte{Prefixed(appendSpace(nil, spaceTable, t.ID)), Prefixed(appendSpace(nil, spaceIndex, t.ID))}
}

// Row appends the encoded row of key to dst.
func (t *Table) Row(r Reader, dst []byte, key change.Key) (csn eventlog.CSN, row, buf []byte, ok bool, err error) {
	start := len(dst)
	dst = append(t.Prefix(dst), key...)
	keyEnd := len(dst)
	dst, ok, err = r.Get(dst, dst[start:keyEnd:keyEnd])
	if err != nil || !ok {
		return 0, nil, dst, false, err
	}
	csn, row, err = SplitRow(dst[keyEnd:])
	return csn, row, dst, err == nil, err
}

// SplitRow splits a value of the table.
func SplitRow(value []byte) (eventlog.CSN, []byte, error) {
	csn, n := binary.Uvarint(value)
	if n <= 0 {
		return 0, nil, fmt.Errorf("image row: %w", change.ErrDecode)
	}
	return eventlog.CSN(csn), value[n:], nil
}

// tableJSON is how a table is kept.
type tableJSON struct {
	ID      uint32      `json:"id"`
	Topic   string      `json:"topic"`
	Schema  uint32      `json:"schema"`
	Layout  []byte      `json:"layout"`
	Indexes []IndexNeed `json:"indexes"`
}

// MarshalJSON encodes the table's description, not its rows.
func (t *Table) MarshalJSON() ([]byte, error) {
	j := tableJSON{ID: t.ID, Topic: t.Topic, Schema: t.Layout.ID, Layout: t.Layout.AppendLayout(nil)}
	for _, x := range t.Indexes {
		j.Indexes = append(j.Indexes, x.Need)
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (t *Table) UnmarshalJSON(b []byte) error {
	var j tableJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	layout, err := change.DecodeSchema(change.SchemaKey(j.Topic, max(j.Schema, 1)), j.Layout)
	if err != nil {
		return err
	}
	layout.ID = j.Schema
	*t = Table{ID: j.ID, Topic: j.Topic, Layout: layout}
	for _, x := range j.Indexes {
		t.addIndex(x)
	}
	return nil
}
