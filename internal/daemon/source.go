package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/retry"
	"github.com/tailwater/tailwater/server"
)

// sourceRunner keeps one source streaming into the log.
type sourceRunner struct {
	cfg       *config.Source
	connector connectors.Connector
	log       eventlog.Log
	logger    *slog.Logger
	ingest    *connectors.Ingest

	mu     sync.Mutex
	src    connectors.Source // nil while not open
	state  string
	reason string
	failed error         // for good
	broken int64         // interruptions
	behind time.Time     // what behindSince said when the source was last closed, or that time where it lacked nothing
	opened chan struct{} // closed at the first success or final failure
	once   sync.Once
}

func newSourceRunner(cfg *config.Source, connector connectors.Connector, log eventlog.Log, dir string, spec func(string) eventlog.TopicSpec, logger *slog.Logger) *sourceRunner {
	logger = logger.With("source", cfg.Name)
	return &sourceRunner{
		cfg: cfg, connector: connector, log: log, logger: logger, state: "connecting", opened: make(chan struct{}),
		ingest: connectors.NewIngest(connectors.IngestOptions{Log: &reservedLog{Log: log, path: dir, usage: fileSystem}, Source: cfg.Name, Logger: logger, Spec: spec}),
	}
}

// final reports whether an error of a source will not go away by trying again.
func final(err error) bool {
	for _, e := range []error{connectors.ErrPositionLost, connectors.ErrRewound, connectors.ErrUnknownSlot, connectors.ErrPrerequisite, eventlog.ErrTooLarge, eventlog.ErrPartitionCount} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Run opens the source again and again until ctx ends. It returns an error
// only when the log cannot be written any more.
func (r *sourceRunner) Run(ctx context.Context) error {
	backoff := retry.Backoff{First: 200 * time.Millisecond, Most: 30 * time.Second}
	for ctx.Err() == nil {
		began := time.Now()
		err := r.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case final(err):
			r.stop(err)
			<-ctx.Done()
			return nil
		case errors.Is(err, connectors.ErrBeyondRefill): // opening it again mends that
		case logFailed(err):
			return dirError(err)
		case errors.Is(err, connectors.ErrReopen):
			r.logger.Info("source is opened anew", "err", err)
			continue
		}
		if time.Since(began) > time.Minute {
			backoff.Reset()
		}
		r.interrupted(err)
		r.logger.Warn("source interrupted; it is opened again", "attempt", backoff.Attempts()+1, "err", err)
		if backoff.Wait(ctx) != nil {
			return nil
		}
	}
	return nil
}

// logFailed reports whether the log is beyond appending; the process must end.
func logFailed(err error) bool {
	return errors.Is(err, eventlog.ErrClosed) || errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, seglog.ErrSync)
}

// stream opens the source once and copies it into the log until one side fails.
func (r *sourceRunner) stream(ctx context.Context) error {
	src, err := r.connector.Open(ctx, &connectors.LogHistory{Log: r.log, Source: r.cfg.Name})
	if err != nil {
		return fmt.Errorf("open source %q: %w", r.cfg.Name, err)
	}
	r.mu.Lock()
	r.src, r.state, r.reason = src, "streaming", ""
	r.mu.Unlock()
	r.once.Do(func() { close(r.opened) })
	r.logger.Info("source streams")
	err = r.ingest.Run(ctx, src)
	at, known := r.behindSince(src.Stats(), true)
	if known && at.IsZero() {
		at = time.Now()
	}
	r.mu.Lock()
	r.src, r.behind = nil, at
	r.mu.Unlock()
	if cerr := src.Close(); cerr != nil && err == nil && ctx.Err() == nil {
		err = cerr
	}
	if err == nil && ctx.Err() == nil {
		err = errors.New("the source ended without a reason")
	}
	return err
}

func (r *sourceRunner) interrupted(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.reason = "connecting", err.Error()
	r.broken++
}

func (r *sourceRunner) stop(err error) {
	r.mu.Lock()
	r.state, r.reason, r.failed = "stopped", err.Error(), err
	r.mu.Unlock()
	r.once.Do(func() { close(r.opened) })
	r.logger.Error("source stopped; nothing is captured from it until this is mended", "err", err)
}

// failure is the final error, if there is one.
func (r *sourceRunner) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *sourceRunner) stats() (st connectors.SourceStats, state, reason string, open bool) {
	r.mu.Lock()
	src, state, reason := r.src, r.state, r.reason
	r.mu.Unlock()
	if src == nil {
		return connectors.SourceStats{LagBytes: -1, RetainedBytes: -1}, state, reason, false
	}
	st = src.Stats()
	if r.ingest.Full() {
		return st, "waiting for space", "the log has no space; free some, or raise log.quota", true
	}
	if st.State != "" {
		state = st.State
	}
	return st, state, reason, true
}

// behindSince is the commit time from which on the log may lack transactions of
// the source; zero: it lacks none. While the source is not open nobody knows what
// is committed there, so that it stays where it was, and the lag grows.
func (r *sourceRunner) behindSince(st connectors.SourceStats, open bool) (at time.Time, known bool) {
	if open {
		if at := r.ingest.Waiting(); !at.IsZero() {
			return at, true
		}
		if st.LagBytes == 0 {
			return time.Time{}, true
		}
		if st.LagBytes > 0 && !st.LastCommit.IsZero() {
			return st.LastCommit, true
		}
	}
	r.mu.Lock()
	at = r.behind
	r.mu.Unlock()
	if last, ok := r.log.SourceState(r.cfg.Name); at.IsZero() && ok && last.CommitTime > 0 {
		at = time.UnixMicro(last.CommitTime)
	}
	return at, !at.IsZero()
}

func (r *sourceRunner) status() server.SourceStatus {
	st, state, reason, open := r.stats()
	s := server.SourceStatus{Name: r.cfg.Name, Kind: string(r.cfg.Kind), State: state, Reason: reason, Received: st.Received, Confirmed: st.Confirmed,
		LagBytes: st.LagBytes, RetainedBytes: st.RetainedBytes, Rows: st.Rows}
	r.mu.Lock()
	s.Interruptions = r.broken
	r.mu.Unlock()
	if last, ok := r.log.SourceState(r.cfg.Name); ok {
		if pos, err := change.DecodePosition(last.Position); err == nil {
			s.Durable = pos.Name
		}
	}
	switch at, known := r.behindSince(st, open); {
	case !known:
		s.LagSeconds = -1
	case !at.IsZero():
		s.LagSeconds = max(0, time.Since(at).Seconds())
	}
	for _, t := range st.Tables {
		p := server.SnapshotStatus{Topic: t.Topic, Run: t.Run, State: r.snapshotState(&t), Rows: t.Rows, Bytes: t.Bytes, Total: t.Total, ETASeconds: t.ETA.Seconds()}
		if p.State == "done" {
			p.Percent = 100
		} else if t.Total > 0 {
			p.Percent = min(99.9, 100*float64(t.Rows)/float64(t.Total))
		}
		s.Snapshots = append(s.Snapshots, p)
	}
	for _, sig := range st.Signals {
		s.Signals = append(s.Signals, server.SignalStatus{Position: sig.Position, Time: sig.Time.UTC(), Content: sig.Content, Refused: sig.Refused})
	}
	return s
}
