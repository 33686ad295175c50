package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a child that is waited for in the background, so that its end is
// seen and its pid is never signalled after it was reaped.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child was reaped
	err  error         // how it ended; valid after done
}

// startProcess starts a child with its output appended to a file.
func startProcess(cmd *exec.Cmd, asServer bool, logFile string) (*process, error) {
	attr, err := childAttr(asServer)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = attr
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = log
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// exitCode is valid after the end; -1 means that a signal ended it.
func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// end sends a signal and waits for the end; a child that takes longer is killed.
func (p *process) end(sig syscall.Signal, timeout time.Duration) error {
	if p.ended() {
		return nil
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("pid %d did not end within %v of %v: killed", p.pid(), timeout, sig)
	}
}
