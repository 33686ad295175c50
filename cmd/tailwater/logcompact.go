package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) logCompactCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compact TOPIC",
		Short: "Compact a topic now",
		Long: `Compact a topic, or those of a glob: of each key the newest record stays. A glob passes
over topics of another cleanup. Only what is sealed into segments is compacted. The running daemon does it; when none runs, the
data directory is locked for it.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGlob(args[0]); err != nil {
				return err
			}
			return p.logCompact(cmd.Context(), args[0])
		},
	}
	p.addrFlag(c)
	return c
}

func (p *program) logCompact(ctx context.Context, glob string) error {
	c, cfg, err := p.reach(ctx)
	if err != nil {
		return err
	}
	done := 0
	show := func(r server.Compacted) error {
		done++
		if p.json {
			return p.printJSON(r)
		}
		_, err := fmt.Fprintf(p.stdout, "%s: %s records of %s stay, %s of %s\n", printable(r.Topic),
			countText(r.RecordsAfter), countText(r.RecordsBefore), bytesText(r.BytesAfter), bytesText(r.BytesBefore))
		return err
	}
	switch {
	case c != nil:
		defer c.Close()
		err = c.Compact(ctx, glob, show)
	case p.deps.compactDir == nil:
		return errNotBuilt("compacting a stopped data directory")
	default:
		err = p.deps.compactDir(ctx, cfg, glob, show)
	}
	if err == nil && done == 0 {
		p.say("none of the topics that %q matches is kept by compaction; nothing was done", glob)
	}
	return p.topicError(err)
}
