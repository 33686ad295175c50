package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func (p *program) demoCommand() *cobra.Command {
	o := demoOptions{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a shop with live traffic and search it",
		Long: `Fill a PostgreSQL database with a shop, change it all the time, keep a local search
index of its products, and print the address to look at. With --check it runs without
a terminal, kills its daemon in the middle, and compares every document with SQL at
the end: exit code 0 if all are equal.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.DSN == "" {
				o.DSN, _ = p.env("TAILWATER_DEMO_DSN")
			}
			if o.DSN == "" {
				return misuse("name a PostgreSQL database that the demo may fill: --dsn, or TAILWATER_DEMO_DSN")
			}
			if p.deps.demo == nil {
				return errNotBuilt("the demo")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			o.Out = p.stdout
			return p.deps.demo(ctx, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.DSN, "dsn", "", "PostgreSQL database that the demo may fill (default: $TAILWATER_DEMO_DSN)")
	f.BoolVar(&o.Check, "check", false, "run for a while, kill the daemon, compare every document, end")
	f.DurationVar(&o.For, "for", 0, "how long --check runs (default 1m)")
	f.StringVar(&o.Listen, "listen", "", "address of the page (default 127.0.0.1:7171, or a free port)")
	f.StringVar(&o.Dir, "dir", "", "directory of the demo's data (default: a temporary one)")
	f.Float64Var(&o.Rate, "rate", 0, "transactions a second of live traffic (default 20)")
	return c
}
