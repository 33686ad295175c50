package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/internal/demo"
	"github.com/tailwater/tailwater/internal/testkit"
)

// ledgerSQL makes two tables whose right history is known from their rows: in
// ledger each id is inserted once and never changed; in counter n only grows.
const ledgerSQL = `
CREATE TABLE public.ledger (id bigint PRIMARY KEY, part int NOT NULL, note text NOT NULL);
CREATE TABLE public.counter (id int PRIMARY KEY, n bigint NOT NULL, big text NOT NULL);
ALTER TABLE public.counter ALTER big SET STORAGE EXTERNAL;
INSERT INTO public.counter SELECT g, 0, repeat('toast ' || g, 900) FROM generate_series(1, 20) g;
INSERT INTO public.ledger SELECT g, g % 7, 'loaded' FROM generate_series(1, 5000) g;
`

// kill kills the daemon rounds times under load, the snapshot included, and
// compares the log and the documents with the source.
func kill(args []string) error {
	f := flag.NewFlagSet("kill", flag.ExitOnError)
	rounds := f.Int("rounds", 50, "kills")
	seed := f.Uint64("seed", 1, "seed of the schedule and the load")
	products := f.Int("products", 4000, "size of the shop")
	f.Parse(args)
	if *rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	var faults killFaults
	err := testkit.Program("kill", os.Stderr, func(t testkit.T) {
		killRounds(t, *rounds, *seed, *products, &faults)
	})
	if err != nil {
		return fmt.Errorf("seed %d: %w", *seed, err)
	}
	fmt.Printf("kill rounds=%d lost=%d duplicate=%d reordered=%d wrong=%d transactions=%d seed=%d\n",
		*rounds, faults.lost, faults.duplicate, faults.reordered, faults.wrong, faults.transactions, *seed)
	for _, line := range faults.lines {
		fmt.Println("  " + line)
	}
	if faults.lost+faults.duplicate+faults.reordered+faults.wrong > 0 {
		return errors.New("faults were found")
	}
	return nil
}

type killFaults struct {
	lost, duplicate, reordered, wrong int
	transactions                      int64
	lines                             []string // the first few, for people
}

func (f *killFaults) add(counter *int, format string, args ...any) {
	*counter++
	if len(f.lines) < 20 {
		f.lines = append(f.lines, fmt.Sprintf(format, args...))
	}
}

func killRounds(t testkit.T, rounds int, seed uint64, products int, faults *killFaults) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dsn := testkit.Postgres(t)
	if err := demo.Load(ctx, dsn, demo.LoadOptions{Seed: seed, Size: demo.Size{Products: products}}); err != nil {
		t.Fatalf("load the shop: %v", err)
	}
	testkit.Exec(t, dsn, ledgerSQL)
	d := testkit.NewDaemon(t, killConfig(t, dsn))
	t.Cleanup(func() { d.Run("drop", "--source", "shop", "--yes") })

	g, gctx := errgroup.WithContext(ctx)
	loadCtx, stopLoad := context.WithCancel(gctx)
	defer stopLoad()
	traffic := demo.NewTrafficker(dsn, 60, seed)
	g.Go(func() error { return traffic.Run(loadCtx) })
	for part := range 3 {
		g.Go(func() error { return writeLedger(loadCtx, dsn, part, seed) })
	}
	r := rand.New(rand.NewPCG(seed, 7))
	for round := range rounds {
		d.Start()
		if round >= 3 && round%2 == 0 { // else anywhere: also before it is ready, in the snapshot
			d.WaitReady(time.Minute)
		}
		if round%5 == 4 { // into snapshots of tables that have one, whose end is a sweep
			d.WaitReady(time.Minute)
			for _, table := range []string{"counter", "products", "reviews"} {
				d.Run("snapshot", "run", "shop.public."+table) // refused where one is running
			}
			pause(ctx, time.Duration(r.IntN(300))*time.Millisecond)
		} else {
			pause(ctx, time.Duration(50+r.IntN(1200))*time.Millisecond)
		}
		d.Kill()
		if gctx.Err() != nil {
			break
		}
	}
	d.Start()
	d.WaitReady(time.Minute)
	pause(ctx, time.Second)
	stopLoad()
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("the load: %v", err)
	}
	d.Wait("--timeout", "180s")
	faults.transactions = traffic.Committed()
	checkDocuments(ctx, t, d, dsn, faults)
	checkLedger(ctx, t, d, dsn, faults)
	checkCounter(ctx, t, d, dsn, faults)
	if code := d.Stop(); code != 0 {
		faults.add(&faults.wrong, "a clean stop exits with %d", code)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// killConfig is the demo's, with the two tables, a slot of its own and a free port.
func killConfig(t testkit.T, dsn string) string {
	dir, err := os.MkdirTemp("", "tailwater-kill-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	addr := l.Addr().String()
	l.Close()
	name := testkit.Name(t)
	text := demo.Config(dsn, filepath.Join(dir, "data"), addr)
	text = strings.Replace(text, "tables: [", "tables: [public.ledger, public.counter, ", 1)
	// The log is sealed and compacted all the time, but for the table whose every change is checked.
	text += "\nlog:\n  journal: 1MiB\n  topics:\n    shop.public.ledger: { cleanup: none }\n    \"*\": { tombstone_retention: 2s }\n"
	return strings.ReplaceAll(text, ": tailwater_demo\n", ": tailwater_"+name+"\n")
}

// writeLedger commits ledger rows in transactions of several, some rolled back,
// and raises the counters, until ctx ends.
func writeLedger(ctx context.Context, dsn string, part int, seed uint64) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	r := rand.New(rand.NewPCG(seed, uint64(20+part)))
	for id := int64(part+1) * 1_000_000; ctx.Err() == nil; {
		n := 1 + r.IntN(5)
		tx, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		for i := range n {
			if _, err := tx.Exec(ctx, "INSERT INTO public.ledger VALUES ($1, $2, $3)", id+int64(i), part, strings.Repeat("x", r.IntN(200))); err != nil {
				tx.Rollback(context.WithoutCancel(ctx))
				return err
			}
		}
		if _, err := tx.Exec(ctx, "UPDATE public.counter SET n = n + 1 WHERE id = $1", 1+r.IntN(20)); err != nil {
			tx.Rollback(context.WithoutCancel(ctx))
			return err
		}
		if r.IntN(10) == 0 {
			err = tx.Rollback(ctx)
		} else {
			err = tx.Commit(ctx)
		}
		if err != nil {
			return err
		}
		id += int64(n)
		pause(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	}
	return ctx.Err()
}

// checkDocuments compares every document with SQL, and the local index with the view.
func checkDocuments(ctx context.Context, t testkit.T, d *testkit.Daemon, dsn string, f *killFaults) {
	diffs, err := demo.Compare(ctx, dsn, d.ViewDocs(demo.View))
	if err != nil {
		t.Fatalf("compare the documents: %v", err)
	}
	for _, line := range diffs {
		f.add(&f.wrong, "document %s", line)
	}
	if res := d.Run("verify", demo.View, "--sink", demo.Sink, "--json"); res.Code != 0 {
		f.add(&f.wrong, "verify: exit code %d: %s%s", res.Code, res.Stdout, res.Stderr)
	}
}

// logLine is what the checks need of a line of `log cat --json`.
type logLine struct {
	Op    string             `json:"op"`
	CSN   uint64             `json:"csn"`
	Seq   uint64             `json:"seq"`
	Key   struct{ ID int64 } `json:"key"`
	After *struct {
		N   json.Number
		Big *string
	} `json:"after"`
	Unchanged []string `json:"unchanged"`
	Source    struct {
		Position *string `json:"position"`
		Tx       *string `json:"tx"`
	} `json:"source"`
}

func logLines(t testkit.T, d *testkit.Daemon, topic string) []logLine {
	dec := json.NewDecoder(strings.NewReader(d.MustRun("log", "cat", topic, "--json")))
	var lines []logLine
	for dec.More() {
		var l logLine
		if err := dec.Decode(&l); err != nil {
			t.Fatalf("log cat %s: line %d: %v", topic, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// checkLedger: each committed id is in the log, as an insert at most once and as a
// row of the snapshot at most once. A chunk that saw a row which was streamed
// before it holds that row again; an insert behind its own snapshot row would be
// one that the chunk had counted already.
func checkLedger(ctx context.Context, t testkit.T, d *testkit.Daemon, dsn string, f *killFaults) {
	type seen struct {
		inserts, reads int
		late           bool // the insert came behind the snapshot's row
	}
	ids := map[int64]*seen{}
	lines := logLines(t, d, "shop.public.ledger")
	last := uint64(0)
	for _, l := range lines {
		if l.CSN < last {
			f.add(&f.reordered, "ledger %d at CSN %d comes behind CSN %d", l.Key.ID, l.CSN, last)
		}
		last = l.CSN
		s := ids[l.Key.ID]
		if s == nil {
			s = &seen{}
			ids[l.Key.ID] = s
		}
		switch l.Op {
		case "insert":
			s.inserts++
			s.late = s.late || s.reads > 0
		case "read":
			s.reads++
		default:
			f.add(&f.wrong, "ledger %d has op %s", l.Key.ID, l.Op)
		}
	}
	for _, id := range queryInts(ctx, t, dsn, "SELECT id FROM public.ledger ORDER BY id") {
		s := ids[id]
		switch {
		case s == nil:
			f.add(&f.lost, "ledger %d is not in the log", id)
		case s.inserts > 1 || s.reads > 1 || s.late:
			f.add(&f.duplicate, "ledger %d: %d inserts, %d snapshot rows, insert last: %v", id, s.inserts, s.reads, s.late)
		}
		delete(ids, id)
	}
	for id := range ids {
		f.add(&f.wrong, "ledger %d is in the log but was never committed", id)
	}
}

// checkCounter: n of each counter never goes back in the log and ends as at the
// source; the TOAST column that no update touched was never lost.
func checkCounter(ctx context.Context, t testkit.T, d *testkit.Daemon, dsn string, f *killFaults) {
	newest := map[int64]int64{}
	whole := map[int64]bool{}
	for _, l := range logLines(t, d, "shop.public.counter") {
		if l.After == nil {
			f.add(&f.wrong, "counter %d was deleted", l.Key.ID)
			continue
		}
		n, err := l.After.N.Int64()
		if err != nil {
			t.Fatalf("counter %d: %v", l.Key.ID, err)
		}
		if was, ok := newest[l.Key.ID]; ok && n < was {
			f.add(&f.reordered, "counter %d goes from %d to %d", l.Key.ID, was, n)
		} else if ok && l.Op == "update" && n != was+1 && whole[l.Key.ID] {
			f.add(&f.lost, "counter %d goes from %d to %d", l.Key.ID, was, n)
		}
		newest[l.Key.ID] = n
		whole[l.Key.ID] = whole[l.Key.ID] || l.After.Big != nil
	}
	for _, id := range queryInts(ctx, t, dsn, "SELECT id FROM public.counter ORDER BY id") {
		if !whole[id] {
			f.add(&f.lost, "counter %d has no whole value in the log", id)
		}
		now := queryInts(ctx, t, dsn, fmt.Sprintf("SELECT n FROM public.counter WHERE id = %d", id))
		if newest[id] != now[0] {
			f.add(&f.wrong, "counter %d ends at %d, at the source at %d", id, newest[id], now[0])
		}
	}
}

func queryInts(ctx context.Context, t testkit.T, dsn, sql string) []int64 {
	c := testkit.Connect(t, dsn)
	rows, err := c.Query(ctx, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return list
}
