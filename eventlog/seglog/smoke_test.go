package seglog

import (
	"context"
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

func TestSmoke(t *testing.T) {
	fs := vfs.NewMem()
	l, err := Open("log", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "a.b.c"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "a", Position: []byte{byte(i)}, ID: fmt.Sprint(i), CommitTime: 1234567, Records: []eventlog.Record{
			{Topic: top.ID, Seq: 0, Op: 1, Key: []byte(fmt.Sprint("k", i)), Value: []byte("v")},
			{Topic: top.ID, Seq: 1, Op: 1, Key: []byte(fmt.Sprint("l", i)), Value: nil},
		}}
		if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
	}
	dump := func(l *Log) (n int) {
		r, err := l.Read(eventlog.ReadSpec{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			tx, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if tx == nil {
				return n
			}
			n += len(tx.Records)
		}
	}
	if n := dump(l); n != 20 {
		t.Fatal(n)
	}
	l2, err := Open("log", Options{FS: fs.Crash(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if n := dump(l2); n != 20 {
		t.Fatal(n)
	}
	fmt.Println(l2.EndOffsets(top.ID), l2.Frontier(), l.Frontier())
}
