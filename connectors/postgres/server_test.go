package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/internal/testkit"
)

// TestServerSettings: what is wrong with a server, all at once; and a wrong password.
func TestServerSettings(t *testing.T) {
	pg := testkit.StartPostgres(t, "wal_level=replica", "max_replication_slots=1", "max_wal_senders=1")
	testkit.Exec(t, pg.URL, "CREATE TABLE a (id int PRIMARY KEY)", "SELECT pg_create_physical_replication_slot('theirs')", "CREATE ROLE secure LOGIN PASSWORD 'right'")
	d, err := New(Options{Source: "s", DSN: pg.URL, Tables: []string{"a"}}).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ALTER SYSTEM SET wal_level = logical", "ALTER SYSTEM SET max_replication_slots"} {
		found := false
		for _, p := range d.Problems {
			found = found || strings.Contains(p.Fix, want)
		}
		if !found {
			t.Errorf("%q is not in %+v", want, d.Problems)
		}
	}
	hba := filepath.Join(pg.DataDir, "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, pg.URL, "SELECT pg_reload_conf()")
	u, _ := url.Parse(pg.URL)
	u.User = url.UserPassword("secure", "s3cret")
	testkit.Eventually(t, 10*time.Second, "the server asks for passwords", func() error {
		_, err := New(Options{Source: "s", DSN: u.String(), Tables: []string{"a"}}).Describe(t.Context())
		if err == nil {
			return errors.New("not yet")
		}
		if text := err.Error(); !errors.Is(err, connectors.ErrPrerequisite) || !strings.Contains(text, "check user and password") || strings.Contains(text, "s3cret") {
			t.Fatalf("a wrong password: %v", err)
		}
		return nil
	})
}

// drain takes batches in the background, as ingest does, until the source ends.
func (r *rig) drain() (ended chan error) {
	ended = make(chan error, 1)
	src, log := r.src, r.log
	go func() {
		for {
			b, err := src.Next(context.Background())
			if err != nil {
				ended <- err
				return
			}
			if !b.More {
				log.durable(src, b)
			}
		}
	}()
	return ended
}

// TestServerStops: a fast shutdown, which waits for us to confirm what is sent,
// does not hang, and a crash loses nothing.
func TestServerStops(t *testing.T) {
	pg := testkit.StartPostgres(t, "fsync=on")
	r := newRig(t, pg.URL, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE SCHEMA o; CREATE TABLE o.b (id int)")
	r.opts.TickInterval = time.Hour
	r.connector()
	for i, stop := range []func(){pg.Stop, pg.Crash} {
		r.open()
		ended := r.drain()
		r.exec(fmt.Sprintf("INSERT INTO a VALUES (%d)", i), "INSERT INTO o.b SELECT generate_series(1, 10000)")
		end, err := r.con.End(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 20*time.Second, "the end is reached", func() error {
			if pos, _ := r.log.Last(); !r.con.Reached(pos, end) {
				return fmt.Errorf("at %s of %s", pos, end)
			}
			return nil
		})
		r.exec("INSERT INTO o.b SELECT generate_series(1, 10000)")
		started := time.Now()
		stop()
		if took := time.Since(started); took > 20*time.Second {
			t.Errorf("the stop took %v", took)
		}
		select {
		case err = <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the source does not notice")
		}
		if errors.Is(err, connectors.ErrPositionLost) || errors.Is(err, connectors.ErrPrerequisite) {
			t.Errorf("the source ends with %v", err)
		}
		if _, err := r.con.Open(t.Context(), r.log); err == nil || errors.Is(err, connectors.ErrPrerequisite) {
			t.Errorf("open while the server is down: %v", err)
		}
		r.close()
		pg.Start()
	}
	r.exec("INSERT INTO a VALUES (9)")
	r.open()
	if got := render(t, r.next()); got != "insert a key=9 after={id:9}\n" {
		t.Errorf("came %s", got)
	}
}

// TestSlotLost: the server gave the slot up for its disk.
func TestSlotLost(t *testing.T) {
	pg := testkit.StartPostgres(t, "max_slot_wal_keep_size=1MB", "min_wal_size=32MB", "max_wal_size=32MB")
	r := newRig(t, pg.URL, "CREATE TABLE a (id int PRIMARY KEY, body text)")
	r.open()
	r.step()
	r.exec("INSERT INTO a VALUES (1)")
	r.next()
	r.close()
	c := testkit.Connect(t, pg.URL)
	testkit.Eventually(t, 60*time.Second, "the slot is lost", func() error {
		if _, err := c.Exec(t.Context(), "SELECT pg_switch_wal(), txid_current()"); err != nil {
			return err
		}
		if _, err := c.Exec(t.Context(), "CHECKPOINT"); err != nil {
			return err
		}
		var status string
		if err := c.QueryRow(t.Context(), "SELECT wal_status FROM pg_replication_slots").Scan(&status); err != nil || status != "lost" {
			return fmt.Errorf("it is %s, %v", status, err)
		}
		return nil
	})
	if text := r.refused(connectors.ErrPositionLost); !strings.Contains(text, "invalidated") {
		t.Errorf("%s", text)
	}
}

// TestV14Promotion goes on behind a promotion if the new timeline has all that
// the log has, and refuses one that forked before.
func TestV14Promotion(t *testing.T) {
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprintf("behind=%v", behind), func(t *testing.T) { testPromotion(t, behind) })
	}
}

func testPromotion(t *testing.T, behind bool) {
	primary := testkit.StartPostgresWith(t, testkit.PostgresOptions{Version: 18, Settings: []string{"hot_standby_feedback=on"}})
	r := newRig(t, primary.URL, "CREATE TABLE a (id int PRIMARY KEY)")
	standby := primary.Standby("sb")
	// A slot on the standby, as a synced one would be, older than the log's end.
	made := make(chan error, 1)
	c := testkit.Connect(t, standby.URL)
	r.exec("CREATE PUBLICATION \"" + r.con.opts.Publication + "\" FOR TABLE a WITH (publish_via_partition_root = true)")
	go func() {
		_, err := c.Exec(context.Background(), "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", r.con.opts.Slot)
		made <- err
	}()
	testkit.Eventually(t, 30*time.Second, "the slot on the standby", func() error {
		r.exec("SELECT pg_log_standby_snapshot()")
		select {
		case err := <-made:
			if err != nil {
				t.Fatal(err)
			}
			return nil
		default:
			return errors.New("not yet")
		}
	})
	r.open()
	r.step()
	r.exec("INSERT INTO a VALUES (1)")
	r.next()
	if behind {
		standby.Stop()
	}
	r.exec("INSERT INTO a VALUES (2)")
	if got := render(t, r.next()); got != "insert a key=2 after={id:2}\n" {
		t.Fatalf("came %s", got)
	}
	end, _ := parsePosition(r.log.pos)
	if !behind {
		testkit.Eventually(t, 20*time.Second, "the standby has it", func() error {
			var replayed string
			if err := c.QueryRow(t.Context(), "SELECT pg_last_wal_replay_lsn()::text").Scan(&replayed); err != nil {
				return err
			}
			if lsn, _ := ParseLSN(replayed); lsn < end.end {
				return fmt.Errorf("at %s of %s", replayed, end.end)
			}
			return nil
		})
	}
	r.close()
	primary.Crash()
	if behind {
		standby.Start()
	}
	standby.Promote()
	r.dsn, r.opts.DSN = standby.URL, standby.URL
	r.connector()
	r.exec("INSERT INTO a VALUES (3)")
	if behind {
		// The new timeline grows past the log's end: its LSNs alone do not tell.
		r.exec("CREATE TABLE filler AS SELECT generate_series(1, 100000)")
		r.opts.Tables = []string{"public.a"}
		r.connector()
		r.refused(connectors.ErrRewound)
		return
	}
	r.open()
	if got := render(t, r.next()); got != "insert a key=3 after={id:3}\n" {
		t.Errorf("came %s", got)
	}
	if at, _ := parsePosition(r.log.pos); at.timeline != 2 {
		t.Errorf("the position is on timeline %d", at.timeline)
	}
}
