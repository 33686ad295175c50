package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/internal/testkit"
)

// TestDescribeProblems has every fault of tables and role at once; all are
// named, those that can be mended with the statement that does it.
func TestDescribeProblems(t *testing.T) {
	dsn := testkit.Postgres(t)
	role := testkit.Name(t)
	testkit.Exec(t, dsn, `CREATE TABLE ok (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED, v txid_snapshot, w pg_node_tree);
		CREATE TABLE nokey (a int); CREATE TABLE nokey2 (a int);
		CREATE TABLE nothing (id int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING;
		CREATE TABLE gone (id int NOT NULL); CREATE UNIQUE INDEX gone_id ON gone (id); ALTER TABLE gone REPLICA IDENTITY USING INDEX gone_id; DROP INDEX gone_id;
		CREATE TABLE later (id int PRIMARY KEY DEFERRABLE);
		CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
		CREATE TABLE secret (id int PRIMARY KEY); ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
		CREATE TABLE hidden (id int PRIMARY KEY);
		CREATE VIEW viu AS SELECT 1 AS a;
		CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10)`,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'pw'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]s; REVOKE ALL ON hidden FROM %[1]s", role))
	t.Cleanup(func() { testkit.Exec(t, dsn, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	u, _ := url.Parse(dsn)
	u.User = url.UserPassword(role, "pw")
	o := Options{Source: "s", DSN: u.String(), Tables: []string{"public.*", "public.nokey2", "ordres", "shop.*", "pg_catalog.pg_class", "viu", "public.Ok"}, Exclude: []string{"public.leaf"}}
	d, err := New(o).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		table, message, fix string
		warning             bool
	}{
		{"", "may not replicate", "REPLICATION", false},
		{"", "may not make publication", "GRANT CREATE ON DATABASE", false},
		{"", "does not own public.hidden, public.ok, public.root, public.secret", "CREATE PUBLICATION", false},
		{"public.ok", "column g is generated", "", true},
		{"public.ok", "type pg_node_tree of column w", "", true},
		{"public.nokey", "skipped: it has no primary key", "ADD PRIMARY KEY", true},
		{"public.nokey2", "it has no primary key", "ADD PRIMARY KEY", false},
		{"public.nothing", "replica identity is NOTHING", "REPLICA IDENTITY DEFAULT", true},
		{"public.gone", "index that is gone", "REPLICA IDENTITY DEFAULT", true},
		{"public.later", "not deferrable", "", true},
		{"public.unlogged", "unlogged", "SET LOGGED", true},
		{"public.secret", "row-level security", "BYPASSRLS", false},
		{"public.hidden", "may not read it", "GRANT SELECT", false},
		{"public.viu", "a view", "", false},
		{"public.ordres", "no such table", "", false},
		{"public.Ok", "is public.ok meant?", "", false},
		{"", `no table matches "shop.*"`, "", true},
		{"pg_catalog.pg_class", "system schemas", "", false},
	} {
		if !slices.ContainsFunc(d.Problems, func(p connectors.Problem) bool {
			return p.Table == want.table && strings.Contains(p.Message, want.message) && strings.Contains(p.Fix, want.fix) && p.Warning == want.warning
		}) {
			t.Errorf("not reported: %+v", want)
		}
	}
	for _, p := range d.Problems {
		t.Logf("%s: %s [%s] warning=%v", p.Table, p.Message, p.Fix, p.Warning)
	}
	var topics []string
	for _, s := range d.Tables {
		topics = append(topics, s.Topic)
	}
	if got := strings.Join(topics, " "); got != "s.public.hidden s.public.ok s.public.root s.public.secret" {
		t.Errorf("tables = %s", got)
	}
	if _, err := New(o).Open(t.Context(), &memory{}); !errors.Is(err, connectors.ErrPrerequisite) || !strings.Contains(err.Error(), "nokey2") {
		t.Errorf("open: %v", err)
	}
}

// TestConnectErrors: one line each, with the way out and without the password.
func TestConnectErrors(t *testing.T) {
	dsn := testkit.Postgres(t)
	role := testkit.Name(t)
	testkit.Exec(t, dsn, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'right'", role))
	t.Cleanup(func() { testkit.Exec(t, dsn, "DROP ROLE "+role) })
	u, _ := url.Parse(dsn)
	with := func(f func(u *url.URL)) string {
		c := *u
		c.User = url.UserPassword(role, "s3cret")
		f(&c)
		return c.String()
	}
	for _, tt := range []struct {
		name, dsn, want string
		permanent       bool
	}{
		{"database", with(func(u *url.URL) { u.Path = "/nowhere" }), "check the database name", true},
		{"unreachable", with(func(u *url.URL) { u.Host = "127.0.0.1:1" }), "is the server running", false},
		{"host", with(func(u *url.URL) { u.Host = "no-such-host.invalid"; u.RawQuery = "sslmode=verify-full" }), "is unknown", false},
		{"role", with(func(u *url.URL) { u.User = url.UserPassword("nobody_"+role, "s3cret") }), "check the user of the dsn, or CREATE ROLE", true},
	} {
		_, err := New(Options{Source: "s", DSN: tt.dsn, Tables: []string{"a"}}).Describe(t.Context())
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		t.Log(err)
		if text := err.Error(); !strings.Contains(text, tt.want) || strings.Contains(text, "s3cret") || strings.Contains(text, "\n") {
			t.Errorf("%s: %q", tt.name, text)
		}
		if errors.Is(err, connectors.ErrPrerequisite) != tt.permanent {
			t.Errorf("%s: %v, want permanent = %v", tt.name, err, tt.permanent)
		}
	}
}

// TestForeignPublication uses a publication that our role may not alter.
func TestForeignPublication(t *testing.T) {
	dsn := testkit.Postgres(t)
	role, password := testkit.Name(t), "pw"
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); CREATE PUBLICATION theirs FOR TABLE a",
		fmt.Sprintf("CREATE ROLE %s LOGIN REPLICATION PASSWORD '%s'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]s", role, password))
	t.Cleanup(func() { r.close(); testkit.Exec(t, dsn, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	u, _ := url.Parse(dsn)
	u.User = url.UserPassword(role, password)
	r.opts.DSN, r.opts.Publication = u.String(), "theirs"
	r.connector()
	if text := r.refused(connectors.ErrPrerequisite); !strings.Contains(text, `ALTER PUBLICATION "theirs" ADD TABLE "public"."b"`) || strings.Contains(text, "public.a,") {
		t.Errorf("the statement is not named: %s", text)
	}
	r.opts.Tables = []string{"public.a"}
	r.connector()
	r.open()
	r.step()
	r.exec("INSERT INTO b VALUES (1)", "INSERT INTO a VALUES (1)")
	if got := render(t, r.next()); got != "insert a key=1 after={id:1}\n" {
		t.Errorf("came %s", got)
	}
	// A table of the glob that comes later and cannot be captured stops nothing,
	// neither the open source nor one that is opened again.
	r.close()
	r.opts.Tables, r.opts.Exclude, r.opts.Discover = []string{"public.*"}, []string{"public.b"}, time.Hour
	r.connector()
	r.open()
	r.exec("CREATE TABLE c (id int PRIMARY KEY)")
	if _, err := r.con.End(t.Context()); err != nil {
		t.Error(err)
	}
	r.exec("INSERT INTO a VALUES (2)")
	if got := render(t, r.next()); got != "insert a key=2 after={id:2}\n" {
		t.Errorf("came %s", got)
	}
	r.close()
	r.open()
	r.exec("GRANT SELECT ON c TO "+role, "ALTER PUBLICATION theirs ADD TABLE c")
	if _, err := r.con.End(t.Context()); err != nil {
		t.Error(err)
	}
	var err error
	for err == nil {
		_, err = r.src.Next(t.Context())
	}
	if !isReopen(err) {
		t.Errorf("once it can be captured the source ends with %v", err)
	}
	r.close()
	if err := r.con.Drop(t.Context()); err != nil {
		t.Error(err)
	}
	var n int
	if err := testkit.Connect(t, dsn).QueryRow(t.Context(), "SELECT count(*) FROM pg_publication").Scan(&n); err != nil || n != 1 {
		t.Errorf("their publication was dropped (%d, %v)", n, err)
	}
}
