package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

// waitRetry is the pause between attempts to reach the daemon.
const waitRetry = 100 * time.Millisecond

func (p *program) waitCommand() *cobra.Command {
	var r server.WaitRequest
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait",
		Short: "Wait until everything committed by now has arrived",
		Long: `Ask each source for its current end and wait until everything committed up to there
has reached the views and sinks named: all of them by default, the log alone if only
sources are named. Exit code 4 when the timeout is over first. The daemon may be
starting: wait tries to reach it until the timeout.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return misuse("--timeout must be above zero")
			}
			return p.wait(cmd.Context(), r, timeout)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&r.Sources, "source", nil, "wait for this source (may be repeated)")
	f.StringSliceVar(&r.Views, "view", nil, "wait for this view (may be repeated)")
	f.StringSliceVar(&r.Sinks, "sink", nil, "wait for this sink (may be repeated)")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "give up after this time")
	p.addrFlag(c)
	return c
}

func (p *program) wait(ctx context.Context, r server.WaitRequest, timeout time.Duration) error {
	located, err := p.locate()
	if err != nil {
		return err
	}
	if err := p.checkNames(r); err != nil {
		return err
	}
	cl, err := p.client(located)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := waitLoop(ctx, cl, r, timeout); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]bool{"ok": true})
	}
	return nil
}

// waitLoop asks until the daemon answers yes or no; a daemon that cannot be
// reached, or is not ready to answer, is asked again.
func waitLoop(ctx context.Context, cl *client, r server.WaitRequest, timeout time.Duration) error {
	var last error
	for {
		deadline, _ := ctx.Deadline()
		r.TimeoutMS = max(time.Until(deadline).Milliseconds(), 1)
		_, _, err := cl.read(ctx, "POST", "/v1/wait", r)
		if err == nil {
			return nil
		}
		var x *exitError
		again := errors.As(err, &x) && x.code == exitUnreachable
		if !again && ctx.Err() == nil {
			return err
		}
		if again {
			last = err
		}
		select {
		case <-ctx.Done():
			return timedOut(ctx, err, last, timeout)
		case <-time.After(waitRetry):
		}
	}
}

// timedOut says what the wait was last held up by.
func timedOut(ctx context.Context, err, last error, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if last == nil && !errors.Is(err, context.DeadlineExceeded) {
		last = err
	}
	if last == nil {
		return &exitError{exitTimeout, fmt.Errorf("not everything had arrived after %s; tailwater status shows what is behind", timeout)}
	}
	return &exitError{exitTimeout, fmt.Errorf("gave up after %s: %w", timeout, last)}
}

// checkNames reports names that the configuration does not have, where it can
// be read; if not, the daemon will say it.
func (p *program) checkNames(r server.WaitRequest) error {
	cfg, err := config.Load(p.config, p.env)
	if err != nil || p.addr != "" {
		return nil
	}
	var sources, views, sinks []string
	for _, s := range cfg.Sources {
		sources = append(sources, s.Name)
	}
	for _, v := range cfg.Views {
		views = append(views, v.Name)
	}
	for _, s := range cfg.Sinks {
		sinks = append(sinks, s.Name)
	}
	return errors.Join(known("source", r.Sources, sources), known("view", r.Views, views), known("sink", r.Sinks, sinks))
}

func known(what string, named, have []string) error {
	for _, n := range named {
		if !contains(have, n) {
			return misuse("there is no %s %q%s", what, n, suggestion(n, what, have))
		}
	}
	return nil
}

func suggestion(name, what string, have []string) string {
	if s := config.Suggest(name, have); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	if len(have) == 0 {
		return "; the configuration has none"
	}
	return "; the " + what + "s are: " + strings.Join(have, ", ")
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
