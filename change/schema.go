package change

import (
	"encoding/binary"
)

// Column is one column of a Schema.
type Column struct {
	// Number is stable over renames: PostgreSQL's attnum, our own for MySQL; above
	// GenerationBits a generation, counted up when a rewrite changed the type.
	Number     uint32
	Name       string
	Kind       Kind
	SourceType string // as the database spells it, "numeric(10,2)", "text[]"
	Nullable   bool
	Fold       bool   // compares case-folded in keys and joins (citext)
	HasDefault bool   // Default fills rows written before the column existed
	Default    []byte // AppendValue of a constant default; empty with HasDefault = null
}

// ForeignKey is a declared reference, from which views infer `by`.
type ForeignKey struct {
	Columns    []string
	RefTopic   string // the topic of the referenced table, captured or not
	RefColumns []string
}

// Schema is the layout of a table's rows at some position. It does not change once made.
type Schema struct {
	Topic       string // SOURCE.SCHEMA.TABLE
	ID          uint32 // from 1 for each topic; 0 until ingest has given it
	Columns     []Column
	Key         []int // indexes of the key columns, in key order; empty: table without a key
	ForeignKeys []ForeignKey
}

// Column returns the index of the column of that name, or -1.
func (s *Schema) Column(name string) int {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// ByNumber returns the index of the column with that number, or -1.
func (s *Schema) ByNumber(number uint32) int {
	for i := range s.Columns {
		if s.Columns[i].Number == number {
			return i
		}
	}
	return -1
}

// KeyNames returns the names of the key columns in key order.
func (s *Schema) KeyNames() []string {
	names := make([]string, len(s.Key))
	for i, c := range s.Key {
		names[i] = s.Columns[c].Name
	}
	return names
}

// GenerationBits are the bits of a column's number below its generation.
const GenerationBits = 16

// ByAnyGeneration returns the index of the column with that number or, as it was
// before or after a change of its type, another generation of it; -1: none.
func (s *Schema) ByAnyGeneration(number uint32) int {
	if i := s.ByNumber(number); i >= 0 {
		return i
	}
	const mask = 1<<GenerationBits - 1
	for i := range s.Columns {
		if s.Columns[i].Number&mask == number&mask {
			return i
		}
	}
	return -1
}

const schemaVersion = 1

// AppendLayout appends all of the schema but its topic and id. Schemas of a
// topic with equal layouts have the same id.
//
//	version u8 = 1
//	columns: uvarint count, then each: uvarint number, string name, u8 kind,
//	  string source type, u8 flags (1 nullable, 2 fold, 4 default), [bytes default]
//	key: uvarint count, uvarint column indexes
//	foreign keys: uvarint count, then each: strings columns, string topic, strings columns
//
// A string is a uvarint length and bytes; strings are a uvarint count before.
func (s *Schema) AppendLayout(dst []byte) []byte {
	dst = append(dst, schemaVersion)
	dst = binary.AppendUvarint(dst, uint64(len(s.Columns)))
	for i := range s.Columns {
		c := &s.Columns[i]
		dst = binary.AppendUvarint(dst, uint64(c.Number))
		dst = appendString(dst, c.Name)
		dst = append(dst, byte(c.Kind))
		dst = appendString(dst, c.SourceType)
		var flags byte
		if c.Nullable {
			flags |= 1
		}
		if c.Fold {
			flags |= 2
		}
		if c.HasDefault {
			flags |= 4
		}
		dst = append(dst, flags)
		if c.HasDefault {
			dst = appendString(dst, string(c.Default))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Key)))
	for _, k := range s.Key {
		dst = binary.AppendUvarint(dst, uint64(k))
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.ForeignKeys)))
	for _, f := range s.ForeignKeys {
		dst = appendStrings(dst, f.Columns)
		dst = appendString(dst, f.RefTopic)
		dst = appendStrings(dst, f.RefColumns)
	}
	return dst
}

// SchemaKey returns the key of a schema's record in the _schemas topic.
func SchemaKey(topic string, id uint32) Key {
	return AppendKeyPart(AppendKeyPart(nil, Text(topic), false), Int(int64(id)), false)
}

// DecodeSchema reads a record of the _schemas topic.
func DecodeSchema(key Key, layout []byte) (*Schema, error) {
	parts, err := DecodeKey(key)
	if err != nil {
		return nil, err
	}
	if len(parts) != 2 || parts[0].Kind() != KindText || parts[1].Kind() != KindInt || parts[1].Int64() <= 0 || parts[1].Int64() > 1<<32-1 {
		return nil, damaged("schema key")
	}
	s := &Schema{Topic: parts[0].TextValue(), ID: uint32(parts[1].Int64())}
	d := &decoder{b: layout}
	if v := d.byte(); v != schemaVersion {
		return nil, damaged("schema version")
	}
	s.Columns = make([]Column, 0, min(d.count(), 1600))
	for range d.n {
		s.Columns = append(s.Columns, d.column())
	}
	for range d.count() {
		k := d.uvarint()
		if k >= uint64(len(s.Columns)) {
			return nil, damaged("schema key column")
		}
		s.Key = append(s.Key, int(k))
	}
	for range d.count() {
		s.ForeignKeys = append(s.ForeignKeys, ForeignKey{Columns: d.strings(), RefTopic: d.string(), RefColumns: d.strings()})
	}
	if d.err != nil {
		return nil, d.err
	}
	if len(d.b) != 0 {
		return nil, damaged("bytes after a schema")
	}
	return s, nil
}

func (d *decoder) column() Column {
	c := Column{Number: uint32(d.uvarint()), Name: d.string(), Kind: Kind(d.byte()), SourceType: d.string()}
	flags := d.byte()
	c.Nullable, c.Fold, c.HasDefault = flags&1 != 0, flags&2 != 0, flags&4 != 0
	if c.HasDefault {
		c.Default = []byte(d.string())
	}
	if d.err == nil && (!c.Kind.Valid() || flags > 7) {
		d.fail("schema column")
	}
	return c
}

// decoder reads the small structures; its first error sticks.
type decoder struct {
	b   []byte
	err error
	n   int
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = damaged(what)
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, rest, err := readUvarint(d.b)
	if err != nil {
		d.fail("uvarint")
		return 0
	}
	d.b = rest
	return v
}

func (d *decoder) varint() int64 {
	v, rest, err := readVarint(d.b)
	if err != nil {
		d.fail("varint")
		return 0
	}
	d.b = rest
	return v
}

// count reads a count of things that take at least one byte each.
func (d *decoder) count() int {
	v := d.uvarint()
	if v > uint64(len(d.b)) {
		d.fail("count past the end")
		v = 0
	}
	d.n = int(v)
	return d.n
}

func (d *decoder) string() string {
	v, rest, err := readBytes(d.b)
	if err != nil {
		d.fail("string")
		return ""
	}
	d.b = rest
	return string(v)
}

func (d *decoder) strings() []string {
	n := d.count()
	var list []string
	for range n {
		list = append(list, d.string())
	}
	return list
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}
