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
// the partitions. Up to tailBytes of it are in memory too.
func seekLog(t *testing.T, fileBytes, tailBytes int64) (*Log, eventlog.Topic) {
	opts := memOptions(vfs.NewMem())
	opts.TailBytes, opts.FileBytes = tailBytes, fileBytes
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
		if n%3 == 0 {
			commitStream(t, l, top, n)
		}
	}
	return l, top
}

// commitStream appends a small transaction with records in both partitions as a stream.
func commitStream(t *testing.T, l *Log, top eventlog.Topic, n int) {
	t.Helper()
	s := mustStream(t, l)
	for k := range uint32(10) {
		if err := s.Add(0, []eventlog.Record{{Topic: top.ID, Seq: k, Op: 1, Key: fmt.Append(nil, "k", k), Value: make([]byte, 30)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(context.Background(), streamedTx(n)); err != nil {
		t.Fatal(err)
	}
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
		l, top := seekLog(t, size, 1)
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
// read, or the damage is named. Where the entry is in memory too, nothing but the
// probe meets the damage, and all is read.
func TestSeekMisled(t *testing.T) {
	for name, tail := range map[string]int64{"on disk": 1, "in memory": 1 << 30} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", streamed ", streamed), func(t *testing.T) { testSeekMisled(t, tail, streamed) })
		}
	}
}

// testSeekMisled damages a batch of the partition behind an index point; where
// streamed is set what the partition has there first is a streamed transaction,
// which no probe looks at.
func testSeekMisled(t *testing.T, tail int64, streamed bool) {
	l, top := seekLog(t, 1<<30, tail)
	file, k := l.files[0], partKey{top.ID, 0}
	f, err := l.fs().OpenWrite(file.path)
	if err != nil {
		t.Fatal(err)
	}
	var point indexPoint
	var at int64
	var first eventlog.Offset
	for _, point = range file.index[len(file.index)/3:] {
		var other bool
		if at, first, other = batchBehind(t, f, file, point.pos, k); at > 0 && other == streamed {
			break
		}
		at = 0
	}
	if at == 0 {
		t.Fatalf("none of %d index points will do", len(file.index))
	}
	if _, err := f.WriteAt(make([]byte, 8), at); err != nil { // base offset 0: the probe goes on behind it
		t.Fatal(err)
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
	if onDisk := tail == 1; onDisk != (damaged > 0) {
		t.Errorf("%d reads met the damage", damaged)
	}
	if at := l.seekOffset(file, k, first-1); at < point.ordinal {
		t.Errorf("the offset before the damage is sought from transaction %d on: nobody is misled", at)
	}
}

// batchBehind returns where the partition's first batch behind an index point
// lies, 0 if that is too far, and the first offset that the partition has there;
// streamed says that it is one of a streamed transaction before the batch.
func batchBehind(t *testing.T, f vfs.File, file *journalFile, pos int64, k partKey) (at int64, first eventlog.Offset, streamed bool) {
	t.Helper()
	scan := newScanner(f, file.path, file.number, pos, file.size)
	for range probeEntries {
		pos := scan.pos
		kind, payload, err := scan.next()
		if err != nil {
			t.Fatal(err)
		}
		if kind == kindAdopt {
			g, err := decodeTransactions(kind, payload)
			if err != nil {
				t.Fatal(err)
			}
			if !streamed {
				first, streamed = g.stream.part(k).first, true
			}
			continue
		}
		g, err := decodeGroup(payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range g.batches {
			if (partKey{b.topic, b.partition}) == k {
				if h, err := eventlog.DecodeBatchHeader(b.data); err != nil {
					t.Fatal(err)
				} else if !streamed {
					first = h.Base
				}
				return pos + entryHeaderSize + int64(bytes.Index(payload, b.data)), first, streamed
			}
		}
	}
	return 0, 0, streamed
}
