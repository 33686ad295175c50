package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
)

// testColumns and testRow are what the tables below are evaluated over.
var testColumns = []Column{
	{Name: "id", Kind: change.KindInt, SourceType: "bigint"},
	{Name: "qty", Kind: change.KindInt, SourceType: "integer"},
	{Name: "big", Kind: change.KindUint, SourceType: "bigint unsigned"},
	{Name: "price", Kind: change.KindDecimal, SourceType: "numeric(10,2)"},
	{Name: "ratio", Kind: change.KindFloat64, SourceType: "double precision"},
	{Name: "small", Kind: change.KindFloat32, SourceType: "real"},
	{Name: "status", Kind: change.KindText, SourceType: "text"},
	{Name: "email", Kind: change.KindText, SourceType: "citext", Fold: true},
	{Name: "code", Kind: change.KindText, SourceType: "character(5)"},
	{Name: "approved", Kind: change.KindBool, SourceType: "boolean"},
	{Name: "day", Kind: change.KindDate, SourceType: "date"},
	{Name: "at", Kind: change.KindTimestamp, SourceType: "timestamp without time zone"},
	{Name: "seen", Kind: change.KindTimestampTZ, SourceType: "timestamp with time zone"},
	{Name: "data", Kind: change.KindJSON, SourceType: "jsonb"},
	{Name: "uid", Kind: change.KindUUID, SourceType: "uuid"},
	{Name: "raw", Kind: change.KindBytes, SourceType: "bytea"},
	{Name: "opens", Kind: change.KindTime, SourceType: "time without time zone"},
	{Name: "span", Kind: change.KindInterval, SourceType: "interval"},
	{Name: "order", Kind: change.KindInt, SourceType: "integer"},
	{Name: "Mixed", Kind: change.KindInt, SourceType: "integer"},
	{Name: "none", Kind: change.KindInt, SourceType: "integer"},
	{Name: "gone", Kind: change.KindText, SourceType: "text"},
	{Name: "maybe", Kind: change.KindBool, SourceType: "boolean"},
}

func testRow() []change.Value {
	date := func(s string) change.Value { v, _ := parseDate(s); return v }
	stamp := func(s string, zoned bool) change.Value { v, _ := parseTimestamp(s, zoned); return v }
	clock, _ := parseTime("09:30:00")
	uid, _ := parseUUID("c0ffee00-0000-4000-8000-000000000001")
	return []change.Value{
		change.Int(1), change.Int(4), change.Uint(18446744073709551615), change.Decimal([]byte("1.10")), change.Float64(0.1), change.Float32(0.1),
		change.Text("Draft"), change.Text("Ann@Example.org"), change.Text("ab   "), change.Bool(true), date("2024-02-29"),
		stamp("2024-02-29 12:34:56.5", false), stamp("2024-02-29T12:34:56.5Z", true),
		change.JSON([]byte(`{"a": {"b": [1, "two", 3.10, null]}, "n": 9007199254740993, "é": "\u00e9\ud83d\ude00\n", "a.b": true}`)), uid,
		change.Bytes([]byte{0, 255}), clock, change.Interval(0, 1, 0), change.Int(7), change.Int(8), change.Null, change.UnchangedValue, change.Null,
	}
}

func TestEval(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		// equality is by bytes, names fold only when unquoted
		{"status = 'Draft'", "true"}, {"status = 'draft'", "false"}, {"'a' = 'A'", "false"}, {"\"status\" <> 'x'", "true"}, {"`status` != 'x'", "true"},
		{"STATUS = 'Draft'", "true"}, {"mixed = 8", "true"}, {`"order" = 7`, "true"}, {"email = 'ann@example.ORG'", "true"}, {"email LIKE 'ANN%'", "true"},
		{"email IN ('x', 'ANN@EXAMPLE.ORG')", "true"}, {"code = 'ab'", "true"}, {"code || 'x'", "abx"}, {"length(code)", "2"}, {"code", "ab   "}, {"code IN ('ab')", "true"},
		{"'it''s'", "it's"}, {`'a\b'`, `a\b`}, {"'日本' = '日本'", "true"},
		// numbers are exact over all kinds
		{"big = 18446744073709551615", "true"}, {"big > 18446744073709551614", "true"}, {"big > 9223372036854775808", "true"}, {"big < 18446744073709551616", "true"},
		{"big + 1", "18446744073709551616"}, {"price = 1.1", "true"}, {"price = 1.10", "true"}, {"price", "1.10"}, {"price + 1.1", "2.20"}, {"price * price", "1.2100"},
		{"price IN (1.1000, 2)", "true"}, {"ratio = 0.1", "true"}, {"small = 0.1", "true"}, {"small = ratio", "true"}, {"ratio > 0.10000000000000000001", "false"},
		{"ratio < 0.10000000000000000001", "true"}, {"9223372036854775807 < 9223372036854775808", "true"}, {"9223372036854775809 = 9223372036854775809.0", "true"},
		{"9007199254740993 = 9007199254740992.0", "false"}, {"-9223372036854775808 < -9223372036854775807", "true"}, {"- 9223372036854775808", "-9223372036854775808"},
		{"1e400 > 1e399", "true"}, {"1.5e3", "1500"}, {"1.50e1", "15.0"}, {"15e-4", "0.0015"}, {".5 + 1.", "1.5"}, {"0.1 + 0.2 = 0.3", "true"},
		{"7 / 2", "3"}, {"-7 / 2", "-3"}, {"7 % -4", "3"}, {"-7 % 4", "-3"}, {"10 / 4.0", "2.5000000000000000"}, {"1 / 3.0", "0.33333333333333333333"},
		{"qty / 0", "null"}, {"price / 0", "null"}, {"ratio / 0", "null"}, {"9223372036854775807 + qty", "null"}, {"coalesce(qty / 0, 5)", "5"}, {"2 + 3 * 4", "14"}, {"-(2 + 3) * 4", "-20"},
		{"ratio + 1", "1.1"}, {"- price", "-1.10"}, {"- -qty", "4"}, {"abs(-5)", "5"}, {"round(4.495, 2)", "4.50"}, {"round(-2.5)", "-3"}, {"round(2.5)", "3"}, {"round(1234, -2)", "1200"}, {"round(qty, 2)", "4.00"},
		{"floor(-1.5)", "-2"}, {"ceil(-1.5)", "-1"}, {"ceiling(1.2)", "2"}, {"mod(7, 4)", "3"},
		// three-valued logic
		{"none = 1", "null"}, {"none <> 1", "null"}, {"none IS NULL", "true"}, {"none IS NOT NULL", "false"}, {"none IS DISTINCT FROM 1", "true"}, {"none IS NOT DISTINCT FROM NULL", "true"},
		{"NULL = NULL", "null"}, {"qty IN (1, NULL)", "null"}, {"qty IN (4, NULL)", "true"}, {"qty NOT IN (1, NULL)", "null"}, {"none NOT IN (1)", "null"}, {"maybe IS UNKNOWN", "true"},
		{"maybe", "null"}, {"NOT maybe", "null"}, {"maybe OR approved", "true"}, {"maybe AND approved", "null"}, {"maybe IS TRUE", "false"}, {"maybe IS NOT TRUE", "true"}, {"approved = true", "true"},
		{"qty BETWEEN 1 AND 4", "true"}, {"qty NOT BETWEEN 1 AND 4", "false"}, {"none BETWEEN 1 AND 2", "null"}, {"qty BETWEEN none AND 1", "false"}, {"NULL", "null"}, {"qty + NULL", "null"},
		// precedence
		{"NOT qty = 5 AND approved", "true"}, {"true OR true AND false", "true"}, {"NOT approved OR approved", "true"}, {"qty = 4 IS TRUE", "true"}, {"(qty = 4) = approved", "true"},
		// dates
		{"day = '2024-02-29'", "true"}, {"day < '2024-03-01'", "true"}, {"day > '0044-03-15 BC'", "true"}, {"day < 'infinity'", "true"}, {"day > '-infinity'", "true"}, {"at > day", "true"},
		{"at = '2024-02-29 12:34:56.5'", "true"}, {"at >= DATE '2024-02-29'", "true"}, {"seen = '2024-02-29T13:34:56.500+01:00'", "true"}, {"seen > '2024-02-29'", "true"}, {"day = DATE '2024-02-29'", "true"},
		{"extract(year FROM day)", "2024"}, {"EXTRACT('month' FROM at)", "2"}, {"extract(second from at)", "56.500000"}, {"extract(dow from day)", "4"}, {"extract(week from day)", "9"}, {"extract(epoch from seen)", "1709210096.500000"},
		{"extract(year from DATE '0044-03-15 BC')", "-44"}, {"cast(at as date)", "2024-02-29"}, {"cast(day as timestamp)", "2024-02-29T00:00:00"}, {"cast(seen as timestamp)", "2024-02-29T12:34:56.5"}, {"opens < '10:00'", "true"}, {"span = span", "true"},
		{"extract(year from cast('infinity' as date))", "null"}, {"cast(at as time)", "12:34:56.5"},
		// text
		{"status || '-' || qty", "Draft-4"}, {"concat(status, NULL, qty)", "Draft4"}, {"status || NULL", "null"}, {"lower(status)", "draft"}, {"upper('é')", "É"}, {"length('日本')", "2"}, {"octet_length('日本')", "6"},
		{"left(status, 2)", "Dr"}, {"right(status, -2)", "aft"}, {"substring(status from 2 for 3)", "raf"}, {"substring(status, 0, 2)", "D"}, {"substr(status, 3)", "aft"}, {"replace(status, 'ra', '_')", "D_ft"}, {"trim('  a ')", "a"},
		{"trim(leading 'x' from 'xax')", "ax"}, {"trim('x' from 'xax')", "a"}, {"trim(both from ' a ')", "a"}, {"btrim('xax', 'x')", "a"}, {"ltrim('xax', 'x')", "ax"}, {"position('a' in status)", "3"}, {"strpos(status, 'a')", "3"}, {"position('z' in status)", "0"},
		{"status LIKE 'D%'", "true"}, {"status LIKE 'd%'", "false"}, {"status ILIKE 'd_AFT'", "true"}, {"status NOT LIKE '%x%'", "true"}, {"'50%' LIKE '50!%' ESCAPE '!'", "true"}, {"'50x' LIKE '50!%' ESCAPE '!'", "false"}, {`'a%' LIKE 'a\%'`, "true"}, {`'a\b' LIKE 'a\b' ESCAPE ''`, "true"},
		{"'abcabd' LIKE '%ab_'", "true"}, {"'日本語' LIKE '_本_'", "true"}, {"'aXbXc' LIKE 'a%b%c'", "true"}, {"'ab' LIKE 'ab%ab'", "false"}, {"'' LIKE '%'", "true"}, {"'' LIKE '_'", "false"},
		// choice
		{"CASE WHEN qty > 3 THEN 'many' WHEN none = 1 THEN 'x' ELSE 'few' END", "many"}, {"CASE qty WHEN 1 THEN 'a' WHEN 4 THEN 'd' END", "d"}, {"CASE WHEN false THEN 1 END", "null"}, {"CASE WHEN approved THEN 1 ELSE 2.5 END", "1"},
		{"coalesce(none, qty, 9)", "4"}, {"nullif(qty, 4)", "null"}, {"nullif(qty, 5)", "4"}, {"greatest(1, none, 3, 2)", "3"}, {"least('b', 'a')", "a"}, {"coalesce(day, '2020-01-01')", "2024-02-29"}, {"greatest(day, at)", "2024-02-29T12:34:56.5"},
		// casts
		{"cast('12' as int)", "12"}, {"cast(2.5 as int)", "3"}, {"cast(-2.5 as bigint)", "-3"}, {"cast(status as int)", "null"}, {"cast(qty as text)", "4"}, {"cast(price as decimal(5,1))", "1.1"}, {"cast(ratio as decimal)", "0.1"}, {"cast('1e3' as decimal)", "1000"},
		{"cast(qty as boolean)", "true"}, {"cast('no' as bool)", "false"}, {"cast('0.1' as double precision)", "0.1"}, {"cast(status as varchar(2))", "Dr"}, {"cast(uid as text)", "c0ffee00-0000-4000-8000-000000000001"}, {"cast(40000 + qty as smallint)", "null"}, {"cast(qty as timestamp) ", "!"},
		{"uid = 'C0FFEE00-0000-4000-8000-000000000001'", "true"}, {`raw = '\x00ff'`, "true"}, {"cast('18446744073709551615' as unsigned) = big", "true"}, {"length(raw)", "2"},
		// JSON
		{"data -> 'a' -> 'b' ->> 1", "two"}, {"data->'a'->'b'->>2", "3.10"}, {"data -> 'a' -> 'b' ->> 3", "null"}, {"(data -> 'a' -> 'b' -> 3) IS NULL", "false"}, {"data ->> 'n'", "9007199254740993"}, {"data ->> 'é'", "é😀\n"},
		{"data ->> 'missing'", "null"}, {"data ->> 'a.b' = 'true'", "true"}, {"data -> 'a' -> 'b' ->> -2", "3.10"}, {"data -> 'a'", `{"b": [1, "two", 3.10, null]}`}, {"cast(data ->> 'n' as bigint) + 1", "9007199254740994"},
		// what the source did not send counts only where it matters
		{"approved OR gone = 'x'", "true"}, {"gone = 'x' OR approved", "true"}, {"false AND gone = 'x'", "false"}, {"gone = 'x' AND false", "false"}, {"gone = 'x'", "unchanged"}, {"gone IS NULL", "unchanged"},
		{"maybe AND gone = 'x'", "unchanged"}, {"coalesce(qty, length(gone))", "4"}, {"CASE WHEN approved THEN 1 ELSE length(gone) END", "1"}, {"gone || 'x'", "unchanged"}, {"qty IN (length(gone), 4)", "true"}, {"gone IN ('a')", "unchanged"}, {"gone LIKE 'a%'", "unchanged"}, {"gone", "unchanged"},
	} {
		e, err := Compile(tt.src, testColumns)
		if tt.want == "!" {
			if err == nil {
				t.Errorf("%s: compiled, want an error", tt.src)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		got := evalText(e)
		if got != tt.want {
			t.Errorf("%s = %s, want %s", tt.src, got, tt.want)
		}
		again, err := Compile(e.String(), testColumns)
		if err != nil || again.String() != e.String() || evalText(again) != got {
			t.Errorf("%s: canonical text %s: %v", tt.src, e, err)
		}
	}
}

func evalText(e *Expr) string {
	v, err := e.Eval(testRow())
	switch {
	case errors.Is(err, ErrUnchanged):
		return "unchanged"
	case err != nil:
		return err.Error()
	}
	if !v.IsNull() && v.Kind() != e.Kind() {
		return "kind " + v.Kind().String() + " instead of " + e.Kind().String()
	}
	return string(change.AppendText(nil, v))
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		src    string
		offset int
		want   string // parts of the message, separated by |
	}{
		{"", 0, "empty"}, {"  ", 0, "empty"},
		{"statsu = 'x'", 0, `no column "statsu"|did you mean status?`}, {`qty = "draft"`, 6, `no column "draft"|single quotes`}, {"qty = draft", 6, `no column "draft"`},
		{"qty = 'abc'", 6, "int|'abc'|without quotes"}, {"qty = '5'", 6, "int|'5'"}, {"status = 5", 0, "text|int|CAST"}, {"approved = 'yes'", 11, "bool|TRUE"}, {"approved = 1", 0, "bool|int"},
		{"order = 1", 0, `ORDER is a reserved word|"order"`}, {"qty > 1 and group = 2", 12, `"group"`}, {"case = 1", 5, `CASE is a reserved word|"case"`}, {"end > 3", 0, `END is a reserved word|"end"`}, {"in = 3", 0, `"in"`},
		{"qty", 0, "condition|write \"qty\" <> 0"}, {"status", 0, "condition|text"}, {"qty AND approved", 0, "AND wants true or false|<> 0"}, {"NOT qty", 4, "NOT wants"},
		{"qty > 3; drop table x", 7, "one expression"}, {"qty > (SELECT 1)", 7, "subquery"}, {"EXISTS (SELECT 1)", 0, "subquery"}, {"qty > 1 -- x", 8, "comments"}, {"qty /* x */ > 1", 4, "comments"}, {"qty > 1 # x", 8, "comments"},
		{"qty > 1) or (1 = 1", 7, "never opened"}, {"(qty > 1", 0, "never closed"}, {"'abc", 0, "no end"}, {`"abc`, 0, "no end"}, {"qty >", 5, "too early"}, {"qty qty", 4, "not expected"}, {"p.qty = 1", 1, "dot"},
		{"now() > at", 0, "no function NOW|clock"}, {"at > CURRENT_TIMESTAMP", 5, "clock"}, {"count(qty) > 1", 0, "calc"}, {"lwoer(status) = 'x'", 0, "did you mean LOWER?"}, {"lower(status, 1) = 'x'", 0, "one argument"}, {"qty::text = '1'", 3, "CAST"},
		{"status ~ 'x'", 7, "LIKE"}, {"status REGEXP 'x'", 7, "LIKE"}, {"qty && 1", 4, "AND"}, {"qty == 1", 4, "write ="}, {"$1 = 2", 0, "parameters"}, {"@x = 2", 0, "variables"}, {"? = 2", 0, "parameters"}, {"status = E'x'", 9, "prefix"},
		{"1 < qty < 3", 0, "chained|AND"}, {"(1, 2) = (3, 4)", 1, "rows"}, {"day = '2024-02-30'", 6, "date|2024-05-31"}, {"day = 'yesterday'", 6, "date"}, {"at = '2024-01-01T00:00:00Z'", 5, "without a zone"}, {"at < seen", 0, "timestamp|timestamptz"}, {"day = 5", 0, "date|int"},
		{"day < '5874898-01-01'", 6, "date"}, {"at < '300000-01-01'", 5, "timestamp"}, {"data = 'x'", 7, "json|->>"}, {"data = data", 0, "json"}, {"status ->> 'x' = 'y'", 0, "json"}, {"data ->> status = 'y'", 9, "constant"}, {"uid = 'x'", 6, "uuid"}, {"raw = 'x'", 6, "bytes"},
		{"status + 1 > 2", 0, "||"}, {"day + 1 > day", 0, "EXTRACT"}, {"status LIKE 'a\\'", 12, "escape"}, {"status LIKE 'a' ESCAPE 'xy'", 23, "one ASCII"}, {"qty LIKE '4%'", 0, "CAST"}, {"cast(qty as money) = 1", 12, "types:"}, {"cast('x' as int) = 1", 5, "integer"}, {"cast(data as int) = 1", 5, "->>"},
		{"CASE WHEN approved THEN 1 ELSE 'x' END = 1", 31, "int|'x'"}, {"CASE WHEN approved THEN qty ELSE day END IS NULL", 33, "int|date"}, {"extract(century from day) = 1", 8, "fields:"}, {"extract(hour from day) = 1", 18, "no hour"}, {"INTERVAL '1 day' = span", 0, "intervals"}, {"qty = 1a", 6, "neither"},
		{"x'41' = raw", 0, "prefix"}, {"qty = 1 XOR approved", 8, "XOR"}, {"qty COLLATE x = 1", 4, "COLLATE"}, {"qty IN ()", 8, "not expected"}, {"qty IN (SELECT 1)", 8, "subquery"}, {"qty IS 5", 7, "IS stands before"}, {"status = 'a' 'b'", 13, "not expected"}, {"\x00", 0, "no meaning"}, {"a\xff", 1, "UTF-8"},
		{"round(ratio, 2) = 1", 6, "decimal"}, {"round(price, qty) = 1", 13, "constant"}, {"1e999999 > 1", 0, "131072"}, {"raw || 'x' = 'y'", 0, "bytes"}, {"{d '2024-01-01'} = day", 0, "no meaning"}, {"status = _utf8'x'", 14, "not expected"},
	} {
		_, err := CompilePredicate(tt.src, testColumns)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v, want an *Error", tt.src, err)
			continue
		}
		if e.Offset != tt.offset {
			t.Errorf("%q: at byte %d, want %d: %v", tt.src, e.Offset, tt.offset, err)
		}
		parts := strings.Split(tt.want, "|")
		if tt.want == "||" {
			parts = []string{"||"}
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v; want it to mention %q", tt.src, err, part)
			}
		}
	}
}

// TestTruthTables checks SQL's three-valued logic on all combinations, as columns and as literals.
func TestTruthTables(t *testing.T) {
	cols := []Column{{Name: "a", Kind: change.KindBool}, {Name: "b", Kind: change.KindBool}}
	values := []change.Value{change.Bool(false), change.Bool(true), change.Null}
	words := []string{"false", "true", "null"}
	tables := map[string]string{ // rows a = false, true, null; columns b the same
		"a AND b": "fff ftn fnn", "a OR b": "ftn ttt ntn", "a = b": "tfn ftn nnn", "a <> b": "ftn tfn nnn", "a < b": "ftn ffn nnn", "a >= b": "tfn ttn nnn",
		"a IS DISTINCT FROM b": "ftt tft ttf", "a IS NOT DISTINCT FROM b": "tff ftf fft", "NOT a": "ttt fff nnn", "a IS NULL": "fff fff ttt", "a IS NOT NULL": "ttt ttt fff",
		"a IS TRUE": "fff ttt fff", "a IS NOT TRUE": "ttt fff ttt", "a IS FALSE": "ttt fff fff", "a IS NOT FALSE": "fff ttt ttt", "a IS UNKNOWN": "fff fff ttt", "a IS NOT UNKNOWN": "ttt ttt fff",
		"a IN (b)": "tfn ftn nnn", "a NOT IN (b)": "ftn tfn nnn", "a BETWEEN b AND b": "tfn ftn nnn", "coalesce(a, b)": "fff ttt ftn", "nullif(a, b)": "nff tnt nnn",
		"CASE WHEN a THEN b ELSE a END": "fff ftn nnn", "greatest(a, b)": "ftf ttt ftn", "least(a, b)": "fff ftt ftn", "NOT (a AND b) = (NOT a OR NOT b)": "ttt ttn tnn",
	}
	letter := map[string]byte{"false": 'f', "true": 't', "null": 'n'}
	for src, want := range tables {
		e, err := CompilePredicate(src, cols)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		for i := range values {
			for j := range values {
				v, err := e.Eval([]change.Value{values[i], values[j]})
				if got := letter[string(change.AppendText(nil, v))]; err != nil || got != want[i*4+j] {
					t.Errorf("%s for a=%s b=%s: %c, %v; want %c", src, words[i], words[j], got, err, want[i*4+j])
				}
				keep, err := e.True([]change.Value{values[i], values[j]})
				if err != nil || keep != (want[i*4+j] == 't') {
					t.Errorf("%s for a=%s b=%s: True = %v, %v", src, words[i], words[j], keep, err)
				}
			}
		}
	}
}

func TestColumnsAndKind(t *testing.T) {
	e, err := Compile("coalesce(price, id) > qty and price > 0", testColumns)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Columns(); len(got) != 3 || got[0] != 0 || got[1] != 1 || got[2] != 3 {
		t.Errorf("Columns = %v, want [0 1 3]", got)
	}
	for src, want := range map[string]change.Kind{"qty + 1": change.KindInt, "qty + 1.0": change.KindDecimal, "big + 1": change.KindDecimal, "qty * ratio": change.KindFloat64, "NULL": change.KindText, "'x'": change.KindText,
		"data -> 'a'": change.KindJSON, "qty > 1": change.KindBool, "extract(epoch from at)": change.KindDecimal, "coalesce(none, 2.5)": change.KindDecimal, "max": 0} {
		e, err := Compile(src, testColumns)
		if (err != nil) != (want == 0) || err == nil && e.Kind() != want {
			t.Errorf("%s: kind %v, %v; want %v", src, e, err, want)
		}
	}
}

func TestCanonicalText(t *testing.T) {
	for _, pair := range [][2]string{
		{"status!='a'", "STATUS <> 'a'"}, {"`status` = 'a' and qty>1", `("status" = 'a') AND ("qty" > 1)`}, {"qty in(1,2)", `"qty" IN (1, 2)`}, {"price > 1e1", "price > 10e0"},
		{"day = '2024-2-29'", "day = DATE '2024-02-29'"}, {"maybe is unknown", "maybe IS NULL"}, {"qty between 1 and 2", "qty >= 1 and qty <= 2"},
	} {
		a, aerr := Compile(pair[0], testColumns)
		b, berr := Compile(pair[1], testColumns)
		if aerr != nil || berr != nil || a.String() != b.String() {
			t.Errorf("%s and %s: %v, %v (%v %v)", pair[0], pair[1], a, b, aerr, berr)
		}
	}
	a, _ := Compile("price = 1", testColumns)
	b, _ := Compile("price = 1.0", testColumns)
	if a.String() == b.String() {
		t.Errorf("1 and 1.0 have the same text %s", a)
	}
}

func TestFaults(t *testing.T) {
	e, err := CompilePredicate("10 / (qty - 4) > 1", testColumns)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if keep, err := e.True(testRow()); keep || err != nil {
			t.Fatalf("True = %v, %v; want false", keep, err)
		}
	}
	n, last := e.Faults()
	if n != 3 || last == nil || last.Offset != 0 || !strings.Contains(last.Error(), "division by zero") {
		t.Errorf("Faults = %d, %v; want 3 divisions by zero", n, last)
	}
}

// TestLongLiterals pushes 131,072 digits through comparison, arithmetic and back.
func TestLongLiterals(t *testing.T) {
	digits := strings.Repeat("7", 131072)
	cols := []Column{{Name: "n", Kind: change.KindDecimal}}
	row := []change.Value{dec(digits)}
	for src, want := range map[string]string{
		"n = " + digits: "true", "n > " + digits[1:]: "true", "n < " + digits + ".5": "true", "n <> " + digits[:131071] + "8": "true", "n - " + digits + " + 0.10": "0.10", "n IN (1, " + digits + ")": "true",
		"n": digits, "n + 0.1": digits + ".1", "n % 10": "7", "- n": "-" + digits, "n * 10": "null", "CAST(n AS text) = '" + digits + "'": "true", "CAST('" + digits + "' AS decimal) = n": "true", "n BETWEEN 1e131071 AND 9e131071": "true",
	} {
		e, err := Compile(src, cols)
		if err != nil {
			t.Errorf("%.40s: %v", src, err)
			continue
		}
		v, err := e.Eval(row)
		if got := string(change.AppendText(nil, v)); err != nil || got != want {
			t.Errorf("%.40s… = %.40s…, %v; want %.40s…", src, got, err, want)
		}
	}
	if _, err := Compile("n > 1e131072", cols); err == nil {
		t.Error("a literal of 131,073 digits was taken")
	}
}

// TestChain checks that a long condition compiles and runs.
func TestChain(t *testing.T) {
	e, err := CompilePredicate("qty = 0"+strings.Repeat(" OR qty = 4", 1500), testColumns)
	if err != nil {
		t.Fatal(err)
	}
	if keep, err := e.True(testRow()); !keep || err != nil {
		t.Errorf("True = %v, %v", keep, err)
	}
	if _, err := CompilePredicate("qty = 0"+strings.Repeat(" OR qty = 4", 5000), testColumns); err == nil || !strings.Contains(err.Error(), "IN (") {
		t.Errorf("a chain of 5000: %v; want it to mention IN", err)
	}
}
