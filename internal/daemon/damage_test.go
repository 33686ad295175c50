package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/testkit"
	"github.com/tailwater/tailwater/server"
)

// damaged is a stopped library whose log is sealed and has a flipped bit in the first segment of a topic.
func damaged(t *testing.T, topic string) (dsn string, d *testkit.Daemon) {
	t.Helper()
	dsn, _, d = library(t)
	d.Start()
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "UPDATE books SET title = title || '!' WHERE id % 3 = 0", "DELETE FROM books WHERE id % 10 = 1", "UPDATE books SET id = id + 1000 WHERE id % 10 = 2")
	equal(t, d, dsn)
	d.Stop()
	flipBits(t, d, topic)
	return dsn, d
}

// flipBits seals the log of a stopped daemon and flips a bit in each partition of a topic.
func flipBits(t *testing.T, d *testkit.Daemon, topic string) {
	t.Helper()
	log, err := seglog.Open(filepath.Join(d.Dir(), "data", "log"), seglog.Options{})
	if err == nil {
		err = log.SealAll(context.Background())
	}
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(d.Dir(), "data", "log", "topics", "*"+topic, "*.seg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("segments of %s: %v, %v", topic, files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		data[16+80] ^= 4
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := d.Run("log", "check"); r.Code == 0 || !strings.Contains(r.Stdout, topic) {
		t.Fatalf("log check with damage: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// intact checks that nothing is damaged any more, and that a state built anew from the log is right.
func intact(t *testing.T, d *testkit.Daemon, dsn string) {
	t.Helper()
	equal(t, d, dsn)
	d.MustRun("log", "check")
	d.Stop()
	removeAll(t, d.Dir()+"/data/state")
	d.Start()
	equal(t, d, dsn)
	testkit.Exec(t, dsn, "UPDATE books SET title = title || '?' WHERE id % 5 = 0", "DELETE FROM books WHERE id % 10 = 3")
	equal(t, d, dsn)
	d.Stop()
	d.MustRun("log", "compact", "lib.public.books")
	removeAll(t, d.Dir()+"/data/state")
	d.Start()
	equal(t, d, dsn)
}

// TestDamagedTableIsReadAnew: a snapshot run of a table whose topic is damaged
// sets the damage aside, whether its view had passed the place or not.
func TestDamagedTableIsReadAnew(t *testing.T) {
	for _, built := range []bool{true, false} {
		name := map[bool]string{true: "view that is live", false: "view without its state"}[built]
		t.Run(name, func(t *testing.T) {
			dsn, d := damaged(t, "lib.public.books")
			if !built {
				removeAll(t, d.Dir()+"/data/state")
			}
			// Rows that went while the topic was damaged, one of them never in a readable record.
			testkit.Exec(t, dsn, "DELETE FROM books WHERE id IN (3, 4)")
			d.Start()
			d.WaitReady(waitLong)
			if built {
				equal(t, d, dsn)
			} else {
				testkit.Eventually(t, waitLong, "the view says that it met damage", func() error {
					if out := d.Run("view", "list").Stdout + d.Run("status").Stdout; !strings.Contains(out, "log check") {
						return errorf("%s", out)
					}
					return nil
				})
			}
			d.MustRun("snapshot", "run", "lib.public.books")
			testkit.Eventually(t, waitLong, "nothing is damaged", func() error {
				if r := d.Run("log", "check"); r.Code != 0 {
					return errorf("%s%s", r.Stdout, r.Stderr)
				}
				return nil
			})
			intact(t, d, dsn)
		})
	}
}

// TestDamagedViewIsOutputAgain: a rebuild of a view whose topic is damaged outputs
// every document again, and takes back those whose tombstones were lost.
func TestDamagedViewIsOutputAgain(t *testing.T) {
	dsn, d := damaged(t, "view.shelf")
	removeAll(t, d.Dir()+"/data/local") // the sink wants everything, and meets the damage
	testkit.Exec(t, dsn, "DELETE FROM books WHERE id IN (5, 6)")
	d.Start()
	d.WaitReady(waitLong)
	testkit.Eventually(t, waitLong, "the sink says that it met damage", func() error {
		if out := d.Run("status").Stdout; !strings.Contains(out, "stopped") {
			return errorf("%s", out)
		}
		return nil
	})
	d.MustRun("view", "rebuild", "shelf")
	equal(t, d, dsn)
	d.MustRun("log", "check")
	intact(t, d, dsn)
}

// TestDamageInTheRunItself: a run that finds what it has appended damaged, after a
// restart, begins anew and mends that too.
func TestDamageInTheRunItself(t *testing.T) {
	dsn, d := slowLibrary(t)
	d.Start()
	d.WaitReady(waitLong)
	equal(t, d, dsn)
	d.MustRun("snapshot", "run", "lib.public.books")
	awaitBooks(t, d, "the table is being read again", func(s server.SnapshotStatus) bool { return s.Run == 2 && running(s) })
	d.Stop()
	flipBits(t, d, "lib.public.books")
	testkit.Exec(t, dsn, "DELETE FROM books WHERE id IN (3, 150)", "UPDATE books SET title = 'while damaged' WHERE id % 20 = 5")
	d.Start()
	d.WaitReady(waitLong)
	equal(t, d, dsn)
	if s := books(t, d); s.Run != 3 {
		t.Errorf("%+v, want run 3", s)
	}
	intact(t, d, dsn)
}

// TestNewLog: the way out of a damaged journal that a refused start names.
func TestNewLog(t *testing.T) {
	dsn, _, d := library(t)
	d.Start()
	equal(t, d, dsn)
	d.Stop()
	files, err := filepath.Glob(filepath.Join(d.Dir(), "data", "log", "journal", "*.journal"))
	if err != nil || len(files) == 0 {
		t.Fatalf("journal files: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/4] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := d.Run("run"); r.Code == 0 || !strings.Contains(r.Stderr, "tailwater log check") {
		t.Errorf("run with a damaged journal: exit code %d\n%s", r.Code, r.Stderr)
	}
	if r := d.Run("log", "check"); r.Code == 0 || !strings.Contains(r.Stdout, "tailwater drop --yes") {
		t.Errorf("log check: exit code %d\n%s", r.Code, r.Stdout)
	}
	testkit.Exec(t, dsn, "DELETE FROM books WHERE id = 9")
	d.MustRun("drop", "--yes")
	d.Start()
	equal(t, d, dsn)
}
