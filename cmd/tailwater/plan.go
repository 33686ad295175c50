package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Show what run would do",
		Long: `Show what run would do with the configuration as it is now: snapshots, view builds,
indexes and mappings, and the resolved columns of every relation. What must be mended
first follows as SQL, one statement a line. Nothing is changed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			if p.deps.plan == nil {
				return errNotBuilt("plan")
			}
			steps, err := p.deps.plan(cmd.Context(), cfg)
			if err != nil {
				return fmt.Errorf("plan: %w", err)
			}
			return p.printPlan(steps)
		},
	}
}

func (p *program) printPlan(steps []planStep) error {
	if p.json {
		for _, s := range steps {
			if err := p.printJSON(s); err != nil {
				return err
			}
		}
		return nil
	}
	if len(steps) == 0 {
		fmt.Fprintln(p.stdout, "nothing to do")
		return nil
	}
	rows := [][]string{}
	for _, s := range steps {
		rows = append(rows, []string{s.Action, printable(s.Target), printable(s.Detail)})
	}
	if err := table(p.stdout, rows); err != nil {
		return err
	}
	for _, s := range steps {
		if s.Fix == "" {
			continue
		}
		fmt.Fprintf(p.stdout, "\n-- %s: %s\n%s\n", printable(s.Target), printable(s.Detail), s.Fix)
	}
	return nil
}
