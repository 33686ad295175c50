package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) configCommand() *cobra.Command {
	print := &cobra.Command{
		Use:   "print",
		Short: "Print the configuration as it was read",
		Long: `Print the configuration as it was read: the files of a directory merged, references
unresolved, secrets masked.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.load()
			if err != nil {
				return err
			}
			fmt.Fprint(p.stdout, cfg.YAML())
			return nil
		},
	}
	return p.group("config", "Look at the configuration", print)
}
