package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/daemon"
	"github.com/tailwater/tailwater/server"
)

// fixture is a log with tables, a view and control topics: sealed, in a closed
// journal file, and in the newest one.
type fixture struct {
	t        *testing.T
	log      *seglog.Log
	products eventlog.Topic
	orders   eventlog.Topic
	view     eventlog.Topic
	old, new *change.Schema
	n        int
	last     eventlog.CSN
}

var fixtureClock = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// fillLog makes the log of a data directory and leaves it open.
func fillLog(t *testing.T, c *cli) *fixture {
	t.Helper()
	f := &fixture{t: t}
	var err error
	f.log, err = seglog.Open(filepath.Join(c.dir, "data", "log"), seglog.Options{Clock: func() time.Time { return fixtureClock }, SealBatch: 300})
	f.must(err)
	t.Cleanup(func() { f.must(f.log.Close()) })
	f.topics()
	f.product(f.old, change.OpRead, 1, "chair", "")
	f.product(f.old, change.OpInsert, 2, "table", "")
	f.product(f.old, change.OpUpdate, 1, "arm\x1b[31mchair", "")
	f.order("b", 7)
	f.output(1, `{"n":1}`)
	f.truncate()
	f.product(f.old, change.OpInsert, 3, "lamp", "")
	f.must(f.log.SealAll(context.Background()))
	f.product(f.new, change.OpInsert, 4, "sofa", "9.50")
	f.order("c", 8)
	f.product(f.new, change.OpDelete, 2, "", "")
	f.must(f.log.Roll(context.Background()))
	f.product(f.new, change.OpUpdate, 3, "lamp", "1.25")
	f.order("b", 9)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) topics() {
	f.t.Helper()
	make := func(name string, partitions int, cleanup eventlog.Cleanup) eventlog.Topic {
		t, err := f.log.EnsureTopic(eventlog.TopicSpec{Name: name, Partitions: partitions, Cleanup: cleanup, Compression: "none"})
		f.must(err)
		return t
	}
	schemas := make(change.TopicSchemas, 1, eventlog.CleanupNone)
	f.products = make("shop.public.products", 4, eventlog.CleanupCompact)
	f.orders = make("shop.public.orders", 1, eventlog.CleanupNone)
	f.view = make("view.products", 1, eventlog.CleanupCompact)
	f.old = &change.Schema{Topic: "shop.public.products", ID: 1, Key: []int{0}, Columns: []change.Column{
		{Number: 1, Name: "id", Kind: change.KindInt, SourceType: "bigint"}, {Number: 2, Name: "name", Kind: change.KindText, SourceType: "text", Nullable: true},
	}}
	f.new = &change.Schema{Topic: "shop.public.products", ID: 2, Key: []int{0}, Columns: append([]change.Column{}, f.old.Columns...)}
	f.new.Columns = append(f.new.Columns, change.Column{Number: 3, Name: "price", Kind: change.KindDecimal, SourceType: "numeric", Nullable: true})
	orders := &change.Schema{Topic: "shop.public.orders", ID: 1, Key: []int{0}, Columns: []change.Column{
		{Number: 1, Name: "code", Kind: change.KindText, SourceType: "text"}, {Number: 2, Name: "amount", Kind: change.KindInt, SourceType: "integer"},
	}}
	tx := &eventlog.Tx{Kind: eventlog.TxChunk, CommitTime: f.time()}
	for _, s := range []*change.Schema{f.old, f.new, orders} {
		tx.Records = append(tx.Records, eventlog.Record{Topic: schemas.ID, Seq: uint32(len(tx.Records)), Op: uint8(change.OpSchema), Key: change.SchemaKey(s.Topic, s.ID), Value: s.AppendLayout(nil)})
	}
	f.append(tx)
}

func (f *fixture) time() int64 {
	return fixtureClock.Add(-time.Hour + time.Duration(f.n)*time.Minute).UnixMicro()
}

func (f *fixture) append(tx *eventlog.Tx) {
	f.t.Helper()
	f.must(f.log.Append(context.Background(), []*eventlog.Tx{tx}))
	f.last = tx.CSN
	f.n++
}

// source appends a transaction of the source shop.
func (f *fixture) source(records ...eventlog.Record) {
	f.t.Helper()
	f.append(&eventlog.Tx{
		Kind: eventlog.TxSource, Source: "shop", ID: fmt.Sprint(700 + f.n), CommitTime: f.time(), Records: records,
		Position: change.Position{Name: fmt.Sprintf("0/%X", 4096+f.n), Resume: "r"}.Append(nil),
	})
}

func (f *fixture) product(s *change.Schema, op change.Op, id int64, name, price string) {
	f.t.Helper()
	r := eventlog.Record{Topic: f.products.ID, Op: uint8(op), Schema: s.ID, Key: change.AppendKeyPart(nil, change.Int(id), false)}
	if op != change.OpDelete {
		values := []change.Value{change.Int(id), change.Text(name)}
		if s == f.new {
			values = append(values, change.Decimal([]byte(price)))
		}
		r.Value = change.AppendRecordValue(nil, nil, change.AppendRow(nil, values))
	}
	f.source(r)
}

func (f *fixture) order(code string, amount int64) {
	f.t.Helper()
	f.source(eventlog.Record{
		Topic: f.orders.ID, Op: uint8(change.OpInsert), Schema: 1, Key: change.AppendKeyPart(nil, change.Text(code), false),
		Value: change.AppendRecordValue(nil, nil, change.AppendRow(nil, []change.Value{change.Text(code), change.Int(amount)})),
	})
}

func (f *fixture) truncate() {
	f.t.Helper()
	f.source(eventlog.Record{Topic: f.products.ID, Op: uint8(change.OpTruncate), Partition: eventlog.EveryPartition, Key: []byte{change.ControlKey, change.ControlTruncate}})
}

func (f *fixture) output(id int64, doc string) {
	f.t.Helper()
	f.must(f.log.Append(context.Background(), []*eventlog.Tx{{
		Kind: eventlog.TxOutput, CSN: f.last, CommitTime: f.time(),
		Records: []eventlog.Record{{Topic: f.view.ID, Op: uint8(change.OpUpdate), Key: change.AppendKeyPart(nil, change.Int(id), false), Value: []byte(doc)}},
	}}))
}

// liveDaemon answers what is asked about a log, as the daemon that writes it.
type liveDaemon struct {
	server.Daemon
	log server.LogReader
}

func newLive(f *fixture) *liveDaemon {
	return &liveDaemon{Daemon: &fake{}, log: daemon.NewLogReader(f.log, map[string]string{"shop": "postgres"})}
}

func (d *liveDaemon) Topics(ctx context.Context) ([]server.TopicStatus, error) {
	return d.log.Topics(ctx)
}
func (d *liveDaemon) Records(ctx context.Context, q server.RecordQuery, fn func([]byte) error) error {
	return d.log.Records(ctx, q, fn)
}
func (d *liveDaemon) Batches(ctx context.Context, q server.BatchQuery, fn func([]byte) error) error {
	return d.log.Batches(ctx, q, fn)
}
func (d *liveDaemon) LogStats(ctx context.Context) (server.LogDetail, error) {
	return d.log.LogStats(ctx)
}
func (d *liveDaemon) CheckLog(ctx context.Context, fn func(server.Damage) error) (server.CheckResult, error) {
	return d.log.CheckLog(ctx, fn)
}
func (d *liveDaemon) Compact(ctx context.Context, glob string, fn func(server.Compacted) error) error {
	return d.log.Compact(ctx, glob, fn)
}

// extra makes a table of four partitions with one record.
func (f *fixture) extra(name, code string) {
	f.t.Helper()
	t, err := f.log.EnsureTopic(eventlog.TopicSpec{Name: name, Partitions: 4})
	f.must(err)
	s := &change.Schema{Topic: name, ID: 1, Key: []int{0}, Columns: []change.Column{{Number: 1, Name: "code", Kind: change.KindText, SourceType: "text"}}}
	schemas, _ := f.log.Topic(change.TopicSchemas)
	f.source(
		eventlog.Record{Topic: schemas.ID, Op: uint8(change.OpSchema), Key: change.SchemaKey(name, 1), Value: s.AppendLayout(nil)},
		eventlog.Record{
			Topic: t.ID, Seq: 1, Op: uint8(change.OpInsert), Schema: 1, Key: change.AppendKeyPart(nil, change.Text(code), false),
			Value: change.AppendRecordValue(nil, nil, change.AppendRow(nil, []change.Value{change.Text(code)})),
		})
}

// record is what tells a line of `log cat --json` from others.
type record struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	CSN       uint64 `json:"csn"`
	Op        string `json:"op"`
	Time      string `json:"ts_commit"`
	Ingest    string `json:"ts_ingest"`
}

func records(t *testing.T, text string) []record {
	t.Helper()
	out := []record{}
	for line := range strings.Lines(text) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		out = append(out, r)
	}
	return out
}
