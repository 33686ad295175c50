package postgres

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// typeCase is a value by SQL and the canonical JSON it must become.
type typeCase struct {
	id    string // row of TYPES.md
	typ   string
	sql   string // the value's expression; text in quotes is cast to the type
	json  string
	since int // major version that has it
}

var typeCases = []typeCase{
	{"P1", "int2", "-32768", "-32768", 0},
	{"P2", "int4", "2147483647", "2147483647", 0},
	{"P4", "int8", "9007199254740993", "9007199254740993", 0},
	{"P4", "int8", "'-9223372036854775808'", "-9223372036854775808", 0},
	{"P5", "oid", "4294967295", "4294967295", 0},
	{"bool", "bool", "true", "true", 0},
	{"P7", "float4", "0.1", "0.1", 0},
	{"P8", "float4", "16777217", "16777216", 0},
	{"P8", "float4", "123456789", "123456790", 0},
	{"P10", "float8", "0.1::float8+0.2::float8", "0.30000000000000004", 0},
	{"P11", "float8", "'5e-324'", "5e-324", 0},
	{"P11", "float8", "'1.7976931348623157e308'", "1.7976931348623157e+308", 0},
	{"P13", "float8", "'-0'", "-0", 0},
	{"P14", "float8", "'NaN'", `"NaN"`, 0},
	{"P14", "float4", "'-Infinity'", `"-Infinity"`, 0},
	{"P16", "numeric(6,2)", "0", "0.00", 0},
	{"P17", "numeric(3,-2)", "12345", "12300", 15},
	{"P17", "numeric(3,5)", "0.00012", "0.00012", 15},
	{"P19", "numeric", "'57896044618658097711785492504343953926634992332820282019728792003956564819968.555555'", "57896044618658097711785492504343953926634992332820282019728792003956564819968.555555", 0},
	{"P20", "numeric", "'1e131071'", "1" + strings.Repeat("0", 131071), 0},
	{"P22", "numeric", "-0.0", "0.0", 0},
	{"P22", "numeric", "'NaN'", `"NaN"`, 0},
	{"P22", "numeric", "'-Infinity'", `"-Infinity"`, 14},
	{"P23", "money", "'-1234.56'", "-1234.56", 0},
	{"P23", "money", "'92233720368547758.07'", "92233720368547758.07", 0},
	{"P25", "varchar(10)", "'ab  '", `"ab  "`, 0},
	{"P25", "text", "''", `""`, 0},
	{"K17", "char(5)", "'ab'", `"ab   "`, 0},
	{"P26", "text", `E'\t\n\\"\x01\x1f\x7f'`, `"\t\n\\\"\u0001\u001f` + "\x7f" + `"`, 0},
	{"P28", `"char"`, `'"'`, `"\""`, 0},
	{"P28", `"char"`, `E'\\377'`, `"\\377"`, 16},
	{"P28", "name", "'pg_class'", `"pg_class"`, 0},
	{"P29", "bytea", `'\x00ff10'`, `"AP8Q"`, 0},
	{"P29", "bytea", `''`, `""`, 0},
	{"P31", "date", "'0044-03-15 BC'", `"-0043-03-15"`, 0},
	{"P31", "date", "'4713-01-01 BC'", `"-4712-01-01"`, 0},
	{"P31", "date", "'5874897-12-31'", `"+5874897-12-31"`, 0},
	{"P32", "date", "'infinity'", `"infinity"`, 0},
	{"P32", "date", "'-infinity'", `"-infinity"`, 0},
	{"P34", "time(3)", "'13:51:30.1'", `"13:51:30.1"`, 0},
	{"P34", "time", "'24:00:00'", `"24:00:00"`, 0},
	{"P35", "timetz", "'13:51:30.123789+02'", `"13:51:30.123789+02:00"`, 0},
	{"P35", "timetz", "'24:00:00-15:59'", `"24:00:00-15:59"`, 0},
	{"P35", "timetz", "'00:00:00+15:59:59'", `"00:00:00+15:59:59"`, 0},
	{"P37", "timestamp", "'2016-12-31 23:59:60'", `"2017-01-01T00:00:00"`, 0},
	{"P38", "timestamp", "'10000-01-01'", `"+10000-01-01T00:00:00"`, 0},
	{"P38", "timestamp", "'294276-12-31 23:59:59.999999'", `"+294276-12-31T23:59:59.999999"`, 0},
	{"P40", "timestamp", "'infinity'", `"infinity"`, 0},
	{"P40", "timestamptz", "'-infinity'", `"-infinity"`, 0},
	{"P41", "timestamptz", "'2016-11-04 13:51:30.123456+02'", `"2016-11-04T11:51:30.123456Z"`, 0},
	{"P43", "timestamptz", "'4714-11-24 00:00:00+00 BC'", `"-4713-11-24T00:00:00Z"`, 0},
	{"P44", "interval", "'1 year 2 mons 3 days 4:05:06.78'", `"P1Y2M3DT4H5M6.78S"`, 0},
	{"P46", "interval", "'0'", `"PT0S"`, 0},
	{"P46", "interval", "'-1 microsecond'", `"PT-0.000001S"`, 0},
	{"P46", "interval", "'24:00:00'", `"PT24H"`, 0},
	{"P46", "interval", "'30 days'", `"P30D"`, 0},
	{"P46", "interval", "'1 mon -1 day'", `"P1M-1D"`, 0},
	{"P47", "interval", "'178000000 years'", `"P178000000Y"`, 0},
	{"P47", "interval", "'2562047788:00:54.775807'", `"PT2562047788H54.775807S"`, 15},
	{"P47", "interval", "'-1 year -2 mons +3 days -4:05:06.78'", `"P-1Y-2M3DT-4H-5M-6.78S"`, 0},
	{"P48", "json", `E'{"b":1, "a" : 1,\n "b": 12345678901234567890.10, "u":"\\u00e9\\ud83d\\ude00", "e":1E2, "z":-0, "s":"\\/\\u0001"}'`,
		`{"a":1,"b":12345678901234567890.10,"u":"é😀","e":1E2,"z":-0,"s":"/\u0001"}`, 0},
	{"P49", "jsonb", `E'{"b":2,"a":1,"a":3,"b":1,"n":12345678901234567890.10,"e":1e2,"z":-0,"u":"\\u00e9\\ud83d\\ude00"}'`,
		`{"a":3,"b":1,"e":100,"n":12345678901234567890.10,"u":"é😀","z":0}`, 0},
	{"P50", "jsonb", "'null'", "null", 0},
	{"P50", "jsonb", `'"x"'`, `"x"`, 0},
	{"P50", "jsonb", "'1.0'", "1.0", 0},
	{"P50", "jsonb", "'1e400'", "1" + strings.Repeat("0", 400), 0},
	{"P52", "inet", "'192.168.2.0/12'", `"192.168.2.0/12"`, 0},
	{"P52", "inet", "'::1/128'", `"::1"`, 0},
	{"P52", "inet", "'::ffff:1.2.3.4'", `"::ffff:1.2.3.4"`, 0},
	{"P52", "cidr", "'10/8'", `"10.0.0.0/8"`, 0},
	{"P53", "macaddr", "'08-00-2b-01-02-03'", `"08:00:2b:01:02:03"`, 0},
	{"P53", "macaddr8", "'08-00-2b-01-02-03'", `"08:00:2b:ff:fe:01:02:03"`, 0},
	{"P55", "mood", `'it''s "great"'`, `"it's \"great\""`, 0},
	{"P56", "dom_int", "5", "5", 0},
	{"P56", "dom_dom", "5", "5", 0},
	{"P56", "dom_comp", "ROW(1,'x',1.5)::pair", `{"a":1,"b":"x","c":1.50}`, 0},
	{"P57", "pair", "ROW(NULL,'',NULL)::pair", `{"a":null,"b":"","c":null}`, 0},
	{"P58", "nest", "ROW('n',ROW(1,'x',1.5)::pair)::nest", `{"n":"n","p":{"a":1,"b":"x","c":1.50}}`, 0},
	{"P58", "nest[]", `ARRAY[ROW('a "q" \, b',ROW(1,'x\"(,)',1.5)::pair)::nest]`, `[{"n":"a \"q\" \\, b","p":{"a":1,"b":"x\\\"(,)","c":1.50}}]`, 0},
	{"P59", "int[]", "'{1,NULL,3}'", "[1,null,3]", 0},
	{"P59", "int[]", "'{}'", "[]", 0},
	{"P59", "int[]", "'{{1,2},{3,4}}'", "[[1,2],[3,4]]", 0},
	{"P59", "int[]", "'[0:2]={1,2,3}'", "[1,2,3]", 0},
	{"P60", "text[]", `ARRAY['a,b','"q"','\','','NULL',NULL,'{x}',' s ']`, `["a,b","\"q\"","\\","","NULL",null,"{x}"," s "]`, 0},
	{"P61", "bytea[]", `ARRAY['\x00ff'::bytea]`, `["AP8="]`, 0},
	{"P61", "timestamptz[]", `ARRAY['2020-01-01Z'::timestamptz]`, `["2020-01-01T00:00:00Z"]`, 0},
	{"P61", "jsonb[]", `ARRAY['{"a": 1}'::jsonb]`, `[{"a":1}]`, 0},
	{"P61", "mood[]", `ARRAY['ok'::mood]`, `["ok"]`, 0},
	{"P61", "float8[]", `'{NaN,1e21}'`, `["NaN",1e+21]`, 0},
	{"P61", "numeric[]", `'{1.10,NaN}'`, `[1.10,"NaN"]`, 0},
	{"P61", "money[]", `ARRAY['1234.5'::money]`, `[1234.50]`, 0},
	{"P61", "box[]", `'{(1,1),(0,0);(2,2),(1,1)}'`, `["(1,1),(0,0)","(2,2),(1,1)"]`, 0},
	{"P61", "bool[]", `'{t,f}'`, `[true,false]`, 0},
	{"P61", "uuid[]", `'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'`, `["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]`, 0},
	{"uuid", "uuid", `'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'`, `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, 0},
	{"P62", "int4range", "'[1,5]'", `"[1,6)"`, 0},
	{"P62", "int4range", "'empty'", `"empty"`, 0},
	{"P62", "int4range", "'(,)'", `"(,)"`, 0},
	{"P64", "textrange", `'["a,b","c]d"]'`, `"[\"a,b\",\"c]d\"]"`, 0},
	{"P65", "int4multirange", "'{[1,3),[5,7)}'", `["[1,3)","[5,7)"]`, 14},
	{"P65", "int4multirange", "'{}'", `[]`, 14},
	{"P65", "tsmultirange", "'{[2020-01-01,2020-01-02)}'", `["[\"2020-01-01 00:00:00\",\"2020-01-02 00:00:00\")"]`, 14},
	{"P66", "bit(3)", "B'101'", `"101"`, 0},
	{"P66", "varbit", "B'1'", `"1"`, 0},
	{"P68", "xml", "'<foo>bar</foo><foo>bar</foo>'", `"<foo>bar</foo><foo>bar</foo>"`, 0},
	{"P70", "point", "'(NaN,Infinity)'", `"(NaN,Infinity)"`, 0},
	{"P70", "circle", "'<(0,0),1>'", `"<(0,0),1>"`, 0},
	{"P71", "pg_lsn", "'16/B374D848'", `"16/B374D848"`, 0},
	{"P71", "tid", "'(0,1)'", `"(0,1)"`, 0},
	{"P71", "xid8", "'100'", `"100"`, 0},
	{"P71", "jsonpath", "'$.a[*] ? (@ > 1)'", `"$.\"a\"[*]?(@ > 1)"`, 0},
	{"P71", "regtype", "'int4'", `"integer"`, 0},
	{"tsvector", "tsvector", "'a b'", `"'a' 'b'"`, 0},
	{"hstore", "hs.hstore", `'a=>1, "b\"c"=>NULL, d=>"x y"'`, `{"a":"1","d":"x y","b\"c":null}`, 0},
	{"P28", "hs.citext", "'Hello'", `"Hello"`, 0},
	{"P67", "hs.ltree", "'Top.Collections.X'", `"Top.Collections.X"`, 0},
}

const typesDDL = `
SET search_path = public;
CREATE TYPE mood AS ENUM ('it''s "great"', 'ok');
CREATE DOMAIN dom_int AS int CHECK (value > 0); CREATE DOMAIN dom_dom AS dom_int;
CREATE TYPE pair AS (a int, b text, c numeric(6,2)); CREATE DOMAIN dom_comp AS pair;
CREATE TYPE nest AS (n text, p pair);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");`

// TestTypes reads every value by the stream and by a SELECT, in sessions whose
// role and database say otherwise about every setting that shapes text.
func TestTypes(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) { testTypes(t, major) })
	}
}

func testTypes(t *testing.T, major int) {
	dsn := testkit.PostgresVersion(t, major)
	contrib := true
	func() {
		c := testkit.Connect(t, dsn)
		var n int
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_available_extensions WHERE name IN ('hstore','citext','ltree')").Scan(&n); err != nil {
			t.Fatal(err)
		}
		contrib = n == 3
	}()
	db := dsn[strings.LastIndexByte(dsn, '/')+1 : strings.IndexByte(dsn, '?')]
	ddl := []string{typesDDL, fmt.Sprintf(`ALTER DATABASE %[1]s SET DateStyle = 'German'; ALTER DATABASE %[1]s SET IntervalStyle = 'postgres_verbose';
		ALTER DATABASE %[1]s SET TimeZone = 'Asia/Kolkata'; ALTER DATABASE %[1]s SET bytea_output = 'escape'; ALTER DATABASE %[1]s SET extra_float_digits = -3;
		ALTER DATABASE %[1]s SET search_path = 'public, hs'`, db)}
	if contrib {
		ddl = append(ddl, "CREATE SCHEMA hs; CREATE EXTENSION hstore SCHEMA hs; CREATE EXTENSION citext SCHEMA hs; CREATE EXTENSION ltree SCHEMA hs")
	}
	var columns, values []string
	var cases []typeCase
	for _, c := range typeCases {
		if c.since > major || strings.HasPrefix(c.typ, "hs.") && !contrib {
			continue
		}
		columns = append(columns, fmt.Sprintf("c%d %s", len(cases), c.typ))
		value := c.sql
		if strings.HasPrefix(value, "'") || strings.HasPrefix(value, "E'") {
			value += "::" + c.typ
		}
		values = append(values, value)
		cases = append(cases, c)
	}
	r := newRig(t, dsn, append(ddl, "CREATE TABLE v (id int PRIMARY KEY, "+strings.Join(columns, ", ")+", nul text)")...)
	r.open()
	r.exec("SET search_path = public, hs; INSERT INTO v VALUES (1, " + strings.Join(values, ", ") + ", NULL)")
	b := r.next()
	streamed, _ := b.After(&b.Events[0])
	got, err := streamed.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if text := string(change.AppendJSON(nil, got[i+1])); text != c.json {
			t.Errorf("%s %s %s = %.200s, want %.200s", c.id, c.typ, c.sql, text, c.json)
		}
	}
	if !got[len(got)-1].IsNull() {
		t.Error("P77: null is not null")
	}
	read := readRow(t, r, "v")
	if !bytes.Equal(read.Data, streamed.Data) {
		t.Error("stream and SELECT differ")
	}
	if l := read.Schema.AppendLayout(nil); !bytes.Equal(l, streamed.Schema.AppendLayout(nil)) {
		t.Error("layouts of stream and catalogue differ")
	}
}

// readRow reads a table's only row as a chunk does.
func readRow(t *testing.T, r *rig, name string) change.Row {
	t.Helper()
	ctx := t.Context()
	s, err := connect(ctx, &r.con.opts, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	list, err := readRelations(ctx, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rel := range list {
		if rel.name != name {
			continue
		}
		tab, err := r.src.(*source).catalog.current(ctx, s, rel.oid)
		if err != nil {
			t.Fatal(err)
		}
		b := &change.Batch{}
		if err := s.each(ctx, "SELECT "+tab.selectList()+" FROM "+tab.sql(), nil, func(f [][]byte) error { return tab.appendRead(b, f) }); err != nil {
			t.Fatal(err)
		}
		if len(b.Events) != 1 {
			t.Fatalf("%d rows", len(b.Events))
		}
		row, _ := b.After(&b.Events[0])
		return row
	}
	t.Fatalf("no table %s", name)
	return change.Row{}
}
