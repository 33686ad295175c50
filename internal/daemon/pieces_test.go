package daemon

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// streamLarge appends a transaction of n rows of the table with 8 KiB of text each, as a stream.
func streamLarge(t *testing.T, log *seglog.Log, table eventlog.Topic, n int) {
	t.Helper()
	ctx := context.Background()
	s, err := log.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		row := []change.Value{change.Int(int64(i)), change.Text(strings.Repeat("v", 8<<10))}
		r := eventlog.Record{Topic: table.ID, Seq: uint32(i), Op: uint8(change.OpInsert), Schema: 1,
			Key: change.AppendKeyPart(nil, row[0], false), Value: change.AppendRecordValue(nil, nil, change.AppendRow(nil, row))}
		if err := s.Add(0, []eventlog.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(ctx, &eventlog.Tx{Kind: eventlog.TxSource, Source: "shop", CommitTime: 1_700_000_000_000_000}); err != nil {
		t.Fatal(err)
	}
}

// largeLog is a log on disk with a transaction of n rows and 8 KiB each.
func largeLog(t *testing.T, dir string, partitions, n int) *seglog.Log {
	t.Helper()
	log, err := seglog.Open(dir, seglog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	schemas, err := log.EnsureTopic(eventlog.TopicSpec{Name: change.TopicSchemas})
	if err != nil {
		t.Fatal(err)
	}
	table, err := log.EnsureTopic(eventlog.TopicSpec{Name: testTable, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	s := &change.Schema{Topic: testTable, ID: 1, Key: []int{0}, Columns: []change.Column{column(change.KindInt), column(change.KindText)}}
	s.Columns[1].Number = 2
	appendRecords(t, log, eventlog.Record{Topic: schemas.ID, Op: uint8(change.OpSchema), Key: change.SchemaKey(testTable, 1), Value: s.AppendLayout(nil)})
	streamLarge(t, log, table, n)
	return log
}

// TestRecordsMemory: the lines of a large transaction need no more memory than
// a piece of it does. Its last ones are found too, over more partitions than are
// read backward at once.
func TestRecordsMemory(t *testing.T) {
	const n, most = 4 << 10, 12 << 20
	log := largeLog(t, t.TempDir()+"/log", maxBackward+1, n)
	for _, where := range []string{"journal", "segments"} {
		for _, q := range []server.RecordQuery{{}, {Tail: true, Last: 10}} {
			q.Topic, q.Partition, q.FromOffset, q.ToOffset = testTable, -1, -1, -1
			base, peak, lines := heapBytes(), int64(0), 0
			q.Begun = func() { base = heapBytes() }
			last := ""
			err := NewLogReader(log, nil).Records(t.Context(), q, func(line []byte) error {
				if lines++; lines%256 == 0 {
					peak = max(peak, heapBytes()-base)
				}
				last = string(line[:min(len(line), 200)])
				return nil
			})
			want := n
			if q.Tail {
				want = q.Last
			}
			if err != nil || lines != want || !strings.Contains(last, fmt.Sprintf(`"seq":%d,`, n-1)) {
				t.Errorf("%s, tail %v: %d lines, the last %s, %v", where, q.Tail, lines, last, err)
			}
			if peak > most {
				t.Errorf("%s, tail %v: %d bytes of heap, want at most %d", where, q.Tail, peak, most)
			}
		}
		if err := log.SealAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// heapBytes returns the bytes in use after a collection.
func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
