package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/bench"
)

// table is the rows of the log and the logs that they share.
type table struct {
	dir    string
	gib    float64
	self   string           // this program
	filled map[string]bool  // logs that are made
	rss    map[string]int64 // the greatest, by row
}

func (t *table) begin() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if t.dir, err = filepath.Abs(t.dir); err != nil {
		return err
	}
	t.self, t.filled, t.rss = self, map[string]bool{}, map[string]int64{}
	return os.MkdirAll(t.dir, 0o755)
}

// product runs a workload as a child.
func (t *table) product(do string, p params) bench.Contestant {
	p.dir = filepath.Join(t.dir, do)
	return t.child(do, p)
}

func (t *table) child(do string, p params) bench.Contestant {
	return func(ctx context.Context) (bench.Sample, error) {
		s, err := bench.RunSample(ctx, t.self, p.args(do)...)
		if do != "pebble" {
			t.rss[do] = max(t.rss[do], s.RSS)
		}
		return s, err
	}
}

const (
	mib     = 1 << 20
	bulk    = 512 * mib // bytes of a bulk row
	long    = 1 << 30   // of a long row, times -gib
	replays = 512 * mib // bytes that a replay reads
	seekLog = 200 * mib
)

func (t *table) rows() []bench.Row {
	return slices.Concat(t.appends(), t.commits(), t.replays(), t.compactions(), t.longs(), t.memory())
}

func (t *table) appends() []bench.Row {
	fio := bench.Fio(t.dir, mib, bulk)
	one := params{bytes: bulk, partitions: 1, appenders: 2, group: 8000, journal: "none", sealed: "snappy"}
	eight, snappy := one, one
	eight.partitions = 8
	snappy.journal = "snappy"
	small := one
	small.bytes = 64 * mib
	return []bench.Row{
		{Name: "append", Goal: 0.90, Floor: fio, Product: t.product("append", one), Note: appendNote},
		{Name: "append-8-partitions", Goal: 0.90, Floor: fio, Product: t.product("append", eight), Note: appendNote},
		{Name: "append-snappy", Goal: 1.20, Floor: fio, Product: t.product("append", snappy), Note: appendNote},
		{Name: "append-snappy-rate", Goal: 1, Floor: bench.Fixed(3e6), FixedFloor: true,
			Product: records(t.product("append", snappy)), Note: appendNote},
		{Name: "append-pebble", Goal: 10, Floor: t.product("pebble", small), Product: t.product("append", one), Note: func(f, p bench.Sample) string {
			return fmt.Sprintf("%.2f M records/s; Pebble %.2f M", p.Extra["records/s"]/1e6, f.Extra["records/s"]/1e6)
		}},
	}
}

func appendNote(f, p bench.Sample) string {
	s := fmt.Sprintf("%.2f M records/s, %.0f MB/s encoded, %.0f MB on disk, %.2f µs CPU a record",
		p.Extra["records/s"]/1e6, p.Extra["records/s"]*recordSize/1e6, p.Extra["journal bytes"]/1e6,
		p.CPU/(p.Extra["records/s"]*p.Extra["seconds"])*1e6)
	if busy := p.Extra["writing"]; busy > 0 {
		s += fmt.Sprintf(", writing or syncing %.0f%% of the time", busy*100)
	}
	if f.CPU > 0 {
		s += fmt.Sprintf("; floor %.0f MB/s", f.Rate/1e6)
	}
	return s
}

// records takes the records a second as the rate.
func records(c bench.Contestant) bench.Contestant {
	return func(ctx context.Context) (bench.Sample, error) {
		s, err := c(ctx)
		s.Rate = s.Extra["records/s"]
		return s, err
	}
}

func (t *table) commits() []bench.Row {
	fio := bench.IOPS(bench.Fio(t.dir, 4<<10, commitBatches*4<<10))
	one := params{partitions: 1, appenders: 1, journal: "none", sealed: "snappy"}
	many := one
	many.partitions, many.appenders = 16, 16
	note := func(f, p bench.Sample) string {
		return fmt.Sprintf("%.0f batches/s in %.0f syncs/s, each after %.2f ms; fio %.0f/s", p.Rate, p.Extra["syncs/s"], p.Extra["ms"], f.Rate)
	}
	return []bench.Row{
		{Name: "commit", Goal: 0.85, Floor: fio, Product: t.product("commit", one), Note: note},
		{Name: "commit-16-partitions", Goal: 0.80, Floor: fio, Product: t.product("commit", many), Note: note},
	}
}

func (t *table) replays() []bench.Row {
	raw := params{bytes: replays, partitions: 1, group: 8000, journal: "none", sealed: "none", seal: true, mode: "partition"}
	snappy, zstd, journal := raw, raw, raw
	snappy.sealed, zstd.sealed, journal.seal = "snappy", "zstd", false
	txs := journal
	txs.mode = "transactions"
	const want = 12e6
	rate := func(name string, p params, goal float64) bench.Row {
		return bench.Row{Name: name, Goal: goal, Floor: bench.Fixed(want), FixedFloor: true, Product: t.reading("replay", name, p), Note: replayNote}
	}
	seek := func(name string, p params) bench.Row {
		p.bytes = seekLog
		return bench.Row{Name: name, Goal: 1, Floor: bench.Fixed(1000), FixedFloor: true, Product: t.reading("seek", name, p), Note: func(_, p bench.Sample) string {
			return fmt.Sprintf("first record after p50 %.3f ms, p99 %.3f ms, at most %.3f ms", p.Extra["p50 ms"], p.Extra["p99 ms"], p.Extra["max ms"])
		}}
	}
	return []bench.Row{
		{Name: "replay-dd", Goal: 0.33, Floor: t.dd("replay-dd", raw), Product: onDisk(t.reading("replay", "replay-dd", raw)), Note: func(f, p bench.Sample) string {
			return replayNote(f, p) + fmt.Sprintf(", %.2f GB/s; dd %.2f GB/s", p.Rate/1e9, f.Rate/1e9)
		}},
		rate("replay-segments", raw, 1),
		rate("replay-segments-snappy", snappy, 1),
		rate("replay-segments-zstd", zstd, 0),
		rate("replay-journal", journal, 1),
		rate("replay-transactions", txs, 1),
		seek("seek-segments", zstd),
		seek("seek-journal", journal),
	}
}

func replayNote(_, p bench.Sample) string {
	return fmt.Sprintf("%.1f M records/s, %.3f µs CPU and %.4f allocations a record", p.Extra["records"]/p.Extra["seconds"]/1e6,
		p.CPU/p.Extra["records"]*1e6, p.Extra["allocations"]/p.Extra["records"])
}

// reading runs a workload that reads, on a log made once.
func (t *table) reading(do, name string, p params) bench.Contestant {
	log := do
	if do == "compact" {
		log = "replay" // the same log
	}
	p.dir = t.logOf(log, p)
	run := t.child(do, p)
	return func(ctx context.Context) (bench.Sample, error) {
		if err := t.fill(ctx, p); err != nil {
			return bench.Sample{}, err
		}
		return run(ctx)
	}
}

func (t *table) logOf(do string, p params) string {
	return filepath.Join(t.dir, fmt.Sprintf("%s-%s-%v", do, p.sealed, p.seal))
}

func (t *table) fill(ctx context.Context, p params) error {
	if t.filled[p.dir] {
		return nil
	}
	_, err := t.child("fill", p)(ctx)
	t.filled[p.dir] = err == nil
	return err
}

// dd reads the same bytes from one file.
func (t *table) dd(name string, p params) bench.Contestant {
	p.dir = t.logOf("replay", p)
	file := filepath.Join(t.dir, "dd.tmp")
	return func(ctx context.Context) (bench.Sample, error) {
		if err := t.fill(ctx, p); err != nil {
			return bench.Sample{}, err
		}
		if !t.filled[file] {
			if err := concat(file, filepath.Join(p.dir, "topics", "*orders", "*.seg")); err != nil {
				return bench.Sample{}, err
			}
			t.filled[file] = true
		}
		return bench.DD(file)(ctx)
	}
}

func concat(to, glob string) error {
	names, err := filepath.Glob(glob)
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no files %s (%v)", glob, err)
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, name := range names {
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		in.Close()
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// onDisk takes the bytes a second that the records take on disk, uncompressed, as the rate.
func onDisk(c bench.Contestant) bench.Contestant {
	return func(ctx context.Context) (bench.Sample, error) {
		s, err := c(ctx)
		s.Rate = s.Extra["records"] * recordSize / s.Extra["seconds"]
		return s, err
	}
}

// compactions measure what runs beside appends once segments are there: a
// compaction against one replay of the same segments, and what it takes from appends.
func (t *table) compactions() []bench.Row {
	sealed := params{bytes: replays, partitions: 1, appenders: 2, group: 8000, journal: "none", sealed: "snappy", seal: true, mode: "partition"}
	alone := sealed
	alone.seal = false
	return []bench.Row{
		{Name: "compact", Goal: 0.25, Floor: t.reading("replay", "compact", sealed), Product: t.reading("compact", "compact", sealed), Note: func(f, p bench.Sample) string {
			return fmt.Sprintf("%.2f M records/s, %.0f MB to %.0f MB; a replay %.2f s, the compaction %.2f s", p.Rate/1e6,
				p.Extra["bytes before"]/1e6, p.Extra["bytes after"]/1e6, f.Extra["seconds"], p.Extra["seconds"])
		}},
		{Name: "append-while-compacting", Goal: 0.90, Floor: t.beside(sealed, alone), Product: t.beside(sealed, sealed), Note: appendNote},
	}
}

// beside appends to a copy of the log that was filled as the first parameters say.
func (t *table) beside(filled, p params) bench.Contestant {
	filled.dir = t.logOf("replay", filled)
	p.dir = filled.dir
	run := t.child("beside", p)
	return func(ctx context.Context) (bench.Sample, error) {
		if err := t.fill(ctx, filled); err != nil {
			return bench.Sample{}, err
		}
		return run(ctx)
	}
}

// longs are the rows over -gib GiB.
func (t *table) longs() []bench.Row {
	size := int64(t.gib * long)
	p := params{bytes: size, partitions: 4, appenders: 2, group: 8000, journal: "none", sealed: "zstd", seal: true}
	killed := p
	killed.dir = filepath.Join(t.dir, "killed")
	return []bench.Row{
		{Name: "append-sealing", Floor: bench.Fio(t.dir, mib, size), Product: t.product("append", p), Note: func(f, p bench.Sample) string {
			return fmt.Sprintf("%g GiB; %s; sealing had caught up after %.0f s", t.gib, appendNote(f, p), p.Extra["sealed seconds"])
		}},
		{Name: "reopen", Goal: 1, Floor: bench.Fixed(1 / 0.3), FixedFloor: true, Product: t.reopening(killed), Note: func(_, p bench.Sample) string {
			return fmt.Sprintf("%g GiB: %.0f ms, journal %.0f MB, segments %.0f MB", t.gib, p.Extra["ms"], p.Extra["journal bytes"]/1e6, p.Extra["segment bytes"]/1e6)
		}},
	}
}

// reopening opens a log whose writer was killed.
func (t *table) reopening(p params) bench.Contestant {
	run := t.child("reopen", p)
	return func(ctx context.Context) (bench.Sample, error) {
		if !t.filled[p.dir] {
			if _, err := t.child("killed", p)(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
				return bench.Sample{}, fmt.Errorf("the writer was not killed: %v", err)
			}
			t.filled[p.dir] = true
		}
		return run(ctx)
	}
}

// memory compares the greatest RSS of all rows before it with 64 MiB.
func (t *table) memory() []bench.Row {
	return []bench.Row{{
		Name: "memory", Goal: 1, Floor: bench.Fixed(1.0 / (64 * mib)), FixedFloor: true,
		Product: func(context.Context) (bench.Sample, error) {
			var most int64
			for _, rss := range t.rss {
				most = max(most, rss)
			}
			return bench.Sample{Rate: 1 / float64(most), RSS: most}, nil
		},
		Note: func(_, p bench.Sample) string {
			return fmt.Sprintf("at most %d MiB: %s", p.RSS/mib, t.peaks())
		},
	}}
}

func (t *table) peaks() string {
	var s []string
	for do, rss := range t.rss {
		s = append(s, fmt.Sprintf("%s %d MiB", do, rss/mib))
	}
	slices.Sort(s)
	return strings.Join(s, ", ")
}
