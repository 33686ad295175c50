package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

func TestSignalContent(t *testing.T) {
	for _, tt := range []struct {
		content string
		allowed Signals
		refused string // "" is obeyed
	}{
		{`{"snapshot":"public.t"}`, SignalsTables, ""},
		{` {"snapshot":"public.t","where":""} `, SignalsTables, ""},
		{`{"snapshot":"public.t","where":"id > 3"}`, SignalsConditions, ""},
		{`{"snapshot":"public.t","where":"id > 3"}`, SignalsTables, "signals: conditions"},
		{`{"snapshot":""}`, SignalsTables, "no table"},
		{`{}`, SignalsTables, "no table"},
		{`{"snapshot":"public.t"}{}`, SignalsTables, "something follows"},
		{`{"snapshot":"public.t","when":"now"}`, SignalsTables, "form"},
		{`{"snapshot":7}`, SignalsTables, "form"},
		{"\xff\x00", SignalsTables, "form"},
		{`"` + strings.Repeat("x", 20000) + `"`, SignalsTables, "bytes"},
	} {
		q, err := (&signalMessage{content: tt.content}).parse(tt.allowed)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) || err == nil && q.Snapshot != "public.t" {
			t.Errorf("%.40s: %+v, %v; want %q", tt.content, q, err, tt.refused)
		}
	}
	if got := shorten(strings.Repeat("é", 150)); len(got) > signalShown+3 || !strings.HasSuffix(got, "é…") {
		t.Errorf("shortened to %d bytes: %q", len(got), got)
	}
}

// TestSignalOnce: a signal begins one run, at whichever append the process is
// stopped and however its transaction came; one that is refused stops nothing.
func TestSignalOnce(t *testing.T) {
	messageVersions(t, func(t *testing.T, dsn string) {
		r := newCaptureRig(t, dsn, itemsSQL)
		r.start()
		r.ran("items", 1)
		run := uint64(1)
		for name, sql := range map[string]string{
			"alone":       "SELECT pg_logical_emit_message(false, 'tailwater', '{\"snapshot\":\"public.items\"}')",
			"with a row":  "BEGIN; UPDATE items SET name = 'x' WHERE id = 1; SELECT pg_logical_emit_message(true, 'tailwater', '{\"snapshot\":\"public.items\"}'); COMMIT",
			"with nobody": "SELECT pg_logical_emit_message(true, 'tailwater', '{\"snapshot\":\"public.items\"}')",
		} {
			for left := range 4 { // appends that come through before the crash
				r.stop()
				r.log.left.Store(int64(left) + 1)
				r.exec(sql)
				r.start()
				select {
				case <-r.done:
				case <-time.After(30 * time.Second):
					t.Fatalf("%s: no append %d", name, left+1)
				}
				r.cancel()
				r.src.Close()
				r.cancel = nil
				r.log.left.Store(0)
				r.start()
				run++
				r.ran("items", run)
				r.same("items")
			}
		}
		r.exec("SELECT pg_logical_emit_message(true, 'tailwater', '{\"snapshot\":\"public.nothing\"}')", "SELECT pg_logical_emit_message(true, 'tailwater', 'what?')",
			"INSERT INTO items VALUES (100000, 1, 'one', 'x')")
		r.settled()
		r.same("items")
		if m := r.newestRun("items"); m.Run != run || m.State != change.SnapshotDone {
			t.Errorf("the newest run is %+v, want %d", m, run)
		}
		refused := 0
		for _, s := range r.src.Stats().Signals {
			if s.Refused != "" {
				refused++
			}
		}
		if refused != 2 {
			t.Errorf("signals %+v", r.src.Stats().Signals)
		}
	})
}

// TestSignalCondition: a signal with a condition reads those rows alone, if that is allowed.
func TestSignalCondition(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.opts.Signals = SignalsConditions
	r.con = New(r.opts)
	r.start()
	r.ran("items", 1)
	r.exec("SELECT pg_logical_emit_message(true, 'tailwater', '{\"snapshot\":\"public.items\",\"where\":\"id <= 7\"}')")
	r.ran("items", 2)
	if m := r.newestRun("items"); m.Rows != 7 || m.Where != "id <= 7" {
		t.Errorf("the run is %+v", m)
	}
	r.same("items")
}

// TestSignalRecorded: the run's first record is in the very batch that the signal
// came with, so that no crash comes between them.
func TestSignalRecorded(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.opts.Snapshot.Never = true
	r.con = New(r.opts)
	r.open()
	r.step()
	for run, sql := range []string{
		"SELECT pg_logical_emit_message(false, 'tailwater', '{\"snapshot\":\"public.a\"}')",
		"BEGIN; INSERT INTO a VALUES (1); SELECT pg_logical_emit_message(true, 'tailwater', '{\"snapshot\":\"public.a\"}'); COMMIT",
	} {
		r.exec(sql)
		b := r.next()
		var marks []string
		for _, c := range b.Controls {
			m, err := change.DecodeSnapshotMark(c.Key, c.Value)
			if err != nil {
				t.Fatal(err)
			}
			marks = append(marks, fmt.Sprint(m.Topic == change.TableTopic(r.opts.Source, "public", "a"), m.Run, m.State))
		}
		if want := fmt.Sprint(true, run+1, change.SnapshotBegun); strings.Join(marks, "|") != want || len(b.Schemas) != 1 {
			t.Errorf("marks %q, want %s", marks, want)
		}
		for done := false; !done; { // the run ends
			for _, c := range r.step().Controls {
				m, err := change.DecodeSnapshotMark(c.Key, c.Value)
				done = done || err == nil && m.State == change.SnapshotDone
			}
		}
	}
}
