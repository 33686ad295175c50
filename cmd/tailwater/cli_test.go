package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tailwater/tailwater/server"
)

const testConfig = `data_dir: data
sources: { shop: { postgres: { dsn: "${SHOP_DSN}", tables: [public.*] } } }
views:
  orders: { from: shop.public.orders, to: [find] }
  lonely: { from: shop.public.orders }
sinks: { find: { local: {} } }
`

// cli is one command line's surroundings.
type cli struct {
	t    *testing.T
	dir  string
	env  map[string]string
	deps deps
}

func newCLI(t *testing.T) *cli {
	c := &cli{t: t, dir: t.TempDir(), env: map[string]string{"SHOP_DSN": "postgres://app:hunter2@127.0.0.1/shop"}}
	c.write("tailwater.yaml", testConfig)
	return c
}

func (c *cli) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

type result struct {
	code           int
	stdout, stderr string
}

func (c *cli) run(args ...string) result {
	c.t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, deps: c.deps, env: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
	if !contains(args, "-c") {
		args = append(args, "-c", filepath.Join(c.dir, "tailwater.yaml"))
	}
	code := p.main(c.t.Context(), args)
	r := result{code, out.String(), errs.String()}
	if strings.Contains(r.stdout+r.stderr, "hunter2") {
		c.t.Errorf("%v printed a secret: %+v", args, r)
	}
	if strings.Contains(r.stderr, "goroutine ") || strings.Contains(r.stderr, "Usage:") {
		c.t.Errorf("%v printed a trace or a usage:\n%s", args, r.stderr)
	}
	return r
}

// want checks the exit code and that each text is in stdout or stderr.
func (r result) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("exit code %d, want %d\nstdout %q\n  want %q\nstderr %q\n  want %q", r.code, code, r.stdout, stdout, r.stderr, stderr)
	}
	if stderr == "" && r.stderr != "" && code == 0 {
		t.Errorf("stderr %q, want nothing", r.stderr)
	}
}

// serve answers on the data directory's socket as the real server does.
func (c *cli) serve(d server.Daemon) {
	c.t.Helper()
	c.serveHandler(server.New(server.Options{Daemon: d}))
}

func (c *cli) serveHandler(h http.Handler) {
	c.t.Helper()
	dir := filepath.Join(c.dir, "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	l, err := listenUnix(filepath.Join(dir, "tailwater.sock"))
	if err != nil {
		c.t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	c.t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
}

// listenUnix listens on a path that may be too long for a socket's address.
func listenUnix(path string) (net.Listener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// fake is a daemon with two documents and three records.
type fake struct {
	server.Daemon
	status server.Status
	report string

	mu    sync.Mutex
	waits []server.WaitRequest
	wait  func(context.Context, server.WaitRequest) error
}

func (f *fake) onWait(wait func(context.Context, server.WaitRequest) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wait = wait
}

func (f *fake) Status() server.Status { return f.status }

func (f *fake) Topics(context.Context) ([]server.TopicStatus, error) {
	return []server.TopicStatus{{
		Name: "shop.public.orders", Partitions: 2, Records: 1234567, Bytes: 3 << 20, JournalRecords: 12, Cleanup: "compact",
		Start: []int64{0, 3}, End: []int64{700000, 534570},
	}}, nil
}

func (f *fake) Get(view, id string) ([]byte, uint64, error) {
	if view != "orders" {
		return nil, 0, fmt.Errorf("%w: there is no view %q", server.ErrNotFound, view)
	}
	switch id {
	case "1", "..", "a/b|é\\|", "":
		return []byte(`{"n":9223372036854775809,"s":"<&>"}`), 42, nil
	}
	return nil, 0, fmt.Errorf("%w: it has no document %q", server.ErrNotFound, id)
}

func (f *fake) Dump(_ context.Context, view string, fn func(string, uint64, []byte) error) error {
	if view != "orders" {
		return fmt.Errorf("%w: there is no view %q", server.ErrNotFound, view)
	}
	if err := fn("1", 42, []byte(`{"n":1.10}`)); err != nil {
		return err
	}
	return fn("a\x1b[31m", 43, []byte(`{"n":2}`))
}

func (f *fake) Records(ctx context.Context, q server.RecordQuery, fn func([]byte) error) error {
	lines := []string{
		`{"topic":"_dlq.find","partition":0,"offset":0,"csn":1,"seq":0,"op":"insert","key":{"view":"orders","id":"7"},"after":{"reason":"too long","version":9},"ts_commit":"2026-01-02T03:04:05Z"}`,
		`{"topic":"_dlq.find","partition":0,"offset":1,"csn":2,"seq":0,"op":"insert","key":{"view":"orders","id":"8"},"after":{"reason":"too deep","version":9},"ts_commit":"2026-01-02T03:04:06Z"}`,
		`{"topic":"_dlq.find","partition":0,"offset":2,"csn":3,"seq":0,"op":"delete","key":{"view":"orders","id":"7"},"after":null,"ts_commit":"2026-01-02T03:04:07Z"}`,
	}
	if q.Topic == "none" {
		return fmt.Errorf("%w: no topic matches %q", server.ErrNotFound, q.Topic)
	}
	if q.Begun != nil {
		q.Begun()
	}
	for i, l := range lines {
		if uint64(i+1) < q.FromCSN || q.Limit > 0 && i >= q.Limit || q.Tail && i < len(lines)-q.Last {
			continue
		}
		if err := fn([]byte(l)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Wait(ctx context.Context, r server.WaitRequest) error {
	f.mu.Lock()
	f.waits = append(f.waits, r)
	wait := f.wait
	f.mu.Unlock()
	if wait != nil {
		return wait(ctx, r)
	}
	return nil
}

func (f *fake) Verify(_ context.Context, view, sink string) (json.RawMessage, bool, error) {
	return json.RawMessage(f.report), false, nil
}

func (f *fake) Snapshot(_ context.Context, r server.SnapshotRequest) (string, error) {
	if r.Table != "shop.public.orders" && (r.Table != "" || r.Action == "") {
		return "", fmt.Errorf("%w: no table %q", server.ErrNotFound, r.Table)
	}
	if r.Action != "" {
		return r.Action + " of " + r.Table, nil
	}
	return "reads " + r.Table + " where " + r.Where, nil
}

func sampleStatus() server.Status {
	return server.Status{
		Version: "1.2.3", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Reasons: []string{"view orders is building"}, Notices: []string{"insecure_no_auth"},
		Sources: []server.SourceStatus{{
			Name: "shop", Kind: "postgres", State: "snapshot", LagBytes: 2048, LagSeconds: 1.5, RetainedBytes: -1, Durable: "0/16B3748",
			Snapshots: []server.SnapshotStatus{
				{Topic: "shop.public.orders", Run: 1, State: "reading", Rows: 50000, Total: 200000, Percent: 25, ETASeconds: 90},
				{Topic: "shop.public.done", Run: 1, State: "done", Rows: 10, Total: 10, Percent: 100},
			},
		}},
		Log: server.LogStatus{FrontierCSN: 914793674309633, JournalBytes: 3 << 20, SegmentBytes: 1 << 30, DiskBytes: 5 << 30, QuotaBytes: 200 << 30, Topics: 7,
			Laggard: &server.Laggard{Consumer: "sink/find/orders", Topic: "view.orders", PassedCSN: 914793674309000, Since: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Bytes: 9 << 20}},
		Views: []server.ViewStatus{{Name: "orders", State: "building", Documents: 1234567, CompleteCSN: 914793674309633, Pending: 3, LagSeconds: 4000}},
		Sinks: []server.SinkStatus{{Sink: "find", View: "orders", State: "retrying", Reason: "connection refused", Written: 12, Rejected: 1, DeadLetters: 1, LagRecords: 5}},
	}
}

func TestMisuse(t *testing.T) {
	for _, tt := range []struct {
		args   string
		stderr string
	}{
		{"staus", `unknown command "tailwater staus"; did you mean "tailwater status"?`},
		{"xyzzy", `tailwater --help lists the commands`},
		{"--jsn", "tailwater: unknown flag --jsn; did you mean --json?"},
		{"status --jsn", "status: unknown flag --jsn; did you mean --json?"},
		{"status -x", "unknown shorthand flag"},
		{"status extra", "tailwater status"},
		{"view", "name a command of tailwater view: dump, get, list"},
		{"view gett", `did you mean "tailwater view get"?`},
		{"view get orders", "name the document"},
		{"view get orders 1 --key 1", "not both"},
		{"view get", "it is used as: tailwater view get VIEW KEY"},
		{"log cat", "log cat"},
		{"log cat x --schema curent", "none of current, written"},
		{"log cat x --from-time yesterday", "is no time like"},
		{"log cat x --limit -3", "--limit must not be negative"},
		{"wait --timeout 0s", "--timeout must be above zero"},
		{"wait --timeout soon", "invalid argument"},
		{"wait --view oders", `there is no view "oders"; did you mean "orders"?`},
		{"verify orders --source", "not in this version yet"},
		{"run --log-level loud", "none of debug"},
		{"run --log-format xml", "none of text, json"},
		{"demo", "TAILWATER_DEMO_DSN"},
		{"drop --source shp", `there is no source "shp"`},
		{"status --addr ftp://x", "is no address"},
		{"check -c no-such-file.yaml", "configuration no-such-file.yaml does not exist; name it with -c FILE or -c DIR"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			r := newCLI(t).run(strings.Fields(tt.args)...)
			r.want(t, exitMisuse, "", tt.stderr)
			if strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("not one line: %q", r.stderr)
			}
		})
	}
}

func TestHelpAndVersionNeedNoConfig(t *testing.T) {
	c := newCLI(t)
	c.write("tailwater.yaml", "][")
	c.run("version").want(t, exitDone, "tailwater ", "")
	c.run("version", "--json").want(t, exitDone, `"version":`, "")
}

func TestCheck(t *testing.T) {
	c := newCLI(t)
	c.run("check").want(t, exitDone, "ok: 1 source, 2 views, 1 sink\n", "")
	c.run("check", "--json").want(t, exitDone, `{"ok":true,"problems":[],"warnings":[]}`, "")

	c.write("tailwater.yaml", testConfig+"serverr: {}\nlogg: {}\n")
	r := c.run("check")
	r.want(t, exitMisuse, "", `unknown key "serverr"`)
	r.want(t, exitMisuse, "", `did you mean "log"?`)
	r.want(t, exitMisuse, "", "2 problems in the configuration\n")
	c.run("check", "--json").want(t, exitMisuse, `{"ok":false,"problems":[{"file":`, "")
}

func TestCheckLive(t *testing.T) {
	c := newCLI(t)
	var live []finding
	c.deps.checkLive = func(context.Context, *cfgType) ([]finding, error) { return live, nil }
	live = []finding{{Part: "source shop", OK: true, Message: "wal_level is logical"}}
	c.run("check", "--live").want(t, exitDone, "ok: source shop: wal_level is logical\n", "")
	live = append(live, finding{Part: "source shop", OK: true, Warning: true, Message: "table x has no key"})
	c.run("check", "--live", "--quiet").want(t, exitDone, "warning: source shop: table x has no key\n", "")
	live = append(live, finding{Part: "sink find", Message: "no answer", Unreachable: true})
	c.run("check", "--live").want(t, exitUnreachable, "fault: sink find: no answer\n", "")
	live = append(live, finding{Part: "source shop", Message: "no privilege", Fix: "ALTER ROLE app REPLICATION;"})
	c.run("check", "--live").want(t, exitFailed, "fault: source shop: no privilege\n    ALTER ROLE app REPLICATION;\n", "")
	c.run("check", "--live", "--json").want(t, exitFailed, `"ok":false`, "")
}

func TestPlan(t *testing.T) {
	c := newCLI(t)
	var steps []planStep
	c.deps.plan = func(context.Context, *cfgType) ([]planStep, error) { return steps, nil }
	c.run("plan").want(t, exitDone, "nothing to do\n", "")
	steps = []planStep{{Action: "snapshot", Target: "shop.public.orders", Detail: "about 10 rows"}}
	c.run("plan").want(t, exitDone, "snapshot  shop.public.orders  about 10 rows\n", "")
	c.run("plan", "--json").want(t, exitDone, `{"action":"snapshot","target":"shop.public.orders","detail":"about 10 rows"}`, "")
	steps = append(steps, planStep{Action: "mend first", Target: "source shop", Detail: "no privilege", Fix: "GRANT A;\nGRANT B;"})
	c.run("plan").want(t, exitDone, "mend first  source shop         no privilege\n\n-- source shop: no privilege\nGRANT A;\nGRANT B;\n", "")
	// A name of the database's does not leave the comment.
	steps = []planStep{{Action: "mend first", Target: "t\nDROP A;", Detail: "d\nDROP B;", Fix: "GRANT A;"}}
	c.run("plan").want(t, exitDone, "mend first  t\\nDROP A;  d\\nDROP B;\n\n-- t\\nDROP A;: d\\nDROP B;\nGRANT A;\n", "")
}

func TestNoDaemon(t *testing.T) {
	c := newCLI(t)
	for _, args := range [][]string{{"status"}, {"verify", "orders"}, {"snapshot", "list"}, {"status", "--addr", "127.0.0.1:1"}} {
		c.run(args...).want(t, exitUnreachable, "", "does not answer")
	}
	c.run("status").want(t, exitUnreachable, "", "start it with: tailwater run")
	// Status asks for no password that the configuration needs.
	delete(c.env, "SHOP_DSN")
	c.run("status").want(t, exitUnreachable, "", "does not answer")
}

func TestStatus(t *testing.T) {
	c := newCLI(t)
	c.serve(&fake{status: sampleStatus()})
	r := c.run("status")
	r.want(t, exitDone, "tailwater 1.2.3, up since 2026-01-02 03:04:05Z, not ready\n", "")
	for _, want := range []string{
		"view orders is building", "insecure_no_auth",
		"shop    postgres  snapshot  1.5s  2.0 KiB  ?         0/16B3748",
		"shop.public.orders  reading  50 000  200 000   25 %  1m30s",
		"     kept for sink/find/orders, at CSN 914793674309000: about 9.0 MiB of deletes in view.orders, from 2026-01-02T03:04:06Z on\n",
		"quota 200.0 GiB", "1 234 567", "1h6m40s", "sink find of view orders: connection refused",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("status lacks %q:\n%s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "shop.public.done") || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("status shows too much:\n%s", r.stdout)
	}
	var back server.Status
	if err := json.Unmarshal([]byte(c.run("status", "--json").stdout), &back); err != nil || back.Log.FrontierCSN != 914793674309633 {
		t.Errorf("status --json: %v %+v", err, back)
	}
	c.run("snapshot", "list").want(t, exitDone, "shop.public.done", "")
	c.run("snapshot", "run", "shop.public.orders", "--where", "id = 1").want(t, exitDone, "reads shop.public.orders where id = 1\n", "")
	c.run("snapshot", "run", "x").want(t, exitFailed, "", "no table")
}

func TestView(t *testing.T) {
	c := newCLI(t)
	c.serve(&fake{status: sampleStatus()})
	c.run("view", "list").want(t, exitDone, "orders  building  1 234 567  914793674309633", "")
	c.run("view", "list", "--json").want(t, exitDone, `"name":"orders"`, "")
	c.run("view", "get", "orders", "1").want(t, exitDone, "{\n  \"n\": 9223372036854775809,\n  \"s\": \"<&>\"\n}\n", "")
	c.run("view", "get", "xyzzy", "9").want(t, exitFailed, "", `there is no view "xyzzy"; the views are: orders`)
	for _, id := range []string{"1", "..", `a/b|é\|`} {
		line := c.run("view", "get", "orders", id, "--json")
		want, _ := json.Marshal(id)
		line.want(t, exitDone, `{"id":`+string(want)+`,"version":42,"doc":{"n":9223372036854775809,"s":"<&>"}}`+"\n", "")
	}
	c.run("view", "get", "orders", "--key", `a/b,"é|"`).want(t, exitDone, "9223372036854775809", "") // is a/b|é\|
	c.run("view", "get", "orders", "--key", `a,b`).want(t, exitFailed, "", `no document "a|b"`)
	c.run("view", "get", "orders", "9").want(t, exitFailed, "", "view orders: ")
	c.run("view", "get", "oders", "9").want(t, exitFailed, "", `there is no view "oders"; did you mean "orders"? The views are: orders`)
	c.run("view", "dump", "orders", "--json").want(t, exitDone, `{"id":"1","version":42,"doc":{"n":1.10}}`+"\n", "")
	c.run("view", "dump", "orders").want(t, exitDone, "1\t{\"n\":1.10}\na\\x1b[31m\t{\"n\":2}\n", "")
	c.run("view", "dump", "oders").want(t, exitFailed, "", "there is no view")
}

func TestLog(t *testing.T) {
	c := newCLI(t)
	c.serve(&fake{status: sampleStatus()})
	c.run("log", "topics").want(t, exitDone, "shop.public.orders  2           1 234 567  12               3.0 MiB      compact  0-700000 3-534570\n", "")
	c.run("log", "topics", "--json").want(t, exitDone, `{"name":"shop.public.orders","partitions":2,`, "")
	r := c.run("log", "cat", "_dlq.*", "--json", "--from-csn", "2")
	if r.want(t, exitDone, `"csn":2`, ""); strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("log cat: %q", r.stdout)
	}
	c.run("log", "cat", "x", "--limit", "1").want(t, exitDone, `2026-01-02T03:04:05Z  1.0  _dlq.find/0@0  insert  {"view":"orders","id":"7"}`, "")
	r = c.run("log", "tail", "x", "-n", "2", "--json")
	if r.want(t, exitDone, `"csn":2`, ""); strings.Contains(r.stdout, `"csn":1`) || !strings.HasSuffix(r.stdout, "05:07Z\"}\n") && strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("log tail: %q", r.stdout)
	}
	r = c.run("log", "tail", "-f", "x", "--json")
	if r.want(t, exitDone, `"csn":3`, ""); strings.Count(r.stdout, "\n") != 3 {
		t.Errorf("log tail -f: %q", r.stdout)
	}
	c.run("log", "cat", "none").want(t, exitFailed, "", `tailwater: not found: no topic matches "none"`+"\n")
	r = c.run("dlq", "list")
	if r.want(t, exitDone, "too deep", ""); strings.Contains(r.stdout, "too long") {
		t.Errorf("dlq list: %q", r.stdout)
	}
	c.run("dlq", "list", "find", "--json").want(t, exitDone, `{"sink":"find","csn":2,`, "")
}

func TestVerify(t *testing.T) {
	c := newCLI(t)
	s := sampleStatus()
	s.Views = append(s.Views, server.ViewStatus{Name: "lonely"})
	f := &fake{status: s, report: `{"view":"orders","against":"sink:find","compared":3,"missing":[],"extra":[],"different":[]}`}
	c.serve(f)
	c.run("verify", "orders").want(t, exitDone, "equal: view orders against sink:find: 3 compared, 0 missing, 0 extra, 0 different\n", "")
	f.report = `{"view":"orders","against":"sink:find","compared":3,"missing":["1"],"extra":["2"],"different":[{"id":"3","paths":["/a","/b"]}]}`
	c.run("verify", "orders").want(t, exitFailed, "  missing 1\n  extra 2\n  different 3 in /a, /b\n", "")
	c.run("verify", "orders", "--sink", "find", "--json").want(t, exitFailed, f.report+"\n", "")
	c.run("verify", "oders").want(t, exitFailed, "", `did you mean "orders"?`)
	c.run("verify", "lonely").want(t, exitMisuse, "", "no sink takes the view lonely")
}

func TestWait(t *testing.T) {
	c := newCLI(t)
	f := &fake{}
	c.serve(f)
	c.run("wait", "--view", "orders", "--sink", "find").want(t, exitDone, "", "")
	c.run("wait", "--json").want(t, exitDone, `{"ok":true}`, "")
	if len(f.waits) != 2 || f.waits[0].Views[0] != "orders" || f.waits[0].TimeoutMS < 20000 || f.waits[0].TimeoutMS > 30000 {
		t.Errorf("the daemon was asked %+v", f.waits)
	}
	f.onWait(func(context.Context, server.WaitRequest) error {
		return fmt.Errorf("%w: view orders is behind", server.ErrTimeout)
	})
	c.run("wait").want(t, exitTimeout, "", "view orders is behind")
	f.onWait(func(ctx context.Context, _ server.WaitRequest) error { <-ctx.Done(); return ctx.Err() })
	c.run("wait", "--timeout", "50ms").want(t, exitTimeout, "", "has not answered after 50ms")
	f.onWait(func(context.Context, server.WaitRequest) error {
		return fmt.Errorf("%w: no view x", server.ErrNotFound)
	})
	c.run("wait").want(t, exitMisuse, "", "no view x")
}

// TestWaitTriesAgain starts waiting before the daemon is there, and goes on
// while it says that it is not ready.
func TestWaitTriesAgain(t *testing.T) {
	c := newCLI(t)
	c.run("wait", "--timeout", "150ms").want(t, exitTimeout, "", "gave up after 150ms")
	var asked atomic.Int32
	f := &fake{wait: func(context.Context, server.WaitRequest) error {
		if asked.Add(1) < 3 {
			return fmt.Errorf("%w: starting", server.ErrUnavailable)
		}
		return nil
	}}
	started := make(chan struct{})
	done := make(chan result)
	go func() {
		close(started)
		done <- c.run("wait", "--timeout", "20s")
	}()
	<-started
	c.serve(f)
	(<-done).want(t, exitDone, "", "")
	if asked.Load() != 3 {
		t.Errorf("the daemon was asked %d times, want 3", asked.Load())
	}
}

func TestBrokenAnswers(t *testing.T) {
	c := newCLI(t)
	c.serveHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
		case strings.HasSuffix(r.URL.Path, "/dump"):
			fmt.Fprintln(w, `{"id":"1","version":1,"doc":{}}`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/v1/status":
			fmt.Fprint(w, "<html>")
		default:
			http.Error(w, "teapot", http.StatusTeapot)
		}
	}))
	c.run("view", "dump", "orders").want(t, exitUnreachable, "1\t{}\n", "ended in the middle of its answer")
	c.run("status").want(t, exitFailed, "", "read the status of the daemon")
	c.run("log", "topics").want(t, exitFailed, "", "418")
}

func TestAddrAndToken(t *testing.T) {
	c := newCLI(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: server.New(server.Options{Daemon: &fake{status: sampleStatus()}, Token: "hunter2"})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	addr := l.Addr().String()
	c.run("status", "--addr", addr).want(t, exitMisuse, "", "token")
	c.env["TAILWATER_TOKEN"] = "hunter2"
	c.run("status", "--addr", addr).want(t, exitDone, "tailwater 1.2.3", "")
	c.run("status", "--addr", "http://"+addr, "-c", "no-such-file").want(t, exitDone, "tailwater 1.2.3", "")
	c.run("view", "get", "orders", "1", "--addr", addr).want(t, exitDone, "9223372036854775809", "")
}

func TestDrop(t *testing.T) {
	c := newCLI(t)
	var got []dropRequest
	c.deps.drop = func(_ context.Context, _ *cfgType, r dropRequest, step func(string)) error {
		got = append(got, r)
		step("slot tailwater_shop of source shop")
		return nil
	}
	c.run("drop").want(t, exitRefused, "would drop slot tailwater_shop of source shop\n", "say --yes")
	c.run("drop", "--source", "shop", "--yes").want(t, exitDone, "dropping slot tailwater_shop of source shop\n", "")
	c.run("drop", "--unused", "--yes", "--json").want(t, exitDone, `{"dropped":true,"steps":["slot tailwater_shop of source shop"]}`, "")
	if len(got) != 3 || !got[0].DryRun || !got[0].State || len(got[0].Sources) != 1 || got[1].DryRun || got[1].State || !got[2].Unused {
		t.Errorf("drop was asked %+v", got)
	}
	c.serve(&fake{})
	c.run("drop", "--yes").want(t, exitRefused, "", "stop it before dropping")
	if len(got) != 3 {
		t.Error("drop ran beside a daemon")
	}
}

var errLost = errors.New("history is lost")

func TestRun(t *testing.T) {
	c := newCLI(t)
	c.deps.run = func(_ context.Context, o runOptions) error {
		o.Ready("1 source streams")
		if cfg, err := o.Load(); err != nil || cfg.View("orders") == nil {
			t.Errorf("Load = %v, %v", cfg, err)
		}
		return nil
	}
	c.run("run").want(t, exitDone, "", "ready 1 source streams\n")
	c.deps.run = func(context.Context, runOptions) error { return fmt.Errorf("source shop: %w", errLost) }
	c.deps.code = func(err error) int {
		if errors.Is(err, errLost) {
			return exitRefused
		}
		return 0
	}
	c.run("run").want(t, exitRefused, "", "tailwater: source shop: history is lost\n")
	c.write("tailwater.yaml", "views: {")
	c.run("run").want(t, exitMisuse, "", "not YAML")
}

// full is a stdout without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestFullStdout(t *testing.T) {
	c := newCLI(t)
	c.serve(&fake{status: sampleStatus()})
	for _, args := range [][]string{{"version"}, {"check"}, {"status"}, {"view", "dump", "orders"}, {"config", "print"}, {"log", "topics", "--json"}} {
		var errs bytes.Buffer
		p := &program{stdout: full{}, stderr: &errs, env: func(n string) (string, bool) { v, ok := c.env[n]; return v, ok }}
		code := p.main(t.Context(), append(args, "-c", filepath.Join(c.dir, "tailwater.yaml")))
		if code != exitFailed || !strings.Contains(errs.String(), "write the result: no space left") {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

func TestConfigPrint(t *testing.T) {
	c := newCLI(t)
	c.run("config", "print").want(t, exitDone, "dsn: ${SHOP_DSN}\n", "")
}

func TestReloads(t *testing.T) {
	requests, stop := reloads()
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-requests:
	case <-time.After(10 * time.Second):
		t.Fatal("SIGHUP made no request")
	}
}
