package connectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// streamLog counts what goes through streams, and refuses some of it for want of space.
type streamLog struct {
	eventlog.Log
	begun, discarded, committed int
	most                        int // records of one Add or Append
	refuse                      int // this many calls
	lose                        bool
}

func (l *streamLog) Append(ctx context.Context, group []*eventlog.Tx) error {
	for _, tx := range group {
		l.most = max(l.most, len(tx.Records))
	}
	return l.Log.Append(ctx, group)
}

func (l *streamLog) Stream(ctx context.Context) (eventlog.Stream, error) {
	l.begun++
	s, err := l.Log.Stream(ctx)
	return &countedStream{Stream: s, l: l}, err
}

type countedStream struct {
	eventlog.Stream
	l *streamLog
}

func (s *countedStream) full() error {
	if s.l.lose {
		return fmt.Errorf("%w: %w", eventlog.ErrStreamLost, eventlog.ErrFull)
	}
	if s.l.refuse > 0 {
		s.l.refuse--
		return fmt.Errorf("write: %w", eventlog.ErrFull)
	}
	return nil
}

func (s *countedStream) Add(sub uint32, records []eventlog.Record) error {
	if err := s.full(); err != nil {
		return err
	}
	s.l.most = max(s.l.most, len(records))
	return s.Stream.Add(sub, records)
}

func (s *countedStream) Commit(ctx context.Context, tx *eventlog.Tx) error {
	if err := s.full(); err != nil {
		return err
	}
	s.l.committed++
	return s.Stream.Commit(ctx, tx)
}

func (s *countedStream) Discard() error {
	s.l.discarded++
	return s.Stream.Discard()
}

// largeBatches is a history with a transaction of forty parts among small ones,
// and a sweep of all that it wrote.
func largeBatches() []*change.Batch {
	a := testSchema("shop.public.a", "id", "v")
	begun := change.SnapshotMark{Topic: a.Topic, Run: 1, State: change.SnapshotBegun}
	batches := []*change.Batch{tx("0/1", func(b *change.Batch) { b.Add(a, change.OpInsert, 0, key(1), nil, row(1, 0)) })}
	for part := range int64(40) {
		b := tx("0/2", func(b *change.Batch) {
			for id := range int64(10) {
				b.Add(a, change.OpInsert, 0, key(100+part*10+id), nil, row(100+part*10+id, 0))
			}
		})
		if b.More = part < 39; b.More {
			b.Pos = change.Position{}
		}
		batches = append(batches, b)
	}
	return append(batches,
		tx("0/3", func(b *change.Batch) { b.Add(a, change.OpTruncate, 0, nil, nil, nil) }),
		&change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{{Topic: "_snapshots.shop", Key: begun.Key(), Value: begun.Append(nil)}}},
		&change.Batch{Source: "shop", Kind: change.Chunk, Sweep: &change.Sweep{Topic: a.Topic, Since: begun.Key()}},
		tx("0/4", func(b *change.Batch) { b.Add(a, change.OpDelete, 0, key(1), nil, nil) }))
}

// TestLargeTransactionsAreStreamed: the log is the same whether a transaction is
// collected or streamed, over a full disk too; no append holds the large one.
func TestLargeTransactionsAreStreamed(t *testing.T) {
	whole := logtest.Mem()
	runIngest(t, whole, largeBatches()...)
	want := dump(t, whole)
	synctest.Test(t, func(t *testing.T) {
		log := &streamLog{Log: logtest.Mem(), refuse: 5}
		src := &scripted{log: log, batches: largeBatches()}
		in := NewIngest(IngestOptions{Log: log, Source: "shop", StreamBytes: 50 * recordMemory})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- in.Run(ctx, src) }()
		for len(dump(t, log)) < len(want) {
			<-log.Changed()
		}
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := dump(t, log); !slices.Equal(got, want) {
			t.Errorf("the log has\n%q, want\n%q", got, want)
		}
		if log.begun != 2 || log.committed != 2 || log.most > 60 || log.refuse != 0 {
			t.Errorf("%d streams begun, %d committed, at most %d records at once", log.begun, log.committed, log.most)
		}
		if src.unsafe != nil || !slices.Equal(src.confirmed[len(src.confirmed)-1:], []string{"0/4"}) {
			t.Errorf("confirmed %v, %v", src.confirmed, src.unsafe)
		}
	})
}

// breaking is a Source that breaks after its batches.
type breaking struct {
	scripted
	err error
}

func (s *breaking) Next(ctx context.Context) (*change.Batch, error) {
	if len(s.batches) == 0 {
		select {
		case <-time.After(time.Second): // of the bubble's clock: all else has come to rest
			return nil, s.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.scripted.Next(ctx)
}

// TestUnfinishedStreamIsDiscarded: a source that breaks inside a large transaction, or a log
// that lost it, leaves nothing of it.
func TestUnfinishedStreamIsDiscarded(t *testing.T) {
	for _, lose := range []bool{false, true} {
		log := &streamLog{Log: logtest.Mem(), lose: lose}
		synctest.Test(t, func(t *testing.T) {
			in := NewIngest(IngestOptions{Log: log, Source: "shop", StreamBytes: 50 * recordMemory})
			want := errors.New("connection reset")
			src := &breaking{scripted{log: log, batches: largeBatches()[:30]}, want}
			if lose {
				want = eventlog.ErrStreamLost
			}
			if err := in.Run(t.Context(), src); !errors.Is(err, want) {
				t.Errorf("Run = %v", err)
			}
			if got := dump(t, log); log.begun != 1 || log.discarded != 1 || len(got) > 1 || len(got) == 0 && !lose {
				t.Errorf("%d streams begun, %d discarded; the log has %q", log.begun, log.discarded, got)
			}
		})
	}
}

// TestRecentInPieces: the rows of a large transaction are told in order, and
// not all at once.
func TestRecentInPieces(t *testing.T) {
	log := logtest.Mem()
	a := testSchema("shop.public.a", "id", "v")
	begun := change.SnapshotMark{Topic: a.Topic, Run: 1, State: change.SnapshotBegun}
	runIngest(t, log, &change.Batch{Source: "shop", Kind: change.Chunk, Controls: []change.Control{{Topic: "_snapshots.shop", Key: begun.Key(), Value: begun.Append(nil)}}})
	top, err := log.EnsureTopic(eventlog.TopicSpec{Name: a.Topic})
	if err != nil {
		t.Fatal(err)
	}
	s, err := log.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range uint32(10) {
		r := eventlog.Record{Topic: top.ID, Seq: i, Op: uint8(change.OpInsert), Key: key(int64(i)), Value: []byte("v")}
		if err := s.Add(0, []eventlog.Record{r}); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint("7 ", change.Key(r.Key)))
	}
	if err := s.Commit(t.Context(), &eventlog.Tx{Kind: eventlog.TxSource, Source: "shop", ID: "7"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	most := 0
	err = (&LogHistory{Log: log, Source: "shop"}).Recent(func(r RecentTx) error {
		most = max(most, len(r.Events))
		for _, e := range r.Events {
			got = append(got, fmt.Sprint(r.Tx, " ", e.Key))
		}
		return nil
	})
	if err != nil || !slices.Equal(got, want) || most != 1 {
		t.Errorf("told %q, at most %d rows at once, %v; want %q one by one", got, most, err, want)
	}
}
