package sink

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/internal/retry"
)

// final reports whether an error of a target ends the session.
func final(err error) bool {
	for _, e := range []error{ErrStopped, ErrOtherWriter, ErrWentBack, ErrAhead} {
		if errors.Is(err, e) {
			return true
		}
	}
	var fault *logError
	return errors.As(err, &fault)
}

// retrying calls f until it succeeds, fails for good, ctx ends, or everything is to be sent again.
func (s *session) retrying(ctx context.Context, f func() error) error {
	wait := retry.Backoff{First: s.opts.RetryMin, Most: s.opts.RetryMax}
	for {
		err := f()
		if err == nil || final(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.pause(ctx, &wait, err.Error()); err != nil {
			return err
		}
	}
}

// pause shows why and waits before the next attempt.
func (s *session) pause(ctx context.Context, wait *retry.Backoff, reason string) error {
	s.setState(StateRetrying, reason)
	s.count(func(st *SinkStats) { st.Retries++ })
	if s.dirty {
		if err := s.save(); err != nil {
			return err
		}
	}
	if !s.sleep(ctx, wait.Next()) {
		return ctx.Err()
	}
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	if asked {
		return errAgain
	}
	return nil
}

// deliver writes the updates, one a key, until the target has answered for each
// of them. Nothing else is read meanwhile, so no later version of a key can be
// sent before a retry of an earlier one (V32).
func (s *session) deliver(ctx context.Context, updates []Update, csn uint64, at int64) error {
	wait := retry.Backoff{First: s.opts.RetryMin, Most: s.opts.RetryMax}
	var letters []letter
	for len(updates) > 0 {
		n := min(len(updates), s.limit)
		part, stamp := updates[:n], s.stamp(csn, at)
		if n < len(updates) {
			stamp = s.stamp(0, 0) // the stamp of what is written for sure
		}
		var results []Result
		err := s.retrying(ctx, func() (err error) {
			if results, err = s.target.Write(ctx, part, stamp); err == nil && len(results) != n {
				err = fmt.Errorf("the target answered for %d of %d documents", len(results), n)
			}
			return err
		})
		if err != nil {
			return err
		}
		s.unseen = true
		again, reason, err := s.settle(part, results, &letters)
		if err != nil {
			return err
		}
		updates = append(again, updates[n:]...)
		if len(again) == 0 {
			s.limit = min(s.opts.BatchCount, s.limit+s.limit/8+1)
			wait.Reset()
			continue
		}
		s.limit = max(1, s.limit/2)
		if len(again) < n {
			wait.Reset()
		}
		if err := s.pause(ctx, &wait, fmt.Sprintf("%d of %d documents: %s", len(again), n, reason)); err != nil {
			return err
		}
	}
	return s.bury(ctx, letters)
}

// settle counts the outcomes and returns the updates to send again.
func (s *session) settle(updates []Update, results []Result, letters *[]letter) (again []Update, reason string, err error) {
	var written, stale, rejected int64
	var last uint64
	for i, r := range results {
		u := &updates[i]
		switch r.Outcome {
		case Written, Stale:
			written++
			last = max(last, u.Version)
			if r.Outcome == Stale {
				stale++
			}
			if v, ok := s.dead[u.ID]; ok && u.Version >= v { // a repeated older version clears nothing
				*letters = append(*letters, letter{id: u.ID})
			}
		case Rejected:
			if s.opts.RejectStops {
				return nil, "", fmt.Errorf("%w: a document of view %q, version %d, was rejected and on_reject is stop: %s", ErrStopped, s.opts.View.Name, u.Version, r.Reason)
			}
			rejected++
			*letters = append(*letters, letter{id: u.ID, reason: r.Reason, version: u.Version})
		case Retry:
			again, reason = append(again, *u), r.Reason
		}
	}
	s.count(func(st *SinkStats) {
		st.Written += written
		st.Stale += stale
		st.Rejected += rejected
		st.LastVersion = max(st.LastVersion, last)
		if s.cur.phase == phaseBuild {
			st.BuildRecords += written + rejected
		}
	})
	return again, reason, nil
}
