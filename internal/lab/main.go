package main

import (
	"flag"
	"fmt"
	"os"
	"sort"

	"github.com/tailwater/tailwater/eventlog/seglog/crashlab"
)

// commands by name; each parses its own flags and returns what went wrong.
var commands = map[string]func(args []string) error{
	"kill":       kill,
	"crash":      crash,
	"cases":      cases,
	"docs-check": docsCheck,
	"mutants":    mutants,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		var names []string
		for n := range commands {
			names = append(names, n)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "lab: give one of %v\n", names)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "lab %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func crash(args []string) error {
	f := flag.NewFlagSet("crash", flag.ExitOnError)
	rounds := f.Int("rounds", 5000, "power losses")
	seed := f.Int64("seed", 1, "seed of the schedule")
	stride := f.Int("stride", 1, "every how many positions of the sweep; 0: none")
	flip := f.Int("flip", 0, "random bit flips in large files, and every bit of small ones; 0: none")
	f.Parse(args)
	return crashlab.Run(crashlab.Options{Rounds: *rounds, Seed: *seed, Stride: *stride, Flips: *flip}, os.Stdout)
}
