package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/config"
)

// logFlags are the flags of commands that run the daemon.
type logFlags struct {
	level  string
	format string
}

func (l *logFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&l.level, "log-level", "info", "debug, info, warn or error")
	c.Flags().StringVar(&l.format, "log-format", "text", "text or json")
}

func (l *logFlags) logger(w io.Writer, quiet bool) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, misuse("--log-level %q is none of debug, info, warn, error", l.level)
	}
	if quiet && level < slog.LevelWarn {
		level = slog.LevelWarn
	}
	o := &slog.HandlerOptions{Level: level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, misuse("--log-format %q is none of text, json", l.format)
}

func (p *program) runCommand() *cobra.Command {
	var logs logFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon in the foreground. SIGTERM and SIGINT stop it cleanly; a second one
ends it at once. SIGHUP reads the configuration again: if it is wrong, the problems
are logged and the old one stays. When all sources stream it prints one line
"ready …" on stderr.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(p.stderr, p.quiet)
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), log)
		},
	}
	logs.add(c)
	return c
}

func (p *program) run(ctx context.Context, log *slog.Logger) error {
	cfg, err := config.Load(p.config, p.env)
	if err != nil {
		return configError(err)
	}
	logWarnings(log, cfg)
	if p.deps.run == nil {
		return errNotBuilt("the daemon")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal then has its usual effect
	reload, end := reloads()
	defer end()
	return p.deps.run(ctx, runOptions{
		Config:  cfg,
		Log:     log,
		Version: versionText(),
		Reload:  reload,
		Load: func() (*config.Config, error) {
			cfg, err := config.Load(p.config, p.env)
			if err == nil {
				logWarnings(log, cfg)
			}
			return cfg, err
		},
		Ready: func(text string) { fmt.Fprintf(p.stderr, "ready %s\n", oneLine(text)) },
	})
}

// reloads turns SIGHUPs into requests; several at once are one.
func reloads() (requests <-chan struct{}, stop func()) {
	signals, out, done := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out, func() {
		signal.Stop(signals)
		close(done)
	}
}

func logWarnings(log *slog.Logger, cfg *config.Config) {
	for _, w := range cfg.Warnings {
		log.Warn("configuration: "+w.Message, "place", fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Col), "key", w.Path, "way_out", w.Hint)
	}
}
