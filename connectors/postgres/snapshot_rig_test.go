package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
	"github.com/tailwater/tailwater/internal/testkit"
)

// captureRig copies a database into a log in memory, which can fail at any append.
type captureRig struct {
	t    *testing.T
	dsn  string
	opts Options
	con  *Connector
	log  *failingLog
	hist *connectors.LogHistory

	src    connectors.Source
	cancel context.CancelFunc
	done   chan error
}

var errCrash = errors.New("the test ends it here")

// failingLog fails the append at which the countdown ends, as a crash before it would.
type failingLog struct {
	*logtest.MemLog
	left              atomic.Int64
	streamed, adopted atomic.Int64 // steps of streams
}

func (l *failingLog) Append(ctx context.Context, group []*eventlog.Tx) error {
	if l.left.Add(-1) == 0 {
		return errCrash
	}
	return l.MemLog.Append(ctx, group)
}

func newCaptureRig(t *testing.T, dsn string, ddl ...string) *captureRig {
	t.Helper()
	testkit.Exec(t, dsn, ddl...)
	r := &captureRig{t: t, dsn: dsn, log: &failingLog{MemLog: logtest.Mem()}}
	r.opts = Options{Source: testkit.Name(t), DSN: dsn, Tables: []string{"public.*"}, Discover: 100 * time.Millisecond,
		TickInterval: 50 * time.Millisecond, StatusInterval: 20 * time.Millisecond, Snapshot: SnapshotOptions{ChunkRows: 100},
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	r.con = New(r.opts)
	r.hist = &connectors.LogHistory{Log: r.log, Source: r.opts.Source}
	t.Cleanup(r.stop)
	return r
}

// start runs the capture until it ends by itself or stop.
func (r *captureRig) start() {
	r.t.Helper()
	src, err := r.con.Open(context.Background(), r.hist)
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	r.run(src)
}

// run copies an open source into the log.
func (r *captureRig) run(src connectors.Source) {
	ctx, cancel := context.WithCancel(context.Background())
	r.src = src
	r.cancel, r.done = cancel, make(chan error, 1)
	go func() {
		r.done <- connectors.NewIngest(connectors.IngestOptions{Log: r.log, Source: r.opts.Source}).Run(ctx, src)
	}()
}

func (r *captureRig) stop() {
	if r.cancel == nil {
		return
	}
	r.cancel()
	if err := <-r.done; err != nil && !errors.Is(err, errCrash) && !isReopen(err) {
		r.t.Errorf("capture ended: %v", err)
	}
	r.src.Close()
	r.cancel = nil
}

// crashAfter starts the capture and waits until the nth append fails.
func (r *captureRig) crashAfter(n int) {
	r.t.Helper()
	r.log.left.Store(int64(n))
	r.start()
	select {
	case err := <-r.done:
		r.done <- err // for stop
		if !errors.Is(err, errCrash) && !errors.Is(err, connectors.ErrReopen) {
			r.t.Fatalf("capture ended: %v", err)
		}
	case <-time.After(60 * time.Second):
		r.t.Fatalf("no append %d within a minute", n)
	}
	r.cancel()
	r.src.Close()
	r.cancel = nil
	r.log.left.Store(0)
}

// settled waits until the log has everything that is committed now and no snapshot runs.
func (r *captureRig) settled() {
	r.t.Helper()
	end, err := r.con.End(r.t.Context())
	if err != nil {
		r.t.Fatalf("end: %v", err)
	}
	testkit.Eventually(r.t, 60*time.Second, "the log has everything", func() error {
		r.reopened()
		if pos, ok := r.hist.Last(); !ok || !r.con.Reached(pos, end) {
			return fmt.Errorf("the log ends at %s, wanted %s", pos, end)
		}
		return r.snapshotsDone()
	})
}

// reopened starts the capture again if it ended to be opened again.
func (r *captureRig) reopened() {
	select {
	case err := <-r.done:
		if !errors.Is(err, connectors.ErrReopen) {
			r.done <- err // for stop
			r.t.Fatalf("capture ended: %v", err)
		}
		r.cancel()
		r.src.Close()
		r.cancel = nil
		r.start()
	default:
	}
}

func (r *captureRig) snapshotsDone() error {
	for _, p := range r.src.Stats().Tables {
		if p.State != "done" {
			return fmt.Errorf("table %s is %s", p.Topic, p.State)
		}
	}
	open := map[string]uint64{}
	marks, err := r.hist.Marks()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, m := range marks {
		seen[m.Topic] = true
		switch m.State {
		case change.SnapshotBegun:
			open[m.Topic] = m.Run
		case change.SnapshotDone, change.SnapshotStopped:
			if open[m.Topic] == m.Run {
				delete(open, m.Topic)
			}
		}
	}
	if len(open) > 0 || len(seen) == 0 {
		return fmt.Errorf("runs in progress: %v (tables with runs: %d)", open, len(seen))
	}
	return r.hist.Requests(func(topic string, key change.Key) error { return fmt.Errorf("a re-read of %s is open", topic) })
}

// newestRun returns the number and state of a table's newest run.
func (r *captureRig) newestRun(table string) *change.SnapshotMark {
	r.t.Helper()
	marks, err := r.hist.Marks()
	if err != nil {
		r.t.Fatal(err)
	}
	var newest *change.SnapshotMark
	for _, m := range marks {
		if m.Topic == change.TableTopic(r.opts.Source, "public", table) && (newest == nil || m.Run >= newest.Run) {
			newest = m
		}
	}
	return newest
}

// same compares the log's newest rows of a table with the table.
func (r *captureRig) same(name string) {
	r.t.Helper()
	if diff := r.diff(name); len(diff) > 0 {
		r.t.Errorf("table %s: %d differences, the first: %s", name, len(diff), strings.Join(diff[:min(len(diff), 5)], "\n"))
	}
}

func (r *captureRig) diff(name string) (diff []string) {
	r.t.Helper()
	want, now := r.tableRows(name)
	got := map[string]string{}
	err := r.hist.ReadNewest(now.Topic, func(key change.Key, row change.Row, partial bool) error {
		got[string(key)] = renderRow(r.t, inLayout(r.t, row, now))
		return nil
	})
	if err != nil {
		r.t.Fatalf("read the log: %v", err)
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			diff = append(diff, fmt.Sprintf("table %s, log %q", want[k], got[k]))
		}
		delete(got, k)
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		diff = append(diff, "only in the log: "+got[k])
	}
	return diff
}

// inLayout brings a row to another layout, as compaction fills what a row has not.
func inLayout(t *testing.T, row change.Row, now *change.Schema) change.Row {
	t.Helper()
	if slices.Equal(row.Schema.AppendLayout(nil), now.AppendLayout(nil)) {
		return row
	}
	none := make([]change.Value, len(now.Columns))
	for i := range none {
		none[i] = change.UnchangedValue
	}
	data, err := change.Merge(change.Row{Schema: now, Data: change.AppendRow(nil, none)}, row)
	if err != nil {
		t.Fatal(err)
	}
	return change.Row{Schema: now, Data: data}
}

// tableRows reads a table as the connector does, and its layout now.
func (r *captureRig) tableRows(name string) (rows map[string]string, now *change.Schema) {
	r.t.Helper()
	ctx := r.t.Context()
	o := r.con.opts
	s, err := connect(ctx, &o, false)
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.close()
	oid, err := s.text(ctx, "SELECT $1::pg_catalog.regclass::pg_catalog.oid", "public."+name)
	if err != nil {
		r.t.Fatal(err)
	}
	schemas, err := r.hist.Schemas()
	if err != nil {
		r.t.Fatal(err)
	}
	t, err := newCatalog(&o, schemas).current(ctx, s, toOID([]byte(oid)))
	if err != nil {
		r.t.Fatal(err)
	}
	b := &change.Batch{}
	err = s.each(ctx, "SELECT "+t.selectList()+" FROM "+t.sql(), nil, func(f [][]byte) error { return t.appendRead(b, f) })
	if err != nil {
		r.t.Fatal(err)
	}
	rows = map[string]string{}
	for i := range b.Events {
		after, _ := b.After(&b.Events[i])
		rows[string(b.Key(&b.Events[i]))] = renderRow(r.t, after)
	}
	return rows, t.layout
}

func readAfter(csn eventlog.CSN) eventlog.ReadSpec { return eventlog.ReadSpec{After: csn} }
