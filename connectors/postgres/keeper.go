package postgres

import (
	"context"
	"fmt"
	"time"
)

const (
	// maxStatus is how long the server goes without a word from us at most.
	maxStatus = 10 * time.Second
	// pingInterval is how often the server is asked for its progress while somebody waits for it.
	pingInterval = 20 * time.Millisecond
	// flushAfter is how long to wait until the server is made to flush its log.
	flushAfter = 200 * time.Millisecond
)

// statusInterval is a third of the server's patience, or less.
func (s *source) statusInterval() time.Duration {
	interval := s.o.StatusInterval
	if t := s.server.senderTimeout; t > 0 {
		interval = min(interval, t/3)
	}
	return min(interval, maxStatus)
}

// keep tells the server what is durable, whether or not anyone takes the next
// batch: at each interval if it changed, at least every third of the server's
// patience, and at once if the server asks. While somebody waits for the stream
// to pass an LSN it asks the server for its progress.
func (s *source) keep(ctx context.Context) error {
	interval := s.statusInterval()
	patience := maxStatus
	if t := s.server.senderTimeout; t > 0 {
		patience = min(patience, t/3)
	}
	var (
		sent       LSN
		sentAt     = time.Now()
		waitedFrom time.Time
	)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.wake:
			asked = s.urgent.Swap(false)
		}
		durable := LSN(s.confirmed.Load())
		wanting := s.wanting()
		if asked || wanting || durable != sent && time.Since(sentAt) >= interval || time.Since(sentAt) >= patience {
			if err := s.wire.status(durable, wanting); err != nil {
				return fmt.Errorf("source %s: the replication connection broke: %w", s.o.Source, err)
			}
			if asked && LSN(s.received.Load()) > durable {
				s.urgent.Store(true) // answer again when that is durable
			}
			sent, sentAt = durable, time.Now()
		}
		next := interval
		if !wanting {
			waitedFrom = time.Time{}
		} else {
			next = pingInterval
			if waitedFrom.IsZero() {
				waitedFrom = time.Now()
			} else if time.Since(waitedFrom) > flushAfter {
				waitedFrom = time.Now()
				signal(s.flush)
			}
		}
		timer.Reset(next)
	}
}

// wanting reports whether somebody waits for the stream to pass an LSN that it has not passed.
func (s *source) wanting() bool {
	return s.coordinator.Wanted() > LSN(s.passed.Load()) || s.connector.wanted() > LSN(s.passed.Load())
}
