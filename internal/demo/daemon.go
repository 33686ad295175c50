package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// daemon is `tailwater run` as a child process. Its methods belong to one goroutine.
type daemon struct {
	binary, config, log string

	cmd  *exec.Cmd
	done chan struct{} // closed when the child was reaped
	mark int           // length of the log when this run started
}

func (d *daemon) start() error {
	d.mark = len(d.logText())
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(d.binary, "run", "-c", d.config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownGroup() // a Ctrl-C reaches us, and we stop it in order
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the state tells how it ended
	}()
	d.cmd, d.done = cmd, done
	return nil
}

func (d *daemon) logText() string {
	text, _ := os.ReadFile(d.log)
	return string(text)
}

// alive returns an error with the last line of its log if the daemon has ended.
func (d *daemon) alive() error {
	select {
	case <-d.done:
		return fmt.Errorf("the daemon has ended (%v): %s", d.cmd.ProcessState, lastLine(d.logText()[d.mark:]))
	default:
		return nil
	}
}

// awaitReady returns when the daemon has printed its line `ready`.
func (d *daemon) awaitReady(ctx context.Context) error {
	err := poll(ctx, time.Minute, func() error {
		if err := d.alive(); err != nil {
			return &finalError{err}
		}
		for line := range strings.Lines(d.logText()[d.mark:]) {
			if line == "ready\n" || strings.HasPrefix(line, "ready ") && strings.HasSuffix(line, "\n") {
				return nil
			}
		}
		return errors.New("it has not printed 'ready'")
	})
	if err != nil {
		return fmt.Errorf("wait for the daemon: %w", err)
	}
	return nil
}

// kill is kill -9.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
}

// terminate is SIGTERM, and kill -9 if that takes too long. It may be repeated,
// and called before start.
func (d *daemon) terminate() error {
	if d.cmd == nil || d.alive() != nil {
		return nil
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(30 * time.Second):
		d.kill()
		return errors.New("the daemon did not stop within 30 s of SIGTERM: killed")
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the daemon stopped with exit code %d: %s", code, lastLine(d.logText()[d.mark:]))
	}
	return nil
}

// command runs another tailwater command on the same configuration and returns
// its stdout; an exit code other than 0 is an error that has its stderr.
func (d *daemon) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.binary, append(args, "-c", d.config)...)
	cmd.SysProcAttr = ownGroup()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("tailwater %s: %w: %s", strings.Join(args, " "), err, lastLine(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// lastLine is what a command that fails says why in.
func lastLine(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return "it printed nothing"
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}
