package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tailwater/tailwater/config"
)

// program is one run of the command line.
type program struct {
	stdout io.Writer
	stderr io.Writer
	env    func(string) (string, bool)
	deps   deps

	// The global flags.
	config  string
	json    bool
	quiet   bool
	noColor bool
	addr    string
}

// main runs a command line and returns the exit code.
func (p *program) main(ctx context.Context, args []string) int {
	out := &output{w: p.stdout}
	p.stdout = out
	root := p.root()
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.err
	}
	if err == nil {
		return exitDone
	}
	p.report(err)
	return p.exitCode(err)
}

// report prints an error: problems of the configuration with their excerpts,
// anything else in one line.
func (p *program) report(err error) {
	var problems config.Problems
	if errors.As(err, &problems) {
		fmt.Fprintln(p.stderr, problems.Error())
		return
	}
	if text := oneLine(err.Error()); text != "" {
		for _, own := range []string{"tailwater ", "tailwater: "} { // commands name themselves in full
			text = strings.TrimPrefix(text, own)
		}
		fmt.Fprintln(p.stderr, "tailwater: "+text)
	}
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "tailwater",
		Short:         "Keep search indexes and caches in step with your database",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          p.unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(p.stderr)
			_ = cmd.Help()
			return misuse("name a command")
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&p.config, "config", "c", "tailwater.yaml", "configuration file, or directory of *.yaml files")
	f.BoolVar(&p.json, "json", false, "print JSON")
	f.BoolVar(&p.quiet, "quiet", false, "print results and errors only")
	f.BoolVar(&p.noColor, "no-color", false, "print without colours")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		p.runCommand(), p.checkCommand(), p.planCommand(), p.statusCommand(), p.waitCommand(),
		p.snapshotCommand(), p.logCommand(), p.viewCommand(), p.verifyCommand(), p.dlqCommand(),
		p.dropCommand(), p.configCommand(), p.demoCommand(), p.versionCommand(),
	)
	for _, c := range root.Commands() {
		strictArgs(c)
	}
	return root
}

var noArgs = takes(0, 0)

// takes checks the number of a command's arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least:
			return fmt.Errorf("an argument is missing")
		case n > most && most == 0:
			return fmt.Errorf("it takes no arguments, not %q", args[0])
		case n > most:
			return fmt.Errorf("one argument too many, %q", args[most])
		}
		return nil
	}
}

// strictArgs makes a command's complaint about its arguments a misuse.
func strictArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				var x *exitError
				if errors.As(err, &x) {
					return err
				}
				return misuse("%s: %w; it is used as: %s", cmd.CommandPath(), err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strictArgs(sub)
	}
}

// unknownCommand reports a word that is no command, with the nearest one.
func (p *program) unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	hint := "; " + cmd.CommandPath() + " --help lists the commands"
	if s := config.Suggest(args[0], known); s != "" {
		hint = fmt.Sprintf("; did you mean %q?", cmd.CommandPath()+" "+s)
	}
	return misuse("unknown command %q%s", cmd.CommandPath()+" "+args[0], hint)
}

// group is a command that only has subcommands.
func (p *program) group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: p.unknownCommand}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var names []string
		for _, s := range cmd.Commands() {
			names = append(names, s.Name())
		}
		return misuse("name a command of %s: %s", cmd.CommandPath(), strings.Join(names, ", "))
	}
	c.AddCommand(subs...)
	return c
}

// flagError makes a wrong flag a misuse, with the nearest flag there is.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "unknown flag: --")
	if !unknown {
		return misuse("%s: %s; see %s --help", cmd.CommandPath(), text, cmd.CommandPath())
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	hint := "see " + cmd.CommandPath() + " --help"
	if s := config.Suggest(name, known); s != "" {
		hint = "did you mean --" + s + "?"
	}
	return misuse("%s: unknown flag --%s; %s", cmd.CommandPath(), name, hint)
}

// load reads the whole configuration and prints its warnings.
func (p *program) load() (*config.Config, error) {
	cfg, err := config.Load(p.config, p.env)
	if err != nil {
		return nil, configError(err)
	}
	p.warnings(cfg)
	return cfg, nil
}

func (p *program) warnings(cfg *config.Config) {
	if p.quiet {
		return
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(p.stderr, "warning: "+oneLine(w.Error()))
	}
}

// locate reads what leads to the daemon. With --addr the file may be missing.
func (p *program) locate() (*config.Config, error) {
	cfg, err := config.Locate(p.config, p.env)
	if err == nil {
		return cfg, nil
	}
	if p.addr != "" {
		if _, serr := os.Stat(p.config); os.IsNotExist(serr) {
			return &config.Config{}, nil
		}
	}
	return nil, configError(err)
}

// configError is a misuse also where the file could not be read.
func configError(err error) error { return &exitError{exitMisuse, err} }

// addrFlag adds --addr to a command that asks a daemon.
func (p *program) addrFlag(cmds ...*cobra.Command) {
	for _, c := range cmds {
		c.Flags().StringVar(&p.addr, "addr", "", "address of the daemon (host:port or URL; default: the unix socket in the data directory)")
	}
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
