package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Daemon is `tailwater run -c FILE` as a child process. Its methods belong to
// one goroutine.
type Daemon struct {
	Config string // the YAML file's path

	t    T
	bin  string
	env  []string
	log  string // file with all that every run printed
	mark int64  // size of the log when the present run started
	proc *process
}

// NewDaemon writes a configuration into a directory of the test's own and
// returns a daemon that is not started yet. env (NAME=value) is added to the
// environment of the daemon and of every command that Run runs.
func NewDaemon(t T, yaml string, env ...string) *Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "tailwater-daemon-")
	if err != nil {
		t.Fatalf("make a directory for the daemon: %v", err)
	}
	d := &Daemon{t: t, bin: Binary(t), Config: filepath.Join(dir, "tailwater.yaml"), log: filepath.Join(dir, "daemon.log")}
	d.env = append(os.Environ(), env...)
	d.SetConfig(yaml)
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", tail(d.Logs(), 16<<10))
		}
		os.RemoveAll(dir)
	})
	return d
}

// StartDaemon is NewDaemon, Start and WaitReady.
func StartDaemon(t T, yaml string, env ...string) *Daemon {
	t.Helper()
	d := NewDaemon(t, yaml, env...)
	d.Start()
	d.WaitReady(time.Minute)
	return d
}

// SetConfig rewrites the file; a running daemon sees it at its next start or reload.
func (d *Daemon) SetConfig(yaml string) {
	d.t.Helper()
	if err := os.WriteFile(d.Config, []byte(yaml), 0o600); err != nil {
		d.t.Fatalf("write the daemon's configuration: %v", err)
	}
}

// Dir returns the directory of the configuration, to which relative paths in
// it refer; it is removed at the end.
func (d *Daemon) Dir() string { return filepath.Dir(d.Config) }

// Start starts the daemon and returns at once.
func (d *Daemon) Start() {
	d.t.Helper()
	if d.proc != nil && !d.proc.ended() {
		d.t.Fatalf("start the daemon: it runs already, pid %d", d.proc.pid())
	}
	d.mark = int64(len(d.Logs()))
	cmd := exec.Command(d.bin, "run", "-c", d.Config)
	cmd.Dir, cmd.Env = d.Dir(), d.env
	p, err := startProcess(cmd, false, d.log)
	if err != nil {
		d.t.Fatalf("start the daemon: %v", err)
	}
	d.proc = p
}

// WaitReady returns when this run has printed its line `ready`.
func (d *Daemon) WaitReady(timeout time.Duration) {
	d.t.Helper()
	Eventually(d.t, timeout, "the daemon prints ready", func() error {
		if ReadyLine(d.RunLogs()) {
			return nil
		}
		if d.proc.ended() {
			d.t.Fatalf("the daemon ended before it was ready: %v\n%s", d.proc.err, tail(d.RunLogs(), 8<<10))
		}
		return errors.New(lastLine(d.RunLogs()))
	})
}

// ReadyLine tells whether a daemon's stderr has the line that says that all
// sources stream.
func ReadyLine(log string) bool {
	for line := range strings.Lines(log) {
		if line == "ready\n" || strings.HasPrefix(line, "ready ") && strings.HasSuffix(line, "\n") {
			return true
		}
	}
	return false
}

// Kill is kill -9. Killing a daemon that does not run is no error.
func (d *Daemon) Kill() {
	if d.proc != nil {
		_ = d.proc.end(syscall.SIGKILL, 20*time.Second)
	}
}

// Stop sends SIGTERM and returns the exit code.
func (d *Daemon) Stop() int {
	d.t.Helper()
	if err := d.proc.end(syscall.SIGTERM, 60*time.Second); err != nil {
		d.t.Fatalf("stop the daemon: %v\n%s", err, tail(d.RunLogs(), 8<<10))
	}
	return d.proc.exitCode()
}

// Restart is Stop, Start and WaitReady.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Stop()
	d.Start()
	d.WaitReady(time.Minute)
}

// Reload sends SIGHUP.
func (d *Daemon) Reload() { _ = d.proc.cmd.Process.Signal(syscall.SIGHUP) }

// Running tells whether the daemon runs.
func (d *Daemon) Running() bool { return d.proc != nil && !d.proc.ended() }

// WaitExit waits for the daemon to end by itself and returns its exit code.
func (d *Daemon) WaitExit(timeout time.Duration) int {
	d.t.Helper()
	select {
	case <-d.proc.done:
		return d.proc.exitCode()
	case <-time.After(timeout):
		d.t.Fatalf("the daemon still runs after %v\n%s", timeout, tail(d.RunLogs(), 8<<10))
		return 0
	}
}

// Logs returns all that all runs have printed; RunLogs only the present run.
func (d *Daemon) Logs() string {
	text, _ := os.ReadFile(d.log)
	return string(text)
}

// RunLogs is Logs of the present run.
func (d *Daemon) RunLogs() string { return d.Logs()[d.mark:] }

// Result is what a command printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs another tailwater command on the same configuration and returns
// how it ended; it fails the test only if the command could not be run or
// takes longer than twelve minutes.
func (d *Daemon) Run(args ...string) Result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.bin, append(args, "-c", d.Config)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = d.Dir(), d.env, &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		d.t.Fatalf("tailwater %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// MustRun is Run for a command that has to exit with 0; it returns its stdout.
func (d *Daemon) MustRun(args ...string) string {
	d.t.Helper()
	r := d.Run(args...)
	if r.Code != 0 {
		d.t.Fatalf("tailwater %s: exit code %d\n%s%s\nthe daemon's log:\n%s",
			strings.Join(args, " "), r.Code, r.Stdout, r.Stderr, tail(d.RunLogs(), 8<<10))
	}
	return r.Stdout
}

// Wait is `tailwater wait`: all that is committed at the sources has arrived.
// Without a --timeout it is a minute.
func (d *Daemon) Wait(args ...string) {
	d.t.Helper()
	if !strings.Contains(strings.Join(args, " "), "--timeout") {
		args = append(args, "--timeout", "60s")
	}
	d.MustRun(append([]string{"wait"}, args...)...)
}

// ViewDocs is `tailwater view dump VIEW --json`: the documents by id.
func (d *Daemon) ViewDocs(view string) map[string]json.RawMessage {
	d.t.Helper()
	docs, err := ParseDump([]byte(d.MustRun("view", "dump", view, "--json")))
	if err != nil {
		d.t.Fatalf("view dump %s: %v", view, err)
	}
	return docs
}

// ParseDump reads the lines of `view dump --json`.
func ParseDump(out []byte) (map[string]json.RawMessage, error) {
	docs := make(map[string]json.RawMessage)
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var line struct {
			ID  *string         `json:"id"`
			Doc json.RawMessage `json:"doc"`
		}
		if err := dec.Decode(&line); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(docs)+1, err)
		}
		if line.ID == nil || line.Doc == nil {
			return nil, fmt.Errorf("line %d has no id or no doc", len(docs)+1)
		}
		if _, twice := docs[*line.ID]; twice {
			return nil, fmt.Errorf("document %q comes twice", *line.ID)
		}
		docs[*line.ID] = line.Doc
	}
	return docs, nil
}

func tail(s string, n int) string {
	if len(s) > n {
		return "..." + s[len(s)-n:]
	}
	return s
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if l := lines[len(lines)-1]; l != "" {
		return "its last line: " + l
	}
	return "it has printed nothing yet"
}
