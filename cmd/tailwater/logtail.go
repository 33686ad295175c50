package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) logTailCommand() *cobra.Command {
	var flags recordFlags
	var follow bool
	var last int
	c := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Print the last records of a topic, and with -f those that come",
		Long: `Print the last records of a topic, or of all topics that a glob matches: the last -n of
them together, of those that the other flags choose, in the order of cat. With -f it
goes on with each record that is appended behind them, once it is durable; -n 0 -f
prints only new ones. Sealing and new journal files in between change nothing: a
record is printed once. One that compaction takes away before its turn is left out,
the newest of its key never; if retention gets ahead of what is printed, it ends with
an error. Topics that are made later are not followed.
Ctrl-C or SIGTERM ends it with exit code 0, the daemon's end with 3; --limit and
--to-offset end it too. When no daemon runs, it waits for one to append.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.query(cmd, args[0])
			if err != nil {
				return err
			}
			if last < 0 {
				return misuse("-n must not be negative")
			}
			q.Tail, q.Last, q.Follow = true, last, follow
			return p.with(cmd, func(ctx context.Context, s store) error { return p.tail(ctx, s, q) })
		},
	}
	flags.add(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the records that come, until Ctrl-C")
	c.Flags().IntVarP(&last, "lines", "n", 10, "how many records")
	p.addrFlag(c)
	return c
}

// tail prints the last records and then, if asked, those that come until it is interrupted.
func (p *program) tail(ctx context.Context, s store, q server.RecordQuery) error {
	if !q.Follow {
		return p.records(ctx, s, q)
	}
	if _, online := s.(*client); !online {
		p.say("no daemon answers on this data directory; waiting for one to append to it")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := p.records(ctx, s, q)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
