package sqldriver

import "strings"

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// reserved words are never names unless quoted: those that SQL's own grammar
// needs in and around expressions (the reserved words of PostgreSQL), and the
// operators of the subset.
var reserved = wordSet(`ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC BETWEEN BOTH CASE CAST CHECK COLLATE COLUMN
	CONSTRAINT CREATE CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEFAULT
	DEFERRABLE DESC DISTINCT DO ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH FOR FOREIGN FROM GRANT GROUP HAVING ILIKE IN
	INITIALLY INTERSECT INTO IS LATERAL LEADING LIKE LIMIT LOCALTIME LOCALTIMESTAMP NOT NULL OFFSET ON ONLY OR
	ORDER PLACING PRIMARY REFERENCES REGEXP RETURNING RLIKE SELECT SESSION_USER SIMILAR SOME SYMMETRIC TABLE THEN TO
	TRAILING TRUE UNION UNIQUE UNKNOWN USER USING VARIADIC WHEN WHERE WINDOW WITH XOR`)

// operators are the reserved words with a meaning in the subset.
var operators = wordSet(`AND OR NOT IS IN BETWEEN LIKE ILIKE CASE WHEN THEN ELSE END`)

// excluded names a construct outside the subset, with the way out.
var excluded = map[string][2]string{
	"SELECT":            {"a subquery is not part of an expression", "use nest to join another table"},
	"EXISTS":            {"a subquery is not part of an expression", "use nest to join another table"},
	"WITH":              {"a subquery is not part of an expression", "use nest to join another table"},
	"UNION":             {"a subquery is not part of an expression", "use nest to join another table"},
	"ANY":               {"ANY is not supported", "write IN (…)"},
	"SOME":              {"SOME is not supported", "write IN (…)"},
	"ALL":               {"ALL is not supported", "write the comparisons out, joined by AND"},
	"COLLATE":           {"COLLATE is not supported: text compares by bytes", "use LOWER(x) to ignore case"},
	"SIMILAR":           {"SIMILAR TO is not supported", "use LIKE or ILIKE"},
	"REGEXP":            {"regular expressions are not supported", "use LIKE or ILIKE"},
	"RLIKE":             {"regular expressions are not supported", "use LIKE or ILIKE"},
	"XOR":               {"XOR is not supported", "write a <> b, or (a) IS DISTINCT FROM (b)"},
	"ARRAY":             {"arrays are not supported", "write IN (…)"},
	"CURRENT_DATE":      {"an expression has no clock: its value would change without a change of the row", "compare with a constant, or filter when reading"},
	"CURRENT_TIME":      {"an expression has no clock: its value would change without a change of the row", "compare with a constant, or filter when reading"},
	"CURRENT_TIMESTAMP": {"an expression has no clock: its value would change without a change of the row", "compare with a constant, or filter when reading"},
	"LOCALTIME":         {"an expression has no clock: its value would change without a change of the row", "compare with a constant, or filter when reading"},
	"LOCALTIMESTAMP":    {"an expression has no clock: its value would change without a change of the row", "compare with a constant, or filter when reading"},
}

// literalTypes may stand before a string to make it a typed literal.
var literalTypes = wordSet(`DATE TIME TIMESTAMP TIMESTAMPTZ TIMETZ UUID`)
