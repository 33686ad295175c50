package daemon

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/internal/testkit"
)

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// TestEditedFile: a restart with an edited file simply works: a table, a view
// and a sink are added, a view is changed and removed.
func TestEditedFile(t *testing.T) {
	dsn, f, d := library(t)
	d.Start()
	equal(t, d, dsn)

	testkit.Exec(t, dsn, "CREATE TABLE loans (id int PRIMARY KEY, book_id int NOT NULL, who text)", "INSERT INTO loans SELECT g, 1 + g % 50, 'reader ' || g FROM generate_series(1, 300) g")
	f.tables = "public.books, public.authors, public.loans"
	f.views = shelf + `
  lent:
    from: lib.public.books
    fields: [id]
    nest:
      loans: { has_many: loans, by: book_id, order: [id], fields: [id, who] }
    calc: { n: { count: loans } }
    to: [other]
`
	f.sinks = "{ find: { local: {} }, other: { local: {} } }"
	d.SetConfig(f.String())
	d.Restart()
	equal(t, d, dsn)
	const lentSQL = `SELECT b.id, json_build_object('id', b.id,
		'loans', COALESCE((SELECT json_agg(json_build_object('id', l.id, 'who', l.who) ORDER BY l.id) FROM loans l WHERE l.book_id = b.id), '[]'),
		'n', (SELECT count(*) FROM loans l WHERE l.book_id = b.id))::text FROM books b`
	testkit.CompareView(t, d.ViewDocs("lent"), dsn, lentSQL)

	// Changed: documents that only the old definition had must go, also from the sink (V28).
	f.views = strings.Replace(f.views, "fields: [id]", "fields: [id, title]\n    where: id % 2 = 0", 1)
	d.SetConfig(f.String())
	d.Restart()
	d.Wait("--timeout", "120s")
	changed := strings.Replace(strings.Replace(lentSQL, "'id', b.id,", "'id', b.id, 'title', b.title,", 1), "FROM books b", "FROM books b WHERE b.id % 2 = 0", 1)
	testkit.CompareView(t, d.ViewDocs("lent"), dsn, changed)
	if r := d.Run("verify", "lent", "--sink", "other", "--json"); r.Code != 0 {
		t.Errorf("verify: %d %s%s", r.Code, r.Stdout, r.Stderr)
	}

	// Removed, by a reload: the rest goes on, and the state can be dropped.
	f.views, f.sinks = "", ""
	d.SetConfig(f.String())
	d.Restart()
	testkit.Exec(t, dsn, "UPDATE books SET title = 'still followed' WHERE id = 3")
	equal(t, d, dsn)
	if code := d.Stop(); code != 0 {
		t.Errorf("stop: %d", code)
	}
	if out := d.MustRun("drop", "--unused", "--yes"); !strings.Contains(out, "lent") {
		t.Errorf("drop --unused says\n%s", out)
	}
	d.Start()
	equal(t, d, dsn)
}

// TestReload: SIGHUP takes an edited file; one with problems changes nothing.
func TestReload(t *testing.T) {
	dsn, f, d := library(t)
	d.Start()
	equal(t, d, dsn)
	d.SetConfig(strings.Replace(f.String(), "views:", "veiws:", 1))
	d.Reload()
	testkit.Exec(t, dsn, "UPDATE books SET title = 'after a bad reload' WHERE id = 3")
	equal(t, d, dsn)
	f.views = strings.Replace(shelf, "fields: [id, title, body]", "fields: [id, title, { body: body }]", 1) + "\n  second: { from: lib.public.authors }\n"
	d.SetConfig(f.String())
	d.Reload()
	testkit.Eventually(t, waitLong, "the second view answers", func() error {
		if r := d.Run("wait", "--view", "second", "--timeout", "20s"); r.Code != 0 {
			return errorf("%s", r.Stderr)
		}
		return nil
	})
	equal(t, d, dsn)
}

// TestSchemaChanges: added, renamed and dropped columns and a rewrite end in the right documents.
func TestSchemaChanges(t *testing.T) {
	dsn, _, d := library(t)
	d.Start()
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "ALTER TABLE books ADD COLUMN pages int DEFAULT 9", "UPDATE books SET pages = 3 WHERE id = 1", "ALTER TABLE books DROP COLUMN pages", "UPDATE books SET title = 'after drop' WHERE id = 2")
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "TRUNCATE books", "INSERT INTO books VALUES (1, 2, 'alone', NULL)")
	equal(t, d, dsn)
	if docs := d.ViewDocs("shelf"); len(docs) != 1 {
		t.Errorf("%d documents after the truncate", len(docs))
	}
}

// TestDroppedColumn: a view whose column was dropped stops alone, with its reason,
// while running and after a restart; the others go on.
func TestDroppedColumn(t *testing.T) {
	dsn, f, d := library(t)
	f.views = shelf + "\n  people: { from: lib.public.authors, fields: [id, name] }\n"
	d.SetConfig(f.String())
	d.Start()
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "ALTER TABLE books DROP COLUMN body", "UPDATE books SET title = 'x' WHERE id = 1", "UPDATE authors SET name = 'y' WHERE id = 1")
	for _, when := range []string{"running", "after a restart"} {
		d.MustRun("wait", "--view", "people", "--timeout", "60s")
		testkit.CompareView(t, d.ViewDocs("people"), dsn, "SELECT id, json_build_object('id', id, 'name', name)::text FROM authors")
		if out := d.MustRun("status", "--json"); !strings.Contains(out, `view \"shelf\" is stopped: `) || !strings.Contains(out, "body") {
			t.Errorf("%s: the status has no reason:\n%s", when, out)
		}
		if when == "running" {
			d.Restart()
		}
	}
}

// TestPlanBesideTheDaemon: plan asks the daemon, and neither stands in the other's way.
func TestPlanBesideTheDaemon(t *testing.T) {
	dsn, _, d := library(t)
	if out := d.MustRun("plan"); !strings.Contains(out, "build view") || !strings.Contains(out, "snapshot") {
		t.Errorf("before the first run:\n%s", out)
	}
	d.Start()
	equal(t, d, dsn)
	if out := d.MustRun("plan"); !strings.Contains(out, "nothing to do") {
		t.Errorf("beside the daemon:\n%s", out)
	}
	d.Stop()
	if out := d.MustRun("plan"); !strings.Contains(out, "nothing to do") {
		t.Errorf("after the daemon:\n%s", out)
	}
}

// TestStoppedBeforeTheSource: a daemon that is told to stop before its source
// ever answered says nothing of the tables and exits with 0.
func TestStoppedBeforeTheSource(t *testing.T) {
	f := file{dsn: "postgres://postgres@127.0.0.1:1/db?sslmode=disable", name: testkit.Name(t), addr: freeAddr(t)}
	d := testkit.NewDaemon(t, f.String())
	d.Start()
	testkit.Eventually(t, waitLong, "the daemon tries to connect", func() error {
		if !strings.Contains(d.RunLogs(), "source interrupted") {
			return errorf("not yet")
		}
		return nil
	})
	if code := d.Stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, d.RunLogs())
	}
}

// TestNewTable: a table that comes to match a glob is captured before wait answers.
func TestNewTable(t *testing.T) {
	dsn, f, d := library(t)
	f.tables = "public.*"
	d.SetConfig(f.String())
	d.Start()
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "CREATE TABLE later (id int PRIMARY KEY, v text)", "INSERT INTO later VALUES (1, 'one'), (2, 'two')")
	d.Wait("--timeout", "60s")
	lines := strings.Split(strings.TrimSpace(d.MustRun("log", "cat", "lib.public.later", "--json")), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d records of the new table: %q", len(lines), lines)
	}
	var rec struct {
		Op    string         `json:"op"`
		After map[string]any `json:"after"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &rec); err != nil || rec.After["v"] == nil {
		t.Errorf("%s: %v", lines[0], err)
	}
}
