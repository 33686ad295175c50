package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/config"
)

func (p *program) dropCommand() *cobra.Command {
	var r dropRequest
	var yes bool
	c := &cobra.Command{
		Use:   "drop",
		Short: "Remove slot, publication and state",
		Long: `Remove what Tailwater left on a source (replication slot and publication) and in its
data directory. --source removes one source's slot, publication and place in the log;
--unused what the configuration no longer names; --state log, state and local index.
Without any of them: everything. The daemon must be stopped. Without --yes it only
says what would go. It may be repeated.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.drop(cmd.Context(), r, yes) },
	}
	f := c.Flags()
	f.StringSliceVar(&r.Sources, "source", nil, "remove this source's slot, publication and position (may be repeated)")
	f.BoolVar(&r.Unused, "unused", false, "remove what the configuration no longer names")
	f.BoolVar(&r.State, "state", false, "remove log, state and local index")
	f.BoolVar(&yes, "yes", false, "do it")
	return c
}

func (p *program) drop(ctx context.Context, r dropRequest, yes bool) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if r, err = whatToDrop(cfg, r); err != nil {
		return err
	}
	if err := p.daemonStopped(ctx, cfg); err != nil {
		return err
	}
	if p.deps.drop == nil {
		return errNotBuilt("drop")
	}
	r.DryRun = !yes
	steps := []string{}
	if err := p.deps.drop(ctx, cfg, r, func(step string) { steps = append(steps, p.dropStep(step, r.DryRun)) }); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	if p.json {
		if err := p.printJSON(map[string]any{"dropped": yes, "steps": steps}); err != nil {
			return err
		}
	}
	if !yes {
		return refused("nothing was dropped; what is dropped cannot be brought back: say --yes to do it")
	}
	return nil
}

// whatToDrop checks the sources named; without any flag everything is meant.
func whatToDrop(cfg *config.Config, r dropRequest) (dropRequest, error) {
	var sources []string
	for _, s := range cfg.Sources {
		sources = append(sources, s.Name)
	}
	if err := known("source", r.Sources, sources); err != nil {
		return r, err
	}
	if len(r.Sources) == 0 && !r.Unused && !r.State {
		r.Sources, r.State = sources, true
	}
	return r, nil
}

// dropStep prints a step for people and returns it in one line.
func (p *program) dropStep(step string, dry bool) string {
	step = oneLine(step)
	word := "dropping"
	if dry {
		word = "would drop"
	}
	if !p.json {
		fmt.Fprintf(p.stdout, "%s %s\n", word, step)
	}
	return step
}

// daemonStopped refuses while a daemon answers on the data directory.
func (p *program) daemonStopped(ctx context.Context, cfg *config.Config) error {
	cl, err := p.client(cfg)
	if err != nil {
		return err
	}
	defer cl.Close()
	_, _, err = cl.read(ctx, "GET", "/healthz", nil)
	if !errors.Is(err, errNoDaemon) {
		return refused("the daemon runs on %s; stop it before dropping anything", cfg.DataDir)
	}
	return nil
}
