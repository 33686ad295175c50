package daemon

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/internal/testkit"
	"github.com/tailwater/tailwater/server"
)

// slowLibrary is a library whose tables are read in small chunks, some of them a second.
func slowLibrary(t *testing.T) (dsn string, d *testkit.Daemon) {
	t.Helper()
	dsn, f, d := library(t)
	d.SetConfig(strings.Replace(f.String(), "discover: 1s", "discover: 1s, snapshot: { chunk_rows: 10, rate: 60 }", 1))
	return dsn, d
}

// books is what `snapshot list` says of the table books.
func books(t *testing.T, d *testkit.Daemon) (s server.SnapshotStatus) {
	t.Helper()
	for line := range strings.Lines(d.MustRun("snapshot", "list", "--json")) {
		var x server.SnapshotStatus
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if x.Topic == "lib.public.books" {
			s = x
		}
	}
	return s
}

func awaitBooks(t *testing.T, d *testkit.Daemon, what string, ok func(server.SnapshotStatus) bool) {
	t.Helper()
	testkit.Eventually(t, waitLong, what, func() error {
		if s := books(t, d); !ok(s) {
			return errorf("%+v", s)
		}
		return nil
	})
}

func running(s server.SnapshotStatus) bool { return s.State == "running" && s.Rows > 0 }

// TestSnapshotPause: a paused table is not read on, over a restart too, while its
// changes come; resume ends it right.
func TestSnapshotPause(t *testing.T) {
	dsn, d := slowLibrary(t)
	d.Start()
	d.WaitReady(waitLong)
	awaitBooks(t, d, "the table is being read", running)
	if out := d.MustRun("snapshot", "pause"); !strings.Contains(out, "lib.public.books") {
		t.Errorf("pause says %q", out)
	}
	testkit.Exec(t, dsn, "UPDATE books SET title = 'while paused' WHERE id % 7 = 0", "DELETE FROM books WHERE id = 200")
	d.Restart()
	awaitBooks(t, d, "the table is paused", func(s server.SnapshotStatus) bool { return s.State == "paused" })
	rows := books(t, d).Rows
	testkit.Exec(t, dsn, "UPDATE books SET title = 'the last change' WHERE id = 199")
	testkit.Eventually(t, waitLong, "changes are streamed", func() error {
		if out := d.MustRun("log", "cat", "lib.public.books", "--json"); !strings.Contains(out, "the last change") {
			return errorf("%d bytes", len(out))
		}
		return nil
	})
	if s := books(t, d); s.State != "paused" || s.Rows != rows || s.Rows >= 200 {
		t.Errorf("while paused: %+v, before %d rows", s, rows)
	}
	if out := d.MustRun("snapshot", "pause", "public.books"); !strings.Contains(out, "nothing to pause") {
		t.Errorf("a second pause says %q", out)
	}
	d.MustRun("snapshot", "resume")
	equal(t, d, dsn)
}

// TestSnapshotStop: a first read that is stopped is made up for by a run, or by the next start.
func TestSnapshotStop(t *testing.T) {
	for _, again := range []string{"run", "restart"} {
		t.Run(again, func(t *testing.T) {
			dsn, d := slowLibrary(t)
			d.Start()
			d.WaitReady(waitLong)
			awaitBooks(t, d, "the table is being read", running)
			d.MustRun("snapshot", "stop", "lib.public.books")
			awaitBooks(t, d, "the table is not read", func(s server.SnapshotStatus) bool { return s.State == "stopped" })
			if again == "run" {
				d.MustRun("snapshot", "run", "lib.public.books")
			} else {
				d.Restart()
			}
			equal(t, d, dsn)
			if s := books(t, d); s.Run != 2 {
				t.Errorf("%+v, want run 2", s)
			}
			// An ad-hoc run that is stopped leaves nothing to do.
			d.MustRun("snapshot", "run", "public.books")
			awaitBooks(t, d, "the table is being read again", func(s server.SnapshotStatus) bool { return s.Run == 3 && running(s) })
			d.MustRun("snapshot", "stop", "public.books")
			d.Restart()
			equal(t, d, dsn)
			if s := books(t, d); s.Run != 3 || s.State != "given up" {
				t.Errorf("%+v, want run 3, stopped for good", s)
			}
		})
	}
	_, d := slowLibrary(t)
	d.Start()
	d.WaitReady(waitLong)
	for _, args := range [][]string{{"stop"}, {"pause", "lib.public.nothing"}, {"resume", "a.b", "c"}} {
		if r := d.Run(append([]string{"snapshot"}, args...)...); r.Code == 0 {
			t.Errorf("snapshot %v: %s", args, r.Stdout)
		}
	}
}
