package postgres

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

var (
	randomValues = flag.Int("values", 400, "generated values a type in TestRandomValues")
	randomSeed   = flag.Uint64("seed", 0, "seed of TestRandomValues; 0: of the clock")
)

// randomBatch is how many rows are written at a time.
const randomBatch = 2000

// TestRandomValues writes generated values of every type, half of the rows by
// INSERT and half by UPDATE, and reads each by the stream and as a chunk does: the
// same bytes, and the JSON that the server makes of the value.
func TestRandomValues(t *testing.T) {
	seed := *randomSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			t.Logf("%d values a type, -seed %d", *randomValues, seed)
			testRandomValues(t, major, newGenerator(seed))
		})
	}
}

func testRandomValues(t *testing.T, major int, g *generator) {
	dsn := testkit.PostgresVersion(t, major)
	ddl := []string{typesDDL, oracleDDL, hostileSettings}
	extended := hasExtensions(t, dsn, contrib...)
	if extended {
		ddl = append(ddl, contribDDL)
	}
	var columns []randomColumn
	var list []string
	for _, c := range randomColumns {
		if c.since <= major && (extended || !strings.HasPrefix(c.typ, "hs.")) {
			list = append(list, fmt.Sprintf("c%d %s", len(columns), c.typ))
			columns = append(columns, c)
		}
	}
	x := &randomRun{t: t, g: g, major: major, columns: columns}
	x.rig = newRig(t, dsn, append(ddl, "SET search_path = public, hs; CREATE TABLE r (id int PRIMARY KEY, "+strings.Join(list, ", ")+")")...)
	x.rig.open()
	x.rig.step()
	x.writer = testkit.Connect(t, dsn)
	x.run("SET search_path = public, hs; SET xmloption = content; CREATE TEMP TABLE s (LIKE r)")
	s, err := connect(t.Context(), &x.rig.con.opts, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	x.reader = s
	oid, err := s.text(t.Context(), "SELECT 'public.r'::regclass::oid")
	if err != nil {
		t.Fatal(err)
	}
	if x.table, err = x.rig.src.(*source).catalog.current(t.Context(), s, toOID([]byte(oid))); err != nil {
		t.Fatal(err)
	}
	for first := 0; first < *randomValues && !t.Failed(); first += randomBatch {
		x.batch(first, min(randomBatch, *randomValues-first))
	}
}

type randomRun struct {
	t       *testing.T
	g       *generator
	major   int
	columns []randomColumn
	rig     *rig
	writer  *pgx.Conn
	reader  *session
	table   *table
}

func (x *randomRun) run(sql string) {
	x.t.Helper()
	if _, err := x.writer.PgConn().Exec(x.t.Context(), sql).ReadAll(); err != nil {
		x.t.Fatalf("%s: %v", sql, err)
	}
}

// batch writes n rows and compares them.
func (x *randomRun) batch(first, n int) {
	t := x.t
	var rows bytes.Buffer
	for id := first; id < first+n; id++ {
		fmt.Fprintf(&rows, "%d", id)
		for _, c := range x.columns {
			rows.WriteByte('\t')
			if x.g.IntN(50) == 0 {
				rows.WriteString(`\N`)
				continue
			}
			_, _ = copyEscapes.WriteString(&rows, c.gen(x.g, x.major))
		}
		rows.WriteByte('\n')
	}
	x.run("TRUNCATE s")
	if _, err := x.writer.PgConn().CopyFrom(t.Context(), &rows, "COPY s FROM STDIN"); err != nil {
		t.Fatalf("write generated values: %v", err)
	}
	var set []string
	for i := range x.columns {
		set = append(set, fmt.Sprintf("c%d = s.c%[1]d", i))
	}
	x.run("BEGIN; INSERT INTO r SELECT * FROM s WHERE id % 2 = 0; INSERT INTO r (id) SELECT id FROM s WHERE id % 2 = 1; UPDATE r SET " +
		strings.Join(set, ", ") + " FROM s WHERE r.id = s.id AND s.id % 2 = 1; COMMIT")
	streamed := x.streamed()
	if len(streamed) != n {
		t.Fatalf("%d rows were streamed, not %d", len(streamed), n)
	}
	read := &change.Batch{}
	where := fmt.Sprintf(" FROM public.r WHERE id >= %d ORDER BY id", first)
	if err := x.reader.each(t.Context(), "SELECT "+x.table.selectList()+where, nil, func(f [][]byte) error { return x.table.appendRead(read, f) }); err != nil {
		t.Fatal(err)
	}
	for i := range read.Events {
		row, _ := read.After(&read.Events[i])
		other := streamed[string(read.Key(&read.Events[i]))]
		values, err := row.Values(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(row.Data, other.Data) {
			t.Errorf("row %d: stream and SELECT differ%s", first+i, firstDifference(t, other, values))
		}
	}
	x.compareOracle(where, read)
}

// streamed returns the newest rows of the next transaction by their keys.
func (x *randomRun) streamed() map[string]change.Row {
	rows := map[string]change.Row{}
	for {
		b := x.rig.next()
		for i := range b.Events {
			row, _ := b.After(&b.Events[i])
			rows[string(b.Key(&b.Events[i]))] = row
		}
		if !b.More {
			return rows
		}
	}
}

// compareOracle compares the rows' JSON with the server's.
func (x *randomRun) compareOracle(where string, read *change.Batch) {
	t := x.t
	var list []string
	for i, c := range x.columns {
		list = append(list, oracleSQL(c.oracle, fmt.Sprintf("c%d", i)))
	}
	at, wrong := 0, 0
	err := x.reader.each(t.Context(), "SELECT "+strings.Join(list, ", ")+where, nil, func(f [][]byte) error {
		row, _ := read.After(&read.Events[at])
		values, err := row.Values(nil)
		at++
		if err != nil {
			return err
		}
		for i, c := range x.columns {
			if f[i] == nil {
				continue
			}
			got := string(change.AppendJSON(nil, values[i+1]))
			if want := plainJSON(t, c.oracle, f[i]); got != want && wrong < 20 && !(c.oracle == "float" && sameFloat(got, want, c.typ)) {
				wrong++
				t.Errorf("%s: %.300s, the server says %.300s", c.typ, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	x.compareJSON(read)
}

// compareJSON asks the server whether the canonical form of json is the same value.
func (x *randomRun) compareJSON(read *change.Batch) {
	for i, c := range x.columns {
		if c.typ != "json" {
			continue
		}
		var ids, texts []string
		for e := range read.Events {
			row, _ := read.After(&read.Events[e])
			id, err1 := row.Value(0)
			v, err2 := row.Value(i + 1)
			if err1 != nil || err2 != nil {
				x.t.Fatal(err1, err2)
			}
			if doubled(v.Raw()) {
				x.t.Errorf("json with members of the same name: %.300s", v.Raw())
			}
			if !v.IsNull() {
				ids, texts = append(ids, string(change.AppendText(nil, id))), append(texts, string(v.Raw()))
			}
		}
		var wrong []string
		q, err := x.writer.Query(x.t.Context(), fmt.Sprintf("SELECT r.c%d::text || ' is not ' || u.j FROM unnest($1::int[], $2::text[]) u(id, j) JOIN r USING (id) WHERE r.c%[1]d::jsonb IS DISTINCT FROM u.j::jsonb", i), ids, texts)
		if err == nil {
			wrong, err = pgx.CollectRows(q, pgx.RowTo[string])
		}
		if err != nil {
			x.t.Fatal(err)
		}
		for _, w := range wrong[:min(len(wrong), 5)] {
			x.t.Errorf("json: %.500s", w)
		}
	}
}

var copyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// doubled reports whether an object in the text has two members of the same name.
func doubled(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	var open []map[string]bool // names of the objects that are open; nil for an array
	var name bool              // the next string is a name
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		last := len(open) - 1
		if s, ok := token.(string); ok && name {
			if open[last][s] {
				return true
			}
			open[last][s], name = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:last]
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}
