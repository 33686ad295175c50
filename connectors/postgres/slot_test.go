package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/internal/testkit"
)

// refused opens the source and returns the error's text, which must match the sentinel.
func (r *rig) refused(want error) string {
	r.t.Helper()
	src, err := r.con.Open(r.t.Context(), r.log)
	if err == nil {
		src.Close()
		r.t.Fatalf("it opens, want %v", want)
	}
	if !errors.Is(err, want) {
		r.t.Fatalf("%v, want %v", err, want)
	}
	r.t.Log(err)
	if strings.Contains(err.Error(), "\n") {
		r.t.Errorf("the error has several lines: %q", err)
	}
	return err.Error()
}

// TestV15Intent: killed between the slot's creation and the first record. With
// the note the slot is made again; without it, it is refused.
func TestV15Intent(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.close() // as if killed before the first tick was durable
	note, _ := r.log.Intent()
	if n, ok := decodeIntent(note); !ok || n.slot != r.con.opts.Slot || n.lsn == 0 {
		t.Fatalf("the note is %q", note)
	}
	r.exec("INSERT INTO a VALUES (1)")
	r.open()
	if b := r.step(); b.Kind != change.Tick {
		t.Errorf("the first batch is of kind %v", b.Kind)
	}
	r.exec("INSERT INTO a VALUES (2)")
	if got := render(t, r.next()); got != "insert a key=2 after={id:2}\n" {
		t.Errorf("came %s", got)
	}
	if note, _ := r.log.Intent(); note != nil {
		t.Errorf("the note is still there: %q", note)
	}
	r.close()

	lost := r.log
	r.log = &memory{schemas: map[string]*change.Schema{}}
	if text := r.refused(connectors.ErrUnknownSlot); !strings.Contains(text, "tailwater drop --source") || !strings.Contains(text, "slot:") {
		t.Errorf("no way out in %q", text)
	}
	// A note of another system, slot or later place does not make it ours.
	at, _ := parsePosition(lost.pos)
	for _, n := range []intent{{r.con.opts.Slot, "1", 0}, {"other", at.system, 0}, {r.con.opts.Slot, at.system, at.end + 1<<40}} {
		r.log.note = n.encode()
		r.refused(connectors.ErrUnknownSlot)
	}
}

func TestV14PositionLost(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.step()
	r.exec("INSERT INTO a VALUES (1)")
	r.next()
	r.close()
	at, _ := parsePosition(r.log.pos)

	good := r.log.pos
	for name, tt := range map[string]struct {
		pos  place
		want error
	}{
		"another system": {place{"1", at.timeline, at.commit, at.end}, connectors.ErrRewound},
		"newer timeline": {place{at.system, at.timeline + 1, at.commit, at.end}, connectors.ErrRewound},
		"behind the end": {place{at.system, at.timeline, at.commit, at.end + 1<<40}, connectors.ErrRewound},
		"slot ahead":     {place{at.system, at.timeline, 0, 0x10}, connectors.ErrPositionLost},
	} {
		r.log.pos = tt.pos.position()
		t.Log(name)
		if text := r.refused(tt.want); !strings.Contains(text, "tailwater drop") {
			t.Errorf("no way out in %q", text)
		}
	}
	r.log.pos = good
	r.exec("SELECT pg_drop_replication_slot('" + r.con.opts.Slot + "')")
	r.refused(connectors.ErrPositionLost)
	r.exec("SELECT pg_create_logical_replication_slot('" + r.con.opts.Slot + "', 'test_decoding')")
	r.refused(connectors.ErrUnknownSlot)
}

func TestBusy(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.opts.BusyTimeout = 300 * time.Millisecond
	r.connector()
	r.open()
	r.step()
	first := r.src
	defer first.Close()
	r.src = nil
	r.refused(connectors.ErrBusy)
	if err := r.con.Drop(t.Context()); !errors.Is(err, connectors.ErrBusy) {
		t.Errorf("drop of a slot in use: %v", err)
	}
}

// TestPublicationDropped: what was not published meanwhile is never silently
// missing: either the server says so, or every table counts as added anew.
func TestPublicationDropped(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			r := newRig(t, testkit.PostgresVersion(t, major), "CREATE TABLE a (id int PRIMARY KEY)")
			r.open()
			r.step()
			r.exec("INSERT INTO a VALUES (1)")
			r.next()
			r.close()
			r.exec("DROP PUBLICATION \""+r.con.opts.Publication+"\"", "INSERT INTO a VALUES (2)")
			r.open()
			if len(r.start.added) != 1 {
				t.Errorf("added = %v", r.start.added)
			}
			r.exec("INSERT INTO a VALUES (3)")
			for {
				b, err := r.src.Next(t.Context())
				if errors.Is(err, connectors.ErrPositionLost) {
					t.Log(err)
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if b.Kind == change.Transaction {
					if got := render(t, b); !strings.Contains(got, "key=3") {
						t.Errorf("came %s", got)
					}
					break
				}
			}
		})
	}
}
