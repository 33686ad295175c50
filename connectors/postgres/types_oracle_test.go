package postgres

import (
	"strconv"
	"strings"
)

// oracles write a value's canonical JSON by the server's own means, X being the
// value: to_json where TYPES.md follows it, else from the value's parts.
var oracles = map[string]string{
	"json":    "pg_catalog.to_json(X)::text",
	"compact": "pg_catalog.to_json(X)::text", // blanks outside strings are taken out
	"text":    "X::text",
	"string":  "pg_catalog.to_json(X::text)::text",
	"money":   "X::numeric::text",
	"bytea":   `'"' || replace(encode(X, 'base64'), chr(10), '') || '"'`,
	"float": `CASE WHEN X::text IN ('NaN', 'Infinity', '-Infinity') THEN to_json(X::text)::text WHEN X = 0 THEN X::text
		WHEN abs(X::text::numeric) >= 1e-6 AND abs(X::text::numeric) < 1e21 THEN trim_scale(X::text::numeric)::text
		ELSE regexp_replace(X::text, 'e([+-])0(\d)$', 'e\1\2') END`,
	"date": `CASE WHEN isfinite(X) THEN '"' || public.iso_year(CASE WHEN X < '0001-01-01' THEN -1 ELSE 1 END * split_part(X::text, '-', 1)::numeric)
		|| '-' || split_part(X::text, '-', 2) || '-' || left(split_part(X::text, '-', 3), 2) || '"' ELSE to_json(X::text)::text END`,
	"timestamp":   timestampOracle("X", ""),
	"timestamptz": timestampOracle("(X AT TIME ZONE 'UTC')", "Z"),
	"timetz":      `to_json(regexp_replace(X::text, '([+-]\d\d)$', '\1:00'))::text`,
	"multirange":  "CASE WHEN X IS NOT NULL THEN (SELECT '[' || coalesce(string_agg(to_json(r)::text, ','), '') || ']' FROM unnest(X) r) END",
	"hstore":      "hs.hstore_to_json(X)::text",
	"geojson":     "left(gis.ST_AsGeoJSON(X, 15, 0), -1) || CASE WHEN gis.ST_SRID(X) IN (0, 4326) THEN '' ELSE ',\"srid\":' || gis.ST_SRID(X) END || '}'",
	"geography":   "gis.ST_AsGeoJSON(X, 15, 0)",
}

// oracleDDL has what oracles call.
const oracleDDL = `CREATE FUNCTION public.iso_year(y numeric) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN y <= -2 THEN '-' || lpad((-y - 1)::text, 4, '0')
	WHEN y = -1 THEN '0000' WHEN y > 9999 THEN '+' || y ELSE lpad(y::text, 4, '0') END $$;
CREATE FUNCTION public.iso_year(y float8) RETURNS text LANGUAGE sql AS $$ SELECT public.iso_year(y::numeric) $$;`

func timestampOracle(x, zone string) string {
	return strings.NewReplacer("T0", x, "ZONE", zone).Replace(`CASE WHEN isfinite(T0) THEN '"' || public.iso_year(extract(year FROM T0)) || to_char(T0, '-MM-DD"T"HH24:MI:SS')
		|| regexp_replace(to_char(T0, '.US'), '\.?0+$', '') || 'ZONE"' ELSE to_json(T0::text)::text END`)
}

// oracleSQL returns the oracle's expression for a column.
func oracleSQL(name, column string) string {
	if name == "" {
		return "NULL::text"
	}
	return replaceWord(oracles[name], "X", column)
}

// replaceWord replaces a word of one capital letter that stands alone.
func replaceWord(text, word, by string) string {
	var b strings.Builder
	isWord := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z')
	}
	for i := range len(text) {
		if text[i:i+1] == word && !isWord(i-1) && !isWord(i+1) {
			b.WriteString(by)
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func replaceN(text, name string) string {
	return strings.NewReplacer("ext.N", "ext."+name).Replace(text)
}

// sameFloat reports whether two texts are the same float of that width and ours
// is the shorter one: the server does not take the shortest digits where they
// lie half-way between two floats, though they are read back as the right one.
func sameFloat(ours, servers, typ string) bool {
	bits := 64
	if typ == "float4" {
		bits = 32
	}
	a, err1 := strconv.ParseFloat(ours, bits)
	b, err2 := strconv.ParseFloat(servers, bits)
	digits := func(s string) int { return len(strings.TrimRight(strings.Trim(s, "-"), "0")) }
	return err1 == nil && err2 == nil && a == b && digits(ours) < digits(servers)
}
