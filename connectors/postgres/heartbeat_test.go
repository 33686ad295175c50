package postgres

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// logBuffer is what a logger wrote.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// TestHeartbeatMessage: an idle database whose positions are not told otherwise
// moves by its heartbeats, none of which is captured.
func TestHeartbeatMessage(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.opts.HeartbeatMessage = 20 * time.Millisecond
	r.connector()
	r.open()
	first, _ := parsePosition(r.step().Pos)
	c := testkit.Connect(t, r.dsn)
	const heartbeat = 60 // bytes of log that one has at least
	testkit.Eventually(t, 20*time.Second, "the position follows ten heartbeats", func() error {
		b := r.step()
		if b.Kind != change.Tick {
			t.Fatalf("came %s", render(t, b))
		}
		if at, _ := parsePosition(b.Pos); at.end < first.end+10*heartbeat {
			return fmt.Errorf("it is at %s, began at %s", at.end, first.end)
		}
		return nil
	})
	testkit.Eventually(t, 20*time.Second, "a session is seen that wrote one", func() error {
		var n int
		err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%tailwater.heartbeat%' AND pid <> pg_backend_pid()").Scan(&n)
		if err == nil && n == 0 {
			err = fmt.Errorf("none")
		}
		return err
	})
}

// TestHeartbeatRefused: a role that may write none is warned of once, and the source goes on.
func TestHeartbeatRefused(t *testing.T) {
	dsn := testkit.Postgres(t)
	role := "role_" + testkit.Name(t)
	testkit.Exec(t, dsn, "CREATE ROLE "+role+" LOGIN REPLICATION", "CREATE TABLE a (id int PRIMARY KEY)", "GRANT SELECT ON a TO "+role,
		"CREATE PUBLICATION tailwater_p FOR TABLE a",
		"REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) FROM PUBLIC")
	t.Cleanup(func() {
		testkit.Exec(t, dsn, "GRANT EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) TO PUBLIC", "DROP OWNED BY "+role, "DROP ROLE "+role)
	})
	var log logBuffer
	r := newRig(t, dsn)
	r.opts.DSN = strings.Replace(dsn, "postgres@", role+"@", 1)
	r.opts.Publication, r.opts.HeartbeatMessage = "tailwater_p", 10*time.Millisecond
	r.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.connector()
	r.open()
	r.step()
	testkit.Eventually(t, 20*time.Second, "a warning", func() error {
		if log.count("no heartbeat_message") == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	for i := range 3 {
		r.exec(fmt.Sprintf("INSERT INTO a VALUES (%d)", i))
		if got := render(t, r.next()); !strings.Contains(got, fmt.Sprintf("key=%d", i)) {
			t.Errorf("came %s", got)
		}
	}
	if n := log.count("no heartbeat_message"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}
