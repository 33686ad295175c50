package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/snapshot"
)

// shape tells what the types of a table's columns have that decides how stored
// values read and that may change without an event in the stream: the labels of
// enums and the attributes of composite types. It has, for each such type by its
// oid, the hashes of its parts in ascending order: one for each label of an
// enum, so that new ones can be told from renamed ones, and one for all
// attributes of a composite. A part's hash covers the transaction that wrote it,
// so that what was altered and altered back is another.
type shape map[uint32][]uint64

// The types in a table's columns, with the types that those are made of.
const shapesSQL = `
WITH RECURSIVE need(rel, oid) AS (
  SELECT a.attrelid, a.atttypid FROM pg_catalog.pg_attribute a
  WHERE a.attrelid = ANY($1::pg_catalog.oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
  UNION
  SELECT n.rel, x.oid FROM need n JOIN pg_catalog.pg_type t ON t.oid = n.oid
  CROSS JOIN LATERAL (
    SELECT t.typelem AS oid UNION ALL SELECT t.typbasetype UNION ALL
    SELECT a.atttypid FROM pg_catalog.pg_attribute a
    WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped UNION ALL
    SELECT g.rngsubtype FROM pg_catalog.pg_range g WHERE g.rngtypid = t.oid%s) x
  WHERE x.oid >= 16384)
SELECT n.rel, t.oid, t.typtype FROM need n JOIN pg_catalog.pg_type t ON t.oid = n.oid WHERE t.typtype IN ('e', 'c')`

// Multiranges, PostgreSQL 14 and later.
const shapesMultirange = ` UNION ALL
    SELECT g.rngtypid FROM pg_catalog.pg_range g WHERE g.rngmultitypid = t.oid`

const enumPartsSQL = `
SELECT e.enumtypid, e.oid, e.xmin, e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = ANY($1::pg_catalog.oid[])`

const compositePartsSQL = `
SELECT t.oid, a.attnum, a.xmin, a.attname, a.atttypid
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
WHERE t.oid = ANY($1::pg_catalog.oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY t.oid, a.attnum`

// readShapes returns the shape of each table, by its oid.
func readShapes(ctx context.Context, s *session, sv *server, oids []uint32) (map[uint32]shape, error) {
	multirange := ""
	if sv.version >= 140000 {
		multirange = shapesMultirange
	}
	rows, err := s.query(ctx, fmt.Sprintf(shapesSQL, multirange), oidArray(oids))
	if err != nil {
		return nil, fmt.Errorf("read the types of the tables: %w", err)
	}
	parts := map[uint32][]uint64{}
	for _, r := range rows {
		parts[toOID(r[1])] = nil
	}
	if len(parts) > 0 {
		if err := readParts(ctx, s, parts); err != nil {
			return nil, err
		}
	}
	shapes := map[uint32]shape{}
	for _, r := range rows {
		rel, typ := toOID(r[0]), toOID(r[1])
		if shapes[rel] == nil {
			shapes[rel] = shape{}
		}
		shapes[rel][typ] = parts[typ]
	}
	return shapes, nil
}

// readParts fills the hashes of the types' parts.
func readParts(ctx context.Context, s *session, parts map[uint32][]uint64) error {
	types := oidArray(slices.Sorted(maps.Keys(parts)))
	labels, err := s.query(ctx, enumPartsSQL, types)
	if err != nil {
		return fmt.Errorf("read the labels of enums: %w", err)
	}
	for _, r := range labels {
		typ := toOID(r[0])
		parts[typ] = append(parts[typ], hashFields(r[1:]))
	}
	attributes, err := s.query(ctx, compositePartsSQL, types)
	if err != nil {
		return fmt.Errorf("read the attributes of composite types: %w", err)
	}
	all := map[uint32][][]byte{}
	for _, r := range attributes {
		all[toOID(r[0])] = append(all[toOID(r[0])], r[1:]...)
	}
	for typ, fields := range all {
		parts[typ] = []uint64{hashFields(fields)}
	}
	for _, list := range parts {
		slices.Sort(list)
	}
	return nil
}

func hashFields(fields [][]byte) uint64 {
	h := fnv.New64a()
	var size [8]byte
	for _, f := range fields {
		binary.LittleEndian.PutUint64(size[:], uint64(len(f)))
		_, _ = h.Write(size[:])
		_, _ = h.Write(f)
	}
	return h.Sum64()
}

// altered reports whether values stored under old may read otherwise under s: a
// part that a type had is gone. A type that the table has no more tells nothing.
func (s shape) altered(old shape) bool {
	for typ, parts := range old {
		now, ok := s[typ]
		if ok && slices.ContainsFunc(parts, func(p uint64) bool { _, found := slices.BinarySearch(now, p); return !found }) {
			return true
		}
	}
	return false
}

// encode returns the shape as it is kept in a cursor, "" for no types:
//
//	types, by ascending oid: uvarint oid, uvarint count, 8 bytes little-endian a part
func (s shape) encode() string {
	var b []byte
	for _, typ := range slices.Sorted(maps.Keys(s)) {
		b = binary.AppendUvarint(b, uint64(typ))
		b = binary.AppendUvarint(b, uint64(len(s[typ])))
		for _, p := range s[typ] {
			b = binary.LittleEndian.AppendUint64(b, p)
		}
	}
	return string(b)
}

// decodeShape is the inverse of encode.
func decodeShape(text string) (shape, error) {
	s := shape{}
	r := cursorReader{b: []byte(text)}
	for len(r.b) > 0 {
		typ, n := uint32(r.number()), r.count()
		if r.failed || n > len(r.b)/8 {
			return nil, errChunkCursor
		}
		parts := make([]uint64, n)
		for i := range parts {
			parts[i] = binary.LittleEndian.Uint64(r.b[8*i:])
		}
		s[typ], r.b = parts, r.b[8*n:]
	}
	return s, nil
}

// compareShape deals with a table whose types' shape is another than when it was
// read; the caller holds mu. Labels that were renamed and attributes that were
// altered change what stored rows read as: the table is read again, once the
// stream has brought what was written before. What was added is only noted.
func (r *snapshotRunner) compareShape(t *table, cursor *chunkCursor, storage []storage, insert LSN) error {
	now := r.shapes[t.oid]
	if cursor.shape == now.encode() {
		return nil
	}
	old, err := decodeShape(cursor.shape)
	if err != nil {
		return fmt.Errorf("the types of table %s: %w", t, err)
	}
	next := *cursor
	next.shape = now.encode()
	if !now.altered(old) {
		r.m.Note(t.topic(), next.encode())
		return nil
	}
	r.start.logger.Info("a label or attribute of the table's types was altered: the table is read again", "source", r.start.options.Source, "table", t.String())
	r.m.Check(t.topic(), snapshot.Place(insert), next.moved([]string{""}, storage))
	r.start.retype()
	return nil
}
