package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"sort"
	"strings"

	"github.com/tailwater/tailwater/bench"
)

// params are the flags of a child.
type params struct {
	dir        string
	bytes      int64  // to write, as encoded without compression
	partitions int    // of the topic
	appenders  int    // at once
	group      int    // records of an append
	journal    string // compression of the journal
	sealed     string // compression of segments
	seal       bool   // seal in the background, and until it has caught up
	mode       string // what a reading workload reads
}

func (p *params) flags(f *flag.FlagSet) {
	f.StringVar(&p.dir, "data", "", "directory of the log")
	f.Int64Var(&p.bytes, "bytes", 256<<20, "bytes to write")
	f.IntVar(&p.partitions, "partitions", 1, "partitions of the topic")
	f.IntVar(&p.appenders, "appenders", 1, "appenders at once")
	f.IntVar(&p.group, "group", 8000, "records of an append")
	f.StringVar(&p.journal, "journal", "none", "compression of the journal")
	f.StringVar(&p.sealed, "sealed", "none", "compression of segments")
	f.BoolVar(&p.seal, "seal", false, "seal in the background")
	f.StringVar(&p.mode, "mode", "partition", "how to read")
}

// args are the flags that make a child do the same.
func (p params) args(do string) []string {
	return []string{
		"-do", do, "-data", p.dir, fmt.Sprint("-bytes=", p.bytes), fmt.Sprint("-partitions=", p.partitions),
		fmt.Sprint("-appenders=", p.appenders), fmt.Sprint("-group=", p.group), "-journal", p.journal, "-sealed", p.sealed,
		fmt.Sprint("-seal=", p.seal), "-mode", p.mode,
	}
}

// workloads are what children do.
var workloads = map[string]func(context.Context, params) (bench.Sample, error){
	"append":  appendBulk,
	"commit":  commitGroups,
	"pebble":  pebbleBulk,
	"compact": compact,
	"beside":  appendBeside,
	"fill":    fill,
	"replay":  replay,
	"seek":    seek,
	"killed":  fillAndDie,
	"reopen":  reopen,
}

func main() {
	var p params
	p.flags(flag.CommandLine)
	do := flag.String("do", "", "workload of a child")
	profile := flag.String("cpuprofile", "", "write a profile of the child")
	gib := flag.Float64("gib", 1, "GiB of the rows that say so")
	pairs := flag.Int("pairs", 5, "pairs of each row")
	only := flag.String("rows", "*", "which rows, a glob")
	dir := flag.String("dir", ".cache/bench", "where logs are written: on the disk to be measured")
	results := flag.String("results", "bench/results", "where the JSON goes")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *do != "" {
		err = child(ctx, *do, p, *profile)
	} else {
		err = rows(ctx, *dir, *results, *only, *gib, *pairs)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "logbench: %v\n", err)
		os.Exit(1)
	}
}

func child(ctx context.Context, do string, p params, profile string) error {
	work := workloads[do]
	if work == nil {
		var names []string
		for n := range workloads {
			names = append(names, n)
		}
		sort.Strings(names)
		return fmt.Errorf("workload %q; there are %s", do, strings.Join(names, ", "))
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s, err := work(ctx, p)
	if err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// rows measures all rows whose names match.
func rows(ctx context.Context, dir, results, only string, gib float64, pairs int) error {
	t := &table{dir: filepath.Join(dir, "log"), gib: gib}
	if err := t.begin(); err != nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	var chosen []bench.Row
	for _, r := range t.rows() {
		ok, err := filepath.Match(only, r.Name)
		if err != nil {
			return err
		}
		if ok {
			chosen = append(chosen, r)
		}
	}
	rep := &bench.Report{Bench: "log", Settings: map[string]string{"gib": fmt.Sprint(gib), "pairs": fmt.Sprint(pairs)}}
	missed, err := bench.RunAll(ctx, rep, chosen, pairs, os.Stdout, results)
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d of %d rows missed", missed, len(chosen))
	}
	return err
}
