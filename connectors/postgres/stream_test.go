package postgres

import (
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

func TestStream(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run("pg"+string(rune('0'+major/10))+string(rune('0'+major%10)), func(t *testing.T) {
			testStream(t, testkit.PostgresVersion(t, major))
		})
	}
}

func testStream(t *testing.T, dsn string) {
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY, name text, body text)", "ALTER TABLE a ALTER body SET STORAGE EXTERNAL")
	r.open()
	first := r.step()
	if first.Kind != change.Tick {
		t.Fatalf("the first batch is %v, want the slot's tick", first.Kind)
	}
	steps := []struct{ sql, want string }{
		{"INSERT INTO a VALUES (1, 'x', repeat('y', 5000))", "insert a key=1 after={id:1 name:\"x\" body:(5002 bytes)}\n"},
		{"UPDATE a SET name = 'z'", "update a partial key=1 after={id:1 name:\"z\" body:(unchanged)}\n"},
		{"UPDATE a SET id = 2", "delete a moved key=1\ninsert a partial moved key=2 after={id:2 name:\"z\" body:(unchanged)}\n"},
		{"UPDATE a SET name = NULL, body = ''", "update a key=2 after={id:2 name:null body:\"\"}\n"},
		{"DELETE FROM a", "delete a key=2\n"},
		{"TRUNCATE a", "truncate a key=\n"},
		{"ALTER TABLE a REPLICA IDENTITY FULL; INSERT INTO a VALUES (3, 'x', repeat('y', 5000))", "insert a key=3 after={id:3 name:\"x\" body:(5002 bytes)}\n"},
		{"UPDATE a SET name = 'z'", "update a key=3 before={id:3 name:\"x\" body:(5002 bytes)} after={id:3 name:\"z\" body:(5002 bytes)}\n"},
		{"UPDATE a SET id = 4", "delete a moved key=3 before={id:3 name:\"z\" body:(5002 bytes)}\ninsert a moved key=4 after={id:4 name:\"z\" body:(5002 bytes)}\n"},
		{"DELETE FROM a", "delete a key=4 before={id:4 name:\"z\" body:(5002 bytes)}\n"},
	}
	for _, st := range steps {
		r.exec(st.sql)
		if got := render(t, r.next()); got != st.want {
			t.Errorf("%s:\n%swant\n%s", st.sql, got, st.want)
		}
	}
	if note, _ := r.log.Intent(); note != nil {
		t.Errorf("the note of the slot is still there: %q", note)
	}
	// A restart sends nothing again, and goes on.
	r.close()
	r.exec("INSERT INTO a VALUES (5)")
	r.open()
	if got := render(t, r.next()); !strings.HasPrefix(got, "insert a key=5 ") {
		t.Errorf("after a restart: %s", got)
	}
	r.close()
	for range 2 {
		if err := r.con.Drop(t.Context()); err != nil {
			t.Errorf("drop: %v", err)
		}
	}
	c := testkit.Connect(t, dsn)
	var left int
	if err := c.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) + (SELECT count(*) FROM pg_publication)").Scan(&left); err != nil || left != 0 {
		t.Errorf("drop left %d slots and publications (%v)", left, err)
	}
}
