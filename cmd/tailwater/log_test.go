package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/daemon"
	"github.com/tailwater/tailwater/server"
)

var update = flag.Bool("update", false, "rewrite golden files")

const logScript = "testdata/log.txt"

// TestLogScript runs the commands of logScript on a stopped and on a live data
// directory; both must answer what the file says.
func TestLogScript(t *testing.T) {
	script, err := os.ReadFile(logScript)
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	stopped := c.script(string(script))
	c.serve(newLive(f))
	live := c.script(string(script))
	if *update {
		if err := os.WriteFile(logScript, []byte(stopped), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if stopped != string(script) {
		t.Errorf("on a stopped data directory:\n%s", firstDifference(string(script), stopped))
	}
	if live != stopped {
		t.Errorf("a daemon answers otherwise than its data directory:\n%s", firstDifference(stopped, live))
	}
}

// script runs each line that begins with "$ " and returns lines and answers.
func (c *cli) script(text string) string {
	c.t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		switch {
		case strings.HasPrefix(line, "#"):
			b.WriteString(line)
		case ok:
			fmt.Fprintf(&b, "$ %s\n", command)
			r := c.run(arguments(command)...)
			b.WriteString(strings.ReplaceAll(r.stdout+r.stderr, c.dir, "DIR"))
			fmt.Fprintf(&b, "exit %d\n\n", r.code)
		}
	}
	return b.String()
}

// arguments splits a line at blanks; single quotes keep what is between them.
func arguments(line string) []string {
	var out []string
	for i, quoted := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, quoted)
		} else {
			out = append(out, strings.Fields(quoted)...)
		}
	}
	return out
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	command := ""
	for i := range max(len(w), len(g)) {
		a, b := "", ""
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if strings.HasPrefix(b, "$ ") {
			command = b
		}
		if a != b {
			return fmt.Sprintf("%s\nline %d is  %s\nwant line  %s", command, i+1, b, a)
		}
	}
	return "the same"
}

func TestLogMisuse(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	for _, mode := range []string{"stopped", "live"} {
		if mode == "live" {
			c.serve(newLive(f))
		}
		for _, tt := range []struct{ args, stderr string }{
			{"log", "name a command of tailwater log: cat, check, compact, dump, stats, tail, topics"},
			{"log cta", `did you mean "tailwater log cat"?`},
			{"log cat", "it is used as: tailwater log cat TOPIC"},
			{"log cat a b", "it is used as"},
			{"log cat ''", "is no topic"},
			{"log cat a/b", "is no topic and no glob of topics; a byte that is no letter, digit or _ is written -hh in their names: a-2fb"},
			{"log cat [", "topic glob"},
			{"log dump [", "topic glob"},
			{"log cat x --from-offset -1", "--from-offset must not be negative"},
			{"log tail x --to-offset -1", "--to-offset must not be negative"},
			{"log cat x --partition -1", "--partition must not be negative"},
			{"log dump x --limit -1", "--limit must not be negative"},
			{"log cat x --limit 0", "--limit must be above zero"},
			{"log cat x --from-csn -1", "invalid argument"},
			{"log cat x --from-csn 9007199254740992", "beyond the largest"},
			{"log cat x --from-time ''", "is no time like"},
			{"log dump x --from-time soon", "is no time like"},
			{"log cat x --from-offset 5 --to-offset 4", "--to-offset 4 is below --from-offset 5"},
			{"log cat x --key ''", "--key is empty"},
			{"log tail x -n -1", "-n must not be negative"},
			{"log tail x -n many", "invalid argument"},
			{"log cat x --formoffset 1", "unknown flag --formoffset"},
			{"log cat shop.public.orders --partition 1", `partition 1: topic "shop.public.orders" has 1`},
			{"log dump shop.public.products --partition 4", `partition 4: topic "shop.public.products" has 4`},
			{"log compact", "it is used as"},
			{"log check x", `tailwater: log check: it takes no arguments, not "x"; it is used as: tailwater log check`},
			{"log stats x y", `it takes no arguments, not "x"`},
			{"log topics x", `it takes no arguments, not "x"`},
			{"log cat", "an argument is missing"},
			{"log cat a b c", `one argument too many, "b"`},
		} {
			r := c.run(arguments(tt.args)...)
			if r.want(t, exitMisuse, "", tt.stderr); strings.Count(r.stderr, "\n") != 1 || strings.Count(r.stderr, "tailwater: ") != 1 {
				t.Errorf("%s, %s: not one line with one prefix: %q", mode, tt.args, r.stderr)
			}
		}
		for _, args := range []string{"cat", "tail", "dump", "compact"} {
			if args == "compact" && mode == "stopped" {
				continue // it would open the log, which this test has open
			}
			c.run("log", args, "shop.public.oders").want(t, exitFailed, "", `tailwater: not found: no topic matches "shop.public.oders"; did you mean "shop.public.orders"?`+"\n")
			c.run("log", args, "*.xyzzy").want(t, exitFailed, "", `no topic matches "*.xyzzy"; tailwater log topics lists them`+"\n")
		}
	}
}

// following is a command that runs while the test goes on.
type following struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  context.CancelFunc
	code  chan int
}

func (c *cli) follow(args ...string) *following {
	ctx, cancel := context.WithCancel(c.t.Context())
	r, w := io.Pipe()
	f := &following{t: c.t, lines: bufio.NewScanner(r), stop: cancel, code: make(chan int, 1)}
	p := &program{stdout: w, stderr: io.Discard, deps: c.deps, env: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
	go func() {
		f.code <- p.main(ctx, append(args, "-c", filepath.Join(c.dir, "tailwater.yaml")))
		w.Close()
	}()
	return f
}

// want reads a line that must contain each text.
func (f *following) want(texts ...string) {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatalf("no line, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(f.lines.Text(), text) {
			f.t.Fatalf("line %s, want %q", f.lines.Text(), text)
		}
	}
}

// end stops the command, which must then end well and have printed nothing more.
func (f *following) end() {
	f.t.Helper()
	f.stop()
	if f.lines.Scan() {
		f.t.Errorf("one more line: %s", f.lines.Text())
	}
	if code := <-f.code; code != exitDone {
		f.t.Errorf("exit code %d", code)
	}
}

// TestLogFollow follows topics while they grow, are sealed and begin new files.
func TestLogFollow(t *testing.T) {
	for _, mode := range []string{"stopped", "live"} {
		t.Run(mode, func(t *testing.T) {
			c := newCLI(t)
			c.deps = wire()
			f := fillLog(t, c)
			if mode == "live" {
				c.serve(newLive(f))
			}
			one := c.follow("log", "tail", "-f", "-n", "1", "shop.public.orders", "--json")
			one.want(`"after":{"code":"b","amount":9}`)
			all := c.follow("log", "tail", "-f", "-n", "2", "shop.*")
			all.want("shop.public.products", `"price":1.25`)
			all.want("shop.public.orders", `"amount":9`)
			none := c.follow("log", "tail", "-f", "-n", "0", "shop.public.orders", "--limit", "2")
			key := c.follow("log", "tail", "-f", "shop.public.orders", "--key", "c", "--json")
			key.want(`"amount":8`)
			for i := range int64(3) {
				f.order("c", 20+i)
				for _, w := range []*following{one, all, key} {
					w.want(fmt.Sprintf(`"amount":%d`, 20+i))
				}
				if i == 1 {
					f.must(f.log.SealAll(context.Background()))
				}
			}
			// It began some time before the first of the three.
			for n := 0; none.lines.Scan(); n++ {
				if n == 2 {
					t.Errorf("--limit 2 printed a third line: %s", none.lines.Text())
				}
			}
			none.stop()
			one.end()
			all.end()
			key.end()
		})
	}
}

// TestLogTailOfMany prints the end of more partitions than are read backward.
func TestLogTailOfMany(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	for i := range 30 {
		f.extra(fmt.Sprintf("shop.public.t%02d", i), fmt.Sprintf("%02d", i))
	}
	whole := strings.SplitAfter(c.run("log", "cat", "*", "--json").stdout, "\n")
	whole = whole[:len(whole)-1]
	for _, n := range []int{0, 1, 7, 29, 45, 1000} {
		want := strings.Join(whole[max(0, len(whole)-n):], "")
		if got := c.run("log", "tail", "*", "-n", fmt.Sprint(n), "--json"); got.code != exitDone || got.stdout != want {
			t.Errorf("tail -n %d:\n%s%s\nwant\n%s", n, got.stdout, got.stderr, want)
		}
	}
}

// TestLogFilters compares the filters, alone and combined, with filtering by hand.
func TestLogFilters(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	lines := func(args ...string) []record {
		t.Helper()
		r := c.run(append([]string{"log"}, append(args, "--json")...)...)
		if r.code != exitDone {
			t.Fatalf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
		return records(t, r.stdout)
	}
	for _, glob := range []string{"shop.public.products", "shop.public.orders", "shop.*", "*"} {
		all := lines("cat", glob)
		if len(all) < 3 {
			t.Fatalf("%s has %d records", glob, len(all))
		}
		for _, at := range all {
			for name, tt := range map[string]struct {
				args  []string
				takes func(r record) bool
			}{
				"csn":       {[]string{"--from-csn", fmt.Sprint(at.CSN)}, func(r record) bool { return r.CSN >= at.CSN }},
				"time":      {[]string{"--from-time", at.Time}, func(r record) bool { return r.Time >= at.Time }},
				"partition": {[]string{"--partition", fmt.Sprint(at.Partition)}, func(r record) bool { return r.Partition == at.Partition }},
				"offsets": {[]string{"--from-offset", fmt.Sprint(at.Offset), "--to-offset", fmt.Sprint(at.Offset + 1)},
					func(r record) bool { return r.Offset == at.Offset }},
				"csn and to":    {[]string{"--from-csn", fmt.Sprint(at.CSN), "--to-offset", "2"}, func(r record) bool { return r.CSN >= at.CSN && r.Offset < 2 }},
				"from and time": {[]string{"--from-offset", "1", "--from-time", at.Time}, func(r record) bool { return r.Offset >= 1 && r.Time >= at.Time }},
				"from and csn":  {[]string{"--from-offset", "1", "--from-csn", fmt.Sprint(at.CSN)}, func(r record) bool { return r.Offset >= 1 && r.CSN >= at.CSN }},
			} {
				want := []record{}
				for _, r := range all {
					if tt.takes(r) {
						want = append(want, r)
					}
				}
				check := func(what string, got []record) {
					t.Helper()
					if name == "partition" { // which shows the copies of a truncate, too
						got = slices.DeleteFunc(got, func(r record) bool { return r.Op == "truncate" && r.Partition > 0 })
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s %s %v:\n%v\nwant\n%v", what, glob, tt.args, got, want)
					}
				}
				check("cat", lines(append([]string{"cat", glob}, tt.args...)...))
				check("tail of all", lines(append([]string{"tail", glob, "-n", "1000"}, tt.args...)...))
				if len(want) > 2 && (name != "partition" || at.Partition == 0) {
					want = want[len(want)-2:]
					check("tail", lines(append([]string{"tail", glob, "-n", "2"}, tt.args...)...))
				}
			}
		}
	}
	f.must(f.log.SealAll(context.Background()))
	if got := lines("cat", "shop.public.products", "--key", "3"); len(got) != 2 {
		t.Errorf("key 3 has %v", got)
	}
}

// TestLogFullStdout reports a result that was not written whole.
func TestLogFullStdout(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	fillLog(t, c)
	for _, args := range []string{"cat *", "tail *", "dump *", "stats", "check", "topics"} {
		var errs bytes.Buffer
		p := &program{stdout: full{}, stderr: &errs, deps: c.deps, env: func(n string) (string, bool) { v, ok := c.env[n]; return v, ok }}
		code := p.main(t.Context(), append(append([]string{"log"}, strings.Fields(args)...), "-c", filepath.Join(c.dir, "tailwater.yaml")))
		if code != exitFailed || !strings.Contains(errs.String(), "write the result: no space left") {
			t.Errorf("log %s: exit code %d, %q", args, code, errs.String())
		}
	}
}

// TestLogStats shows sizes, times and, of a daemon, what it has done.
func TestLogStats(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	stopped := c.run("log", "stats")
	stopped.want(t, exitDone, "newest    2026-05-04T02:13:01Z\n", "")
	stopped.want(t, exitDone, "in 2 files, from CSN 838973714857991 on\n", "")
	stopped.want(t, exitDone, "shop.public.orders    3        172 B         138 B        1         2026-05-04T02:13:01Z  none     0-3\n", "")
	if strings.Contains(stopped.stdout, "since the start") {
		t.Errorf("counters of a daemon that does not run:\n%s", stopped.stdout)
	}
	c.run("log", "stats", "--json").want(t, exitDone, `{"frontier_csn":838973714857995,"oldest_journal_csn":838973714857991,"journal_bytes":`, "")
	c.serve(newLive(f))
	c.run("log", "stats").want(t, exitDone, "since the start  2.6 KiB appended in 17 groups, 20 syncs\n", "")
	c.run("log", "stats", "--json").want(t, exitDone, `"live":{"appends":17,"appended_bytes":2661,"syncs":20}`, "")
}

// TestLogCompact asks the daemon or, where none runs, the data directory.
func TestLogCompact(t *testing.T) {
	c := newCLI(t)
	done := server.Compacted{Topic: "shop.public.orders", RecordsBefore: 1000, RecordsAfter: 7, BytesBefore: 4096, BytesAfter: 90}
	c.deps.compactDir = func(_ context.Context, _ *cfgType, glob string, fn func(server.Compacted) error) error {
		if glob != "shop.*" {
			return daemon.ErrLocked
		}
		return fn(done)
	}
	c.deps.code = errorCode
	c.run("log", "compact", "shop.*").want(t, exitDone, "shop.public.orders: 7 records of 1 000 stay, 90 B of 4.0 KiB\n", "")
	c.run("log", "compact", "shop.*", "--json").want(t, exitDone, `{"topic":"shop.public.orders","records_before":1000,"records_after":7,`, "")
	c.run("log", "compact", "locked").want(t, exitRefused, "", "data directory is in use")
	c.serve(&compacting{Daemon: &fake{}, done: done})
	c.run("log", "compact", "shop.*").want(t, exitDone, "shop.public.orders: 7 records of 1 000 stay, 90 B of 4.0 KiB\n", "")
	c.run("log", "compact", "keep").want(t, exitMisuse, "", "keeps every record")
}

type compacting struct {
	server.Daemon
	done server.Compacted
}

func (d *compacting) Compact(_ context.Context, glob string, fn func(server.Compacted) error) error {
	if glob == "keep" {
		return fmt.Errorf("%w: it keeps every record", server.ErrBadRequest)
	}
	return fn(d.done)
}

// TestLogDeletedOffsets names the first offset that retention has kept.
func TestLogDeletedOffsets(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	top, err := f.log.EnsureTopic(eventlog.TopicSpec{Name: "_messages.shop", Partitions: 2, Cleanup: eventlog.CleanupDelete})
	f.must(err)
	for round := range 2 {
		for i := range 20 {
			f.source(eventlog.Record{Topic: top.ID, Op: uint8(change.OpMessage), Key: change.AppendKeyPart(nil, change.Int(int64(i)), false), Value: []byte{byte(round)}})
		}
		f.must(f.log.SealAll(context.Background()))
	}
	all := c.run("log", "cat", "_messages.shop", "--partition", "1", "--json")
	for _, first := range files(t, filepath.Join(c.dir, "data", "log", "topics", "*messages*", "*-00000000000000000000-*.seg")) {
		f.must(os.Remove(first))
	}
	for _, args := range [][]string{{"--partition", "1", "--from-offset", "0"}, {"--from-offset", "1"}} {
		c.run(append([]string{"log", "cat", "_messages.shop"}, args...)...).want(t, exitFailed, "", "no longer in the log; the first kept offset is ")
	}
	kept := c.run("log", "cat", "_messages.shop", "--partition", "1", "--json")
	if kept.code != exitDone || kept.stdout == "" || kept.stdout == all.stdout || !strings.HasSuffix(all.stdout, kept.stdout) {
		t.Errorf("what is kept: %+v", kept)
	}
}
