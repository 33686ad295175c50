package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
	"github.com/tailwater/tailwater/server"
)

// TestLaggard: while a log is full of deletes for the sake of one consumer, its
// stats name that; a sink is let go, and the source goes on.
func TestLaggard(t *testing.T) {
	// The compression library's channels are made at its first use: not in a bubble.
	warm, _ := keyLog(t, []change.Column{column(change.KindInt)})
	if err := warm.SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := NewLogReader(warm, nil).CheckLog(t.Context(), func(server.Damage) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, rebuilds := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			log, err := seglog.Open("log", seglog.Options{FS: vfs.NewMem(), Quota: 100_000, CompactLeast: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- log.Run(ctx) }()
			defer func() {
				stop()
				if err := <-ran; err != nil {
					t.Error(err)
				}
			}()
			top, err := log.EnsureTopic(eventlog.TopicSpec{Name: "view.v", Partitions: 1, Cleanup: eventlog.CleanupCompact, TombstoneRetention: time.Minute, Compression: "none"})
			if err != nil {
				t.Fatal(err)
			}
			name := sink.CheckpointName("s", "v")
			if err := log.SetCursor(name, &eventlog.Cursor{Topics: []eventlog.TopicID{top.ID}, Rebuilds: rebuilds}); err != nil {
				t.Fatal(err)
			}
			put := func(n int) error {
				r := eventlog.Record{Topic: top.ID, Op: uint8(change.OpDelete), Key: change.AppendKeyPart(nil, change.Text(fmt.Sprintf("%01000d", n)), false)}
				return log.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxSource, Source: "shop", CommitTime: time.Now().UnixMicro(), Records: []eventlog.Record{r}}})
			}
			n := 0
			for err = put(n); err == nil; err = put(n) {
				n++
			}
			if !errors.Is(err, eventlog.ErrFull) {
				t.Fatal(err)
			}
			for range 60 {
				time.Sleep(5 * time.Second) // as the source does
				if err = put(n); err == nil {
					n++
				}
			}
			st, serr := NewLogReader(log, nil).LogStats(ctx)
			if serr != nil {
				t.Fatal(serr)
			}
			if rebuilds {
				if err != nil || st.Laggard != nil || !log.Cursors()[name].LetGo {
					t.Errorf("Append = %v; laggard %+v, cursor %+v", err, st.Laggard, log.Cursors()[name])
				}
				return
			}
			if l := st.Laggard; !errors.Is(err, eventlog.ErrFull) || l == nil || l.Consumer != name || l.Topic != "view.v" || time.Since(l.Since) < 5*time.Minute || l.Bytes < 50_000 {
				t.Errorf("Append = %v; laggard %+v", err, l)
			}
		})
	}
}
