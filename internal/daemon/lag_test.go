package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
	"github.com/tailwater/tailwater/server"
)

// lagSource is a connector and its source; down breaks it, and keeps it from opening.
type lagSource struct {
	connectors.Connector
	batches chan *change.Batch
	broken  chan struct{}
	down    atomic.Bool
	lag     atomic.Int64
}

func (s *lagSource) Open(context.Context, connectors.History) (connectors.Source, error) {
	if s.down.Load() {
		return nil, errors.New("connection refused")
	}
	return s, nil
}

func (s *lagSource) Next(ctx context.Context) (*change.Batch, error) {
	select {
	case b := <-s.batches:
		return b, nil
	case <-s.broken:
		return nil, errors.New("connection reset")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *lagSource) Confirm(change.Position) {}
func (s *lagSource) Close() error            { return nil }
func (s *lagSource) Stats() connectors.SourceStats {
	return connectors.SourceStats{State: "streaming", LagBytes: s.lag.Load(), LastCommit: time.Now().Add(-time.Hour)}
}

// fullLog has no space while full is set.
type fullLog struct {
	eventlog.Log
	full atomic.Bool
}

func (l *fullLog) Append(ctx context.Context, g []*eventlog.Tx) error {
	if l.full.Load() {
		return eventlog.ErrFull
	}
	return l.Log.Append(ctx, g)
}

// TestLagGrows: a source that waits for space, or is not connected, is ever
// further behind, however much has been received from it.
func TestLagGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &lagSource{batches: make(chan *change.Batch), broken: make(chan struct{})}
		log := &fullLog{Log: logtest.Mem()}
		logger := slog.New(slog.DiscardHandler)
		r := &sourceRunner{cfg: &config.Source{Name: "shop"}, connector: src, log: log, logger: logger, opened: make(chan struct{}),
			ingest: connectors.NewIngest(connectors.IngestOptions{Log: log, Source: "shop", Logger: logger})}
		check := func(what string, low, high float64) server.SourceStatus {
			t.Helper()
			synctest.Wait()
			s := r.status()
			if s.LagSeconds < low || s.LagSeconds > high {
				t.Errorf("%s: a lag of %gs, want %g to %g (%s %s)", what, s.LagSeconds, low, high, s.State, s.Reason)
			}
			return s
		}
		check("before it was ever open", -1, -1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		check("streaming", 0, 0)
		src.lag.Store(100)
		check("with 100 bytes to receive", 3600, 3600)
		src.lag.Store(0)

		log.full.Store(true)
		src.batches <- &change.Batch{Source: "shop", Tx: "1", Kind: change.Tick, Pos: change.Position{Name: "1", Resume: "1"}, CommitTime: time.Now().Add(-time.Minute).UnixMicro()}
		time.Sleep(time.Minute)
		if s := check("without space", 120, 122); s.State != "waiting for space" || s.Reason == "" {
			t.Errorf("without space: %s, %s", s.State, s.Reason)
		}
		src.down.Store(true)
		log.full.Store(false)
		time.Sleep(2 * time.Second)
		check("with space again", 0, 0)

		src.broken <- struct{}{}
		time.Sleep(5 * time.Minute)
		if s := check("not connected", 300, 301); s.Reason == "" {
			t.Error("not connected, and no reason")
		}
		src.down.Store(false)
		time.Sleep(time.Minute)
		check("connected again", 0, 0)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
