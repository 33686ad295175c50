package daemon

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
	"github.com/tailwater/tailwater/server"
)

const testTable = "shop.public.t"

// keyLog makes a log with a table of eight partitions and these layouts of its key.
func keyLog(t *testing.T, keys ...[]change.Column) (*seglog.Log, eventlog.Topic) {
	t.Helper()
	log, err := seglog.Open("log", seglog.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	schemas, err := log.EnsureTopic(eventlog.TopicSpec{Name: change.TopicSchemas})
	if err != nil {
		t.Fatal(err)
	}
	table, err := log.EnsureTopic(eventlog.TopicSpec{Name: testTable, Partitions: 8})
	if err != nil {
		t.Fatal(err)
	}
	for i, columns := range keys {
		s := &change.Schema{Topic: testTable, ID: uint32(i + 1), Columns: columns}
		for j := range columns {
			s.Key = append(s.Key, j)
		}
		appendRecords(t, log, eventlog.Record{Topic: schemas.ID, Op: uint8(change.OpSchema), Key: change.SchemaKey(testTable, s.ID), Value: s.AppendLayout(nil)})
	}
	return log, table
}

func appendRecords(t *testing.T, log *seglog.Log, records ...eventlog.Record) {
	t.Helper()
	if err := log.Append(context.Background(), []*eventlog.Tx{{Kind: eventlog.TxChunk, CommitTime: 1_700_000_000_000_000, Records: records}}); err != nil {
		t.Fatal(err)
	}
}

func column(kind change.Kind) change.Column {
	return change.Column{Number: 1, Name: "k" + kind.String(), Kind: kind, SourceType: "x"}
}

// TestKeyPartitions: the partitions that are read for a key as it is printed
// are those of its records, and no others where its text tells them.
func TestKeyPartitions(t *testing.T) {
	uuid := [16]byte{0xa0, 0xee, 0xbc, 0x99, 15: 0x11}
	folded := column(change.KindText)
	folded.Fold = true
	cols := func(kinds ...change.Kind) (out []change.Column) {
		for i, k := range kinds {
			out = append(out, column(k))
			out[i].Number, out[i].Name = uint32(i+1), fmt.Sprint("k", i)
		}
		return out
	}
	for name, tt := range map[string]struct {
		layouts [][]change.Column
		key     []change.Value
		fold    bool
		all     bool // its text does not tell the partition
	}{
		"int":              {[][]change.Column{cols(change.KindInt)}, []change.Value{change.Int(-42)}, false, false},
		"big":              {[][]change.Column{cols(change.KindUint)}, []change.Value{change.Uint(1<<64 - 1)}, false, false},
		"decimal":          {[][]change.Column{cols(change.KindDecimal)}, []change.Value{change.Decimal([]byte("1.50"))}, false, false},
		"float":            {[][]change.Column{cols(change.KindFloat64)}, []change.Value{change.Float64(0.25)}, false, false},
		"text":             {[][]change.Column{cols(change.KindText)}, []change.Value{change.Text(`a|b\c`)}, false, false},
		"empty text":       {[][]change.Column{cols(change.KindText)}, []change.Value{change.Text("")}, false, false},
		"text like a hash": {[][]change.Column{cols(change.KindText)}, []change.Value{change.Text("~" + strings.Repeat("0", 64))}, false, true},
		"long text":        {[][]change.Column{cols(change.KindText)}, []change.Value{change.Text(strings.Repeat("x", 600))}, false, true},
		"folded":           {[][]change.Column{{folded}}, []change.Value{change.Text("ÄbC")}, true, false},
		"bool":             {[][]change.Column{cols(change.KindBool)}, []change.Value{change.Bool(false)}, false, false},
		"uuid":             {[][]change.Column{cols(change.KindUUID)}, []change.Value{change.UUID(uuid)}, false, false},
		"two parts":        {[][]change.Column{cols(change.KindText, change.KindInt)}, []change.Value{change.Text("a"), change.Int(7)}, false, false},
		"date":             {[][]change.Column{cols(change.KindDate)}, []change.Value{change.Date(20000)}, false, true},
		"another layout":   {[][]change.Column{cols(change.KindInt, change.KindInt), cols(change.KindInt)}, []change.Value{change.Int(5)}, false, false},
		"another type":     {[][]change.Column{cols(change.KindInt), cols(change.KindText)}, []change.Value{change.Int(5)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			log, table := keyLog(t, tt.layouts...)
			var key change.Key
			for _, v := range tt.key {
				key = change.AppendKeyPart(key, v, tt.fold)
			}
			id, err := change.DocumentID(key)
			if err != nil {
				t.Fatal(err)
			}
			r := &recordRun{p: newRecordPrinter(log, nil), log: log, q: server.RecordQuery{Key: id, Partition: -1}, topics: []eventlog.Topic{table}}
			parts, err := r.partitions()
			want := len(tt.layouts)
			if tt.all {
				want = 8
			} else if name == "another layout" {
				want = 1
			}
			holds := false
			for _, p := range parts {
				holds = holds || p.partition == eventlog.PartitionOf(key, 8)
			}
			if err != nil || !holds || len(parts) > want {
				t.Errorf("key %q is looked for in %v, %v; it is in partition %d", id, parts, err, eventlog.PartitionOf(key, 8))
			}
		})
	}
}

// TestOlderThanTx: the lines of records whose transaction the log no longer
// knows name the source by their topic, and no position.
func TestOlderThanTx(t *testing.T) {
	log, table := keyLog(t, []change.Column{column(change.KindInt)})
	r := eventlog.Record{
		Topic: table.ID, Op: uint8(change.OpInsert), Schema: 1, CSN: 5, Offset: 3, Time: 1_700_000_000_000_000,
		Key: change.AppendKeyPart(nil, change.Int(1), false), Value: change.AppendRecordValue(nil, nil, change.AppendRow(nil, []change.Value{change.Int(1)})),
	}
	p := newRecordPrinter(log, map[string]string{"shop": "postgres"})
	for _, tx := range []eventlog.Tx{
		{CSN: 5, CommitTime: r.Time}, // as a reader or finder makes it up
		{CSN: 5, CommitTime: r.Time, Kind: eventlog.TxChunk},
	} {
		line, err := p.appendLine(nil, &tx, &r, false)
		want := `"ts_commit":"2023-11-14T22:13:20Z","ts_ingest":null,"schema":1,"source":{"name":"shop","kind":"postgres","position":null,"tx":null}}`
		if err != nil || !strings.HasSuffix(string(line), want) {
			t.Errorf("line %s, %v; want it to end in %s", line, err, want)
		}
	}
	for topic, want := range map[string]string{testTable: "shop", "a-2db.public.t": "a-b", "view.v": "", "_schemas": "", "_dlq.shop": "", "plain": ""} {
		if got := p.sourceOf(topic); got != want {
			t.Errorf("source of %s is %q, want %q", topic, got, want)
		}
	}
}

// TestDeleteWithoutLayout: the key of a delete that names no layout is shown by the newest one.
func TestDeleteWithoutLayout(t *testing.T) {
	log, table := keyLog(t, []change.Column{column(change.KindInt)})
	r := eventlog.Record{Topic: table.ID, Op: uint8(change.OpDelete), CSN: 5, Key: change.AppendKeyPart(nil, change.Int(7), false)}
	line, err := newRecordPrinter(log, map[string]string{"shop": "postgres"}).appendLine(nil, &eventlog.Tx{CSN: 5, Kind: eventlog.TxChunk}, &r, false)
	if err != nil || !strings.Contains(string(line), `:7},"after":null`) {
		t.Errorf("%s, %v", line, err)
	}
}

// TestCompact compacts what a glob matches, with what is only in the journal.
func TestCompact(t *testing.T) {
	log, _ := keyLog(t)
	ctx := context.Background()
	for _, name := range []string{"shop.public.a", "shop.public.b"} {
		top, err := log.EnsureTopic(eventlog.TopicSpec{Name: name, Partitions: 1, Cleanup: eventlog.CleanupCompact})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			r := eventlog.Record{Topic: top.ID, Op: uint8(change.OpUpdate), Key: change.AppendKeyPart(nil, change.Int(1), false), Value: []byte{byte(n)}}
			if err := log.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxChunk, Records: []eventlog.Record{r}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var done []server.Compacted
	err := compact(ctx, log, "shop.*", func(c server.Compacted) error { done = append(done, c); return nil })
	if err != nil || len(done) != 2 || done[0].Topic != "shop.public.a" || done[0].RecordsBefore != 5 || done[0].RecordsAfter != 1 || done[1].RecordsAfter != 1 {
		t.Errorf("compacted %+v, %v", done, err)
	}
	err = compact(ctx, log, testTable, func(server.Compacted) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "cleanup none, which keeps every record") {
		t.Errorf("compact a topic that keeps all = %v", err)
	}
}
