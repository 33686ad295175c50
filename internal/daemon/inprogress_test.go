package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/internal/testkit"
)

// TestInProgressKill: the daemon is killed while large transactions are in progress,
// with parts that are rolled back and a table that is being read; what the log then
// has equals the table, and no file of a transaction in progress is left.
func TestInProgressKill(t *testing.T) {
	dsn, f, d := library(t)
	testkit.Exec(t, dsn, "CREATE TABLE big (id int PRIMARY KEY, n int, body text)", "INSERT INTO big SELECT g, 0, md5(g::text) FROM generate_series(1, 20000) g")
	f.tables = "public.books, public.authors, public.big"
	d.SetConfig(strings.Replace(f.String(), "discover: 1s", "discover: 1s, decoding_memory: 64KiB", 1))
	d.Start()
	d.WaitReady(time.Minute)
	c := testkit.Connect(t, dsn)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	streamFiles := func(pattern string) []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(d.Dir(), "data/log/journal", pattern))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	adopted := 0
	for round := range 6 {
		if round%2 == 1 {
			testkit.Exec(t, dsn, `SELECT pg_logical_emit_message(true, 'tailwater', '{"snapshot":"public.big"}')`)
		}
		exec("BEGIN")
		exec("UPDATE big SET n = $1, body = md5(body) WHERE id % 3 = 0", round+1)
		exec("SAVEPOINT a")
		exec("UPDATE big SET n = -1")
		exec("DELETE FROM big WHERE id % 5 = 0")
		exec("ROLLBACK TO a")
		exec("INSERT INTO big SELECT g, $1, md5(g::text) FROM generate_series($2::int, $3::int) g", round+1, 100000*(round+1), 100000*(round+1)+5000)
		testkit.Eventually(t, time.Minute, "the transaction comes while it is in progress", func() error {
			if len(streamFiles("*.stream.tmp")) == 0 {
				return fmt.Errorf("no file")
			}
			return nil
		})
		if round%3 != 2 {
			d.Kill()
			d.Start()
		}
		exec("DELETE FROM big WHERE id % 7 = $1", round)
		exec("COMMIT")
		adopted = max(adopted, len(streamFiles("*-*.stream")))
		if round%3 == 1 {
			d.Kill()
			d.Start()
		}
	}
	d.Wait("--timeout", "120s")
	adopted = max(adopted, len(streamFiles("*-*.stream")))
	if left := streamFiles("*.stream.tmp"); len(left) > 0 || adopted == 0 {
		t.Errorf("%d files were adopted, %v are left", adopted, left)
	}
	want := map[int]int{}
	rows, err := c.Query(t.Context(), "SELECT id, n FROM big")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id, n int
		if err := rows.Scan(&id, &n); err != nil {
			t.Fatal(err)
		}
		want[id] = n
	}
	got := foldBig(t, d)
	if !maps.Equal(got, want) {
		t.Errorf("the log has %d rows, the table %d", len(got), len(want))
	}
	equal(t, d, dsn)
}

// foldBig returns the newest row of each key that the log has.
func foldBig(t *testing.T, d *testkit.Daemon) map[int]int {
	t.Helper()
	got := map[int]int{}
	for line := range strings.Lines(d.MustRun("log", "cat", "lib.public.big", "--json")) {
		var r struct {
			Op    string
			Key   struct{ ID int }
			After *struct{ N int }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.After != nil {
			got[r.Key.ID] = r.After.N
		} else {
			delete(got, r.Key.ID)
		}
	}
	return got
}
