package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/server"
)

// ending is a daemon whose answers about the log, and waits, end with an error.
type ending struct {
	fake
	end func(ctx context.Context) error
}

func (d *ending) Records(ctx context.Context, q server.RecordQuery, fn func([]byte) error) error {
	if q.Begun != nil {
		q.Begun()
	}
	if err := fn([]byte(`{"topic":"x","partition":0,"offset":1,"csn":3,"op":"insert","key":null,"after":null}`)); err != nil {
		return err
	}
	return d.end(ctx)
}

func (d *ending) Dump(ctx context.Context, _ string, fn func(string, uint64, []byte) error) error {
	if err := fn("1", 1, []byte("{}")); err != nil {
		return err
	}
	return d.end(ctx)
}

func (d *ending) Wait(ctx context.Context, _ server.WaitRequest) error { return d.end(ctx) }

// TestAnswersThatFail: what ended an answer in its middle is said, whatever was printed before.
func TestAnswersThatFail(t *testing.T) {
	c := newCLI(t)
	c.serve(&ending{end: func(context.Context) error { return errors.New("disk on fire") }})
	for _, args := range []string{"log cat x", "log cat x --json", "log tail x", "view dump orders"} {
		c.run(strings.Fields(args)...).want(t, exitFailed, "1", "broke its answer off: disk on fire\n")
	}
	c.run("log", "tail", "-f", "x").want(t, exitFailed, "x/0@1", "ended the stream: disk on fire\n")
}

// TestDaemonStopsMeanwhile: a daemon that is stopped says so, and nothing it did not finish counts as done.
func TestDaemonStopsMeanwhile(t *testing.T) {
	c := newCLI(t)
	stopping, stop := context.WithCancel(t.Context())
	d := &ending{end: func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	}}
	if err := os.MkdirAll(filepath.Join(c.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := listenUnix(filepath.Join(c.dir, "data", "tailwater.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: server.New(server.Options{Daemon: d}), BaseContext: func(net.Listener) context.Context { return stopping }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	defer func() {
		_ = s.Close()
		<-done
	}()
	for _, args := range []string{"log cat x", "log tail -f x", "view dump orders"} {
		c.run(strings.Fields(args)...).want(t, exitUnreachable, "1", server.Stopping+"\n")
	}
	c.run("wait", "--timeout", "300ms").want(t, exitTimeout, "", server.Stopping)
}

// TestDaemonEndsBeforeItAnswers: a connection that ends is told as such, not as "EOF".
func TestDaemonEndsBeforeItAnswers(t *testing.T) {
	c := newCLI(t)
	c.serveHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			panic(http.ErrAbortHandler)
		}
	}))
	for _, args := range []string{"status", "log topics", "log cat x", "view get orders 1"} {
		if r := c.run(strings.Fields(args)...); r.code != exitUnreachable || !strings.Contains(r.stderr, "ended before it had answered") || strings.Contains(r.stderr, "EOF") {
			t.Errorf("%s: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}
