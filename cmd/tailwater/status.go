package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) statusCommand() *cobra.Command {
	var watch bool
	var every time.Duration
	c := &cobra.Command{
		Use:   "status",
		Short: "Show sources, log, views and sinks of the running daemon",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.locate()
			if err != nil {
				return err
			}
			cl, err := p.client(cfg)
			if err != nil {
				return err
			}
			defer cl.Close()
			if !watch {
				return p.status(cmd.Context(), cl)
			}
			if every <= 0 {
				return misuse("--every must be above zero")
			}
			return p.watch(cmd.Context(), cl, every)
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again until Ctrl-C")
	c.Flags().DurationVar(&every, "every", 2*time.Second, "how often --watch asks")
	p.addrFlag(c)
	return c
}

// status prints the status once; as JSON, what the daemon answered.
func (p *program) status(ctx context.Context, cl *client) error {
	text, _, err := cl.read(ctx, "GET", "/v1/status", nil)
	if err != nil {
		return err
	}
	if p.json {
		_, err := p.stdout.Write(text)
		return err
	}
	var s server.Status
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read the status of %s: %w", cl.where, err)
	}
	return p.printStatus(&s)
}

func (p *program) watch(ctx context.Context, cl *client, every time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if p.terminal() && !p.json {
			fmt.Fprint(p.stdout, "\x1b[H\x1b[2J")
		}
		if err := p.status(ctx, cl); ctx.Err() != nil {
			return nil
		} else if err != nil {
			p.report(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
