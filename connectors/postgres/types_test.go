package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// hostileSettings make the database and the role say otherwise about every
// setting that shapes text.
const hostileSettings = `DO $$ DECLARE s text; BEGIN
FOREACH s IN ARRAY ARRAY['DateStyle = ''SQL, DMY''', 'IntervalStyle = postgres_verbose', 'TimeZone = ''Asia/Kolkata''', 'bytea_output = escape', 'extra_float_digits = -3',
	'search_path = ''public, hs, ext, gis, vec''', 'xmloption = document', 'quote_all_identifiers = on', 'lc_monetary = ''C.UTF-8'''] LOOP
  EXECUTE format('ALTER DATABASE %I SET %s', current_database(), s);
  EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %s', current_user, current_database(), s);
END LOOP; END $$`

// typeColumn is one value as a column of a test table.
type typeColumn struct {
	typeCase
	typeValue
}

// columnsPerTable keeps rows below the size of a page.
const columnsPerTable = 40

// TestTypes captures every value by the snapshot, by an insert, by an update, as a
// column that an update left unchanged, as the row before under REPLICA IDENTITY
// FULL and by a second snapshot: all records are the same bytes, and what the
// table of cases and the server itself say.
func TestTypes(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) { testTypes(t, major) })
	}
}

func testTypes(t *testing.T, major int) {
	dsn := testkit.PostgresVersion(t, major)
	ddl := []string{typesDDL, oracleDDL, extensionDDL(), hostileSettings}
	cases := slices.Concat(typeCases, nestedCases, extensionCases)
	if hasExtensions(t, dsn, contrib...) {
		ddl, cases = append(ddl, contribDDL), append(cases, contribCases...)
	}
	if hasExtensions(t, dsn, "postgis") {
		ddl, cases = append(ddl, "CREATE SCHEMA gis; CREATE EXTENSION postgis SCHEMA gis"), append(cases, postgisCases...)
	}
	if hasExtensions(t, dsn, "vector") {
		ddl, cases = append(ddl, "CREATE SCHEMA vec; CREATE EXTENSION vector SCHEMA vec"), append(cases, pgvectorCases...)
	}
	var tables [][]typeColumn
	for columns := range slices.Chunk(columnsOf(cases, major), columnsPerTable) {
		tables = append(tables, columns)
	}
	for i, columns := range tables {
		ddl = append(ddl, createTyped(i, columns), insertTyped(i, columns))
	}
	r := newCaptureRig(t, dsn, ddl...)
	r.opts.Tables = []string{"public.t*"}
	r.con = New(r.opts)
	r.start()
	r.settled()
	for i, columns := range tables {
		set, null := make([]string, len(columns)), make([]string, len(columns))
		for j, c := range columns {
			set[j], null[j] = fmt.Sprintf("c%d = %s", j, c.expression()), fmt.Sprintf("c%d = NULL", j)
		}
		table := fmt.Sprintf("t%d", i)
		r.exec(`SET search_path = public, hs, ext, gis, vec; SET xmloption = content; DELETE FROM `+table, insertTyped(i, columns), "UPDATE "+table+" SET "+strings.Join(null, ", "),
			"SET search_path = public, hs, ext, gis, vec; SET xmloption = content; UPDATE "+table+" SET "+strings.Join(set, ", "), "UPDATE "+table+" SET n = 0",
			"ALTER TABLE "+table+" REPLICA IDENTITY FULL", "UPDATE "+table+" SET n = 0")
	}
	r.settled()
	for i := range tables {
		topic := change.TableTopic(r.opts.Source, "public", fmt.Sprintf("t%d", i))
		if err := r.src.(*source).Snapshot(topic, ""); err != nil {
			t.Fatal(err)
		}
	}
	r.settled()
	for i, columns := range tables {
		r.checkTyped(i, columns)
	}
}

// contrib are the extensions that contribDDL makes.
var contrib = []string{"hstore", "citext", "ltree", "isn", "cube", "seg", "intarray"}

// hasExtensions reports whether the server has all of them installed.
func hasExtensions(t *testing.T, dsn string, names ...string) bool {
	t.Helper()
	var n int
	if err := testkit.Connect(t, dsn).QueryRow(t.Context(), "SELECT count(*) FROM pg_available_extensions WHERE name = ANY($1)", names).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n == len(names)
}

func columnsOf(cases []typeCase, major int) (columns []typeColumn) {
	for _, c := range cases {
		for _, v := range c.values {
			if max(c.since, v.since) <= major {
				columns = append(columns, typeColumn{c, v})
			}
		}
	}
	return columns
}

// expression is the value's with its type.
func (c *typeColumn) expression() string {
	if strings.HasPrefix(c.sql, "'") || strings.HasPrefix(c.sql, "E'") || strings.HasPrefix(c.sql, "$$") {
		return c.sql + "::" + c.typ
	}
	return c.sql
}

// createTyped makes table i; values that are large are stored out of line and uncompressed.
func createTyped(i int, columns []typeColumn) string {
	var list []string
	for j, c := range columns {
		list = append(list, fmt.Sprintf("c%d %s", j, c.typ))
	}
	return fmt.Sprintf(`SET search_path = public, hs, ext, gis, vec; CREATE TABLE t%[1]d (id int PRIMARY KEY, n int, %[2]s);
		DO $$ DECLARE a text; BEGIN FOR a IN SELECT attname FROM pg_attribute WHERE attrelid = 't%[1]d'::regclass AND attnum > 0 AND attlen = -1 AND attstorage <> 'p' LOOP
			EXECUTE format('ALTER TABLE t%[1]d ALTER %%I SET STORAGE EXTERNAL', a); END LOOP; END $$`, i, strings.Join(list, ", "))
}

func insertTyped(i int, columns []typeColumn) string {
	var values []string
	for _, c := range columns {
		values = append(values, c.expression())
	}
	return fmt.Sprintf("SET search_path = public, hs, ext, gis, vec; SET xmloption = content; INSERT INTO t%d VALUES (1, 0, %s)", i, strings.Join(values, ", "))
}

// checkTyped looks at the records of table i in the log.
func (r *captureRig) checkTyped(i int, columns []typeColumn) {
	t := r.t
	t.Helper()
	table := fmt.Sprintf("t%d", i)
	records := r.records(table)
	wantOps := []change.Op{change.OpRead, change.OpDelete, change.OpInsert, change.OpUpdate, change.OpUpdate, change.OpUpdate, change.OpUpdate, change.OpRead}
	var ops []change.Op
	for _, rec := range records {
		ops = append(ops, rec.op)
	}
	if !slices.Equal(ops, wantOps) {
		t.Fatalf("%s: the log has %v, want %v", table, ops, wantOps)
	}
	read := records[0].after
	got, err := read.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	large := 0
	for j, c := range columns {
		text := string(change.AppendJSON(nil, got[j+2]))
		if text != c.json {
			t.Errorf("%s %s %.200s = %.200s, want %.200s", c.id, c.typ, c.sql, text, c.json)
		}
		if kind := read.Schema.Columns[j+2].Kind; kind != c.kind {
			t.Errorf("%s %s: kind %s, want %s", c.id, c.typ, kind, c.kind)
		}
		if strings.Contains(c.sql, "repeat(") { // stored out of line
			large++
		}
	}
	for j, oracle := range r.askOracle(table, columns) {
		if oracle != "" && oracle != columns[j].json {
			t.Errorf("%s %s %.200s: the server says %.200s, the table of cases %.200s", columns[j].id, columns[j].typ, columns[j].sql, oracle, columns[j].json)
		}
	}
	same := func(what string, row change.Row) {
		t.Helper()
		if !bytes.Equal(row.Data, read.Data) {
			t.Errorf("%s: the record of %s is not that of the snapshot%s", table, what, firstDifference(t, row, got))
		}
	}
	same("an insert", records[2].after)
	same("an update", records[4].after)
	merged, err := change.Merge(records[5].after, records[4].after)
	if err != nil {
		t.Fatal(err)
	}
	same("an update with unchanged columns, merged", change.Row{Schema: read.Schema, Data: merged})
	same("an update under REPLICA IDENTITY FULL", records[6].after)
	same("the row before it", records[6].before)
	same("the second snapshot", records[7].after)
	if values, _ := records[5].after.Values(nil); large != countUnchanged(values) {
		t.Errorf("%s: %d columns are unchanged, %d are large", table, countUnchanged(values), large)
	}
	if values, _ := records[3].after.Values(nil); slices.ContainsFunc(values[2:], func(v change.Value) bool { return !v.IsNull() }) {
		t.Errorf("P77 %s: null is not null", table)
	}
}

func countUnchanged(values []change.Value) (n int) {
	for _, v := range values {
		if v.IsUnchanged() {
			n++
		}
	}
	return n
}

func firstDifference(t *testing.T, row change.Row, want []change.Value) string {
	t.Helper()
	got, err := row.Values(nil)
	if err != nil {
		return ": " + err.Error()
	}
	for i := range got {
		if a, b := change.AppendJSON(nil, got[i]), change.AppendJSON(nil, want[i]); !bytes.Equal(a, b) {
			return fmt.Sprintf(": %s is %.200s, not %.200s", row.Schema.Columns[i].SourceType, a, b)
		}
	}
	return ""
}

// askOracle returns what the server says the JSON of each column is; "" where it is not asked.
func (r *captureRig) askOracle(table string, columns []typeColumn) []string {
	r.t.Helper()
	var list []string
	for j, c := range columns {
		list = append(list, oracleSQL(c.oracle, fmt.Sprintf("c%d", j)))
	}
	s, err := connect(r.t.Context(), &r.con.opts, false)
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.close()
	rows, err := s.query(r.t.Context(), "SELECT "+strings.Join(list, ", ")+" FROM public."+table)
	if err != nil || len(rows) != 1 {
		r.t.Fatalf("ask the server about %s: %d rows, %v", table, len(rows), err)
	}
	answers := make([]string, len(columns))
	for j, c := range columns {
		answers[j] = plainJSON(r.t, c.oracle, rows[0][j])
	}
	return answers
}

// plainJSON takes the blanks out of what the server wrote.
func plainJSON(t testing.TB, oracle string, text []byte) string {
	if oracle != "compact" && oracle != "hstore" {
		return string(text)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return b.String()
}

// loggedRecord is a record of a table's topic.
type loggedRecord struct {
	op            change.Op
	flags         change.Flags
	before, after change.Row
}

// records returns the records of a table in the order of the log.
func (r *captureRig) records(table string) (list []loggedRecord) {
	r.t.Helper()
	name := change.TableTopic(r.opts.Source, "public", table)
	topic, ok := r.log.Topic(name)
	if !ok {
		r.t.Fatalf("no topic %s", name)
	}
	schemas, err := r.hist.Schemas()
	if err != nil {
		r.t.Fatal(err)
	}
	rd, err := r.log.Read(readAfter(0))
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	for {
		tx, err := rd.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if tx == nil {
			return list
		}
		for _, rec := range tx.Records {
			if rec.Topic != topic.ID {
				continue
			}
			one := loggedRecord{op: change.Op(rec.Op), flags: change.Flags(rec.Flags)}
			if rec.Value != nil {
				before, after, err := change.DecodeRecordValue(rec.Value)
				if err != nil {
					r.t.Fatal(err)
				}
				one.before = change.Row{Schema: schemas[name], Data: bytes.Clone(before)}
				one.after = change.Row{Schema: schemas[name], Data: bytes.Clone(after)}
			}
			list = append(list, one)
		}
	}
}
