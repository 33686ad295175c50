package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
)

// sourceStats is what Stats tells, gathered by several goroutines.
type sourceStats struct {
	state    atomicString
	end      atomic.Uint64 // end of the server's log
	retained atomic.Int64
	commit   atomic.Int64 // µs since 1970 of the last commit

	mu   sync.Mutex // guards rows
	rows map[string]int64
}

type atomicString struct{ v atomic.Value }

func (a *atomicString) Store(s string) { a.v.Store(s) }
func (a *atomicString) Load() string {
	s, _ := a.v.Load().(string)
	return s
}

// count adds a batch's rows.
func (st *sourceStats) count(b *change.Batch) {
	var ops [8]int64
	for i := range b.Events {
		ops[b.Events[i].Op&7]++
	}
	st.add(ops)
	st.commit.Store(b.CommitTime)
}

// add adds rows by their op.
func (st *sourceStats) add(ops [8]int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for op, n := range ops {
		if n > 0 {
			st.rows[change.Op(op).String()] += n
		}
	}
}

// Stats implements connectors.Source.
func (s *source) Stats() connectors.SourceStats {
	st := connectors.SourceStats{State: s.stats.state.Load(), Received: LSN(s.received.Load()).String(), Confirmed: LSN(s.confirmed.Load()).String(),
		LagBytes: -1, RetainedBytes: s.stats.retained.Load(), Rows: map[string]int64{}, Tables: s.coordinator.Progress(),
		Signals: s.connector.shownSignals()}
	for i := range st.Tables {
		if st.State == "streaming" && st.Tables[i].State != "done" {
			st.State = "snapshot"
		}
	}
	if end := s.stats.end.Load(); end != 0 {
		st.LagBytes = max(0, int64(end)-int64(s.received.Load()))
	}
	if at := s.stats.commit.Load(); at != 0 {
		st.LastCommit = time.UnixMicro(at)
	}
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	for op, n := range s.stats.rows {
		st.Rows[op] = n
	}
	return st
}

// watchServer asks the server now and then how much log it keeps and whether
// there are tables to capture that were not there before. A question that fails
// is asked again: whether the source works is known from the stream.
func (s *source) watchServer(ctx context.Context) error {
	stats := time.NewTicker(s.o.StatsInterval)
	defer stats.Stop()
	var discover <-chan time.Time
	if s.o.Discover > 0 {
		t := time.NewTicker(s.o.Discover)
		defer t.Stop()
		discover = t.C
	}
	var heartbeat <-chan time.Time
	if s.o.HeartbeatMessage > 0 {
		t := time.NewTicker(s.o.HeartbeatMessage)
		defer t.Stop()
		heartbeat = t.C
	}
	s.askStats(ctx)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-stats.C:
			s.askStats(ctx)
			err = s.ofProgress(ctx)
		case <-s.flush:
			_ = s.watch.do(ctx, func(q *session) error { return s.server.nudge(ctx, q) })
		case <-heartbeat:
			if !s.beat(ctx) {
				heartbeat = nil
			}
		case <-discover:
			err = s.watch.do(ctx, func(q *session) error { return s.discover(ctx, q) })
		}
		if errors.Is(err, connectors.ErrReopen) {
			return err
		}
	}
}

// beat writes a heartbeat; false tells that this role, or this server, cannot.
func (s *source) beat(ctx context.Context) bool {
	err := s.watch.do(ctx, func(q *session) error { return s.server.emit(ctx, q, prefixHeartbeat) })
	if sqlState(err) == "" {
		return true
	}
	s.connector.warn([]connectors.Problem{{Message: fmt.Sprintf("no heartbeat_message can be written (%v): while the database is idle its slot follows the positions that the server tells", err)}})
	return false
}

func (s *source) askStats(ctx context.Context) {
	_ = s.watch.do(ctx, func(q *session) error {
		insert, _, err := s.server.insertLSN(ctx, q)
		if err != nil {
			return err
		}
		s.stats.end.Store(uint64(insert))
		sl, err := readSlot(ctx, q, s.o.Slot)
		if err == nil && sl.restart != 0 {
			s.stats.retained.Store(max(0, int64(insert)-int64(sl.restart)))
		}
		return err
	})
}

// discover looks for tables and ends the source if there are any.
func (s *source) discover(ctx context.Context, q *session) error {
	if s.o.Discover < 0 {
		return nil
	}
	err := s.lookForTables(ctx, q)
	if errors.Is(err, connectors.ErrReopen) {
		s.connector.mu.Lock()
		s.connector.reopening = true
		s.connector.mu.Unlock()
		s.queue.end(err)
	}
	return err
}

// lookForTables returns ErrReopen, which ends the source, to be opened again, when tables match that it
// does not capture, or when captured ones left the publication or are published in another way.
func (s *source) lookForTables(ctx context.Context, q *session) error {
	all, err := readRelations(ctx, q, 0)
	if err != nil {
		return err
	}
	var fresh, captured []*relation
	for _, r := range all {
		name := r.String()
		if !s.catalog.captures(name) || r.kind != 'r' && r.kind != 'p' || r.partition || r.persistence != 'p' {
			continue
		}
		if s.known[r.oid] == name {
			captured = append(captured, r)
		} else {
			fresh = append(fresh, r)
		}
	}
	if len(fresh) > 0 {
		if err := readColumns(ctx, q, fresh); err != nil {
			return err
		}
	}
	p, err := readPublication(ctx, q, s.server, s.o.Publication)
	if err != nil {
		return err
	}
	for _, r := range fresh {
		fault, _ := unfit(r)
		if fault == "" {
			fault = unreachable(s.server, p, r, s.user)
		}
		if fault == "" {
			return fmt.Errorf("source %s: %w: table %s is to be captured", s.o.Source, connectors.ErrReopen, r)
		}
		s.connector.warn([]connectors.Problem{{Table: r.String(), Message: "skipped: " + fault}})
	}
	if lacking := p.lacking(captured); len(lacking) > 0 {
		return fmt.Errorf("source %s: %w: table %s left publication %s", s.o.Source, connectors.ErrReopen, lacking[0], s.o.Publication)
	}
	return s.lookForAlterations(ctx, q, captured)
}

// lookForAlterations returns ErrReopen when a captured table is published in another way than at Open.
func (s *source) lookForAlterations(ctx context.Context, q *session, captured []*relation) error {
	var oids []uint32
	for _, r := range captured {
		oids = append(oids, r.oid)
	}
	published, err := readPublished(ctx, q, s.server, s.o.Publication, oids)
	if err != nil {
		return err
	}
	for _, r := range captured {
		if now := published[r.oid]; now != s.published[r.oid] {
			return fmt.Errorf("source %s: %w: publication %s was altered for table %s", s.o.Source, connectors.ErrReopen, s.o.Publication, r)
		}
	}
	return nil
}
