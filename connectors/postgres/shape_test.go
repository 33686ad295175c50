package postgres

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

const shapesDDL = `
	CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN dmood AS mood; CREATE TYPE felt AS (m mood, n int); CREATE TYPE moods AS RANGE (subtype = mood);
	CREATE TYPE pair AS (a int, b text, c int); CREATE DOMAIN dpair AS pair;
	CREATE TABLE plain (id int PRIMARY KEY, m mood DEFAULT 'sad', body text);
	CREATE TABLE keyed (m mood, id int, PRIMARY KEY (m, id));
	CREATE TABLE inside (id int PRIMARY KEY, d dmood, l mood[], f felt);
	CREATE TABLE ranged (id int PRIMARY KEY, r moods);
	CREATE TABLE pairs (id int PRIMARY KEY, p pair, l dpair[], body text);
	CREATE TABLE other (id int PRIMARY KEY, v text);
	ALTER TABLE plain ALTER body SET STORAGE EXTERNAL; ALTER TABLE pairs ALTER body SET STORAGE EXTERNAL;
	INSERT INTO plain SELECT g, CASE WHEN g % 2 = 0 THEN 'sad' ELSE 'glad' END::mood, repeat('x', 3000) FROM generate_series(1, 300) g;
	INSERT INTO keyed SELECT m, id FROM plain;
	INSERT INTO inside SELECT id, m, ARRAY[m, NULL], ROW(m, 1)::felt FROM plain; INSERT INTO ranged SELECT id, moods(m, NULL) FROM plain;
	INSERT INTO pairs SELECT id, ROW(id, 'b', 3)::pair, ARRAY[ROW(id, NULL, 4)::pair], repeat('x', 3000) FROM plain;
	INSERT INTO other SELECT g, 'v' FROM generate_series(1, 10) g;`

// enumTables hold labels of mood.
var enumTables = []string{"plain", "keyed", "inside", "ranged"}

func (r *captureRig) allSame() {
	r.t.Helper()
	for _, table := range append(enumTables, "pairs", "other") {
		r.same(table)
	}
}

// runs checks which run is each table's newest.
func (r *captureRig) runs(want uint64, tables ...string) {
	r.t.Helper()
	for _, table := range tables {
		if m := r.newestRun(table); m == nil || m.Run != want {
			r.t.Errorf("the newest run of %s is %+v, not %d", table, m, want)
		}
	}
}

// TestT3Relabel: ALTER TYPE … RENAME VALUE changes what every stored row reads as,
// without an event: the tables that use the type are read again, and no other.
func TestT3Relabel(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			t.Parallel()
			r := newCaptureRig(t, testkit.PostgresVersion(t, major), shapesDDL)
			r.start()
			r.settled()
			r.exec("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'", "UPDATE plain SET body = body || 'y' WHERE id < 10", "UPDATE plain SET id = id + 1000 WHERE id BETWEEN 20 AND 30",
				"DELETE FROM keyed WHERE id = 4", "INSERT INTO keyed VALUES ('low', 4)")
			for _, table := range enumTables {
				r.ran(table, 2)
			}
			r.allSame()
			r.runs(1, "pairs", "other")
			if r.count("keyed") != 300 {
				t.Errorf("%d keys are in the log, not 300: old labels are left", r.count("keyed"))
			}

			r.exec("ALTER TYPE mood ADD VALUE 'mad' BEFORE 'low'")
			r.exec("INSERT INTO plain VALUES (2001, 'mad', 'z')")
			r.noted("plain", "mood", 3)
			r.settled()
			r.stop()
			r.start()
			r.settled()
			r.runs(2, enumTables...) // nothing that was stored reads otherwise
			r.exec("ALTER TYPE mood RENAME VALUE 'mad' TO 'furious'")
			r.ran("plain", 3)
			r.settled()
			r.allSame()
			r.runs(1, "pairs", "other")
		})
	}
}

// TestT3RelabelWhileStopped: also when nobody watched, and when the label has its
// old name again: the stream brings rows of between with the other one.
func TestT3RelabelWhileStopped(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			t.Parallel()
			r := newCaptureRig(t, testkit.PostgresVersion(t, major), shapesDDL)
			r.start()
			r.settled()
			r.stop()
			r.exec("INSERT INTO plain VALUES (1001, 'sad', 'old label')", "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'", "INSERT INTO plain VALUES (1002, 'low', 'new label')",
				"INSERT INTO keyed VALUES ('low', 1002)", "UPDATE inside SET d = 'low' WHERE id = 1")
			r.start()
			for _, table := range enumTables {
				r.ran(table, 2)
			}
			r.allSame()
			r.stop()
			r.exec("ALTER TYPE mood RENAME VALUE 'glad' TO 'high'", "INSERT INTO plain VALUES (1003, 'high', 'between')", "ALTER TYPE mood RENAME VALUE 'high' TO 'glad'")
			r.start()
			r.ran("plain", 3)
			r.allSame()
			r.runs(1, "pairs", "other")
		})
	}
}

// TestT3RelabelInRun: in a run that was interrupted: what it has read is of before.
func TestT3RelabelInRun(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), shapesDDL)
	r.crashAfter(9)
	r.exec("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
	r.start()
	testkit.Eventually(t, 30e9, "the tables are right", func() error {
		r.settled()
		for _, table := range enumTables {
			if diff := r.diff(table); len(diff) > 0 {
				return fmt.Errorf("%s: %s", table, diff[0])
			}
		}
		return nil
	})
}

// TestT3NewColumn: a column of an enum that came after the run is known, too.
func TestT3NewColumn(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), shapesDDL)
	r.start()
	r.settled()
	r.exec("ALTER TABLE other ADD m mood NOT NULL DEFAULT 'glad'", "INSERT INTO other VALUES (100, 'w', 'sad')")
	r.noted("other", "mood", 2)
	r.exec("ALTER TYPE mood RENAME VALUE 'glad' TO 'high'")
	r.ran("other", 2)
	r.allSame()
	r.exec("ALTER TABLE other DROP COLUMN m")
	r.exec("INSERT INTO other VALUES (101, 'w')")
	r.settled()
	r.runs(2, "other") // what a dropped column held needs no reading
}

// TestT4Composite: attributes of a composite type are renamed, added and dropped
// while rows are written, before and after in the same transaction.
func TestT4Composite(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			t.Parallel()
			r := newCaptureRig(t, testkit.PostgresVersion(t, major), shapesDDL)
			r.start()
			r.settled()
			insert := func(id int, row string) string {
				return fmt.Sprintf("INSERT INTO pairs VALUES (%d, ROW(%s)::pair, ARRAY[ROW(%[2]s)::pair], 'z')", id, row)
			}
			for i, ddl := range []string{"ALTER TYPE pair RENAME ATTRIBUTE a TO aa", "ALTER TYPE pair ADD ATTRIBUTE d text", "ALTER TYPE pair DROP ATTRIBUTE b"} {
				row := []string{"7,'x',8", "7,'x',8,'d'", "7,8,'d'"}
				before := append([]string{"7,'x',8"}, row...)[i]
				r.exec("BEGIN; "+insert(1000+10*i, before)+"; "+ddl+"; "+insert(1001+10*i, row[i])+"; COMMIT", "UPDATE pairs SET body = 'w' WHERE id = 5", insert(1002+10*i, row[i]))
				r.ran("pairs", uint64(i+2))
				r.allSame()
				r.exec(insert(1003+10*i, row[i]), "UPDATE pairs SET body = 'v' WHERE id = 6")
				r.settled()
				r.allSame()
				r.runs(1, "other", "plain")
			}
		})
	}
}

// TestT4CompositeWhileStopped: rows of before come when the type is another already.
func TestT4CompositeWhileStopped(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), shapesDDL, "CREATE TABLE bykey (p pair PRIMARY KEY, n int); INSERT INTO bykey VALUES (ROW(1, 'k', 2), 1), (ROW(2, 'k', 2), 2)")
	r.start()
	r.settled()
	r.stop()
	r.exec("INSERT INTO pairs VALUES (1001, ROW(1, 'old', 2), NULL, 'z')", "UPDATE pairs SET body = 'w' WHERE id = 5", "UPDATE pairs SET p = ROW(1, 'old', 3) WHERE id = 6",
		"UPDATE bykey SET n = 3 WHERE n = 1", "DELETE FROM bykey WHERE n = 2", "INSERT INTO bykey VALUES (ROW(3, 'k', 2), 4)",
		"ALTER TYPE pair DROP ATTRIBUTE b", "INSERT INTO pairs VALUES (1002, ROW(1, 2), NULL, 'z')", "ALTER TYPE pair ADD ATTRIBUTE e int, DROP ATTRIBUTE a", "INSERT INTO pairs VALUES (1003, ROW(1, 2), NULL, 'z')")
	r.start()
	r.ran("pairs", 2)
	r.ran("bykey", 2)
	r.allSame()
	r.same("bykey")
}

// count returns how many keys the log has of a table.
func (r *captureRig) count(table string) (n int) {
	r.t.Helper()
	err := r.hist.ReadNewest(change.TableTopic(r.opts.Source, "public", table), func(change.Key, change.Row, bool) error { n++; return nil })
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// noted waits until the newest mark of a table has that many labels of an enum.
func (r *captureRig) noted(table, enum string, labels int) {
	r.t.Helper()
	var typ uint32
	if err := testkit.Connect(r.t, r.dsn).QueryRow(r.t.Context(), "SELECT $1::regtype::oid", enum).Scan(&typ); err != nil {
		r.t.Fatal(err)
	}
	testkit.Eventually(r.t, 30e9, "the labels are noted", func() error {
		r.reopened()
		marks, err := r.hist.Marks()
		if err != nil {
			return err
		}
		for _, m := range marks {
			if m.Topic != change.TableTopic(r.opts.Source, "public", table) {
				continue
			}
			for _, noted := range shapesIn(m.Cursor) {
				if len(noted[typ]) == labels {
					return nil
				}
			}
		}
		return fmt.Errorf("no mark of %s has %d labels of %s", table, labels, enum)
	})
}

// shapesIn returns the shape inside a mark's cursor, which begins with the machine's own part.
func shapesIn(cursor []byte) (found []shape) {
	for i := range cursor {
		c, err := decodeChunkCursor(cursor[i:])
		if err != nil || c.shape == "" {
			continue
		}
		if s, err := decodeShape(c.shape); err == nil {
			found = append(found, s)
		}
	}
	return found
}

func TestShape(t *testing.T) {
	old := shape{1: {10, 20}, 2: {30}, 5: nil}
	for _, tt := range []struct {
		name    string
		now     shape
		altered bool
	}{
		{"the same", shape{1: {10, 20}, 2: {30}, 5: nil}, false},
		{"a label more", shape{1: {5, 10, 15, 20}, 2: {30}}, false},
		{"a type more", shape{1: {10, 20}, 2: {30}, 3: {7}}, false},
		{"a type less", shape{1: {10, 20}}, false},
		{"a label less", shape{1: {10}, 2: {30}}, true},
		{"another label", shape{1: {10, 21}, 2: {30}}, true},
		{"other attributes", shape{1: {10, 20}, 2: {31}}, true},
	} {
		if got := tt.now.altered(old); got != tt.altered {
			t.Errorf("%s: altered is %v", tt.name, got)
		}
	}
	got, err := decodeShape(old.encode())
	if err != nil || !reflect.DeepEqual(got, shape{1: {10, 20}, 2: {30}, 5: {}}) {
		t.Errorf("%v came back as %v, %v", old, got, err)
	}
	for _, bad := range []string{"\x01", "\x01\x02" + strings.Repeat("x", 15), "\xff"} {
		if s, err := decodeShape(bad); err == nil {
			t.Errorf("%q decodes as %v", bad, s)
		}
	}
}
