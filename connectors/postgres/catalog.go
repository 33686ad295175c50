package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// relation is a table as the catalogue has it now.
type relation struct {
	oid                uint32
	schema, name       string
	kind               byte // r table, p partitioned, v, m, f
	persistence        byte // p, u, t
	partition          bool // of a partitioned table
	identity           byte // relreplident: d, n, f, i
	filenode           uint32
	rows               int64
	owned              bool // our role may alter it
	selectable         bool
	usable             bool // USAGE on the schema
	rowSecurity        bool // row security filters our role's reads
	columns            []attr
	primary, replident []int16 // columns of the indexes, in order
	foreign            []foreignKey
}

// attr is a row of pg_attribute.
type attr struct {
	num        int16
	name       string
	typ        uint32
	typmod     int32
	typeText   string
	notNull    bool
	generated  bool
	dropped    bool
	hasDefault bool   // an expression for new rows
	hasMissing bool   // missing is the value of rows older than the column
	missing    []byte // array of one element
}

type foreignKey struct {
	columns             []int16
	refSchema, refTable string
	refColumns          []string
}

func (r *relation) String() string { return r.schema + "." + r.name }
func (r *relation) sql() string    { return quoteName(r.schema) + "." + quoteName(r.name) }

// key returns the columns by which updates and deletes name a row, nil if there are none.
func (r *relation) key() []int16 {
	switch r.identity {
	case 'i':
		return r.replident
	case 'n':
		return nil
	}
	return r.primary
}

const relationsSQL = `
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relispartition, c.relreplident,
  pg_catalog.pg_relation_filenode(c.oid), GREATEST(c.reltuples, 0)::pg_catalog.int8,
  pg_catalog.pg_has_role(c.relowner, 'USAGE'), pg_catalog.has_table_privilege(c.oid, 'SELECT'),
  pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.row_security_active(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'`

// readRelations returns the tables and what looks like one outside the system
// schemas, without their columns; or, with an oid, that one.
func readRelations(ctx context.Context, s *session, oid uint32) ([]*relation, error) {
	sql, args := relationsSQL, []string(nil)
	if oid != 0 {
		sql, args = sql+" AND c.oid = $1", []string{fmt.Sprint(oid)}
	}
	rows, err := s.query(ctx, sql+" ORDER BY n.nspname, c.relname", args...)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue's tables: %w", err)
	}
	list := make([]*relation, 0, len(rows))
	for _, r := range rows {
		list = append(list, &relation{oid: toOID(r[0]), schema: string(r[1]), name: string(r[2]), kind: r[3][0], persistence: r[4][0],
			partition: isTrue(r[5]), identity: r[6][0], filenode: toOID(r[7]), rows: toInt(r[8]),
			owned: isTrue(r[9]), selectable: isTrue(r[10]), usable: isTrue(r[11]), rowSecurity: isTrue(r[12])})
	}
	return list, nil
}

const columnsSQL = `
SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, pg_catalog.format_type(a.atttypid, a.atttypmod),
  a.attnotnull, a.attgenerated <> '', a.attisdropped, a.atthasdef, a.atthasmissing, a.attmissingval::pg_catalog.text
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = ANY($1::pg_catalog.oid[]) AND a.attnum > 0 ORDER BY a.attrelid, a.attnum`

// An index names rows if it is unique without exceptions at every moment.
const keysSQL = `
SELECT i.indrelid, i.indisprimary, i.indisreplident, pg_catalog.array_to_string((i.indkey::pg_catalog.int2[])[0:i.indnkeyatts - 1], ',')
FROM pg_catalog.pg_index i
WHERE i.indrelid = ANY($1::pg_catalog.oid[]) AND (i.indisprimary OR i.indisreplident)
  AND i.indisvalid AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL`

const foreignKeysSQL = `
SELECT k.conrelid, pg_catalog.array_to_string(k.conkey, ','), n.nspname, c.relname,
  (SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY x.i) FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY x(num, i)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = x.num)::pg_catalog.text
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.confrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE k.conrelid = ANY($1::pg_catalog.oid[]) AND k.contype = 'f' AND NOT c.relispartition
ORDER BY k.conrelid, k.conname`

// readColumns fills columns, keys and foreign keys.
func readColumns(ctx context.Context, s *session, list []*relation) error {
	byOID := make(map[uint32]*relation, len(list))
	oids := make([]uint32, 0, len(list))
	for _, r := range list {
		byOID[r.oid] = r
		oids = append(oids, r.oid)
	}
	rows, err := s.query(ctx, columnsSQL, oidArray(oids))
	if err != nil {
		return fmt.Errorf("read the catalogue's columns: %w", err)
	}
	for _, f := range rows {
		r := byOID[toOID(f[0])]
		r.columns = append(r.columns, attr{num: int16(toInt(f[1])), name: string(f[2]), typ: toOID(f[3]), typmod: int32(toInt(f[4])), typeText: string(f[5]),
			notNull: isTrue(f[6]), generated: isTrue(f[7]), dropped: isTrue(f[8]), hasDefault: isTrue(f[9]), hasMissing: isTrue(f[10]), missing: f[11]})
	}
	if rows, err = s.query(ctx, keysSQL, oidArray(oids)); err != nil {
		return fmt.Errorf("read the catalogue's keys: %w", err)
	}
	for _, f := range rows {
		r := byOID[toOID(f[0])]
		if isTrue(f[1]) {
			r.primary = attnums(f[3])
		}
		if isTrue(f[2]) {
			r.replident = attnums(f[3])
		}
	}
	if rows, err = s.query(ctx, foreignKeysSQL, oidArray(oids)); err != nil {
		return fmt.Errorf("read the catalogue's foreign keys: %w", err)
	}
	for _, f := range rows {
		names, err := textArray(f[4])
		if err != nil {
			return fmt.Errorf("read the catalogue's foreign keys: %w", err)
		}
		r := byOID[toOID(f[0])]
		r.foreign = append(r.foreign, foreignKey{attnums(f[1]), string(f[2]), string(f[3]), names})
	}
	return nil
}

func attnums(b []byte) []int16 {
	var list []int16
	for _, f := range strings.Split(string(b), ",") {
		list = append(list, int16(toInt([]byte(f))))
	}
	return list
}

// textArray reads a one-dimensional array of text without nulls.
func textArray(b []byte) ([]string, error) {
	var list []string
	if len(b) < 2 || b[0] != '{' {
		return nil, errArray
	}
	for b = b[1:]; len(b) > 0 && b[0] != '}'; {
		var item []byte
		if b[0] == '"' {
			var err error
			if item, b, err = unquote(nil, b, false); err != nil {
				return nil, errArray
			}
		} else {
			for len(b) > 0 && b[0] != ',' && b[0] != '}' {
				item, b = append(item, b[0]), b[1:]
			}
		}
		list = append(list, string(item))
		if len(b) > 0 && b[0] == ',' {
			b = b[1:]
		}
	}
	return list, nil
}

// typeOIDs returns the types of the relations' live columns.
func typeOIDs(list []*relation) []uint32 {
	seen := map[uint32]bool{}
	var oids []uint32
	for _, r := range list {
		for i := range r.columns {
			if c := &r.columns[i]; !c.dropped && !seen[c.typ] {
				seen[c.typ] = true
				oids = append(oids, c.typ)
			}
		}
	}
	return oids
}

// layouts makes tables of relations and remembers the newest layout of each
// topic, for column numbers and defaults that the catalogue no longer tells.
// One goroutine.
type layouts struct {
	source string
	types  types
	last   map[string]*change.Schema // by topic
}

func newLayouts(source string, last map[string]*change.Schema) *layouts {
	l := &layouts{source: source, types: types{}, last: map[string]*change.Schema{}}
	for topic, s := range last {
		l.last[topic] = s
	}
	return l
}

// wireColumn is a column of a relation message.
type wireColumn struct {
	name   string
	typ    uint32
	typmod int32
	key    bool
}

// live returns the columns that are captured: neither dropped nor generated.
func (r *relation) live() []attr {
	var list []attr
	for _, a := range r.columns {
		if !a.dropped && !a.generated {
			list = append(list, a)
		}
	}
	return list
}

// table makes the table of a relation with these columns: those of the
// catalogue, or as a message had them at an older position.
func (l *layouts) table(r *relation, attrs []attr) (*table, error) {
	topic := change.TableTopic(l.source, r.schema, r.name)
	t := table{oid: r.oid, schema: r.schema, name: r.name, partitioned: r.kind == 'p', filenode: r.filenode, rows: r.rows,
		layout: &change.Schema{Topic: topic}}
	for _, a := range attrs {
		typ := l.types.byOID(a.typ)
		c := change.Column{Number: uint32(uint16(a.num)), Name: a.name, Kind: typ.kind, SourceType: a.typeText, Nullable: !a.notNull, Fold: typ.fold}
		if err := setDefaultOf(&c, typ, a); err != nil {
			return nil, fmt.Errorf("table %s: %w", r, err)
		}
		t.layout.Columns = append(t.layout.Columns, c)
		t.columns = append(t.columns, column{a.num, typ, a.typmod})
	}
	for _, num := range r.key() {
		if i := indexOf(attrs, num); i >= 0 {
			t.layout.Key = append(t.layout.Key, i)
		}
	}
	for _, f := range r.foreign {
		fk := change.ForeignKey{RefTopic: change.TableTopic(l.source, f.refSchema, f.refTable), RefColumns: f.refColumns}
		for _, num := range f.columns {
			if i := indexOf(attrs, num); i >= 0 {
				fk.Columns = append(fk.Columns, attrs[i].name)
			}
		}
		if len(fk.Columns) == len(fk.RefColumns) {
			t.layout.ForeignKeys = append(t.layout.ForeignKeys, fk)
		}
	}
	l.inherit(t.layout)
	return newTable(t), nil
}

func indexOf(attrs []attr, num int16) int {
	for i := range attrs {
		if attrs[i].num == num {
			return i
		}
	}
	return -1
}

// setDefaultOf sets what fills rows written before the column existed: the
// value that the server keeps for them, or null for a column that came without
// a default. One with a volatile default was filled by a rewrite: no constant.
func setDefaultOf(c *change.Column, typ *typeInfo, a attr) error {
	if !a.hasMissing {
		c.HasDefault = c.Nullable && !a.hasDefault
		return nil
	}
	item, err := onlyElement(a.missing)
	if err != nil {
		return fmt.Errorf("column %s: the default of older rows has no form that is known", a.name)
	}
	if c.Default, err = typ.append(nil, item); err != nil {
		return fmt.Errorf("column %s: the default of older rows: %w", a.name, err)
	}
	c.HasDefault = true
	return nil
}

// onlyElement returns the element of an array of one. What separates elements,
// which is another byte for some types, does not matter.
func onlyElement(array []byte) ([]byte, error) {
	n := len(array)
	if n < 3 || array[0] != '{' || array[n-1] != '}' {
		return nil, errArray
	}
	if array[1] != '"' {
		return array[1 : n-1], nil
	}
	item, rest, err := unquote(nil, array[1:], false)
	if err != nil || string(rest) != "}" {
		return nil, errArray
	}
	return item, nil
}

// numberBits are the bits of a column's number that hold the attnum; above them
// is its generation (V12).
const numberBits = change.GenerationBits

// inherit takes generations and defaults over from the topic's layout before.
func (l *layouts) inherit(s *change.Schema) {
	last := l.last[s.Topic]
	if last == nil {
		return
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		old := newestGeneration(last, c.Number)
		if old == nil {
			continue
		}
		c.Number = old.Number
		if !sameValues(old, c) {
			c.Number += 1 << numberBits
			continue
		}
		if !c.HasDefault || len(c.Default) == 0 && len(old.Default) > 0 {
			c.HasDefault, c.Default = old.HasDefault, old.Default
		}
	}
}

func newestGeneration(s *change.Schema, attnum uint32) *change.Column {
	if i := s.ByAnyGeneration(attnum); i >= 0 {
		return &s.Columns[i]
	}
	return nil
}

// sameValues reports whether a change from one type to the other leaves every
// stored value as it is.
func sameValues(old, now *change.Column) bool {
	if old.Kind != now.Kind { // also of the same type, where we have learned to read it since
		return false
	}
	if old.SourceType == now.SourceType {
		return true
	}
	from, fromMod := splitType(old.SourceType)
	to, toMod := splitType(now.SourceType)
	if isVarying(from) && isVarying(to) {
		return len(toMod) == 0 || len(fromMod) > 0 && toMod[0] >= fromMod[0]
	}
	if from != to {
		return false
	}
	switch from {
	case "numeric":
		return len(toMod) == 0 || len(fromMod) == 2 && len(toMod) == 2 && fromMod[1] == toMod[1] && toMod[0] >= fromMod[0]
	case "bit varying":
		return len(toMod) == 0 || len(fromMod) > 0 && toMod[0] >= fromMod[0]
	}
	return false
}

func isVarying(name string) bool { return name == "text" || name == "character varying" }

// splitType splits "numeric(10,2)" into its name and numbers.
func splitType(text string) (name string, mods []int64) {
	open, end := strings.IndexByte(text, '('), strings.IndexByte(text, ')')
	if open < 0 || end < open {
		return text, nil
	}
	for _, m := range strings.Split(text[open+1:end], ",") {
		mods = append(mods, toInt([]byte(m)))
	}
	return text[:open] + text[end+1:], mods
}
