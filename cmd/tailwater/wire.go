package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/daemon"
	"github.com/tailwater/tailwater/internal/demo"
	"github.com/tailwater/tailwater/server"
)

// wire is the one place that knows the concrete types behind deps.
func wire() deps {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	return deps{
		run: func(ctx context.Context, o runOptions) error {
			return daemon.Run(ctx, daemon.Options{Config: o.Config, Logger: o.Log, Version: o.Version, Reload: o.Reload, Load: o.Load, Ready: o.Ready})
		},
		checkLive: func(ctx context.Context, cfg *config.Config) ([]finding, error) {
			found, err := daemon.CheckLive(ctx, cfg, quiet)
			list := make([]finding, len(found))
			for i, f := range found {
				list[i] = finding{Part: f.Part, OK: f.OK, Warning: f.Warning, Message: f.Message, Fix: f.Fix, Unreachable: f.Unreachable}
			}
			return list, err
		},
		plan: func(ctx context.Context, cfg *config.Config) ([]planStep, error) {
			steps, err := daemon.Plan(ctx, cfg, quiet)
			list := make([]planStep, len(steps))
			for i, s := range steps {
				list[i] = planStep{Action: s.Action, Target: s.Target, Detail: s.Detail, Fix: s.Fix}
			}
			return list, err
		},
		offline: func(cfg *config.Config) (store, error) { return daemon.OpenOffline(cfg) },
		checkDir: func(ctx context.Context, cfg *config.Config, fn func(server.Damage) error) (server.CheckResult, error) {
			return daemon.CheckDir(ctx, cfg, fn)
		},
		compactDir: func(ctx context.Context, cfg *config.Config, glob string, fn func(server.Compacted) error) error {
			return daemon.CompactDir(ctx, cfg, glob, quiet, fn)
		},
		drop: func(ctx context.Context, cfg *config.Config, r dropRequest, step func(string)) error {
			return daemon.Drop(ctx, cfg, daemon.DropRequest{Sources: r.Sources, Unused: r.Unused, State: r.State, DryRun: r.DryRun}, quiet, step)
		},
		demo: runDemo,
		code: errorCode,
	}
}

// errorCode is the exit code of an error of another package; 0 = none special.
func errorCode(err error) int {
	for _, c := range []struct {
		err  error
		code int
	}{
		{connectors.ErrPositionLost, exitRefused}, {connectors.ErrRewound, exitRefused}, {connectors.ErrUnknownSlot, exitRefused},
		{daemon.ErrLostRecords, exitRefused}, {daemon.ErrLocked, exitRefused}, {daemon.ErrFormat, exitRefused},
		{connectors.ErrBusy, exitUnreachable}, {connectors.ErrUnreachable, exitUnreachable}, {server.ErrUnavailable, exitUnreachable}, {server.ErrTimeout, exitTimeout}, {server.ErrBadRequest, exitMisuse}, {eventlog.ErrPartitionCount, exitMisuse},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return 0
}

// runDemo runs the demo, whose daemon is this very program.
func runDemo(ctx context.Context, o demoOptions) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program for the demo's daemon: %w", err)
	}
	return demo.Run(ctx, demo.Options{
		DSN: o.DSN, DataDir: o.Dir, Binary: self, Listen: o.Listen, Check: o.Check,
		Out: o.Out, Rate: o.Rate, CheckTime: o.For,
	})
}
