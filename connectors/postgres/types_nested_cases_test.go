package postgres

import "github.com/tailwater/tailwater/change"

// typesDDL makes the types of nestedCases.
const typesDDL = `
SET search_path = public;
CREATE TYPE mood AS ENUM ('it''s "great"', 'ok', '', 'a,b{}\');
CREATE TYPE "Odd t" AS ENUM ('x');
CREATE DOMAIN dom_int AS int CHECK (value > 0); CREATE DOMAIN dom_dom AS dom_int; CREATE DOMAIN dom_enum AS mood; CREATE DOMAIN dom_arr AS int[]; CREATE DOMAIN dom_box AS box;
CREATE DOMAIN dom_num AS numeric(6,2); CREATE DOMAIN dom_tstz AS timestamptz; CREATE DOMAIN dom_bytea AS bytea; CREATE DOMAIN dom_json AS json; CREATE DOMAIN dom_money AS money;
CREATE TYPE pair AS (a int, b text, c numeric(6,2)); CREATE DOMAIN dom_comp AS pair; CREATE DOMAIN dom_range AS int4range;
CREATE TYPE nest AS (n text, p pair);
CREATE TYPE empty AS ();
CREATE TYPE single AS (v text);
CREATE TYPE rich AS (d date, t timestamptz, y bytea, m money, f float4, j jsonb, "k ""q""" bool, i interval, l mood[], o dom_comp, u uuid, g int4range, h oid);
CREATE TYPE lossy AS (a int, gone int, b text); ALTER TYPE lossy DROP ATTRIBUTE gone;
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TABLE elsewhere (a int, b text);`

var nestedCases = []typeCase{
	{"mood", change.KindText, "json", 0, []typeValue{{"P55", `'it''s "great"'`, `"it's \"great\""`, 0}, {"P55", "''", `""`, 0}, {"P55", `'a,b{}\'`, `"a,b{}\\"`, 0}}},
	{"dom_int", change.KindInt, "json", 0, []typeValue{{"P56", "5", "5", 0}}},
	{"dom_dom", change.KindInt, "json", 0, []typeValue{{"P56", "5", "5", 0}}},
	{"dom_enum", change.KindText, "json", 0, []typeValue{{"P56", "'ok'", `"ok"`, 0}}},
	{"dom_arr", change.KindJSON, "json", 0, []typeValue{{"P56", "'{1,NULL}'", "[1,null]", 0}}},
	{"dom_arr[]", change.KindJSON, "", 0, []typeValue{{"P56", `'{"{1,2}",NULL,"{}"}'`, "[[1,2],null,[]]", 0}}},
	{"dom_box[]", change.KindJSON, "", 0, []typeValue{{"P56", `ARRAY['(1,1),(0,0)'::dom_box, '(2,2),(1,1)'::dom_box]`, `["(1,1),(0,0)","(2,2),(1,1)"]`, 0}}},
	{"dom_num", change.KindDecimal, "json", 0, []typeValue{{"P56", "1.5", "1.50", 0}}},
	{"dom_tstz", change.KindTimestampTZ, "timestamptz", 0, []typeValue{{"P56", "'2020-01-01 00:00:00+05:30'", `"2019-12-31T18:30:00Z"`, 0}}},
	{"dom_bytea", change.KindBytes, "bytea", 0, []typeValue{{"P56", `'\x00ff'`, `"AP8="`, 0}}},
	{"dom_json", change.KindJSON, "", 0, []typeValue{{"P56", `'{"a": 1.10, "a": 2}'`, `{"a":2}`, 0}}},
	{"dom_money", change.KindDecimal, "money", 0, []typeValue{{"P56", "'-1234.5'", "-1234.50", 0}}},
	{"dom_range", change.KindText, "json", 0, []typeValue{{"P56", "'[1,2]'", `"[1,3)"`, 0}}},
	{"dom_comp", change.KindJSON, "json", 0, []typeValue{{"P56", "ROW(1,'x',1.5)::pair", `{"a":1,"b":"x","c":1.50}`, 0}}},
	{"pair", change.KindJSON, "json", 0, []typeValue{{"P57", "ROW(NULL,'',NULL)::pair", `{"a":null,"b":"","c":null}`, 0}, {"P57", "ROW(NULL,NULL,NULL)::pair", `{"a":null,"b":null,"c":null}`, 0},
		{"P57", `ROW(-1,E'a"b\\c\n,()',0)::pair`, `{"a":-1,"b":"a\"b\\c\n,()","c":0.00}`, 0}, {"S13", "ROW(1," + letters + ",1)::pair", `{"a":1,"b":"` + lettersJSON + `","c":1.00}`, 0}}},
	{"nest", change.KindJSON, "json", 0, []typeValue{{"P58", "ROW('n',ROW(1,'x',1.5)::pair)::nest", `{"n":"n","p":{"a":1,"b":"x","c":1.50}}`, 0}, {"P58", "ROW(NULL,NULL)::nest", `{"n":null,"p":null}`, 0}}},
	{"nest[]", change.KindJSON, "compact", 0, []typeValue{{"P58", `ARRAY[ROW('a "q" \, b',ROW(1,'x\"(,)',1.5)::pair)::nest]`, `[{"n":"a \"q\" \\, b","p":{"a":1,"b":"x\\\"(,)","c":1.50}}]`, 0}}},
	{"empty", change.KindJSON, "json", 0, []typeValue{{"P58", "ROW()::empty", "{}", 0}}},
	{"single", change.KindJSON, "json", 0, []typeValue{{"P58", "ROW(NULL)::single", `{"v":null}`, 0}, {"P58", "ROW('')::single", `{"v":""}`, 0}}},
	{"lossy", change.KindJSON, "json", 0, []typeValue{{"P58", "ROW(1,'b')::lossy", `{"a":1,"b":"b"}`, 0}}},
	{"elsewhere", change.KindJSON, "json", 0, []typeValue{{"P58", "ROW(1,'b')::elsewhere", `{"a":1,"b":"b"}`, 0}}},
	{"rich", change.KindJSON, "", 0, []typeValue{{"P58", `ROW('0044-03-15 BC','2020-01-01 00:00:00+05:30','\x00ff','-1234.5','1e21','{"a": [1.10]}',true,'1 day -1 s',ARRAY['it''s "great"','']::mood[],ROW(1,'x',1.5),'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11','[1,2]',4294967295)::rich`,
		`{"d":"-0043-03-15","t":"2019-12-31T18:30:00Z","y":"AP8=","m":-1234.50,"f":1e+21,"j":{"a":[1.10]},"k \"q\"":true,"i":"P1DT-1S","l":["it's \"great\"",""],"o":{"a":1,"b":"x","c":1.50},"u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","g":"[1,3)","h":4294967295}`, 0}}},
	{"int[]", change.KindJSON, "compact", 0, []typeValue{{"P59", "'{1,NULL,3}'", "[1,null,3]", 0}, {"P59", "'{}'", "[]", 0}, {"P59", "'{{1,2},{3,4}}'", "[[1,2],[3,4]]", 0}, {"P59", "'[0:2]={1,2,3}'", "[1,2,3]", 0},
		{"P59", "'[-1:0][5:6]={{1,2},{NULL,4}}'", "[[1,2],[null,4]]", 0}, {"P59", "'{{{{{{1,2}}}}}}'", "[[[[[[1,2]]]]]]", 0}}},
	{"text[]", change.KindJSON, "compact", 0, []typeValue{{"P60", `ARRAY['a,b','"q"','\','','NULL',NULL,'{x}',' s ','null',E'\t\n']`, `["a,b","\"q\"","\\","","NULL",null,"{x}"," s ","null","\t\n"]`, 0},
		{"S13", "ARRAY[" + letters + ",'x']", `["` + lettersJSON + `","x"]`, 0}}},
	{"bytea[]", change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['\x00ff'::bytea, '']`, `["AP8=",""]`, 0}}},
	{"timestamptz[]", change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['2020-01-01Z'::timestamptz, 'infinity']`, `["2020-01-01T00:00:00Z","infinity"]`, 0}}},
	{"date[]", change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['0044-03-15 BC'::date]`, `["-0043-03-15"]`, 0}}},
	{"interval[]", change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['1 day'::interval,'-1 s']`, `["P1D","PT-1S"]`, 0}}},
	{"jsonb[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `ARRAY['{"a": 1}'::jsonb,'null',NULL,'"x"']`, `[{"a":1},null,null,"x"]`, 0}}},
	{"json[]", change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['{"a": 1, "a": [ ]}'::json]`, `[{"a":[]}]`, 0}}},
	{"mood[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `ARRAY['ok','it''s "great"','','a,b{}\']::mood[]`, `["ok","it's \"great\"","","a,b{}\\"]`, 0}}},
	{"float8[]", change.KindJSON, "", 0, []typeValue{{"P61", `'{NaN,1e21,-0,0.1}'`, `["NaN",1e+21,-0,0.1]`, 0}}},
	{"float4[]", change.KindJSON, "", 0, []typeValue{{"P61", `'{0.1,16777217,Infinity}'`, `[0.1,16777216,"Infinity"]`, 0}}},
	{"numeric[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `'{1.10,NaN}'`, `[1.10,"NaN"]`, 0}}},
	{"money[]", change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['1234.5'::money]`, `[1234.50]`, 0}}},
	{"oid[]", change.KindJSON, "", 0, []typeValue{{"P61", `'{4294967295}'`, `[4294967295]`, 0}}},
	{`"char"[]`, change.KindJSON, "", 0, []typeValue{{"P61", `ARRAY['a'::"char",'"','']`, `["a","\"",""]`, 0}}},
	{"box[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `'{(1,1),(0,0);(2,2),(1,1)}'`, `["(1,1),(0,0)","(2,2),(1,1)"]`, 0}}},
	{"bool[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `'{t,f}'`, `[true,false]`, 0}}},
	{"uuid[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'`, `["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]`, 0}}},
	{"char(3)[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `'{a}'`, `["a  "]`, 0}}},
	{"int4range[]", change.KindJSON, "compact", 0, []typeValue{{"P61", `'{"[1,5]",empty}'`, `["[1,6)","empty"]`, 0}}},
	{"int4range", change.KindText, "json", 0, []typeValue{{"P62", "'[1,5]'", `"[1,6)"`, 0}, {"P62", "'empty'", `"empty"`, 0}, {"P62", "'(,)'", `"(,)"`, 0}, {"P62", "'[1,)'", `"[1,)"`, 0}}},
	{"int8range", change.KindText, "json", 0, []typeValue{{"P62", "'(,9007199254740993]'", `"(,9007199254740994)"`, 0}}},
	{"numrange", change.KindText, "json", 0, []typeValue{{"P63", "'[1.10,2.0]'", `"[1.10,2.0]"`, 0}}},
	{"daterange", change.KindText, "json", 0, []typeValue{{"P63", "'[2020-01-01,2020-12-31]'", `"[2020-01-01,2021-01-01)"`, 0}, {"P63", "'[2020-01-01,infinity)'", `"[2020-01-01,infinity)"`, 0}}},
	{"tsrange", change.KindText, "json", 0, []typeValue{{"P63", "'[2020-01-01 10:00, 2020-01-02 00:00:00.5]'", `"[\"2020-01-01 10:00:00\",\"2020-01-02 00:00:00.5\"]"`, 0}}},
	{"tstzrange", change.KindText, "json", 0, []typeValue{{"P63", "'[2020-01-01 00:00+05:30,)'", `"[\"2019-12-31 18:30:00+00\",)"`, 0}}},
	{"textrange", change.KindText, "json", 0, []typeValue{{"P64", `'["a,b","c]d"]'`, `"[\"a,b\",\"c]d\"]"`, 0}, {"P64", `'(,"")'`, `"(,\"\")"`, 0}, {"S13", "textrange('a'," + letters + ")", `"[a,` + lettersJSON + `)"`, 0}}},
	{"floatrange", change.KindText, "json", 0, []typeValue{{"P64", "'[1.5,2.5]'", `"[1.5,2.5]"`, 0}, {"P64", "'[0.1,1e21]'", `"[0.1,1e+21]"`, 0}}},
	{"int4multirange", change.KindJSON, "multirange", 14, []typeValue{{"P65", "'{[1,3),[5,7)}'", `["[1,3)","[5,7)"]`, 0}, {"P65", "'{}'", `[]`, 0}, {"P65", "'{(,)}'", `["(,)"]`, 0}}},
	{"tsmultirange", change.KindJSON, "multirange", 14, []typeValue{{"P65", "'{[2020-01-01,2020-01-02),[2021-01-01,)}'", `["[\"2020-01-01 00:00:00\",\"2020-01-02 00:00:00\")","[\"2021-01-01 00:00:00\",)"]`, 0}}},
	{"int4multirange[]", change.KindJSON, "", 14, []typeValue{{"P65", `ARRAY['{[1,3)}'::int4multirange]`, `[["[1,3)"]]`, 0}}},
	{"textmultirange", change.KindJSON, "multirange", 14, []typeValue{{"P65", `textmultirange(textrange('a}','b"',  '[]'), textrange('x,','y)'))`, `["[a},\"b\"\"\"]","[\"x,\",\"y)\")"]`, 0}}},
}

// extensionDDL makes stand-ins for types of extensions that a test server does
// not have: they print what they are given, through an output function of the name.
func extensionDDL() (ddl string) {
	ddl = "CREATE SCHEMA ext;"
	for _, name := range []string{"geometry", "geography", "vector", "halfvec", "sparsevec", "odd"} {
		ddl += `CREATE TYPE ext.N; CREATE FUNCTION ext.N_in(cstring) RETURNS ext.N LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION ext.N_out(ext.N) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'; CREATE TYPE ext.N (INPUT = ext.N_in, OUTPUT = ext.N_out, LIKE = text);`
		ddl = replaceN(ddl, name)
	}
	return ddl + "CREATE DOMAIN ext.dom_odd AS ext.odd;"
}

// extensionCases are of those stand-ins, in the text that the extension prints.
var extensionCases = []typeCase{
	{"ext.geometry", change.KindJSON, "", 0, []typeValue{
		{"P73", "'0101000020E6100000000000000000F03F0000000000000040'", `{"type":"Point","coordinates":[1,2]}`, 0},
		{"P74", "'0101000020730C0000000000000000F03F0000000000000040'", `{"type":"Point","coordinates":[1,2],"srid":3187}`, 0},
		{"P74", "'0101000000000000000000F03F0000000000000040'", `{"type":"Point","coordinates":[1,2]}`, 0},
		{"P74", "'00000000013FF00000000000004000000000000000'", `{"type":"Point","coordinates":[1,2]}`, 0},
		{"P74", "'0101000080000000000000F03F00000000000000409A9999999999B93F'", `{"type":"Point","coordinates":[1,2,0.1]}`, 0},
		{"P74", "'01010000C0000000000000F03F00000000000000409A9999999999B93F0000000000000040'", `{"type":"Point","coordinates":[1,2,0.1]}`, 0},
		{"P74", "'0101000040000000000000F03F00000000000000409A9999999999B93F'", `{"type":"Point","coordinates":[1,2]}`, 0},
		{"P74", "'0101000020E6100000000000000000F87F000000000000F87F'", `{"type":"Point","coordinates":[]}`, 0},
		{"P74", "'010200000000000000'", `{"type":"LineString","coordinates":[]}`, 0},
		{"P74", "'01020000000200000000000000000000000000000000000000000000000000F03F000000000000F03F'", `{"type":"LineString","coordinates":[[0,0],[1,1]]}`, 0},
		{"P74", "'0103000000010000000400000000000000000000000000000000000000000000000000F03F0000000000000000000000000000F03F000000000000F03F00000000000000000000000000000000'",
			`{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}`, 0},
		{"P74", "'0104000020730C000002000000010100000000000000000000000000000000000000010100000000000000000000400000000000000840'", `{"type":"MultiPoint","coordinates":[[0,0],[2,3]],"srid":3187}`, 0},
		{"P74", "'0107000020730C000002000000010100000000000000000000000000000000000000010200000000000000'",
			`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[0,0]},{"type":"LineString","coordinates":[]}],"srid":3187}`, 0},
		{"K16", "'010800000000000000'", `"010800000000000000"`, 0}, {"K16", "'POINT(1 2)'", `"POINT(1 2)"`, 0}}},
	{"ext.geography", change.KindJSON, "", 0, []typeValue{{"P74", "'0101000020E6100000000000000000F03F0000000000000040'", `{"type":"Point","coordinates":[1,2]}`, 0}}},
	{"ext.geometry[]", change.KindJSON, "", 0, []typeValue{{"P74", "'{0101000000000000000000F03F0000000000000040}'", `[{"type":"Point","coordinates":[1,2]}]`, 0}}},
	{"ext.vector", change.KindJSON, "", 0, []typeValue{{"K15", "'[1,2.5,-3]'", "[1,2.5,-3]", 0}, {"K15", "'[0.1,1e+21,1e-07,16777216]'", "[0.1,1e+21,1e-7,16777216]", 0}, {"K16", "'1;2'", `"1;2"`, 0}}},
	{"ext.halfvec", change.KindJSON, "", 0, []typeValue{{"K15", "'[0.099975586]'", "[0.099975586]", 0}}},
	{"ext.sparsevec", change.KindJSON, "", 0, []typeValue{{"K15", "'{1:1.5,3:2}/5'", `{"dim":5,"values":{"1":1.5,"3":2}}`, 0}, {"K15", "'{}/3'", `{"dim":3,"values":{}}`, 0}}},
	{"ext.odd", change.KindText, "", 0, []typeValue{{"K16", `'any "text"'`, `"any \"text\""`, 0}}},
	{"ext.dom_odd", change.KindText, "", 0, []typeValue{{"K16", "'x'", `"x"`, 0}}},
	{"ext.odd[]", change.KindJSON, "", 0, []typeValue{{"K16", `'{"a b",c}'`, `["a b","c"]`, 0}}},
}

// postgisCases and pgvectorCases are of the extensions themselves, where the server has them.
var postgisCases = []typeCase{
	{"gis.geometry", change.KindJSON, "geojson", 0, []typeValue{
		{"P73", "'SRID=4326;POINT(1 2)'", `{"type":"Point","coordinates":[1,2]}`, 0}, {"P74", "'SRID=3187;POINT(1 2)'", `{"type":"Point","coordinates":[1,2],"srid":3187}`, 0},
		{"P74", "'POINT Z (1 2 3.5)'", `{"type":"Point","coordinates":[1,2,3.5]}`, 0}, {"P74", "'POINT M (1 2 3)'", `{"type":"Point","coordinates":[1,2]}`, 0},
		{"P74", "'SRID=3187;POINT ZM (1 2 3 4)'", `{"type":"Point","coordinates":[1,2,3],"srid":3187}`, 0}, {"P74", "'POINT EMPTY'", `{"type":"Point","coordinates":[]}`, 0},
		{"P74", "'LINESTRING EMPTY'", `{"type":"LineString","coordinates":[]}`, 0}, {"P74", "'LINESTRING(0 0,0.1 -1e-5)'", `{"type":"LineString","coordinates":[[0,0],[0.1,-0.00001]]}`, 0},
		{"P74", "'POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))'", `{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,0]],[[1,1],[2,1],[2,2],[1,1]]]}`, 0},
		{"P74", "'POLYGON EMPTY'", `{"type":"Polygon","coordinates":[]}`, 0}, {"P74", "'MULTIPOINT(0 0,1 1)'", `{"type":"MultiPoint","coordinates":[[0,0],[1,1]]}`, 0},
		{"P74", "'MULTILINESTRING Z ((0 0 1,1 1 1),(2 2 1,3 3 1))'", `{"type":"MultiLineString","coordinates":[[[0,0,1],[1,1,1]],[[2,2,1],[3,3,1]]]}`, 0},
		{"P74", "'SRID=3187;MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))'", `{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,5]]]],"srid":3187}`, 0},
		{"P74", "'GEOMETRYCOLLECTION EMPTY'", `{"type":"GeometryCollection","geometries":[]}`, 0}}},
	{"gis.geometry(PointZM,3187)", change.KindJSON, "geojson", 0, []typeValue{{"P74", "'SRID=3187;POINT ZM (1 2 3 4)'", `{"type":"Point","coordinates":[1,2,3],"srid":3187}`, 0}}},
	{"gis.geography", change.KindJSON, "geography", 0, []typeValue{{"P74", "'POINT(-71.1 42.3)'", `{"type":"Point","coordinates":[-71.1,42.3]}`, 0}}},
	{"gis.geometry", change.KindJSON, "", 0, []typeValue{
		{"P74", "'SRID=3187;GEOMETRYCOLLECTION(POINT(0 0),GEOMETRYCOLLECTION(POINT(1 1)))'",
			`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[0,0]},{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,1]}]}],"srid":3187}`, 0},
		{"K16", "'CIRCULARSTRING(0 0,1 1,2 0)'", `"0108000000030000000000000000000000000000000000000000000000` + `0000F03F000000000000F03F00000000000000400000000000000000"`, 0}}},
	{"gis.box2d", change.KindText, "json", 0, []typeValue{{"K14", "'BOX(0 0,1 1)'", `"BOX(0 0,1 1)"`, 0}}},
}

var pgvectorCases = []typeCase{
	{"vec.vector", change.KindJSON, "text", 0, []typeValue{{"K15", "'[1,2.5,-3]'", "[1,2.5,-3]", 0}}},
	{"vec.vector(2)", change.KindJSON, "", 0, []typeValue{{"K15", "'[0.1,1e21]'", "[0.1,1e+21]", 0}}},
	{"vec.halfvec(2)", change.KindJSON, "text", 0, []typeValue{{"K15", "'[1.5,2]'", "[1.5,2]", 0}}},
	{"vec.sparsevec(5)", change.KindJSON, "", 0, []typeValue{{"K15", "'{1:1.5,3:2}/5'", `{"dim":5,"values":{"1":1.5,"3":2}}`, 0}}},
}

// contribDDL makes the extensions of contribCases.
const contribDDL = `CREATE SCHEMA hs; CREATE EXTENSION hstore SCHEMA hs; CREATE EXTENSION citext SCHEMA hs; CREATE EXTENSION ltree SCHEMA hs; CREATE EXTENSION isn SCHEMA hs;
CREATE EXTENSION cube SCHEMA hs; CREATE EXTENSION seg SCHEMA hs; CREATE EXTENSION intarray SCHEMA hs; CREATE DOMAIN hs.dom_hs AS hs.hstore; CREATE DOMAIN hs.dom_ci AS hs.citext;`

var contribCases = []typeCase{
	{"hs.hstore", change.KindJSON, "hstore", 0, []typeValue{{"K11", `'a=>1, "b\"c"=>NULL, d=>"x y"'`, `{"a":"1","d":"x y","b\"c":null}`, 0}, {"K11", "''", "{}", 0}, {"K11", `'"a=>b"=>"c, d", ""=>"", n=>"NULL"'`, `{"":"","n":"NULL","a=>b":"c, d"}`, 0},
		{"S13", "hs.hstore('a', " + letters + ")", `{"a":"` + lettersJSON + `"}`, 0}}},
	{"hs.dom_hs", change.KindJSON, "hstore", 0, []typeValue{{"K11", "'a=>1'", `{"a":"1"}`, 0}}},
	{"hs.hstore[]", change.KindJSON, "", 0, []typeValue{{"K11", `ARRAY['a=>1, b=>"x \"y\""'::hs.hstore]`, `[{"a":"1","b":"x \"y\""}]`, 0}}},
	{"hs.citext", change.KindText, "json", 0, []typeValue{{"P28", "'Hello'", `"Hello"`, 0}, {"P28", "'hELLO'", `"hELLO"`, 0}}},
	{"hs.dom_ci", change.KindText, "json", 0, []typeValue{{"P28", "'Hello'", `"Hello"`, 0}}},
	{"hs.citext[]", change.KindJSON, "compact", 0, []typeValue{{"P28", "'{Hello,hello}'", `["Hello","hello"]`, 0}}},
	{"hs.ltree", change.KindText, "json", 0, []typeValue{{"P67", "'Top.Collections.X'", `"Top.Collections.X"`, 0}}},
	{"hs.ltree[]", change.KindJSON, "compact", 0, []typeValue{{"P67", "'{Top.X,\"\"}'", `["Top.X",""]`, 0}}},
	{"hs.lquery", change.KindText, "json", 0, []typeValue{{"P67", "'Top.*'", `"Top.*"`, 0}}},
	{"hs.isbn", change.KindText, "json", 0, []typeValue{{"P67", "'978-0-393-04002-9'", `"0-393-04002-X"`, 0}}},
	{"hs.ean13", change.KindText, "json", 0, []typeValue{{"P67", "'978-0-393-04002-9'", `"978-0-393-04002-9"`, 0}}},
	{"hs.cube", change.KindText, "json", 0, []typeValue{{"P67", "'(1,2),(3,4)'", `"(1, 2),(3, 4)"`, 0}}},
	{"hs.seg", change.KindText, "json", 0, []typeValue{{"P67", "'1.50 .. 2'", `"1.50 .. 2"`, 0}}},
	{"hs.query_int", change.KindText, "json", 0, []typeValue{{"P67", "'1&(2|3)'", `"1 & ( 2 | 3 )"`, 0}}},
}
