package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPostgresIsFresh(t *testing.T) {
	for _, major := range PostgresVersions(t) {
		dsn := PostgresVersion(t, major)
		Exec(t, dsn, "create table a (id int primary key)", "insert into a values (1), (2)",
			"select pg_create_logical_replication_slot('"+Name(t)+"', 'pgoutput')")
		CompareView(t, map[string]json.RawMessage{"1": json.RawMessage(`{"id":1}`), "2": json.RawMessage(`{"id":2}`)},
			dsn, "select id, to_json(a) from a")
	}
}

func TestDropDatabaseWithSlot(t *testing.T) {
	server := need(t, "TAILWATER_TEST_POSTGRES", "pg15")
	slot, db := Name(t), Name(t)
	Exec(t, server, "create database "+db)
	Exec(t, WithDatabase(t, server, db), "select pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	if err := dropDatabase(server, db); err != nil {
		t.Fatal(err)
	}
	var left int
	err := Connect(t, server).QueryRow(context.Background(), "select count(*) from pg_replication_slots where slot_name = $1", slot).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d slots are left, %v", left, err)
	}
}

func TestRedisIsOwn(t *testing.T) {
	a, b := Redis(t), Redis(t)
	if a == b || !strings.HasPrefix(a, "redis://") {
		t.Errorf("Redis = %s and then %s", a, b)
	}
}

func TestSearchServers(t *testing.T) {
	server, prefix := OpenSearch(t)
	if strings.HasSuffix(server, "/") || prefix == "" {
		t.Errorf("OpenSearch = %q, %q", server, prefix)
	}
}

func TestPrivatePostgres(t *testing.T) {
	s := StartPostgres(t, "work_mem=5MB")
	Exec(t, s.URL, "create table a (id int primary key)", "insert into a values (1)")
	s.Crash()
	s.Start()
	s.Restart()
	Exec(t, s.URL, "insert into a values (2)")
	var mem string
	if err := Connect(t, s.URL).QueryRow(context.Background(), "show work_mem").Scan(&mem); err != nil || mem != "5MB" {
		t.Errorf("work_mem = %s, %v", mem, err)
	}
}

// A paused synchronous standby holds commits back: they are in the WAL and not
// visible. After the promotion the row is there, on another timeline.
func TestStandby(t *testing.T) {
	for _, major := range PostgresVersions(t) {
		s := StartPostgresWith(t, PostgresOptions{Version: major, Settings: []string{"synchronous_standby_names=sb1"}})
		sb := s.Standby("sb1")
		Exec(t, s.URL, "create table a (id int primary key)")
		sb.Pause()
		committed := make(chan error, 1)
		writer := Connect(t, s.URL)
		go func() {
			_, err := writer.Exec(context.Background(), "insert into a values (1)")
			committed <- err
		}()
		c := Connect(t, s.URL)
		Eventually(t, 20*time.Second, "the commit waits for the standby", func() error {
			var n int
			err := c.QueryRow(context.Background(), "select count(*) from pg_stat_activity where wait_event = 'SyncRep'").Scan(&n)
			if err == nil && n == 0 {
				err = errors.New("nobody waits")
			}
			return err
		})
		var visible int
		if err := c.QueryRow(context.Background(), "select count(*) from a").Scan(&visible); err != nil || visible != 0 {
			t.Errorf("%d rows are visible before the standby answered, %v", visible, err)
		}
		sb.Resume()
		if err := <-committed; err != nil {
			t.Fatal(err)
		}
		s.Crash()
		sb.Promote()
		Exec(t, sb.URL, "insert into a values (2)")
	}
}

func TestProgram(t *testing.T) {
	var order []string
	err := Program("p", io.Discard, func(t T) {
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() { order = append(order, "second") })
		t.Fatalf("no %s", "luck")
	})
	if err == nil || err.Error() != "no luck" || !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("Program = %v, cleanups %v", err, order)
	}
	if err := Program("p", io.Discard, func(T) {}); err != nil {
		t.Errorf("Program = %v", err)
	}
}

func TestNeed(t *testing.T) {
	const unset = "TAILWATER_TEST_NO_SUCH_SERVER"
	t.Setenv("TAILWATER_TEST_REQUIRED", "1")
	err := Program("p", io.Discard, func(t T) { need(t, unset, "pg15") })
	if err == nil || !strings.Contains(err.Error(), "REQUIRED") {
		t.Errorf("a missing server that is required: %v", err)
	}
}

// fakeDaemon is a script in place of the command: it is ready at its second
// start, and prints what it is asked.
const fakeDaemon = `#!/bin/sh
case $1 in
run) echo "level=INFO msg=starting" >&2; echo "ready sources=1" >&2; trap 'exit 0' TERM; while :; do sleep 0.05; done ;;
wait) exit 4 ;;
view) printf '{"id":"1","version":7,"doc":{"a":1.10}}\n{"id":"2","version":7,"doc":{}}\n' ;;
esac
`

func TestDaemon(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(bin, []byte(fakeDaemon), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TAILWATER_BIN", bin)
	d := StartDaemon(t, "data_dir: data\n")
	CompareJSON(t, "document 1", []byte(`{"a":1.10}`), d.ViewDocs("v")["1"])
	if r := d.Run("wait"); r.Code != 4 {
		t.Errorf("wait = %+v", r)
	}
	d.Restart()
	d.Kill()
	if d.Running() {
		t.Error("it runs after Kill")
	}
	d.Start()
	d.WaitReady(10 * time.Second)
	if code := d.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestReadyLine(t *testing.T) {
	for _, tt := range []struct {
		log  string
		want bool
	}{
		{"ready\n", true}, {"x\nready sources=1 http=127.0.0.1:7171\n", true},
		{"not ready\n", false}, {"ready", false}, {"already\nready: no\n", false},
	} {
		if got := ReadyLine(tt.log); got != tt.want {
			t.Errorf("ReadyLine(%q) = %v", tt.log, got)
		}
	}
}

func TestDiffDocs(t *testing.T) {
	docs := func(kv ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = json.RawMessage(kv[i+1])
		}
		return m
	}
	got := DiffDocs(docs("1", `{"a":1}`, "2", `{}`, "3", `{"b":[]}`), docs("1", `{"a":2}`, "3", `{"b":[]}`, "4", `{}`))
	want := []string{"1: a: want 1, found 2", "2: missing", "4: should not be there"}
	if !slices.Equal(got, want) {
		t.Errorf("DiffDocs = %q; want %q", got, want)
	}
}
