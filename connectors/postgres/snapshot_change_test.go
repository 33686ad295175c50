package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

func (r *captureRig) exec(sql ...string) { r.t.Helper(); testkit.Exec(r.t, r.dsn, sql...) }

// ran waits until the table's newest run is that one, and done.
func (r *captureRig) ran(table string, run uint64) {
	r.t.Helper()
	testkit.Eventually(r.t, 30*time.Second, fmt.Sprintf("run %d of %s ends", run, table), func() error {
		r.reopened()
		if m := r.newestRun(table); m == nil || m.Run != run || m.State != change.SnapshotDone {
			return fmt.Errorf("the newest mark is %+v", m)
		}
		return nil
	})
	r.settled()
}

// TestSnapshotAfterRewrite: a rewrite changes every row without an event; the
// table is read again and keys that are gone get a tombstone.
func TestSnapshotAfterRewrite(t *testing.T) {
	for name, sql := range map[string]string{
		"retyped":          "ALTER TABLE items ALTER n TYPE bigint USING n * 1000",
		"same type":        "ALTER TABLE items ALTER n TYPE int USING n + 1",
		"volatile default": "ALTER TABLE items ADD extra int DEFAULT (random() * 1000000)::int",
		"vacuum full":      "VACUUM FULL items",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
			r.start()
			r.ran("items", 1)
			r.same("items")
			r.exec(sql)
			r.ran("items", 2)
			r.same("items")
			r.exec("UPDATE items SET name = 'after' WHERE id < 10", "DELETE FROM items WHERE id = 11")
			r.settled()
			r.same("items")
		})
	}
}

// TestSnapshotRewriteWhileStopped: the same while nobody watched.
func TestSnapshotRewriteWhileStopped(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	r.stop()
	r.exec("ALTER TABLE items ALTER n TYPE int USING n + 1")
	r.start()
	r.ran("items", 2)
	r.same("items")
}

// TestSnapshotRewriteInRun: the run in which it happens is given up for another.
func TestSnapshotRewriteInRun(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.crashAfter(8)
	r.exec("DELETE FROM items WHERE id % 7 = 0", "ALTER TABLE items ALTER n TYPE int USING n + 1")
	r.start()
	r.ran("items", 2)
	r.same("items")
}

// TestSnapshotTruncate: a truncate exchanges the storage too, and is no reason to read again.
func TestSnapshotTruncate(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	r.exec("TRUNCATE items", "INSERT INTO items VALUES (1, 1, 'one', 'x')")
	r.settled()
	r.same("items")
	testkit.Eventually(t, 20*time.Second, "the new storage is noted", func() error {
		marks, err := r.hist.Marks()
		if err != nil {
			return err
		}
		if m := marks[len(marks)-1]; m.State != change.SnapshotProgress || m.Run != 1 {
			return fmt.Errorf("the last mark is %+v", m)
		}
		return nil
	})
	r.stop()
	r.start()
	r.settled()
	if m := r.newestRun("items"); m.Run != 1 {
		t.Errorf("the table was read again: %+v", m)
	}
	r.same("items")
}

// TestSnapshotTruncateInRun: a truncate leaves the run nothing to read.
func TestSnapshotTruncateInRun(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.crashAfter(8)
	r.exec("TRUNCATE items", "INSERT INTO items SELECT g, g, 'again', 'x' FROM generate_series(1, 50) g")
	r.start()
	r.ran("items", 1)
	r.same("items")
}

// TestSnapshotMovedToast: a key change that leaves an out-of-line value alone
// sends the row without it; the row is read again, also after a restart.
func TestSnapshotMovedToast(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	r.exec("UPDATE items SET id = id + 10000 WHERE id <= 300")
	r.settled()
	r.same("items")
	r.log.left.Store(2) // the moves are appended, the re-read is not
	r.exec("UPDATE items SET id = id + 20000 WHERE id BETWEEN 400 AND 450")
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		t.Fatal("the second append did not come")
	}
	r.cancel()
	r.src.Close()
	r.start()
	r.settled()
	r.same("items")
}

// TestSnapshotKeys: re-reads find rows by keys of every kind.
func TestSnapshotKeys(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), `
		CREATE EXTENSION IF NOT EXISTS citext;
		CREATE TYPE mood AS ENUM ('sad', 'glad');
		CREATE TABLE many (a numeric, b text, c date, d timestamptz, e bytea, f mood, g bool, h float8, i interval, j uuid, body text,
			PRIMARY KEY (a, b, c, d, e, f, g, h, i, j));
		CREATE TABLE arrays (a int[] PRIMARY KEY, body text);
		CREATE TABLE folded (a citext PRIMARY KEY, body text);
		ALTER TABLE many ALTER body SET STORAGE EXTERNAL; ALTER TABLE arrays ALTER body SET STORAGE EXTERNAL; ALTER TABLE folded ALTER body SET STORAGE EXTERNAL;`)
	r.start()
	body := "repeat('x', 5000)"
	r.exec(fmt.Sprintf(`
		INSERT INTO many VALUES (1.50, E'it''s \\ "q"', '0044-03-15 BC', '12000-01-01 00:00:00.5+00', '\x00ff', 'sad', true, 1e-300, '1 mon -3 days 04:05:06', '00000000-0000-0000-0000-000000000001', %[1]s),
			('NaN', '', 'infinity', '-infinity', '', 'glad', false, 'Infinity', '0', 'ffffffff-0000-0000-0000-000000000001', %[1]s);
		INSERT INTO arrays VALUES ('{1,2}', %[1]s); INSERT INTO folded VALUES ('MiXed', %[1]s);`, body))
	r.exec("UPDATE many SET a = a + 1, b = b || '!', g = NOT g", "UPDATE arrays SET a = a || 3", "UPDATE folded SET a = 'OtHer'")
	r.settled()
	for _, table := range []string{"many", "arrays", "folded"} {
		r.same(table)
	}
}

// TestSnapshotPartitions: a partitioned table is one topic; its partitions are
// read one by one, and one that is attached later brings its rows.
func TestSnapshotPartitions(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			r := newCaptureRig(t, testkit.PostgresVersion(t, major), `
				CREATE TABLE logs (id int, day int, note text, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
				CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10);
				CREATE TABLE logs_2 PARTITION OF logs FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
				CREATE TABLE logs_2a PARTITION OF logs_2 FOR VALUES FROM (0) TO (500);
				CREATE TABLE logs_2b PARTITION OF logs_2 DEFAULT;
				INSERT INTO logs SELECT g, g % 20, 'n' || g FROM generate_series(1, 1000) g;`)
			r.start()
			r.ran("logs", 1)
			r.same("logs")
			r.exec(`CREATE TABLE extra (id int, day int NOT NULL, note text, PRIMARY KEY (day, id));
				INSERT INTO extra SELECT g, 25, 'e' || g FROM generate_series(1, 300) g;`)
			r.exec(`ALTER TABLE logs ATTACH PARTITION extra FOR VALUES FROM (20) TO (30)`)
			r.ran("logs", 2)
			r.same("logs")
			r.exec("UPDATE logs SET day = day + 1 WHERE id < 50", "DELETE FROM logs WHERE id = 60")
			r.settled()
			r.same("logs")
			r.exec("ALTER TABLE logs DETACH PARTITION logs_1")
			r.ran("logs", 3)
			r.same("logs")
		})
	}
}

// TestSnapshotNewTable: a table that appears later is captured and read.
func TestSnapshotNewTable(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	r.exec("CREATE TABLE later (id int PRIMARY KEY, v text); INSERT INTO later SELECT g, 'v' FROM generate_series(1, 500) g")
	r.ran("later", 1)
	r.same("later")
	r.same("items")
	if m := r.newestRun("items"); m.Run != 1 {
		t.Errorf("the old table was read again: %+v", m)
	}
}

// TestSnapshotOnDemand: a run with a condition reads those rows and sweeps nothing.
func TestSnapshotOnDemand(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	co := r.src.(*source).coordinator.(*snapshots)
	topic := change.TableTopic(r.opts.Source, "public", "items")
	if err := co.Snapshot(topic, "id <= 100 -- the first"); err != nil {
		t.Fatal(err)
	}
	r.ran("items", 2)
	r.same("items")
	if m := r.newestRun("items"); m.Rows != 100 {
		t.Errorf("%d rows were read, not 100", m.Rows)
	}
	if err := co.Snapshot(topic, ""); err != nil {
		t.Fatal(err)
	}
	r.ran("items", 3)
	r.same("items")
	if err := co.Snapshot("no.such.table", ""); err == nil || !strings.Contains(err.Error(), "not captured") {
		t.Errorf("a run of a table that is not captured: %v", err)
	}
}

// TestSnapshotConditionRefused: a run whose condition the server refuses is given
// up. Left unfinished it would end the source at every start; and a condition is
// one expression, whatever it holds.
func TestSnapshotConditionRefused(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	co := r.src.(*source).coordinator.(*snapshots)
	topic := change.TableTopic(r.opts.Source, "public", "items")
	for _, where := range []string{"id <", "no_such_column", "id IN (SELECT id FROM no_such_table)", "1 / (id - id) = 1", "true); COMMIT; DROP TABLE items; SELECT (1"} {
		if err := co.Snapshot(topic, where); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 30*time.Second, "the run with the condition "+where+" is given up", func() error {
			if m := r.newestRun("items"); m.Where != where || m.State != change.SnapshotStopped {
				return fmt.Errorf("the newest mark is %+v", m)
			}
			return nil
		})
	}
	if err := co.Snapshot(topic, ""); err != nil {
		t.Fatal(err)
	}
	r.ran("items", 7)
	r.same("items")
}
