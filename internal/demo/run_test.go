package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailwater/tailwater/internal/testkit"
)

func fakeOptions(t *testing.T, mode string) (Options, *output) {
	t.Helper()
	dsn := testkit.Postgres(t)
	t.Setenv(fakeEnv, mode)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &output{}
	return Options{
		DSN: dsn, Binary: self, DataDir: filepath.Join(t.TempDir(), "demo"), Out: out, Rate: 200,
		Load: LoadOptions{Size: Size{Products: 40, Reviews: 300, Brands: 9}, Seed: 3}, CheckTime: 2 * time.Second,
	}, out
}

// output may be read while the demo writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func TestRunCheck(t *testing.T) {
	opts, out := fakeOptions(t, "right")
	opts.Check = true
	for range 2 { // the second finds the first's directory and tables
		if err := Run(t.Context(), opts); err != nil {
			t.Fatalf("Run = %v\n%s", err, out)
		}
	}
	for _, want := range []string{"First searchable joined document after", " view=0 index=0 served=0 kills=2 killed_in_snapshot=true ", " ok\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	runs, err := os.ReadFile(filepath.Join(opts.DataDir, "runs"))
	if want := "run\nrun\nrun\nwait --timeout 60s\nview dump product_search --json\nverify product_search --sink find --json\n"; err != nil || string(runs) != want {
		t.Errorf("commands run: %v\n%s", err, runs)
	}
}

func TestRunCheckFindsAWrongDocument(t *testing.T) {
	opts, out := fakeOptions(t, "wrong")
	opts.Check = true
	err := Run(t.Context(), opts)
	if !errors.Is(err, errDiffers) || !strings.Contains(out.String(), " view=1 ") || !strings.Contains(out.String(), "FAILED") {
		t.Errorf("Run = %v\n%s", err, out)
	}
}

func TestRunShowsAndStops(t *testing.T) {
	opts, out := fakeOptions(t, "right")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, opts) }()
	testkit.Eventually(t, 30*time.Second, "the guide is printed", func() error {
		if !strings.Contains(out.String(), "Ctrl-C stops everything.") {
			return errors.New(out.String())
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestRunRefusesAnothersDirectory(t *testing.T) {
	opts, _ := fakeOptions(t, "right")
	if err := os.MkdirAll(filepath.Join(opts.DataDir, "precious"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "was not made by the demo") {
		t.Errorf("Run = %v", err)
	}
	if _, err := os.Stat(filepath.Join(opts.DataDir, "precious")); err != nil {
		t.Error(err)
	}
}

func TestRunReportsADeadDaemon(t *testing.T) {
	opts, _ := fakeOptions(t, "right")
	opts.Binary = "/bin/false"
	err := Run(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "the daemon has ended (exit status 1): it printed nothing") {
		t.Errorf("Run = %v", err)
	}
}

func TestRunDropsTheSlot(t *testing.T) {
	opts, _ := fakeOptions(t, "right")
	r := &runner{opts: opts}
	if err := Load(t.Context(), opts.DSN, opts.Load); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, opts.DSN, "create publication "+slot+" for table products", "select pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	if err := r.release(); err != nil {
		t.Fatal(err)
	}
	var left int
	err := testkit.Connect(t, opts.DSN).QueryRow(t.Context(), `select (select count(*) from pg_replication_slots where slot_name = $1)
		+ (select count(*) from pg_publication where pubname = $1)`, slot).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d slots and publications are left, %v", left, err)
	}
}

func TestSumMetric(t *testing.T) {
	text := "# HELP x_total y\nx_total{a=\"1\",b=\"}\"} 3\nx_total{a=\"2\"} 4e+02 1700000000\nx_total_more 9\nx_total 1\n"
	if got := sumMetric([]byte(text), "x_total"); got != 3+400+1 {
		t.Errorf("sumMetric = %v", got)
	}
}

func TestUpdateCommandHidesPasswords(t *testing.T) {
	t.Setenv("PATH", fakePsql(t))
	for dsn, shown := range map[string]bool{
		"postgres://postgres@127.0.0.1:5/d": true, "postgres://u:secret@h/d": false, "host=h password=secret": false, "postgres://u@h/d?password=secret": false,
	} {
		got := (&runner{opts: Options{DSN: dsn}}).updateCommand("1")
		if strings.Contains(got, "secret") || strings.Contains(got, dsn) != shown {
			t.Errorf("with %s it prints %s", dsn, got)
		}
	}
}

func fakePsql(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "psql"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
