package join_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// world is a log with tables in it, their rows as a model keeps them, and what a sink would hold.
type world struct {
	t       testing.TB
	log     eventlog.Log
	mem     *logtest.MemLog // the log, if it is one in memory
	tables  map[string]*table
	names   []string
	dir     string
	opts    derive.Options
	runner  *derive.Runner
	history map[eventlog.CSN]map[string]rows // tables after each transaction
	sinks   map[string]*sinkModel
}

// rows are a table's rows by encoded key.
type rows map[string][]change.Value

type table struct {
	topic  string
	id     eventlog.TopicID
	schema *change.Schema
	rows   rows
	// written is the CSN of each row's last record; MaxCSN in the open transaction.
	written map[string]eventlog.CSN
}

// sinkModel is what a keyed sink would hold after all outputs of a view.
type sinkModel struct {
	docs     map[string]string
	versions map[string]eventlog.CSN
	reader   eventlog.Reader
	seen     []outRecord // since the last drain
}

type outRecord struct {
	key string
	doc string // "" tombstone
	csn eventlog.CSN
}

func newWorld(t testing.TB) *world {
	mem := logtest.Mem()
	w := newWorldOn(t, mem)
	w.mem = mem
	return w
}

// newWorldOn is a world on another log.
func newWorldOn(t testing.TB, log eventlog.Log) *world {
	w := &world{t: t, log: log, tables: map[string]*table{}, dir: stateDir(t),
		history: map[eventlog.CSN]map[string]rows{}, sinks: map[string]*sinkModel{}}
	w.topic(change.TopicSchemas)
	w.topic(change.TopicSnapshots + "db")
	w.opts = derive.Options{Log: w.log, StateDir: w.dir + "/state", Restore: join.Restore, SyncEvery: -1}
	if os.Getenv("DERIVE_LOG") != "" {
		w.opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	t.Cleanup(func() { w.stop() })
	return w
}

// stateDir is a directory in memory where the system has one: the tests sync a lot.
func stateDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "derive")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (w *world) topic(name string) eventlog.TopicID {
	t, err := w.log.EnsureTopic(eventlog.TopicSpec{Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return t.ID
}

// col makes a column; kind suffix "?" is nullable.
func col(number uint32, name string, kind change.Kind) change.Column {
	return change.Column{Number: number, Name: name, Kind: kind, SourceType: kind.String(), Nullable: true}
}

// table makes a table whose first keys columns are the key, with its layout in the log.
func (w *world) table(name string, keys int, columns ...change.Column) *table {
	topic := "db.public." + name
	s := &change.Schema{Topic: topic, ID: 1, Columns: columns}
	for i := range keys {
		s.Key = append(s.Key, i)
	}
	tb := &table{topic: topic, id: w.topic(topic), schema: s, rows: rows{}, written: map[string]eventlog.CSN{}}
	w.tables[name] = tb
	w.names = append(w.names, name)
	return tb
}

// describe appends the newest layouts of all tables.
func (w *world) describe() {
	tx := w.begin()
	for _, n := range w.names {
		tx.schema(w.tables[n])
	}
	tx.commit()
}

// snapshotDone appends the marks of a whole first snapshot of every table.
func (w *world) snapshotDone() {
	tx := w.begin()
	for _, n := range w.names {
		tx.mark(w.tables[n], 1, change.SnapshotBegun)
		tx.mark(w.tables[n], 1, change.SnapshotDone)
	}
	tx.commit()
}

// txn collects one transaction.
type txn struct {
	w  *world
	tx eventlog.Tx
}

func (w *world) begin() *txn {
	return &txn{w: w, tx: eventlog.Tx{Kind: eventlog.TxSource, Source: "db", CommitTime: 1700000000000000}}
}

func (x *txn) add(r eventlog.Record) {
	r.Seq = uint32(len(x.tx.Records))
	x.tx.Records = append(x.tx.Records, r)
}

func (x *txn) schema(tb *table) {
	x.add(eventlog.Record{Topic: x.w.topic(change.TopicSchemas), Op: uint8(change.OpSchema), Key: change.SchemaKey(tb.topic, tb.schema.ID), Value: tb.schema.AppendLayout(nil)})
}

func (x *txn) mark(tb *table, run uint64, state change.SnapshotState) {
	m := change.SnapshotMark{Topic: tb.topic, Run: run, State: state, Floor: true}
	x.add(eventlog.Record{Topic: x.w.topic(change.TopicSnapshots + "db"), Op: uint8(change.OpSchema), Key: m.Key(), Value: m.Append(nil)})
}

// key encodes the key columns of a row.
func (tb *table) key(row []change.Value) change.Key {
	var k change.Key
	for _, i := range tb.schema.Key {
		k = change.AppendKeyPart(k, row[i], tb.schema.Columns[i].Fold)
	}
	return k
}

// put writes a row; values may be int, string, nil, change.Value (also unchanged).
func (x *txn) put(tb *table, op change.Op, flags change.Flags, values ...any) {
	row := rowOf(values)
	key := tb.key(row)
	for i, v := range row {
		if v.IsUnchanged() {
			flags |= change.FlagPartial
			if old := tb.rows[string(key)]; old != nil && flags&change.FlagMoved == 0 {
				row[i] = v
			}
		}
	}
	x.add(eventlog.Record{Topic: tb.id, Op: uint8(op), Flags: uint8(flags), Schema: tb.schema.ID, Key: key,
		Value: change.AppendRecordValue(nil, nil, change.AppendRow(nil, row))})
	whole := append([]change.Value{}, row...)
	for i := range whole {
		if whole[i].IsUnchanged() {
			if old := tb.rows[string(key)]; old != nil {
				whole[i] = old[i]
			}
		}
	}
	tb.rows[string(key)], tb.written[string(key)] = whole, eventlog.MaxCSN
}

func rowOf(values []any) []change.Value {
	row := make([]change.Value, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			row[i] = change.Null
		case int:
			row[i] = change.Int(int64(v))
		case string:
			row[i] = change.Text(v)
		case bool:
			row[i] = change.Bool(v)
		case change.Value:
			row[i] = v
		default:
			panic(fmt.Sprintf("value %T", v))
		}
	}
	return row
}

func (x *txn) insert(tb *table, values ...any) { x.put(tb, change.OpInsert, 0, values...) }
func (x *txn) update(tb *table, values ...any) { x.put(tb, change.OpUpdate, 0, values...) }

func (x *txn) delete(tb *table, key ...any) {
	x.deleteFlag(tb, 0, change.Key(keyOf(tb, key)))
}

func keyOf(tb *table, parts []any) (k change.Key) {
	for i, v := range rowOf(parts) {
		k = change.AppendKeyPart(k, v, tb.schema.Columns[tb.schema.Key[i]].Fold)
	}
	return k
}

func (x *txn) deleteFlag(tb *table, flags change.Flags, key change.Key) {
	x.add(eventlog.Record{Topic: tb.id, Op: uint8(change.OpDelete), Flags: uint8(flags), Key: key})
	delete(tb.rows, string(key))
}

// move changes a row's key: the insert half leaves its unchanged columns out.
func (x *txn) move(tb *table, from change.Key, values ...any) {
	old := tb.rows[string(from)]
	x.deleteFlag(tb, change.FlagMoved, from)
	row := rowOf(values)
	key := tb.key(row)
	delete(tb.rows, string(key))
	x.put(tb, change.OpInsert, change.FlagMoved, values...)
	whole := tb.rows[string(key)]
	for i := range whole {
		if whole[i].IsUnchanged() {
			whole[i] = old[i]
		}
	}
}

func (x *txn) truncate(tb *table) {
	x.add(eventlog.Record{Topic: tb.id, Partition: eventlog.EveryPartition, Op: uint8(change.OpTruncate), Key: []byte{change.ControlKey, change.ControlTruncate}})
	clear(tb.rows)
}

// sweep deletes the rows that no record with at least this CSN wrote.
func (x *txn) sweep(tb *table, since eventlog.CSN) {
	x.add(eventlog.Record{Topic: tb.id, Partition: eventlog.EveryPartition, Op: uint8(change.OpSweep), Key: change.SweepKey, Value: change.SweepValue(uint64(since))})
	for key := range tb.rows {
		if tb.written[key] < since {
			delete(tb.rows, key)
		}
	}
}

// commit appends the transaction and remembers the tables as they are after it.
func (x *txn) commit() eventlog.CSN {
	x.w.t.Helper()
	if err := x.w.log.Append(context.Background(), []*eventlog.Tx{&x.tx}); err != nil {
		x.w.t.Fatal(err)
	}
	return x.remember()
}

// commitStreamed is commit for a transaction that readers get in pieces of size records.
func (x *txn) commitStreamed(size int) eventlog.CSN {
	x.w.t.Helper()
	s, err := x.w.log.Stream(context.Background())
	if err != nil {
		x.w.t.Fatal(err)
	}
	for records := range slices.Chunk(x.tx.Records, size) {
		if err := s.Add(0, records); err != nil {
			x.w.t.Fatal(err)
		}
	}
	x.tx.Records = nil
	if err := s.Commit(context.Background(), &x.tx); err != nil {
		x.w.t.Fatal(err)
	}
	return x.remember()
}

func (x *txn) remember() eventlog.CSN {
	for _, tb := range x.w.tables {
		for key, csn := range tb.written {
			if csn == eventlog.MaxCSN {
				tb.written[key] = x.tx.CSN
			}
		}
	}
	state := map[string]rows{}
	for n, tb := range x.w.tables {
		c := make(rows, len(tb.rows))
		for k, v := range tb.rows {
			c[k] = v
		}
		state[n] = c
	}
	x.w.history[x.tx.CSN] = state
	return x.tx.CSN
}

// start opens a Runner with these definitions.
func (w *world) start(defs ...join.Definition) *derive.Runner {
	w.t.Helper()
	w.opts.Views = nil
	for _, d := range defs {
		w.opts.Views = append(w.opts.Views, join.New(d))
	}
	r, err := derive.Open(w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.runner = r
	return r
}

func (w *world) stop() {
	if w.runner == nil {
		return
	}
	if err := w.runner.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.runner = nil
}

// catchUp lets the Runner do all it can.
func (w *world) catchUp() {
	w.t.Helper()
	if err := w.runner.CatchUp(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// sink reads a view's new outputs into its model and returns it.
func (w *world) sink(view string) *sinkModel {
	w.t.Helper()
	s := w.sinks[view]
	if s == nil {
		s = &sinkModel{docs: map[string]string{}, versions: map[string]eventlog.CSN{}}
		w.sinks[view] = s
	}
	s.seen = nil
	topic, ok := w.log.Topic(change.TopicView + view)
	if !ok {
		return s
	}
	if s.reader == nil {
		var err error
		if s.reader, err = w.log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{topic.ID}, Outputs: true}); err != nil {
			w.t.Fatal(err)
		}
	}
	for {
		tx, err := s.reader.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if tx == nil {
			return s
		}
		for _, rec := range tx.Records {
			s.take(w.t, rec)
		}
	}
}

func (s *sinkModel) take(t testing.TB, rec eventlog.Record) {
	t.Helper()
	k := string(rec.Key)
	if rec.CSN < s.versions[k] {
		t.Fatalf("version of %s goes back from %d to %d", change.Key(k), s.versions[k], rec.CSN)
	}
	s.versions[k] = rec.CSN
	s.seen = append(s.seen, outRecord{k, string(rec.Value), rec.CSN})
	if rec.Value == nil {
		delete(s.docs, k)
	} else {
		s.docs[k] = string(rec.Value)
	}
}

// stats returns a view's state.
func (w *world) stats(view string) derive.ViewStats {
	w.t.Helper()
	for _, s := range w.runner.Stats() {
		if s.Name == view {
			return s
		}
	}
	w.t.Fatalf("no view %s", view)
	return derive.ViewStats{}
}

// dump reads all documents by key.
func (w *world) dump(view string) map[string]string {
	w.t.Helper()
	docs := map[string]string{}
	last := ""
	err := w.runner.Dump(view, func(d derive.Doc) error {
		if k := string(d.Key); last != "" && k <= last {
			w.t.Fatalf("dump is out of order at %s", d.ID)
		} else {
			last = k
		}
		docs[last] = string(d.JSON)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return docs
}

// commitOnly appends the transaction without remembering the tables.
func (x *txn) commitOnly() {
	x.w.t.Helper()
	if err := x.w.log.Append(context.Background(), []*eventlog.Tx{&x.tx}); err != nil {
		x.w.t.Fatal(err)
	}
}
