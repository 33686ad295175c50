package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// typeInfo is a type of the database and how its text becomes a value.
type typeInfo struct {
	oid   uint32
	name  string // format_type without a modifier
	kind  change.Kind
	fold  bool // compares case-folded (citext)
	known bool // false: of no type that we know, kept as text
	plain bool // the value is the text itself
	// shaped: a composite type is inside, whose attributes may have been altered since.
	shaped bool

	// append appends the encoding (change.AppendValue) of the value with this
	// text. Errors do not quote the text.
	append appendFunc

	elem  *typeInfo   // of an array
	attrs []attribute // of a composite
}

type appendFunc func(dst, text []byte) ([]byte, error)

type attribute struct {
	name string
	typ  *typeInfo
}

// value returns the text's value. It may share the text.
func (t *typeInfo) value(text []byte) (change.Value, error) {
	switch t.kind {
	case change.KindInt:
		n, err := parseInt(text)
		return change.Int(n), err
	case change.KindText:
		if t.plain {
			return change.TextBytes(text), checkText(text)
		}
	}
	enc, err := t.append(nil, text)
	if err != nil {
		return change.Null, err
	}
	v, rest, err := change.DecodeValue(t.kind, enc)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes behind a value of kind %v", len(rest), t.kind)
	}
	return v, err
}

// appendJSON appends the canonical JSON of the text, for values inside others.
// It uses dst's own memory behind its end: nothing is allocated once that has grown.
func (t *typeInfo) appendJSON(dst, text []byte) ([]byte, error) {
	if t.kind == change.KindText && t.plain {
		return change.AppendJSONString(dst, text), checkText(text)
	}
	start := len(dst)
	dst, err := t.append(dst, text)
	if err != nil {
		return nil, err
	}
	v, _, err := change.DecodeValue(t.kind, dst[start:])
	if err != nil {
		return nil, err
	}
	end := len(dst)
	return moveDown(change.AppendJSON(dst, v), start, end), nil
}

// replaceJSON replaces the text that stands in dst from start on by its canonical JSON.
func (t *typeInfo) replaceJSON(dst []byte, start int) ([]byte, error) {
	end := len(dst)
	dst, err := t.appendJSON(dst, dst[start:end])
	if err != nil {
		return nil, err
	}
	return moveDown(dst, start, end), nil
}

// moveDown takes out b[start:end].
func moveDown(b []byte, start, end int) []byte { return b[:start+copy(b[start:], b[end:])] }

// decoding is how the text of an output function becomes a value.
type decoding struct {
	kind   change.Kind
	append appendFunc
}

// The output functions of the server's own types decide what their text is.
var builtin = map[string]decoding{
	"boolout":         {change.KindBool, appendBool},
	"int2out":         {change.KindInt, appendInt},
	"int4out":         {change.KindInt, appendInt},
	"int8out":         {change.KindInt, appendInt},
	"oidout":          {change.KindInt, appendInt},
	"float4out":       {change.KindFloat32, appendFloat32},
	"float8out":       {change.KindFloat64, appendFloat64},
	"numeric_out":     {change.KindDecimal, appendDecimal},
	"cash_out":        {change.KindDecimal, appendMoney},
	"byteaout":        {change.KindBytes, appendBytea},
	"date_out":        {change.KindDate, appendDate},
	"time_out":        {change.KindTime, appendTime},
	"timetz_out":      {change.KindTimeTZ, appendTimeTZ},
	"timestamp_out":   {change.KindTimestamp, appendTimestamp},
	"timestamptz_out": {change.KindTimestampTZ, appendTimestamp},
	"interval_out":    {change.KindInterval, appendInterval},
	"uuid_out":        {change.KindUUID, appendUUID},
	"json_out":        {change.KindJSON, appendJSONText},
	"jsonb_out":       {change.KindJSON, appendJSONBText},
	"multirange_out":  {change.KindJSON, appendMultirange},
	"charout":         {change.KindText, appendChar},
	"int2vectorout":   {change.KindJSON, appendIntVector},
	"oidvectorout":    {change.KindJSON, appendIntVector},
}

// Those of extensions, whose schema anybody may choose. A type of the same names
// that prints something else is kept as its text (lenient).
var extension = map[string]decoding{
	"hstore_out":    {change.KindJSON, appendHstore},
	"geometry_out":  {change.KindJSON, appendGeometry},
	"geography_out": {change.KindJSON, appendGeometry},
	"vector_out":    {change.KindJSON, appendVector},
	"halfvec_out":   {change.KindJSON, appendVector},
	"sparsevec_out": {change.KindJSON, appendSparseVector},
}

// lenient keeps text that is not of the form expected as a JSON string (TYPES.md K16).
func lenient(decode appendFunc) appendFunc {
	return func(dst, text []byte) ([]byte, error) {
		if out, err := decode(dst, text); err == nil {
			return out, nil
		}
		return appendTextAsJSON(dst, text)
	}
}

// appendTextAsJSON appends text as a value of KindJSON that is a string.
func appendTextAsJSON(dst, text []byte) ([]byte, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	start := len(dst)
	dst, gap := openSized(dst, len(text)+2)
	return closeSized(change.AppendJSONString(dst, text), start, gap), nil
}

// Output functions whose text is the value (TYPES.md 4.2); every other type is
// kept as text too, with a warning.
var plainText = map[string]bool{
	"textout": true, "varcharout": true, "bpcharout": true, "nameout": true, "xml_out": true, "enum_out": true,
	"inet_out": true, "cidr_out": true, "macaddr_out": true, "macaddr8_out": true, "bit_out": true, "varbit_out": true,
	"range_out": true, "point_out": true, "lseg_out": true, "box_out": true, "line_out": true, "path_out": true, "poly_out": true, "circle_out": true,
	"tsvectorout": true, "tsqueryout": true, "pg_lsn_out": true, "tidout": true, "xidout": true, "xid8out": true, "cidout": true, "jsonpath_out": true,
	"txid_snapshot_out": true, "pg_snapshot_out": true, "aclitemout": true,
	"regprocout": true, "regprocedureout": true, "regoperout": true, "regoperatorout": true, "regclassout": true, "regtypeout": true,
	"regroleout": true, "regnamespaceout": true, "regconfigout": true, "regdictionaryout": true, "regcollationout": true,
	"citextout": true, "ltree_out": true, "lquery_out": true, "ltxtq_out": true, "cube_out": true, "seg_out": true, "isn_out": true, "ean13_out": true,
	"bqarr_out": true, "box2d_out": true, "box3d_out": true,
}

// types are the types of a database that have been looked up. One goroutine.
type types map[uint32]*typeInfo

const typesSQL = `
WITH RECURSIVE need(oid) AS (
  SELECT pg_catalog.unnest($1::pg_catalog.oid[])
  UNION
  SELECT x.oid FROM need n JOIN pg_catalog.pg_type t ON t.oid = n.oid
  CROSS JOIN LATERAL (
    SELECT t.typelem AS oid UNION ALL SELECT t.typbasetype UNION ALL
    SELECT a.atttypid FROM pg_catalog.pg_attribute a
    WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) x
  WHERE x.oid <> 0)
SELECT t.oid, pg_catalog.format_type(t.oid, NULL), t.typname, p.proname, t.typtype, t.typelem, t.typbasetype, t.typdelim,
  p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid JOIN pg_catalog.pg_proc p ON p.oid = t.typoutput`

const attributesSQL = `
SELECT t.oid, a.attname, a.atttypid
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
WHERE t.oid = ANY($1::pg_catalog.oid[]) AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY t.oid, a.attnum`

// typeRow is a row of pg_type.
type typeRow struct {
	oid, elem, base              uint32
	name, typname, output, class string
	delim                        byte // of an array, between its elements
	own                          bool // the output function is the server's
	attrs                        []attributeRow
}

// typeRows are rows by their oid.
type typeRows map[uint32]*typeRow

type attributeRow struct {
	name string
	oid  uint32
}

// load looks up types and all that they are made of. Known ones are read again
// with their parts, since composites change.
func (ts types) load(ctx context.Context, s *session, oids []uint32) error {
	if len(oids) == 0 {
		return nil
	}
	rows, err := s.query(ctx, typesSQL, oidArray(oids))
	if err != nil {
		return fmt.Errorf("read types: %w", err)
	}
	found := make(typeRows, len(rows))
	all := make([]uint32, 0, len(rows))
	for _, r := range rows {
		row := &typeRow{oid: toOID(r[0]), name: string(r[1]), typname: string(r[2]), output: string(r[3]), class: string(r[4]),
			elem: toOID(r[5]), base: toOID(r[6]), delim: ',', own: isTrue(r[8])}
		if len(r[7]) == 1 {
			row.delim = r[7][0]
		}
		found[row.oid] = row
		all = append(all, row.oid)
	}
	attrs, err := s.query(ctx, attributesSQL, oidArray(all))
	if err != nil {
		return fmt.Errorf("read composite types: %w", err)
	}
	for _, r := range attrs {
		if row := found[toOID(r[0])]; row != nil {
			row.attrs = append(row.attrs, attributeRow{string(r[1]), toOID(r[2])})
		}
	}
	fresh := types{}
	for oid := range found {
		fresh.resolve(found, oid, 0)
	}
	for oid, t := range fresh {
		ts[oid] = t
	}
	return nil
}

// resolve makes the type from its row and those of its parts.
func (ts types) resolve(rows typeRows, oid uint32, depth int) *typeInfo {
	if t := ts[oid]; t != nil {
		return t
	}
	row := rows[oid]
	if row == nil || depth > 64 {
		return unknownType(oid)
	}
	t := &typeInfo{oid: oid, name: row.name, kind: change.KindText, append: appendText, plain: true}
	ts[oid] = t
	part := func(oid uint32) *typeInfo { return ts.resolve(rows, oid, depth+1) }
	set := func(d decoding) { t.known, t.plain, t.kind, t.append = true, false, d.kind, d.append }
	switch {
	case row.class == "d":
		base := *part(row.base)
		base.oid, base.name = oid, row.name
		*t = base
	case row.own && row.output == "array_out":
		t.elem = part(row.elem)
		set(decoding{change.KindJSON, arrayDecoder(t.elem, row.delim)})
		t.shaped = t.elem.shaped
	case row.class == "c":
		for _, a := range row.attrs {
			t.attrs = append(t.attrs, attribute{a.name, part(a.oid)})
		}
		set(decoding{change.KindJSON, recordDecoder(t.attrs)})
		t.shaped = true
	case row.own && builtin[row.output].append != nil:
		set(builtin[row.output])
	case !row.own && extension[row.output].append != nil:
		d := extension[row.output]
		set(decoding{d.kind, lenient(d.append)})
	default:
		t.known = plainText[row.output]
		t.fold = row.typname == "citext" && row.output == "citextout"
	}
	return t
}

// byOID returns a type, one of plain text if the database does not have it any more.
func (ts types) byOID(oid uint32) *typeInfo {
	if t := ts[oid]; t != nil {
		return t
	}
	return unknownType(oid)
}

func unknownType(oid uint32) *typeInfo {
	return &typeInfo{oid: oid, name: "oid " + strconv.FormatUint(uint64(oid), 10), kind: change.KindText, append: appendText, plain: true}
}

// unknowns returns the types inside t that are kept as text for want of better.
func (t *typeInfo) unknowns() []*typeInfo {
	switch {
	case t.elem != nil:
		return t.elem.unknowns()
	case len(t.attrs) > 0:
		var list []*typeInfo
		for _, a := range t.attrs {
			list = append(list, a.typ.unknowns()...)
		}
		return list
	case !t.known:
		return []*typeInfo{t}
	}
	return nil
}

func oidArray(oids []uint32) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, o := range oids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(o), 10))
	}
	b.WriteByte('}')
	return b.String()
}

// openSized begins a value with a length in front whose size is guessed from
// hint; closeSized puts the length in.
func openSized(dst []byte, hint int) (out []byte, gap int) {
	gap = uvarintLen(uint64(hint))
	for range gap {
		dst = append(dst, 0)
	}
	return dst, gap
}

func closeSized(dst []byte, start, gap int) []byte {
	n := len(dst) - start - gap
	need := uvarintLen(uint64(n))
	if need != gap {
		for i := gap; i < need; i++ {
			dst = append(dst, 0)
		}
		copy(dst[start+need:], dst[start+gap:start+gap+n])
		dst = dst[:start+need+n]
	}
	binary.PutUvarint(dst[start:start+need], uint64(n))
	return dst
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
