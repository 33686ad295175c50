package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// seekLog is a log whose journal has several index points: entries of all
// sizes, some with rows longer than a probe reads at first, some without one of
// the partitions.
func seekLog(t *testing.T, fileBytes int64) (*Log, eventlog.Topic) {
	opts := memOptions(vfs.NewMem())
	opts.TailBytes, opts.FileBytes = 1, fileBytes
	l := mustOpen(t, opts)
	t.Cleanup(func() { l.Close() })
	top, other := mustTopic(t, l, "s.p.t"), mustTopic(t, l, "s.p.other")
	for n := range 300 {
		var group []*eventlog.Tx
		for k := range 1 + n%3*40 {
			tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: make([]byte, 50), ID: fmt.Sprint(n), Note: make([]byte, 200), CommitTime: testTime.UnixMicro()}
			for r := range 1 + n%20 {
				in := top.ID
				if n%7 == 0 {
					in = other.ID
				}
				tx.Records = append(tx.Records, eventlog.Record{Topic: in, Seq: uint32(r), Op: 1, Key: fmt.Append(nil, "k", n*100+k+r), Value: make([]byte, 30)})
			}
			group = append(group, tx)
		}
		if err := l.Append(context.Background(), group); err != nil {
			t.Fatal(err)
		}
	}
	return l, top
}

func checkJournalSeeks(t *testing.T, l *Log, top eventlog.Topic) {
	t.Helper()
	for p, end := range l.EndOffsets(top.ID) {
		for at := eventlog.Offset(0); at < end; at += 331 {
			r, err := l.ReadPartition(top.ID, int32(p), at)
			if err != nil {
				t.Fatal(err)
			}
			for k := range eventlog.Offset(3) {
				rec, ok, err := r.Next()
				if want := at + k; err != nil || ok != (want < end) || ok && rec.Offset != want {
					t.Fatalf("partition %d from %d: record %d = offset %d, %v, %v", p, at, k, rec.Offset, ok, err)
				}
			}
			r.Close()
		}
	}
}

func TestSeekInJournal(t *testing.T) {
	for _, size := range []int64{1 << 30, 3 << 20} {
		l, top := seekLog(t, size)
		checkJournalSeeks(t, l, top)
		newest := l.files[len(l.files)-1]
		end := l.EndOffsets(top.ID)[0]
		if at := l.seekOffset(newest, partKey{top.ID, 0}, end-1); len(newest.index) > 0 && at < newest.index[len(newest.index)-1].ordinal {
			t.Errorf("the last offset is sought from transaction %d on, the last index point is %d", at, newest.index[len(newest.index)-1].ordinal)
		}
	}
}

// TestSeekMisled: a probe, which verifies nothing, is led behind the offset by
// damage in the entry that it looks at. That must never cost a record: it is
// read, or the damage is named.
func TestSeekMisled(t *testing.T) {
	l, top := seekLog(t, 1<<30)
	file := l.files[0]
	if len(file.index) < 3 {
		t.Fatalf("only %d index points", len(file.index))
	}
	k := partKey{top.ID, 0}
	point := file.index[len(file.index)/2]
	f, err := l.fs().OpenWrite(file.path)
	if err != nil {
		t.Fatal(err)
	}
	scan := newScanner(f, file.path, file.number, point.pos, file.size)
	_, payload, err := scan.next()
	if err != nil {
		t.Fatal(err)
	}
	g, err := decodeGroup(payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range g.batches {
		if (partKey{b.topic, b.partition}) == k {
			at := point.pos + entryHeaderSize + int64(bytes.Index(payload, b.data))
			if _, err := f.WriteAt(make([]byte, 8), at); err != nil { // base offset 0: the probe goes on behind it
				t.Fatal(err)
			}
		}
	}
	damaged := 0
	for at := eventlog.Offset(0); at < l.EndOffsets(top.ID)[0]; at += 331 {
		r, err := l.ReadPartition(top.ID, 0, at)
		if err != nil {
			t.Fatal(err)
		}
		rec, ok, err := r.Next()
		switch {
		case errors.Is(err, eventlog.ErrCorrupt):
			damaged++
		case err != nil || !ok || rec.Offset != at:
			t.Errorf("from %d: offset %d, %v, %v", at, rec.Offset, ok, err)
		}
		r.Close()
	}
	if damaged == 0 {
		t.Error("no read met the damage: the test tests nothing")
	}
}
