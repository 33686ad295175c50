package postgres

import (
	"strings"

	"github.com/tailwater/tailwater/change"
)

// typeCase is a type with values given by SQL and the canonical JSON they must become.
type typeCase struct {
	typ    string
	kind   change.Kind
	oracle string // of oracles: the same JSON by the server's own means; "" none
	since  int    // major version that has the type
	values []typeValue
}

type typeValue struct {
	id    string // row of TYPES.md
	sql   string // the value's expression; what begins with a quote is cast to the type
	json  string
	since int // major version that takes the value
}

// letters is a value that is stored out of line, and its JSON without the quotes.
const letters = "repeat('abcdefghij', 500)"

var lettersJSON = strings.Repeat("abcdefghij", 500)

// number255 is 2^255 with a fraction: more digits than any float has.
const number255 = "57896044618658097711785492504343953926634992332820282019728792003956564819968.555555"

var typeCases = []typeCase{
	{"bool", change.KindBool, "json", 0, []typeValue{{"bool", "true", "true", 0}, {"bool", "false", "false", 0}}},
	{"int2", change.KindInt, "json", 0, []typeValue{{"P1", "'-32768'", "-32768", 0}, {"P1", "32767", "32767", 0}}},
	{"int4", change.KindInt, "json", 0, []typeValue{{"P2", "2147483647", "2147483647", 0}, {"P2", "'-2147483648'", "-2147483648", 0}, {"P2", "0", "0", 0}}},
	{"int8", change.KindInt, "json", 0, []typeValue{{"P4", "9007199254740993", "9007199254740993", 0}, {"P4", "'-9223372036854775808'", "-9223372036854775808", 0},
		{"P4", "9223372036854775807", "9223372036854775807", 0}}},
	{"oid", change.KindInt, "text", 0, []typeValue{{"P5", "4294967295", "4294967295", 0}, {"P5", "0", "0", 0}}},
	{"float4", change.KindFloat32, "float", 0, []typeValue{{"P7", "0.1", "0.1", 0}, {"P8", "16777217", "16777216", 0}, {"P8", "123456789", "123456790", 0},
		{"K3", "'1e21'", "1e+21", 0}, {"K3", "'1e20'", "100000000000000000000", 0}, {"K3", "'1e-6'", "0.000001", 0}, {"K3", "'1e-7'", "1e-7", 0},
		{"K3", "'1e-45'", "1e-45", 0}, {"K3", "'3.4028235e38'", "3.4028235e+38", 0}, {"P13", "'-0'", "-0", 0}, {"P14", "'NaN'", `"NaN"`, 0}, {"P14", "'-Infinity'", `"-Infinity"`, 0}}},
	{"float8", change.KindFloat64, "float", 0, []typeValue{{"P10", "0.1::float8+0.2::float8", "0.30000000000000004", 0}, {"P11", "'5e-324'", "5e-324", 0},
		{"P11", "'1.7976931348623157e308'", "1.7976931348623157e+308", 0}, {"P13", "'-0'", "-0", 0}, {"P14", "'NaN'", `"NaN"`, 0}, {"P14", "'Infinity'", `"Infinity"`, 0},
		{"P14", "'-Infinity'", `"-Infinity"`, 0}, {"K3", "'1e20'", "100000000000000000000", 0}, {"K3", "'1e21'", "1e+21", 0}, {"K3", "'0.00001'", "0.00001", 0},
		{"K3", "'123456789012345680000'", "123456789012345680000", 0}, {"K3", "'1e-7'", "1e-7", 0}, {"K3", "100", "100", 0}}},
	{"numeric(6,2)", change.KindDecimal, "json", 0, []typeValue{{"P16", "0", "0.00", 0}, {"P16", "'-0.5'", "-0.50", 0}, {"P16", "9999.99", "9999.99", 0}}},
	{"numeric(3,-2)", change.KindDecimal, "json", 15, []typeValue{{"P17", "12345", "12300", 0}}},
	{"numeric(3,5)", change.KindDecimal, "json", 15, []typeValue{{"P17", "0.00012", "0.00012", 0}}},
	{"numeric", change.KindDecimal, "json", 0, []typeValue{{"P19", "'" + number255 + "'", number255, 0}, {"P20", "'1e131071'", "1" + strings.Repeat("0", 131071), 0},
		{"K2", "'1e-16383'", "0." + strings.Repeat("0", 16382) + "1", 0}, {"P22", "-0.0", "0.0", 0}, {"P22", "'NaN'", `"NaN"`, 0}, {"P22", "'Infinity'", `"Infinity"`, 14},
		{"P22", "'-Infinity'", `"-Infinity"`, 14}, {"K2", "1.10", "1.10", 0}, {"S13", "(repeat('7', 20000) || '.70')::numeric", strings.Repeat("7", 20000) + ".70", 0}, {"K2", "'100.000'", "100.000", 0}, {"K2", "'-12345678901234567890.10'", "-12345678901234567890.10", 0}}},
	{"money", change.KindDecimal, "money", 0, []typeValue{{"P23", "'-1234.56'", "-1234.56", 0}, {"P23", "'92233720368547758.07'", "92233720368547758.07", 0},
		{"P23", "'-92233720368547758.08'", "-92233720368547758.08", 0}, {"P23", "'0'", "0.00", 0}, {"P23", "'-0.01'", "-0.01", 0}}},
	{"varchar(10)", change.KindText, "json", 0, []typeValue{{"P25", "'ab  '", `"ab  "`, 0}}},
	{"char(5)", change.KindText, "json", 0, []typeValue{{"K17", "'ab'", `"ab   "`, 0}, {"K17", "''", `"     "`, 0}, {"K17", "'日本'", `"日本   "`, 0}}},
	{"bpchar", change.KindText, "json", 0, []typeValue{{"K17", "'ab  '", `"ab  "`, 0}}},
	{"text", change.KindText, "json", 0, []typeValue{{"P25", "''", `""`, 0}, {"P26", `E'\t\n\\"\x01\x1f\x7f'`, `"\t\n\\\"\u0001\u001f` + "\x7f" + `"`, 0},
		{"P26", `E'\b\f\r</&>\u2028\u00e9\U0001F600'`, `"\b\f\r</&>` + "\u2028é😀" + `"`, 0}, {"P25", "'null'", `"null"`, 0}, {"S13", letters, `"` + lettersJSON + `"`, 0}}},
	{`"char"`, change.KindText, "", 0, []typeValue{{"P28", `'"'`, `"\""`, 0}, {"P28", "''", `""`, 0}, {"P28", `E'\\377'`, `"\\377"`, 16}, {"P28", "'a'", `"a"`, 0}}},
	{"name", change.KindText, "json", 0, []typeValue{{"P28", "'pg_class'", `"pg_class"`, 0}}},
	{"bytea", change.KindBytes, "bytea", 0, []typeValue{{"P29", `'\x00ff10'`, `"AP8Q"`, 0}, {"P29", `''`, `""`, 0}, {"P29", `E'\\001\\\\x'`, `"AVx4"`, 0},
		{"P29", "convert_to(" + letters + "||'ab', 'UTF8')", `"` + strings.Repeat("YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlq", 166) + "YWJjZGVmZ2hpamFiY2RlZmdoaWphYg==" + `"`, 0}}},
	{"date", change.KindDate, "date", 0, []typeValue{{"P31", "'0044-03-15 BC'", `"-0043-03-15"`, 0}, {"P31", "'4713-01-01 BC'", `"-4712-01-01"`, 0}, {"P31", "'5874897-12-31'", `"+5874897-12-31"`, 0},
		{"P31", "'0001-12-31 BC'", `"0000-12-31"`, 0}, {"P31", "'0001-01-01'", `"0001-01-01"`, 0}, {"P31", "'9999-12-31'", `"9999-12-31"`, 0}, {"P31", "'10000-01-01'", `"+10000-01-01"`, 0},
		{"P31", "'2000-02-29'", `"2000-02-29"`, 0}, {"P31", "'1582-10-10'", `"1582-10-10"`, 0}, {"P32", "'infinity'", `"infinity"`, 0}, {"P32", "'-infinity'", `"-infinity"`, 0}}},
	{"time(3)", change.KindTime, "string", 0, []typeValue{{"P34", "'13:51:30.1'", `"13:51:30.1"`, 0}, {"P34", "'13:51:30.1239'", `"13:51:30.124"`, 0}}},
	{"time", change.KindTime, "string", 0, []typeValue{{"P34", "'24:00:00'", `"24:00:00"`, 0}, {"P34", "'allballs'", `"00:00:00"`, 0}, {"P34", "'23:59:59.999999'", `"23:59:59.999999"`, 0}}},
	{"timetz", change.KindTimeTZ, "timetz", 0, []typeValue{{"P35", "'13:51:30.123789+02'", `"13:51:30.123789+02:00"`, 0}, {"P35", "'24:00:00-15:59'", `"24:00:00-15:59"`, 0},
		{"P35", "'00:00:00+15:59:59'", `"00:00:00+15:59:59"`, 0}, {"P35", "'allballs'", `"00:00:00+00:00"`, 0}, {"P35", "'12:00:00-00:30'", `"12:00:00-00:30"`, 0}}},
	{"timestamp", change.KindTimestamp, "timestamp", 0, []typeValue{{"P37", "'2016-12-31 23:59:60'", `"2017-01-01T00:00:00"`, 0}, {"P38", "'10000-01-01'", `"+10000-01-01T00:00:00"`, 0},
		{"P38", "'294276-12-31 23:59:59.999999'", `"+294276-12-31T23:59:59.999999"`, 0}, {"P40", "'infinity'", `"infinity"`, 0}, {"P40", "'-infinity'", `"-infinity"`, 0},
		{"K6", "'0001-12-31 23:59:59.5 BC'", `"0000-12-31T23:59:59.5"`, 0}, {"K6", "'4714-11-24 00:00:00 BC'", `"-4713-11-24T00:00:00"`, 0}, {"K5", "'1999-12-31 23:59:59.999999'", `"1999-12-31T23:59:59.999999"`, 0}}},
	{"timestamp(0)", change.KindTimestamp, "timestamp", 0, []typeValue{{"K5", "'2020-01-01 00:00:00.5'", `"2020-01-01T00:00:01"`, 0}}},
	{"timestamptz", change.KindTimestampTZ, "timestamptz", 0, []typeValue{{"P40", "'-infinity'", `"-infinity"`, 0}, {"P41", "'2016-11-04 13:51:30.123456+02'", `"2016-11-04T11:51:30.123456Z"`, 0},
		{"P43", "'4714-11-24 00:00:00+00 BC'", `"-4713-11-24T00:00:00Z"`, 0}, {"K4", "'294276-12-31 23:59:59.999999+00'", `"+294276-12-31T23:59:59.999999Z"`, 0},
		{"K4", "'0001-01-01 00:00:00+00'", `"0001-01-01T00:00:00Z"`, 0}, {"K4", "'0001-01-01 00:00:00+05:30'", `"0000-12-31T18:30:00Z"`, 0}, {"K4", "'1883-11-18 12:03:57 America/New_York'", `"1883-11-18T17:03:57Z"`, 0}}},
	{"interval", change.KindInterval, "string", 0, []typeValue{{"P44", "'1 year 2 mons 3 days 4:05:06.78'", `"P1Y2M3DT4H5M6.78S"`, 0}, {"P46", "'0'", `"PT0S"`, 0}, {"P46", "'-1 microsecond'", `"PT-0.000001S"`, 0},
		{"P46", "'24:00:00'", `"PT24H"`, 0}, {"P46", "'1 day'", `"P1D"`, 0}, {"P46", "'30 days'", `"P30D"`, 0}, {"P46", "'1 mon -1 day'", `"P1M-1D"`, 0}, {"P47", "'178000000 years'", `"P178000000Y"`, 0},
		{"P47", "'2562047788:00:54.775807'", `"PT2562047788H54.775807S"`, 15}, {"P47", "'-1 year -2 mons +3 days -4:05:06.78'", `"P-1Y-2M3DT-4H-5M-6.78S"`, 0},
		{"P47", "'-2147483648 months -2147483648 days'", `"P-178956970Y-8M-2147483648D"`, 0}, {"P47", "'infinity'", `"infinity"`, 17}, {"P47", "'-infinity'", `"-infinity"`, 17}, {"P47", "'-0.5 second'", `"PT-0.5S"`, 0}}},
	{"interval year to month", change.KindInterval, "string", 0, []typeValue{{"P44", "'1-2'", `"P1Y2M"`, 0}}},
	{"json", change.KindJSON, "", 0, []typeValue{
		{"P48", `E'{"b":1, "a" : 1,\n "b": 12345678901234567890.10, "u":"\\u00e9\\ud83d\\ude00", "e":1E2, "z":-0, "s":"\\/\\u0001"}'`, `{"a":1,"b":12345678901234567890.10,"u":"é😀","e":1E2,"z":-0,"s":"/\u0001"}`, 0},
		{"K12", "'null'", "null", 0}, {"K12", `' [ 1 , {"a":[]} , "x y" ] '`, `[1,{"a":[]},"x y"]`, 0}, {"K12", "'1e999999'", "1e999999", 0}, {"K12", `'{"a":{"x":1,"x":2},"a":{"y":1,"\u0079":2}}'`, `{"a":{"y":2}}`, 0},
		{"K12", `'"\ud800"'`, `"\ud800"`, 0}, {"K12", `'"\u0000"'`, `"\u0000"`, 0}, {"S13", `('["'||` + letters + `||'", 1.10 ]')::json`, `["` + lettersJSON + `",1.10]`, 0}}},
	{"jsonb", change.KindJSON, "compact", 0, []typeValue{
		{"P49", `E'{"b":2,"a":1,"a":3,"b":1,"n":12345678901234567890.10,"e":1e2,"z":-0,"u":"\\u00e9\\ud83d\\ude00"}'`, `{"a":3,"b":1,"e":100,"n":12345678901234567890.10,"u":"é😀","z":0}`, 0},
		{"P50", "'null'", "null", 0}, {"P50", `'"x"'`, `"x"`, 0}, {"P50", "'1.0'", "1.0", 0}, {"P50", "'1e400'", "1" + strings.Repeat("0", 400), 0}, {"P50", "'{}'", "{}", 0},
		{"K12", `'{"k\"\\\n":["a, b: c", true, false, null, {"": ""}]}'`, `{"k\"\\\n":["a, b: c",true,false,null,{"":""}]}`, 0}, {"S13", "jsonb_build_object('a', " + letters + ")", `{"a":"` + lettersJSON + `"}`, 0}}},
	{"inet", change.KindText, "json", 0, []typeValue{{"P52", "'192.168.2.0/12'", `"192.168.2.0/12"`, 0}, {"P52", "'::1/128'", `"::1"`, 0}, {"P52", "'::ffff:1.2.3.4'", `"::ffff:1.2.3.4"`, 0}, {"P52", "'10.0.0.1/32'", `"10.0.0.1"`, 0},
		{"P52", "'2001:DB8::/32'", `"2001:db8::/32"`, 0}}},
	{"cidr", change.KindText, "json", 0, []typeValue{{"P52", "'10/8'", `"10.0.0.0/8"`, 0}, {"P52", "'10.1.2.3/32'", `"10.1.2.3/32"`, 0}}},
	{"macaddr", change.KindText, "json", 0, []typeValue{{"P53", "'08-00-2b-01-02-03'", `"08:00:2b:01:02:03"`, 0}}},
	{"macaddr8", change.KindText, "json", 0, []typeValue{{"P53", "'08-00-2b-01-02-03'", `"08:00:2b:ff:fe:01:02:03"`, 0}}},
	{"uuid", change.KindUUID, "json", 0, []typeValue{{"uuid", `'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'`, `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, 0}, {"uuid", `'00000000-0000-0000-0000-000000000000'`, `"00000000-0000-0000-0000-000000000000"`, 0}}},
	{"bit(3)", change.KindText, "json", 0, []typeValue{{"P66", "B'101'", `"101"`, 0}}},
	{"varbit", change.KindText, "json", 0, []typeValue{{"P66", "B'1'", `"1"`, 0}, {"P66", "B''", `""`, 0}, {"P66", "X'00ff'", `"0000000011111111"`, 0}, {"S13", "repeat('10', 20000)::varbit", `"` + strings.Repeat("10", 20000) + `"`, 0}}},
	{"xml", change.KindText, "json", 0, []typeValue{{"P68", "'<foo>bar</foo><foo>bar</foo>'", `"<foo>bar</foo><foo>bar</foo>"`, 0}, {"P68", `'<?xml version="1.0" encoding="UTF-8"?><a>é</a>'`, `"<a>é</a>"`, 0},
		{"P68", "''", `""`, 0}, {"P68", "'just text &amp;'", `"just text &amp;"`, 0}}},
	{"point", change.KindText, "json", 0, []typeValue{{"P70", "'(NaN,Infinity)'", `"(NaN,Infinity)"`, 0}, {"P70", "'(1e-20,-0)'", `"(1e-20,-0)"`, 0}, {"P70", "'(0.1,123456789.123)'", `"(0.1,123456789.123)"`, 0}}},
	{"line", change.KindText, "json", 0, []typeValue{{"P70", "'{1,2,3}'", `"{1,2,3}"`, 0}}},
	{"lseg", change.KindText, "json", 0, []typeValue{{"P70", "'[(0,0),(1,1)]'", `"[(0,0),(1,1)]"`, 0}}},
	{"box", change.KindText, "json", 0, []typeValue{{"P70", "'(0,0),(1,1)'", `"(1,1),(0,0)"`, 0}}},
	{"path", change.KindText, "json", 0, []typeValue{{"P70", "'[(0,0),(1,1)]'", `"[(0,0),(1,1)]"`, 0}, {"P70", "'((0,0),(1,1))'", `"((0,0),(1,1))"`, 0}}},
	{"polygon", change.KindText, "json", 0, []typeValue{{"P70", "'((0,0),(1,1),(1,0))'", `"((0,0),(1,1),(1,0))"`, 0}}},
	{"circle", change.KindText, "json", 0, []typeValue{{"P70", "'<(0,0),1>'", `"<(0,0),1>"`, 0}}},
	{"pg_lsn", change.KindText, "json", 0, []typeValue{{"P71", "'16/B374D848'", `"16/B374D848"`, 0}, {"P71", "'0/0'", `"0/0"`, 0}}},
	{"tid", change.KindText, "json", 0, []typeValue{{"P71", "'(0,1)'", `"(0,1)"`, 0}}},
	{"xid", change.KindText, "json", 0, []typeValue{{"P71", "'4294967295'", `"4294967295"`, 0}}},
	{"cid", change.KindText, "json", 0, []typeValue{{"P71", "'7'", `"7"`, 0}}},
	{"xid8", change.KindText, "json", 0, []typeValue{{"P71", "'18446744073709551615'", `"18446744073709551615"`, 0}}},
	{"pg_snapshot", change.KindText, "json", 0, []typeValue{{"P72", "'10:20:10,14'", `"10:20:10,14"`, 0}}},
	{"txid_snapshot", change.KindText, "json", 0, []typeValue{{"P72", "'10:20:10,14'", `"10:20:10,14"`, 0}}},
	{"jsonpath", change.KindText, "json", 0, []typeValue{{"P71", "'$.a[*] ? (@ > 1)'", `"$.\"a\"[*]?(@ > 1)"`, 0}}},
	{"regtype", change.KindText, "json", 0, []typeValue{{"P71", "'int4'", `"integer"`, 0}, {"P71", "'mood'", `"public.mood"`, 0}, {"P71", "'\"Odd t\"'", `"public.\"Odd t\""`, 0}}},
	{"regclass", change.KindText, "json", 0, []typeValue{{"P71", "'pg_class'", `"pg_class"`, 0}, {"P71", "'public.elsewhere'", `"public.elsewhere"`, 0}, {"P71", "4000000000::oid", `"4000000000"`, 0}}},
	{"regproc", change.KindText, "json", 0, []typeValue{{"P71", "'now'", `"now"`, 0}}},
	{"regprocedure", change.KindText, "json", 0, []typeValue{{"P71", "'sum(int4)'", `"sum(integer)"`, 0}}},
	{"regoper", change.KindText, "json", 0, []typeValue{{"P71", "'||/'", `"||/"`, 0}}},
	{"regoperator", change.KindText, "json", 0, []typeValue{{"P71", "'+(int4,int4)'", `"+(integer,integer)"`, 0}}},
	{"regrole", change.KindText, "json", 0, []typeValue{{"P71", "'pg_monitor'", `"pg_monitor"`, 0}}},
	{"regnamespace", change.KindText, "json", 0, []typeValue{{"P71", "'public'", `"public"`, 0}}},
	{"regconfig", change.KindText, "json", 0, []typeValue{{"P71", "'english'", `"english"`, 0}}},
	{"regdictionary", change.KindText, "json", 0, []typeValue{{"P71", "'simple'", `"simple"`, 0}}},
	{"regcollation", change.KindText, "json", 0, []typeValue{{"P71", `'"C"'`, `"\"C\""`, 0}}},
	{"tsvector", change.KindText, "json", 0, []typeValue{{"P69", "'a b'", `"'a' 'b'"`, 0}, {"P69", `$$'it''s':1A fat:2,4 '\\':3$$`, `"'\\\\':3 'fat':2,4 'it''s':1A"`, 0}, {"P69", "to_tsvector('simple', 'The fat cat')", `"'cat':3 'fat':2 'the':1"`, 0}}},
	{"tsquery", change.KindText, "json", 0, []typeValue{{"P69", "'fat & (rat | !cat)'", `"'fat' & ( 'rat' | !'cat' )"`, 0}}},
	{"int2vector", change.KindJSON, "compact", 0, []typeValue{{"K11", "'1 2 -3'", "[1,2,-3]", 0}}},
	{"oidvector", change.KindJSON, "", 0, []typeValue{{"K11", "'1 4294967295'", "[1,4294967295]", 0}}},
}
