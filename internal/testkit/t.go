package testkit

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// T is the part of testing.TB that testkit uses.
type T interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Fatalf(format string, args ...any) // does not return
	Skipf(format string, args ...any)  // does not return
	Cleanup(func())                    // run in reverse order at the end
	Failed() bool
}

// Required tells whether a missing server is a failure (TAILWATER_TEST_REQUIRED=1).
func Required() bool { return os.Getenv("TAILWATER_TEST_REQUIRED") == "1" }

// need returns the value of an environment variable that names a server;
// without one the test skips, or fails where servers are required.
func need(t T, env, service string) string {
	t.Helper()
	if v := os.Getenv(env); v != "" {
		return v
	}
	if Required() {
		t.Fatalf("%s is unset and TAILWATER_TEST_REQUIRED=1: start the server with 'dev/services up %s'", env, service)
	}
	t.Skipf("%s is unset: eval \"$(dev/services up %s)\" starts such a server", env, service)
	return ""
}

// Name returns a short name that no other test has: lower case letters and
// digits, first a letter, fit for sources, slots, databases, indexes and keys.
func Name(T) string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return "t" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// Eventually polls until check returns nil, every few milliseconds and then
// less often. After the timeout the test fails with the last error.
func Eventually(t T, timeout time.Duration, what string, check func() error) {
	t.Helper()
	if err := eventually(timeout, check); err != nil {
		t.Fatalf("%s: not within %v: %v", what, timeout, err)
	}
}

func eventually(timeout time.Duration, check func() error) error {
	deadline := time.Now().Add(timeout)
	for wait := 2 * time.Millisecond; ; wait = min(wait*3/2, 200*time.Millisecond) {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		<-time.After(wait)
	}
}

// Program runs f with a T of its own, for a program that is no test, and
// returns the error that f failed with. Cleanups have run when it returns.
func Program(name string, out io.Writer, f func(T)) error {
	p := &program{name: name, out: out}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.cleanup()
		f(p)
	}()
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

type program struct {
	name string
	out  io.Writer

	mu       sync.Mutex
	err      error
	cleanups []func()
}

func (p *program) Helper()                         {}
func (p *program) Name() string                    { return p.name }
func (p *program) Logf(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *program) Fatalf(format string, args ...any) {
	p.mu.Lock()
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.mu.Unlock()
	runtime.Goexit()
}

// Skipf fails too: a program that was asked to run cannot skip.
func (p *program) Skipf(format string, args ...any) { p.Fatalf(format, args...) }

func (p *program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *program) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

func (p *program) cleanup() {
	p.mu.Lock()
	fs := slices.Clone(p.cleanups)
	p.mu.Unlock()
	for _, f := range slices.Backward(fs) {
		done := make(chan struct{})
		go func() { // a Fatalf in a cleanup ends that cleanup only
			defer close(done)
			f()
		}()
		<-done
	}
}
