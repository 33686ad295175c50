package seglog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// testTime is the clock of these tests.
var testTime = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func memOptions(fs vfs.FS) Options {
	return Options{FS: fs, Clock: func() time.Time { return testTime }}
}

func mustOpen(t *testing.T, opts Options) *Log {
	t.Helper()
	l, err := Open("log", opts)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	return l
}

func mustTopic(t *testing.T, l eventlog.Log, name string) eventlog.Topic {
	t.Helper()
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: name, Partitions: 2})
	if err != nil {
		t.Fatalf("EnsureTopic = %v", err)
	}
	return top
}

// transaction makes the n-th transaction of source s: two records, with n in position, id and values.
func transaction(top eventlog.Topic, n int) *eventlog.Tx {
	v := fmt.Append(nil, n)
	return &eventlog.Tx{
		Kind: eventlog.TxSource, Source: "s", Position: v, ID: string(v), CommitTime: testTime.UnixMicro(),
		Records: []eventlog.Record{
			{Topic: top.ID, Seq: 0, Op: 1, Key: []byte("k"), Value: v},
			{Topic: top.ID, Seq: 1, Op: 1, Key: fmt.Append(nil, "k", n), Value: v},
		},
	}
}

func appendN(l eventlog.Log, top eventlog.Topic, n int) error {
	return l.Append(context.Background(), []*eventlog.Tx{transaction(top, n)})
}

func mustAppend(t *testing.T, l eventlog.Log, top eventlog.Topic, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := appendN(l, top, n); err != nil {
			t.Fatalf("Append %d = %v", n, err)
		}
	}
}

// ids returns the ids of all transactions, checking that each has its two records.
func ids(t *testing.T, l eventlog.Log) []string {
	t.Helper()
	r, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatalf("Read = %v", err)
	}
	defer r.Close()
	out := []string{}
	for {
		tx, err := r.Next()
		if err != nil {
			t.Fatalf("Next = %v", err)
		}
		if tx == nil {
			return out
		}
		if len(tx.Records) != 2 || string(tx.Records[0].Value) != tx.ID || string(tx.Records[1].Value) != tx.ID {
			t.Errorf("transaction %q has records %+v", tx.ID, tx.Records)
		}
		out = append(out, tx.ID)
	}
}

func numbers(from, to int) []string {
	out := []string{}
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

// newestJournal returns the name and size of the newest journal file.
func newestJournal(fs *vfs.Mem) (name string, size int64) {
	for n, s := range fs.Files() {
		if _, ok := parseJournalName(n[len("log/journal/"):]); ok && n > name && len(n) > 12 {
			name, size = n, s
		}
	}
	return name, size
}

// cut shortens a file.
func cut(t *testing.T, fs *vfs.Mem, name string, size int64) {
	t.Helper()
	f, err := fs.OpenWrite(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}
