package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

// waitRetry is the pause between attempts to reach the daemon; waitGrace is how
// long after the timeout the daemon may still answer, since it knows best what
// the wait was held up by.
const (
	waitRetry = 100 * time.Millisecond
	waitGrace = 2 * time.Second
)

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
		Args: noArgs,
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
	deadline := time.Now().Add(timeout)
	for {
		r.TimeoutMS = max(time.Until(deadline).Milliseconds(), 1)
		err := waitOnce(ctx, cl, r, deadline.Add(waitGrace))
		var x *exitError
		again := errors.As(err, &x) && x.code == exitUnreachable
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return &exitError{exitTimeout, fmt.Errorf("the daemon has not answered after %s; tailwater status shows what is behind", timeout)}
		case !again || ctx.Err() != nil:
			return err
		case time.Until(deadline) <= waitRetry:
			return &exitError{exitTimeout, fmt.Errorf("gave up after %s: %w", timeout, err)}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitRetry):
		}
	}
}

func waitOnce(ctx context.Context, cl *client, r server.WaitRequest, end time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	_, _, err := cl.read(ctx, "POST", "/v1/wait", r)
	var api *apiError
	if errors.As(err, &api) && api.Status == http.StatusNotFound {
		return &exitError{exitMisuse, err} // a name that is not there
	}
	return err
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
