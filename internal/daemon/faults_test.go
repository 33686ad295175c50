package daemon

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/internal/testkit"
)

const tablesSQL = `
CREATE TABLE authors (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE books (id int PRIMARY KEY, author_id int REFERENCES authors, title text NOT NULL, body text);
ALTER TABLE books ALTER body SET STORAGE EXTERNAL;
INSERT INTO authors SELECT g, 'author ' || g FROM generate_series(1, 20) g;
INSERT INTO books SELECT g, 1 + g % 20, 'book ' || g, repeat('word' || g || ' ', 1000) FROM generate_series(1, 200) g;
`

// expectedSQL is what the view shelf of fileFor has to hold.
const expectedSQL = `SELECT b.id, json_build_object('id', b.id, 'title', b.title, 'body', b.body,
	'author', (SELECT json_build_object('id', a.id, 'name', a.name) FROM authors a WHERE a.id = b.author_id))::text FROM books b`

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// file is a configuration of the two tables.
type file struct {
	dsn, name, addr string
	tables          string // default: both
	views, sinks    string // default: the view shelf into the local sink
}

const shelf = `
  shelf:
    from: lib.public.books
    fields: [id, title, body]
    nest:
      author: { belongs_to: authors, by: author_id, fields: [id, name] }
    to: [find]
`

func (f file) String() string {
	if f.tables == "" {
		f.tables = "public.books, public.authors"
	}
	if f.views == "" {
		f.views = shelf
	}
	if f.sinks == "" {
		f.sinks = "{ find: { local: {} } }"
	}
	return fmt.Sprintf("data_dir: ./data\nsources:\n  lib:\n    postgres: { dsn: %q, tables: [%s], slot: tw_%s, publication: tw_%s, discover: 1s }\nviews:%s\nsinks: %s\nserver: { listen: %s }\n",
		f.dsn, f.tables, f.name, f.name, f.views, f.sinks, f.addr)
}

// library is a database with the two tables, and a daemon over it that has not started.
func library(t *testing.T) (dsn string, f file, d *testkit.Daemon) {
	t.Helper()
	dsn = testkit.Postgres(t)
	testkit.Exec(t, dsn, tablesSQL)
	f = file{dsn: dsn, name: testkit.Name(t), addr: freeAddr(t)}
	d = testkit.NewDaemon(t, f.String())
	t.Cleanup(func() { d.Kill(); d.Run("drop", "--source", "lib", "--yes") })
	return dsn, f, d
}

// equal waits and compares every document of the view with SQL, and the local index with the view.
func equal(t *testing.T, d *testkit.Daemon, dsn string) {
	t.Helper()
	d.Wait("--timeout", "120s")
	testkit.CompareView(t, d.ViewDocs("shelf"), dsn, expectedSQL)
	if r := d.Run("verify", "shelf", "--sink", "find", "--json"); r.Code != 0 {
		t.Errorf("verify: exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// TestBadInput: each fault is one clear line with the way out, and its exit code.
func TestBadInput(t *testing.T) {
	dsn, f, d := library(t)
	other := func(change func(*file)) string { g := f; change(&g); return g.String() }
	role := "role_" + f.name
	testkit.Exec(t, dsn, "CREATE ROLE "+role+" LOGIN", "CREATE TABLE nokey (a int)")
	t.Cleanup(func() { testkit.Exec(t, dsn, "DROP ROLE IF EXISTS "+role) })
	for _, tt := range []struct {
		name string
		yaml string
		args string
		code int
		want []string
	}{
		{"nothing listens", other(func(g *file) { g.dsn = "postgres://x:secretword@127.0.0.1:1/db?sslmode=disable" }), "check --live", 3, []string{"127.0.0.1:1", "refused"}},
		{"unknown database", other(func(g *file) { g.dsn = testkit.WithDatabase(t, dsn, "no_such_db") }), "run", 0, []string{"no_such_db", "does not exist"}},
		{"unknown role", other(func(g *file) { g.dsn = strings.Replace(dsn, "postgres@", "nobody_here:secretword@", 1) }), "run", 0, []string{"nobody_here"}},
		{"missing privileges", other(func(g *file) { g.dsn = strings.Replace(dsn, "postgres@", role+"@", 1) }), "check --live", 1, []string{"REPLICATION", "GRANT SELECT"}},
		{"missing table", other(func(g *file) { g.tables = "public.books, public.authors, public.autors" }), "run", 0, []string{"public.autors"}},
		{"table without a key", other(func(g *file) { g.tables = "public.books, public.authors, public.nokey" }), "check --live", 1, []string{"nokey", "REPLICA IDENTITY"}},
		{"unknown column", other(func(g *file) { g.views = strings.Replace(shelf, "title", "titel", 1) }), "run", 2, []string{"titel", "did you mean title", "tailwater.yaml:"}},
		{"uncaptured table", other(func(g *file) { g.tables = "public.books" }), "run", 2, []string{"authors", "does not capture"}},
		{"misspelt key", strings.Replace(f.String(), "views:", "veiws:", 1), "check", 2, []string{"veiws", "views", "tailwater.yaml:"}},
		{"wrong expression", other(func(g *file) { g.views = strings.Replace(shelf, "fields: [id, title, body]", "where: title > 5", 1) }), "run", 2, []string{"title", "5"}},
		{"address taken", other(func(g *file) { g.addr = strings.TrimPrefix(hostOf(dsn), "") }), "run", 1, []string{"listen"}},
	} {
		d.SetConfig(tt.yaml)
		r := d.Run(strings.Fields(tt.args)...)
		if tt.code != 0 && r.Code != tt.code || r.Code == 0 {
			t.Errorf("%s: exit code %d, want %d\n%s%s", tt.name, r.Code, tt.code, r.Stdout, r.Stderr)
		}
		out := r.Stdout + r.Stderr
		for _, w := range tt.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no %q in\n%s", tt.name, w, out)
			}
		}
		for _, never := range []string{"secretword", "goroutine ", "panic:"} {
			if strings.Contains(out, never) {
				t.Errorf("%s: %q in\n%s", tt.name, never, out)
			}
		}
	}
}

func hostOf(dsn string) string {
	rest := dsn[strings.Index(dsn, "@")+1:]
	return rest[:strings.Index(rest, "/")]
}

// TestToast: a row with a large untouched value is updated, moved to another
// key, and read again after the log was replayed; the value stays.
func TestToast(t *testing.T) {
	dsn, _, d := library(t)
	d.Start()
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "UPDATE books SET title = 'renamed' WHERE id = 7", "UPDATE books SET id = 1007 WHERE id = 7", "UPDATE books SET title = title || '!' WHERE id = 1007",
		"BEGIN; UPDATE books SET id = 1008 WHERE id = 8; UPDATE books SET title = 'twice' WHERE id = 1008; UPDATE books SET id = 1009 WHERE id = 1008; COMMIT")
	equal(t, d, dsn)
	if code := d.Stop(); code != 0 {
		t.Errorf("a clean stop exits with %d", code)
	}
	// Without its state the view is built again from the log alone.
	removeAll(t, d.Dir()+"/data/state")
	testkit.Exec(t, dsn, "UPDATE books SET author_id = 3 WHERE id IN (1007, 1009)")
	d.Start()
	equal(t, d, dsn)
	lines := d.MustRun("log", "cat", "lib.public.books", "--json", "--key", "1009")
	if !strings.Contains(lines, `"body":"word8 `) {
		t.Errorf("the log has lost the value of the moved row:\n%.600s", lines)
	}
}

// TestServerRestart: the source is opened again after its server restarted or crashed.
func TestServerRestart(t *testing.T) {
	pg := testkit.StartPostgres(t)
	dsn := pg.URL
	testkit.Exec(t, dsn, tablesSQL)
	f := file{dsn: dsn, name: testkit.Name(t), addr: freeAddr(t)}
	d := testkit.StartDaemon(t, f.String())
	equal(t, d, dsn)
	pg.Restart()
	testkit.Exec(t, dsn, "UPDATE authors SET name = 'after a restart' WHERE id = 1")
	equal(t, d, dsn)
	pg.Crash()
	pg.Start()
	testkit.Exec(t, dsn, "UPDATE authors SET name = 'after a crash' WHERE id = 2")
	equal(t, d, dsn)
}

// TestSlotLost: a slot that vanished is a named stop with the way out, and the way out heals.
func TestSlotLost(t *testing.T) {
	dsn, f, d := library(t)
	d.Start()
	equal(t, d, dsn)
	d.Stop()
	testkit.Exec(t, dsn, "SELECT pg_drop_replication_slot('tw_"+f.name+"')", "DELETE FROM books WHERE id = 5", "UPDATE books SET title = 'changed unseen' WHERE id = 6")
	r := d.Run("run")
	if r.Code != 5 || !strings.Contains(r.Stderr, "drop --source lib") {
		t.Errorf("exit code %d, want 5 with the way out\n%s", r.Code, r.Stderr)
	}
	d.MustRun("drop", "--source", "lib", "--yes")
	d.Start()
	equal(t, d, dsn)
}

// TestUnknownSlot: a slot that our log does not know is refused, and its way out heals.
func TestUnknownSlot(t *testing.T) {
	dsn, _, d := library(t)
	d.Start()
	equal(t, d, dsn)
	d.Stop()
	removeAll(t, d.Dir()+"/data")
	if r := d.Run("run"); r.Code != 5 || !strings.Contains(r.Stderr, "drop --source lib") {
		t.Errorf("exit code %d, want 5 with the way out\n%s", r.Code, r.Stderr)
	}
	d.MustRun("drop", "--source", "lib", "--yes")
	d.Start()
	equal(t, d, dsn)
}

// TestSecondDaemon: the data directory has one owner.
func TestSecondDaemon(t *testing.T) {
	_, _, d := library(t)
	d.Start()
	d.WaitReady(time.Minute)
	if r := d.Run("run"); r.Code != 5 || !strings.Contains(r.Stderr, "locked by process") {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if r := d.Run("drop", "--yes"); r.Code != 5 {
		t.Errorf("drop beside a daemon: exit code %d\n%s", r.Code, r.Stderr)
	}
}
