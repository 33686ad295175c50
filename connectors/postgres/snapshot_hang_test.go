package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// syncPair is a primary whose commits wait for a standby.
func syncPair(t *testing.T) (primary, standby *testkit.PostgresServer) {
	t.Helper()
	primary = testkit.StartPostgres(t, "synchronous_standby_names=sb1")
	return primary, primary.Standby("sb1")
}

// hang runs a statement whose commit waits for the paused standby; it returns when it does.
func hang(t *testing.T, dsn, sql string) (committed chan error) {
	t.Helper()
	c := testkit.Connect(t, dsn)
	committed = make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), sql)
		committed <- err
	}()
	waitFor(t, dsn, "the commit waits for the standby", "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'")
	return committed
}

// waitFor waits until a query answers true.
func waitFor(t *testing.T, dsn, what, query string) {
	t.Helper()
	c := testkit.Connect(t, dsn)
	testkit.Eventually(t, 30*time.Second, what, func() error {
		var ok bool
		if err := c.QueryRow(context.Background(), query).Scan(&ok); err != nil {
			return err
		}
		if !ok {
			return errors.New("not yet")
		}
		return nil
	})
}

// openTx starts a transaction that has a transaction id.
func openTx(t *testing.T, dsn string, sql ...string) pgx.Tx {
	t.Helper()
	ctx := context.Background()
	tx, err := testkit.Connect(t, dsn).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append([]string{"SELECT pg_current_xact_id()"}, sql...) {
		if _, err := tx.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = tx.Rollback(ctx) })
	return tx
}

// TestV5HangingCommit: a transaction is streamed and appended while its commit
// waits for a standby. A chunk does not see it, and may not be appended over it;
// not either after a restart that has only the log to know it from.
func TestV5HangingCommit(t *testing.T) {
	primary, standby := syncPair(t)
	r := newCaptureRig(t, primary.URL, itemsSQL)
	r.crashAfter(8)
	standby.Pause()
	committed := hang(t, primary.URL, "WITH d AS (DELETE FROM items WHERE id = 1990) UPDATE items SET n = -1, body = 'new' WHERE id IN (5, 1980)")
	r.start()
	topic := change.TableTopic(r.opts.Source, "public", "items")
	appended := func() error {
		found := errors.New("it is not appended")
		err := r.hist.ReadNewest(topic, func(_ change.Key, row change.Row, _ bool) error {
			if v, err := row.Value(3); err == nil && v.TextValue() == "new" {
				found = nil
			}
			return nil
		})
		return errors.Join(err, found)
	}
	testkit.Eventually(t, 30*time.Second, "the transaction is appended", appended)
	for range 2 {
		tried := r.src.(*source).coordinator.(*snapshots)
		testkit.Eventually(t, 30*time.Second, "a chunk is read in vain", func() error {
			if n := tried.attempts(); n < 3 {
				return fmt.Errorf("%d times", n)
			}
			return nil
		})
		r.stop()
		r.start()
	}
	standby.Resume()
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	r.ran("items", 1)
	r.same("items")
}

// attempts returns how often the present chunk was read in vain.
func (c *snapshots) attempts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempt
}

// waitsForOld waits until a run has begun and its chunks wait for older transactions.
func (r *captureRig) waitsForOld(table string) {
	r.t.Helper()
	c := r.src.(*source).coordinator.(*snapshots)
	testkit.Eventually(r.t, 30*time.Second, "the run waits for older transactions", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if m := r.newestRun(table); m == nil || m.State != change.SnapshotBegun || c.waits < 5 {
			return fmt.Errorf("found to go on %d times; the newest mark is %+v", c.waits, m)
		}
		return nil
	})
}

// TestV2NewSlot: a transaction starts after the second phase of the slot's
// creation, its commit record precedes the slot's consistent point, and it hangs:
// it is not in the stream, and a chunk does not see it.
func TestV2NewSlot(t *testing.T) {
	primary, standby := syncPair(t)
	r := newCaptureRig(t, primary.URL, itemsSQL)
	ctx := context.Background()
	first := openTx(t, primary.URL)
	opened := make(chan error, 1)
	go func() {
		src, err := r.con.Open(ctx, r.hist)
		r.src = src
		opened <- err
	}()
	waits := "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND transactionid = '%s'::xid"
	waitFor(t, primary.URL, "the slot waits for the first", fmt.Sprintf(waits, xidOf(t, first)))
	second := openTx(t, primary.URL)
	if err := first.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	waitFor(t, primary.URL, "the slot waits for the second", fmt.Sprintf(waits, xidOf(t, second)))
	standby.Pause()
	committed := hang(t, primary.URL, "INSERT INTO items VALUES (5001, 1, 'hangs', 'x')")
	if err := second.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	r.run(r.src)
	r.waitsForOld("items")
	standby.Resume()
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	r.ran("items", 1)
	r.same("items")
}

func xidOf(t *testing.T, tx pgx.Tx) string {
	t.Helper()
	var xid string
	if err := tx.QueryRow(context.Background(), "SELECT pg_current_xact_id()::xid::text").Scan(&xid); err != nil {
		t.Fatal(err)
	}
	return xid
}

// TestV1Membership: a table is put into the publication by hand while a
// transaction that has written to it goes on. The stream has what it writes
// from then on; the rest must come by a chunk that sees it.
func TestV1Membership(t *testing.T) {
	dsn := testkit.Postgres(t)
	r := newCaptureRig(t, dsn, itemsSQL)
	r.opts.Tables, r.opts.Discover = []string{"public.items"}, -1
	r.con = New(r.opts)
	r.start()
	r.ran("items", 1)
	r.stop()
	r.exec("CREATE TABLE b (id int PRIMARY KEY, v text)")
	tx := openTx(t, dsn, "INSERT INTO b VALUES (10, 'before')")
	r.exec("ALTER PUBLICATION " + quoteName(r.con.opts.Publication) + " ADD TABLE b")
	r.opts.Tables = []string{"public.items", "public.b"}
	r.con = New(r.opts)
	r.start()
	r.waitsForOld("b")
	if _, err := tx.Exec(context.Background(), "INSERT INTO b VALUES (11, 'after')"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.ran("b", 1)
	r.same("b")
}
