package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/config"
)

// checkReport is what check --json prints.
type checkReport struct {
	OK       bool            `json:"ok"`
	Problems config.Problems `json:"problems"`
	Warnings config.Problems `json:"warnings"`
	Live     []finding       `json:"live,omitempty"`
}

func (p *program) checkCommand() *cobra.Command {
	var live bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, and with --live the servers too",
		Long: `Check the configuration alone and report all problems at once. With --live also
connect to each source and sink, check privileges and settings, and print the SQL that
mends each fault. Nothing is changed anywhere.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.check(cmd.Context(), live) },
	}
	c.Flags().BoolVar(&live, "live", false, "connect to sources and sinks")
	return c
}

func (p *program) check(ctx context.Context, live bool) error {
	cfg, err := config.Load(p.config, p.env)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return configError(err)
	}
	report := checkReport{OK: err == nil, Problems: problems, Warnings: config.Problems{}}
	if report.Problems == nil {
		report.Problems = config.Problems{}
	}
	if cfg != nil {
		report.Warnings = append(report.Warnings, cfg.Warnings...)
	}
	if err != nil {
		if p.json {
			if perr := p.printJSON(report); perr != nil {
				return perr
			}
			return &exitError{code: exitMisuse}
		}
		return configError(err)
	}
	if !live {
		return p.printCheck(cfg, report)
	}
	if p.deps.checkLive == nil {
		return errNotBuilt("check --live")
	}
	if report.Live, err = p.deps.checkLive(ctx, cfg); err != nil {
		return fmt.Errorf("check the servers: %w", err)
	}
	return p.printCheck(cfg, report)
}

// printCheck prints the report; faults that --live found are an exit code.
func (p *program) printCheck(cfg *config.Config, r checkReport) error {
	code := exitDone
	for _, f := range r.Live {
		switch {
		case f.OK:
		case f.Unreachable && code == exitDone:
			code = exitUnreachable
		case !f.Unreachable:
			code = exitFailed
		}
	}
	r.OK = code == exitDone
	if p.json {
		if err := p.printJSON(r); err != nil {
			return err
		}
	} else {
		p.warnings(cfg)
		p.printFindings(r.Live)
		if r.OK {
			fmt.Fprintf(p.stdout, "ok: %s, %s, %s\n", plural(len(cfg.Sources), "source"), plural(len(cfg.Views), "view"), plural(len(cfg.Sinks), "sink"))
		}
	}
	if code != exitDone {
		return &exitError{code: code}
	}
	return nil
}

func (p *program) printFindings(live []finding) {
	c := p.painter()
	for _, f := range live {
		word := "ok"
		switch {
		case !f.OK:
			word = c.red("fault")
		case f.Warning:
			word = "warning"
		}
		if f.OK && !f.Warning && p.quiet {
			continue
		}
		fmt.Fprintf(p.stdout, "%s: %s: %s\n", word, f.Part, f.Message)
		for line := range strings.Lines(f.Fix) {
			fmt.Fprintf(p.stdout, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
