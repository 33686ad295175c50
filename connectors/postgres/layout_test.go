package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// layoutText writes a layout's columns: number, name, source type, default.
func layoutText(s *change.Schema) string {
	var b strings.Builder
	for i, c := range s.Columns {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d.%d:%s:%s", c.Number&0xFFFF, c.Number>>16, c.Name, c.SourceType)
		if c.HasDefault && len(c.Default) > 0 {
			v, _ := c.DefaultValue()
			b.WriteString("=" + string(change.AppendText(nil, v)))
		}
	}
	return b.String() + " key " + strings.Join(s.KeyNames(), ",")
}

// TestLayouts changes a table in every way while the stream runs, and then while
// it does not, so that old rows come with a catalogue that has gone on.
func TestLayouts(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		for _, live := range []bool{true, false} {
			t.Run(fmt.Sprintf("pg%d live=%v", major, live), func(t *testing.T) { testLayouts(t, testkit.PostgresVersion(t, major), live) })
		}
	}
}

var layoutSteps = []struct{ ddl, insert, want string }{
	{"", "INSERT INTO a VALUES (1, 5, 'x')", "1.0:id:integer 2.0:n:integer 3.0:body:text key id"},
	{"ALTER TABLE a ADD d int NOT NULL DEFAULT 9", "INSERT INTO a VALUES (2, 5, 'x')", "1.0:id:integer 2.0:n:integer 3.0:body:text 4.0:d:integer=9 key id"},
	{"ALTER TABLE a RENAME n TO m", "INSERT INTO a VALUES (3, 5, 'x')", "1.0:id:integer 2.0:m:integer 3.0:body:text 4.0:d:integer=9 key id"},
	{"ALTER TABLE a ALTER m TYPE text USING 'n=' || m", "INSERT INTO a VALUES (4, 'n', 'x')", "1.0:id:integer 2.1:m:text 3.0:body:text 4.0:d:integer=9 key id"},
	{"ALTER TABLE a DROP COLUMN m", "INSERT INTO a VALUES (5, 'x')", "1.0:id:integer 3.0:body:text 4.0:d:integer=9 key id"},
	{"ALTER TABLE a ALTER body TYPE varchar(50)", "INSERT INTO a VALUES (6, 'x')", "1.0:id:integer 3.1:body:character varying(50) 4.0:d:integer=9 key id"},
	{"ALTER TABLE a ALTER body TYPE varchar(90)", "INSERT INTO a VALUES (7, 'x')", "1.0:id:integer 3.1:body:character varying(90) 4.0:d:integer=9 key id"},
	{"ALTER TABLE a ADD z money DEFAULT '1.50'", "INSERT INTO a VALUES (8, 'x')", "1.0:id:integer 3.1:body:character varying(90) 4.0:d:integer=9 5.0:z:money=1.50 key id"},
	// A rewrite: the server forgets the constants, we do not.
	{"ALTER TABLE a ADD g int GENERATED ALWAYS AS (id * 2) STORED", "INSERT INTO a VALUES (9, 'x')", "1.0:id:integer 3.1:body:character varying(90) 4.0:d:integer=9 5.0:z:money=1.50 key id"},
}

func testLayouts(t *testing.T, dsn string, live bool) {
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY, n int, body text)")
	r.open()
	r.step()
	if !live {
		r.exec(layoutSteps[0].insert)
		r.next()
		r.close()
		for _, st := range layoutSteps[1:] {
			r.exec(st.ddl, st.insert)
		}
		r.open()
	}
	for i, st := range layoutSteps {
		if live {
			if st.ddl != "" {
				r.exec(st.ddl)
			}
			r.exec(st.insert)
		} else if i == 0 {
			continue
		}
		b := r.next()
		s := b.Events[0].Schema
		got := layoutText(s)
		want := st.want
		if !live { // what the catalogue no longer tells: defaults of older rows are known from the start, column 2 was dropped
			got, want = withoutDefaults(got), withoutDefaults(want)
		}
		if got != want {
			t.Errorf("after %s:\n %s, want\n %s", st.ddl, got, want)
		}
		if live {
			row, _ := b.After(&b.Events[0])
			read := readNewest(t, r, "a")
			if string(read.Schema.AppendLayout(nil)) != string(s.AppendLayout(nil)) || string(read.Data) != string(row.Data) {
				t.Errorf("after %s: stream and SELECT differ:\n %s\n %s", st.ddl, layoutText(s), layoutText(read.Schema))
			}
		}
	}
	r.co.mu.Lock()
	defer r.co.mu.Unlock()
	retyped := 0
	for _, l := range r.co.layouts {
		if strings.HasSuffix(l, "=true") {
			retyped++
		}
	}
	if live && (len(r.co.layouts) != len(layoutSteps)-2 || retyped != 2) {
		t.Errorf("layout changes: %v", r.co.layouts)
	}
}

func withoutDefaults(s string) string {
	f := strings.Fields(s)
	for i := range f {
		f[i], _, _ = strings.Cut(f[i], "=")
	}
	return strings.Join(f, " ")
}

// readNewest reads the row with the greatest id as a chunk does.
func readNewest(t *testing.T, r *rig, name string) change.Row {
	t.Helper()
	ctx := t.Context()
	s, err := connect(ctx, &r.con.opts, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	oid, err := s.text(ctx, "SELECT 'public."+name+"'::regclass::oid")
	if err != nil {
		t.Fatal(err)
	}
	tab, err := r.src.(*source).catalog.current(ctx, s, toOID([]byte(oid)))
	if err != nil {
		t.Fatal(err)
	}
	b := &change.Batch{}
	if err := s.each(ctx, "SELECT "+tab.selectList()+" FROM "+tab.sql()+" ORDER BY id DESC LIMIT 1", nil, func(f [][]byte) error { return tab.appendRead(b, f) }); err != nil {
		t.Fatal(err)
	}
	row, _ := b.After(&b.Events[0])
	return row
}

// TestPartitions: rows of partitions come as their root's; a partition that is
// attached or moved to keeps them so.
func TestPartitions(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), `CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 (v text, id int PRIMARY KEY); ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)`)
	r.open()
	r.step()
	r.exec("INSERT INTO p VALUES (1, 'a'), (11, 'b')", "UPDATE p SET id = 12 WHERE id = 1", "DELETE FROM p2 WHERE id = 11", "TRUNCATE p")
	want := []string{"insert p key=1 after={id:1 v:\"a\"}\ninsert p key=11 after={id:11 v:\"b\"}\n",
		"delete p key=1\ninsert p key=12 after={id:12 v:\"a\"}\n", "delete p key=11\n", "truncate p key=\n"}
	for _, w := range want {
		if got := render(t, r.next()); got != w {
			t.Errorf("came\n%swant\n%s", got, w)
		}
	}
}

// TestV13ToastedKey moves and updates a row whose key is stored out of line.
func TestV13ToastedKey(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			r := newRig(t, testkit.PostgresVersion(t, major), `CREATE TABLE a (k text, id int, n int, body text, PRIMARY KEY (k, id));
				ALTER TABLE a ALTER k SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL`)
			r.open()
			r.step()
			// The key must fit an index page: 2,000 bytes, out of line in a row above 2 KB.
			r.exec("INSERT INTO a SELECT repeat('k', 2200), 1, 1, repeat('b', 9000)")
			b := r.next()
			key := string(b.Key(&b.Events[0]))
			r.exec("UPDATE a SET n = 2")
			b = r.next()
			if got := string(b.Key(&b.Events[0])); len(b.Events) != 1 || got != key || b.Events[0].Flags != change.FlagPartial {
				t.Errorf("an update: %s", render(t, b))
			}
			row, _ := b.After(&b.Events[0])
			if v, err := row.Value(0); err != nil || len(v.Raw()) != 2200 {
				t.Errorf("the key column: %v", err)
			}
			r.exec("UPDATE a SET id = 2")
			b = r.next()
			if len(b.Events) != 2 || string(b.Key(&b.Events[0])) != key || b.Events[1].Flags != change.FlagPartial|change.FlagMoved {
				t.Fatalf("a move: %d events", len(b.Events))
			}
			row, _ = b.After(&b.Events[1])
			if v, err := row.Value(0); err != nil || len(v.Raw()) != 2200 {
				t.Errorf("the key column of the moved row: %v", err)
			}
		})
	}
}

// TestV1AddTable: while a transaction writes to a table, the table is added to
// the publication: either it waits, or nothing of that transaction comes; never a half.
func TestV1AddTable(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.step()
	r.close()
	r.exec("CREATE TABLE b (id int PRIMARY KEY)")
	writer := testkit.Connect(t, r.dsn)
	if _, err := writer.PgConn().Exec(t.Context(), "BEGIN; INSERT INTO b VALUES (10)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	go func() { defer close(opened); r.open() }()
	watch := testkit.Connect(t, r.dsn)
	testkit.Eventually(t, 10*time.Second, "the lock is waited for", func() error {
		var n int
		if err := watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'b'::regclass AND mode = 'ShareRowExclusiveLock'").Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("no waiter")
		}
		return nil
	})
	if _, err := writer.PgConn().Exec(t.Context(), "INSERT INTO b VALUES (11); COMMIT; INSERT INTO b VALUES (12)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	<-opened
	r.exec("INSERT INTO b VALUES (13)")
	var got []string
	for !strings.Contains(strings.Join(got, ""), "key=13") {
		got = append(got, render(t, r.next()))
	}
	for _, g := range got {
		if strings.Contains(g, "key=11") != strings.Contains(g, "key=10") {
			t.Errorf("half a transaction came: %s", g)
		}
	}
}

// TestDiscover: a new table ends the source so that it is opened again, at the
// latest when End is asked.
func TestDiscover(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.opts.Discover = time.Hour
	r.connector()
	r.open()
	r.step()
	r.exec("CREATE TABLE b (id int PRIMARY KEY); CREATE TABLE nokey (id int)")
	end, err := r.con.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var b *change.Batch
		if b, err = r.src.Next(t.Context()); err == nil {
			r.log.durable(r.src, b)
		}
	}
	if !isReopen(err) {
		t.Fatalf("the source ends with %v", err)
	}
	if r.con.Reached(change.Position{Name: "F/0", Resume: end.Resume}, end) {
		t.Error("reached, though a table is not captured yet")
	}
	r.close()
	r.open()
	r.exec("INSERT INTO b VALUES (1)")
	if got := render(t, r.next()); got != "insert b key=1 after={id:1}\n" {
		t.Errorf("came %s", got)
	}
}
