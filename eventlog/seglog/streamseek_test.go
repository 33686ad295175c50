package seglog

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestSeeksKnowStreams seeks, reads backward, dumps and checks a log in which a
// streamed transaction with an aborted part lies between ordinary ones.
func TestSeeksKnowStreams(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.StreamChunk, opts.TailBytes = 300, 1
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 5)
	s, err := l.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint32(60) {
		r := eventlog.Record{Topic: top.ID, Seq: seq, Op: 1, Key: fmt.Append(nil, "k", seq%7), Value: fmt.Appendf(nil, "%030d", seq)}
		if err := s.Add(seq/10%3, []eventlog.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Abort(1); err != nil {
		t.Fatal(err)
	}
	late := testTime.UnixMicro() + 5_000_000
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: []byte("st"), ID: "st", CommitTime: late}
	if err := s.Commit(ctx, tx); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 5, 9)
	check := func(what string) {
		t.Helper()
		for p := range int32(2) {
			var forward, backward []eventlog.Offset
			pr, err := l.ReadPartition(top.ID, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			first := eventlog.Offset(-1)
			for {
				r, ok, err := pr.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				forward = append(forward, r.Offset)
				if r.CSN == tx.CSN && first < 0 {
					first = r.Offset
				}
			}
			pr.Close()
			if first < 0 {
				t.Fatalf("partition %d has nothing of the stream", p)
			}
			br, err := l.ReadBackward(top.ID, p, 1<<40)
			if err != nil {
				t.Fatal(err)
			}
			for {
				r, ok, err := br.Next()
				if err != nil {
					t.Fatalf("%s: backward: %v", what, err)
				}
				if !ok {
					break
				}
				backward = append(backward, r.Offset)
			}
			br.Close()
			slices.Reverse(backward)
			if !slices.Equal(forward, backward) {
				t.Errorf("%s: partition %d backward is %v, forward %v", what, p, backward, forward)
			}
			if off, err := l.SeekCSN(top.ID, p, tx.CSN); err != nil || off != first {
				t.Errorf("%s: SeekCSN = %d, %v, want %d", what, off, err, first)
			}
			if off, err := l.SeekTime(top.ID, p, late); err != nil || off != first {
				t.Errorf("%s: SeekTime = %d, %v, want %d", what, off, err, first)
			}
		}
		n := 0
		err := l.Batches(ctx, top.ID, -1, func(b *RawBatch) error {
			if b.Bad != nil {
				t.Errorf("%s: %v", what, b.Bad)
			}
			for i := range b.Records {
				if b.Records[i].CSN == tx.CSN {
					n++
				}
			}
			return nil
		})
		if want := map[bool]int{true: 40, false: 60}[what == "sealed"]; err != nil || n != want {
			t.Errorf("%s: the dump shows %d records of the stream, %v, want %d", what, n, err, want)
		}
		if _, err := l.Check(ctx, func(err error) { t.Errorf("%s: Check: %v", what, err) }); err != nil {
			t.Fatal(err)
		}
		infos, err := l.Inspect(ctx, true)
		if err != nil || infos[top.ID-1].NewestTime != late {
			t.Errorf("%s: Inspect = %+v, %v", what, infos[top.ID-1], err)
		}
	}
	check("in the journal")
	l.Close()
	l = mustOpen(t, opts)
	check("after a restart")
	if err := l.Roll(ctx); err != nil {
		t.Fatal(err)
	}
	check("in a closed file")
	if err := l.SealAll(ctx); err != nil {
		t.Fatal(err)
	}
	check("sealed")
}
