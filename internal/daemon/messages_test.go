package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tailwater/tailwater/internal/testkit"
)

// messageLine is what `log cat _messages.lib --json` prints.
type messageLine struct {
	Op    string
	CSN   uint64
	Seq   uint32
	Key   struct{ Prefix string }
	After struct {
		Content       string
		Transactional bool
	}
	Source struct {
		Position string
		Tx       *string
	}
}

func catMessages(t *testing.T, d *testkit.Daemon) (lines []messageLine) {
	t.Helper()
	for text := range strings.Lines(d.MustRun("log", "cat", "_messages.lib", "--json")) {
		var m messageLine
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, m)
	}
	return lines
}

// TestMessagesKill: messages of both kinds are written while the daemon is killed
// again and again: each is in the log once, in order, and each signal begins one run.
func TestMessagesKill(t *testing.T) {
	dsn, _, d := library(t)
	c := testkit.Connect(t, dsn)
	d.Start()
	d.Wait("--timeout", "120s")
	const most = 3000
	var written atomic.Int64
	failed := make(chan error, 1)
	go func() {
		for i := range int64(most) {
			if _, err := c.Exec(t.Context(), "SELECT pg_logical_emit_message($1, 'n', $2::text)", i%3 == 0, fmt.Sprint(i)); err != nil {
				failed <- err
				return
			}
			written.Store(i + 1)
		}
		failed <- nil
	}()
	signals := 0
	for round := range int64(5) {
		testkit.Eventually(t, time.Minute, "messages are written", func() error {
			if n := written.Load(); n < (round+1)*most/6 {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
		if round%2 == 0 {
			testkit.Exec(t, dsn, `SELECT pg_logical_emit_message(true, 'tailwater', '{"snapshot":"public.authors"}')`)
			signals++
		}
		d.Kill()
		d.Start()
		d.Wait("--timeout", "120s")
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	d.Wait("--timeout", "120s")
	lines := catMessages(t, d)
	if len(lines) != most {
		t.Errorf("%d messages in the log, %d were written", len(lines), most)
	}
	for i, m := range lines {
		if m.After.Content != fmt.Sprint(i) || m.Op != "message" || m.Key.Prefix != "n" || m.After.Transactional != (i%3 == 0) || (m.Source.Tx != nil) != m.After.Transactional {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
	if n := strings.Count(d.MustRun("log", "cat", "_snapshots.lib", "--json"), `"state":"done"`); n != 2+signals {
		t.Errorf("%d runs were done, want those of two tables and %d signals", n, signals)
	}
}
