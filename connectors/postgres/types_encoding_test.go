package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// TestLatin1: a database of another encoding gives the same text both ways, in
// values, in what is inside others, in keys, labels and names.
func TestLatin1(t *testing.T) {
	base, name := testkit.Postgres(t), testkit.Name(t)
	testkit.Exec(t, base, "CREATE DATABASE "+name+" ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
	t.Cleanup(func() { testkit.Exec(t, base, "DROP DATABASE "+name+" WITH (FORCE)") })
	slash, end := strings.LastIndexByte(base, '/'), strings.IndexByte(base, '?')
	dsn := base[:slash+1] + name + base[end:]
	r := newCaptureRig(t, dsn, "SET client_encoding = UTF8", `CREATE TYPE "größe" AS ENUM ('größer', 'kleiner'); CREATE TYPE pair AS (a text, "ä" "größe");
		CREATE TABLE t0 (id text PRIMARY KEY, n int, c0 text, c1 "größe", c2 json, c3 jsonb, c4 text[], c5 pair, "é" char(3), c7 bytea)`,
		`INSERT INTO t0 VALUES ('schlüssel', 0, 'áéÿ', 'größer', '{"ü": "ß"}', '{"ü": "ß"}', '{é,ÿ}', ROW('á','größer'), 'é', convert_to('é', 'LATIN1'))`)
	t.Cleanup(func() {
		r.stop()
		if err := r.con.Drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r.start()
	r.settled()
	r.exec("UPDATE t0 SET n = 0")
	r.settled()
	records := r.records("t0")
	if len(records) != 2 || string(records[0].after.Data) != string(records[1].after.Data) {
		t.Fatalf("%d records, or others by snapshot and stream", len(records))
	}
	want := `{id:"schlüssel" n:0 c0:"áéÿ" c1:"größer" c2:{"ü":"ß"} c3:{"ü":"ß"} c4:["é","ÿ"] c5:{"a":"á","ä":"größer"} é:"é  " c7:"6Q=="}`
	if got := renderRow(t, records[1].after); got != want {
		t.Errorf("the row is\n%s, want\n%s", got, want)
	}
	if s := records[1].after.Schema; s.Columns[3].SourceType != `public."größe"` || s.Columns[3].Kind != change.KindText {
		t.Errorf("the enum's type is %q", s.Columns[3].SourceType)
	}
}
