package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/internal/testkit"
)

// TestResume stops after each batch of interleaved transactions, of which the
// earlier started commits later, and a COPY, and starts again: each comes once.
func TestResume(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.step()
	one, two := testkit.Connect(t, r.dsn), testkit.Connect(t, r.dsn)
	run := func(c *pgx.Conn, sql string) {
		t.Helper()
		if _, err := c.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(one, "BEGIN; INSERT INTO a VALUES (1)")
	run(two, "BEGIN; INSERT INTO a VALUES (2); COMMIT; BEGIN; INSERT INTO a VALUES (3)")
	run(one, "INSERT INTO a VALUES (4); COMMIT")
	run(two, "COMMIT")
	if _, err := two.CopyFrom(t.Context(), pgx.Identifier{"a"}, []string{"id"}, pgx.CopyFromRows([][]any{{int32(10)}, {int32(11)}, {int32(12)}})); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 4 {
		b := r.next()
		keys := ""
		for i := range b.Events {
			row, _ := b.After(&b.Events[i])
			v, _ := row.Value(0)
			keys += fmt.Sprint(v.Int64(), " ")
		}
		got = append(got, keys)
		r.close()
		r.open()
	}
	if want := "2 |1 4 |3 |10 11 12 "; strings.Join(got, "|") != want {
		t.Errorf("came %q, want %q", strings.Join(got, "|"), want)
	}
	run(one, "INSERT INTO a VALUES (20)")
	if got := render(t, r.next()); !strings.Contains(got, "key=20") {
		t.Errorf("then came %s", got)
	}
}

// TestUnconfirmed: what was returned and not made durable comes again, even if
// the server was told nothing at all.
func TestUnconfirmed(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.step()
	r.exec("INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		b, err := r.src.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == change.Transaction && strings.Contains(render(t, b), "key=2") {
			break
		}
	}
	r.close()
	r.open()
	if got := render(t, r.next()) + render(t, r.next()); got != "insert a key=1 after={id:1}\ninsert a key=2 after={id:2}\n" {
		t.Errorf("came %s", got)
	}
}

// TestBlocked: nobody takes batches for longer than the server waits for an
// answer, with more data than the queue and the sockets hold; the stream lives.
func TestBlocked(t *testing.T) {
	dsn := testkit.Postgres(t)
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY, body text)", "ALTER ROLE postgres IN DATABASE "+database(dsn)+" SET wal_sender_timeout = '1500ms'")
	r.opts.QueueBytes, r.opts.PartBytes = 1<<20, 256<<10
	r.connector()
	r.open()
	r.step()
	r.exec("INSERT INTO a SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 4000) i") // 38 MB
	c := testkit.Connect(t, dsn)
	slot := r.con.opts.Slot
	deadline := time.Now().Add(5 * time.Second)
	testkit.Eventually(t, 20*time.Second, "five seconds with the slot held", func() error {
		var active bool
		if err := c.QueryRow(t.Context(), "SELECT active FROM pg_replication_slots WHERE slot_name = $1", slot).Scan(&active); err != nil {
			return err
		}
		if !active {
			t.Fatal("the server ended the stream while we were blocked")
		}
		if time.Now().Before(deadline) {
			return errors.New("not yet")
		}
		return nil
	})
	rows, parts := 0, 0
	for {
		b := r.step()
		if b.Kind != change.Transaction {
			continue
		}
		rows += len(b.Events)
		parts++
		if !b.More {
			break
		}
	}
	if rows != 4000 || parts < 50 {
		t.Errorf("%d rows in %d parts", rows, parts)
	}
}

func database(dsn string) string {
	return dsn[strings.LastIndexByte(dsn, '/')+1 : strings.IndexByte(dsn, '?')]
}

// TestIdle: writes elsewhere move the server's log; the slot of an idle source
// follows, but only after the tick is durable.
func TestIdle(t *testing.T) {
	dsn := testkit.Postgres(t)
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE SCHEMA other; CREATE TABLE other.b (id int PRIMARY KEY, body text)")
	r.open()
	r.step()
	c := testkit.Connect(t, dsn)
	confirmed := func() LSN {
		t.Helper()
		var text string
		if err := c.QueryRow(t.Context(), "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", r.con.opts.Slot).Scan(&text); err != nil {
			t.Fatal(err)
		}
		lsn, err := ParseLSN(text)
		if err != nil {
			t.Fatal(err)
		}
		return lsn
	}
	before, _ := parsePosition(r.log.pos)
	r.exec("INSERT INTO other.b SELECT i, md5(i::text) FROM generate_series(1, 1000) i")
	var end string
	if err := c.QueryRow(t.Context(), "SELECT pg_current_wal_flush_lsn()::text").Scan(&end); err != nil {
		t.Fatal(err)
	}
	target, _ := ParseLSN(end)
	// Ticks come, and as long as none is confirmed the slot stays.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var tick *change.Batch
	for tick == nil {
		b, err := r.src.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind != change.Tick {
			t.Fatalf("came %s", render(t, b))
		}
		if at, _ := parsePosition(b.Pos); at.end >= target {
			tick = b
		}
	}
	if at := confirmed(); at > before.end {
		t.Errorf("the slot is at %s though only %s is durable", at, before.end)
	}
	r.log.durable(r.src, tick)
	testkit.Eventually(t, 10*time.Second, "the slot follows", func() error {
		if at := confirmed(); at < target {
			return fmt.Errorf("it is at %s, want %s", at, target)
		}
		return nil
	})
}

// TestV16End: a commit of another connection that set synchronous_commit off is
// in what End names, and an idle server gets there.
func TestV16End(t *testing.T) {
	dsn := testkit.Postgres(t)
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY)")
	r.opts.TickInterval = time.Hour
	r.connector()
	r.open()
	r.step()
	for i := range 5 {
		r.exec(fmt.Sprintf("SET synchronous_commit = off; INSERT INTO a VALUES (%d)", i))
		end, err := r.con.End(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for started := time.Now(); !r.con.Reached(r.log.pos, end); {
			b := r.step()
			seen = seen || b.Kind == change.Transaction
			if took := time.Since(started); took > 10*time.Second {
				t.Fatalf("not reached in %v", took)
			}
		}
		if !seen {
			t.Errorf("round %d: the end is reached without the commit before it", i)
		}
	}
}

// TestRestart: a server that restarts gives an error that may be retried, and
// everything is there afterwards.
func TestRestart(t *testing.T) {
	dsn := testkit.Postgres(t)
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.step()
	r.exec("INSERT INTO a VALUES (1)")
	r.next()
	c := testkit.Connect(t, dsn)
	if _, err := c.Exec(t.Context(), "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1", r.con.opts.Slot); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var err error
	for err == nil {
		_, err = r.src.Next(ctx)
	}
	for _, s := range []error{connectors.ErrPositionLost, connectors.ErrRewound, connectors.ErrUnknownSlot, connectors.ErrBusy, connectors.ErrPrerequisite, context.DeadlineExceeded} {
		if errors.Is(err, s) {
			t.Errorf("a broken connection is %v", err)
		}
	}
	r.close()
	r.exec("INSERT INTO a VALUES (2)")
	r.open()
	if got := render(t, r.next()); got != "insert a key=2 after={id:2}\n" {
		t.Errorf("came %s", got)
	}
}
