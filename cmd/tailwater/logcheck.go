package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) logCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Read the whole log and name what is damaged",
		Long: `Read the whole log and verify every checksum. Each damaged place is a line: file,
byte, what is wrong, and what mends it. Exit code 1 if there is any.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.logCheck(cmd.Context()) },
	}
	p.addrFlag(c)
	return c
}

// logCheck also checks a data directory whose log does not open any more.
func (p *program) logCheck(ctx context.Context) error {
	check, done, err := p.checker(ctx)
	if err != nil {
		return err
	}
	defer done()
	result, err := check(ctx, func(d server.Damage) error {
		if p.json {
			return p.printJSON(d)
		}
		_, err := fmt.Fprintf(p.stdout, "%s: byte %d: %s; %s\n", printable(d.File), d.Byte, printable(d.Reason), printable(d.Fix))
		return err
	})
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(result)
	} else {
		err = p.checkedText(result)
	}
	if err == nil && !result.OK {
		return found()
	}
	return err
}

func (p *program) checkedText(r server.CheckResult) error {
	word := "ok"
	if !r.OK {
		word = countOf(r.Damages, "damaged place")
	}
	if r.Torn > 0 {
		p.say("%s behind the journal's last whole entry are being written, or were torn and go at the next start", bytesText(r.Torn))
	}
	_, err := fmt.Fprintf(p.stdout, "%s: %s, %s in %s read\n", word, countOf(int(r.Records), "record"), bytesText(r.Bytes), countOf(r.Files, "file"))
	return err
}

// checker gives the running daemon's check or, when none runs, the data directory's.
func (p *program) checker(ctx context.Context) (check func(context.Context, func(server.Damage) error) (server.CheckResult, error), done func(), err error) {
	c, cfg, err := p.reach(ctx)
	if err != nil {
		return nil, nil, err
	}
	if c != nil {
		return c.CheckLog, func() { c.Close() }, nil
	}
	if p.deps.checkDir == nil {
		return nil, nil, errNotBuilt("checking a stopped data directory")
	}
	return func(ctx context.Context, fn func(server.Damage) error) (server.CheckResult, error) {
		return p.deps.checkDir(ctx, cfg, fn)
	}, func() {}, nil
}
