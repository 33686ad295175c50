package seglog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestMorePartitionsThanFiles reads whole transactions over more partitions than
// a reader keeps open: their records are all valid at once.
func TestMorePartitionsThanFiles(t *testing.T) {
	const partitions = maxSealedCursors + 40
	opts := memOptions(vfs.NewMem())
	opts.SealBatch = 100
	l := mustOpen(t, opts)
	defer l.Close()
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	const txs, records = 4, 3 * partitions
	value := func(tx, seq int) string { return fmt.Sprintf("value %d of %d", seq, tx) }
	for n := range txs {
		tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", CommitTime: testTime.UnixMicro()}
		for i := range records {
			tx.Records = append(tx.Records, eventlog.Record{Topic: top.ID, Seq: uint32(i), Op: 1, Key: fmt.Append(nil, i), Value: []byte(value(n, i))})
		}
		if err := l.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(l.segs); n <= maxSealedCursors {
		t.Fatalf("%d partitions have segments", n)
	}
	rd, err := l.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	for n := range txs {
		tx, err := rd.Next()
		if err != nil || tx == nil || len(tx.Records) != records {
			t.Fatalf("transaction %d: %v, %v", n, tx, err)
		}
		for i := range tx.Records {
			r := &tx.Records[i]
			if r.Seq != uint32(i) || string(r.Key) != fmt.Sprint(i) || string(r.Value) != value(n, i) {
				t.Fatalf("transaction %d: record %d is %q=%q with seq %d", n, i, r.Key, r.Value, r.Seq)
			}
		}
		if open := len(rd.(*reader).sealed.parts); open > maxSealedCursors {
			t.Errorf("%d partitions are open", open)
		}
	}
	if tx, err := rd.Next(); tx != nil || err != nil {
		t.Errorf("at the end: %v, %v", tx, err)
	}
}

// TestExpiredUnderReaders: a reader that retention overtakes hears of it; it does
// not go on behind what was deleted.
func TestExpiredUnderReaders(t *testing.T) {
	opts := memOptions(vfs.NewMem())
	opts.SealBatch = 100
	l := mustOpen(t, opts)
	defer l.Close()
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 1, Cleanup: eventlog.CleanupDelete, RetentionBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		mustAppend(t, l, top, round*5, round*5+5)
		if err := l.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, l, top, 15, 20) // in the journal
	next := map[string]func() (eventlog.Offset, bool, error){}
	for _, spec := range []eventlog.ReadSpec{{}, {Pieces: true}, {From: map[eventlog.TopicID][]eventlog.Offset{top.ID: {0}}}} {
		r, err := l.Read(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		next[fmt.Sprintf("Read %+v", spec)] = func() (eventlog.Offset, bool, error) {
			tx, err := r.Next()
			if tx == nil {
				return 0, false, err
			}
			return tx.Records[0].Offset, true, err
		}
	}
	r, err := l.ReadPartition(top.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next["ReadPartition"] = func() (eventlog.Offset, bool, error) {
		rec, ok, err := r.Next()
		return rec.Offset, ok, err
	}
	for name, next := range next {
		if off, ok, err := next(); err != nil || !ok || off != 0 {
			t.Fatalf("%s: offset %d, %v, %v", name, off, ok, err)
		}
	}
	l.st.topic(top.ID).topic.Spec.RetentionBytes = l.segs[partKey{top.ID, 0}][2].size
	if err := l.Expire(); err != nil {
		t.Fatal(err)
	}
	if start := l.StartOffsets(top.ID)[0]; start != 20 {
		t.Fatalf("the log begins at offset %d", start)
	}
	for name, next := range next {
		last := eventlog.Offset(0)
		for {
			off, ok, err := next()
			if err == nil && ok && off < 20 { // what it had open
				last = off
				continue
			}
			if !errors.Is(err, eventlog.ErrOutOfRange) {
				t.Errorf("%s: behind offset %d comes %d, %v, %v", name, last, off, ok, err)
			}
			break
		}
	}
}
