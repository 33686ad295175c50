package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// decide compares the stamp in the target with the cursor in the log, sets cur
// and reports whether everything must be sent (V29, V30, V33).
func (s *session) decide(ctx context.Context) (build bool, err error) {
	mark, err := s.opts.Log.Checkpoint(CheckpointName(s.opts.SinkName, s.opts.View.Name))
	if err != nil {
		return false, logFault("read the sink's cursor", err)
	}
	if mark != nil {
		if s.cur, err = decodeCursor(mark); err != nil {
			s.log.Warn("the cursor is damaged; sending everything", "err", err)
			s.cur = nil
		}
	}
	if s.wasLetGo() {
		if err := s.startOver(); err != nil {
			return false, err
		}
	}
	asked := s.takeRebuild()
	if asked {
		s.because("it was asked for")
		s.cur = nil
	}
	found, ok := s.target.Stamp()
	switch {
	case !ok:
		s.because("the target has no stamp")
		s.cur = nil
		return true, nil
	case found.Log != s.opts.Log.ID(), asked && eventlog.CSN(found.CSN) > s.opts.Log.Frontier():
		return true, s.foreign(ctx, found)
	case asked:
		return true, nil
	case eventlog.CSN(found.CSN) > s.opts.Log.Frontier():
		return false, fmt.Errorf("%w: the target of view %q holds CSN %d and the log ends at %d: the data directory is older than the target. Put the newer directory back, or send everything with 'tailwater view rebuild %s'",
			ErrAhead, s.opts.View.Name, found.CSN, s.opts.Log.Frontier(), s.opts.View.Name)
	}
	return s.decideOurs(found)
}

// decideOurs decides for a target with our own stamp.
func (s *session) decideOurs(found Stamp) (build bool, err error) {
	ends := s.opts.Log.EndOffsets(s.topic.ID)
	c := s.cur
	switch {
	case c.startsOver():
		s.because("the log let its cursor go")
		s.cur = nil
		return true, nil
	case found.Fingerprint != s.opts.View.Fingerprint:
		s.because("the view's definition has changed")
		s.cur = nil
		return true, nil
	case !found.Complete:
		s.because("a build was not finished")
		if c != nil && (c.phase != phaseBuild || c.fingerprint != found.Fingerprint || len(c.offsets) != len(ends) || found.Before(c.stamp)) {
			s.cur = nil
		}
		return true, nil
	case c != nil && (len(c.offsets) != len(ends) || c.fingerprint != found.Fingerprint):
		s.because("the cursor is of another topic or definition")
		s.cur = nil
		return true, nil
	case c != nil && !reached(ends, c.offsets):
		return false, fmt.Errorf("%w: the cursor of view %q lies beyond the end of its topic: the log has lost its tail. Send everything with 'tailwater view rebuild %s'",
			ErrAhead, s.opts.View.Name, s.opts.View.Name)
	}
	s.csn, s.time = found.CSN, found.Time
	switch {
	case c == nil || c.phase == phaseBuild || c.stamp.Log != found.Log:
		s.because("the cursor is lost")
		s.cur = nil
		return true, nil
	case found.Before(c.stamp):
		return s.resend(found), nil
	}
	return false, nil
}

// resend decides what to send again to a target that went back to found. With a
// stamp older than the oldest tombstone that the topic surely keeps, a deleted
// document could stay for ever (V29).
func (s *session) resend(found Stamp) (build bool) {
	keep := s.topic.Spec.TombstoneRetention
	if keep == 0 {
		keep = 24 * time.Hour
	}
	if found.CSN == 0 || found.Time == 0 || time.Since(time.UnixMicro(found.Time)) > keep*9/10 {
		s.because("the target is older than the tombstones that are kept")
		s.cur = nil
		return true
	}
	after := min(eventlog.CSN(found.CSN)-1, s.cur.after) // the cursor may be further back, after a kill
	s.log.Warn("the target went back; sending again from its stamp", "csn", found.CSN)
	s.cur.stamp, s.cur.phase, s.cur.after, s.dirty = found, phaseResend, after, true
	return false
}

// foreign decides for a target that another log wrote. A target that we wrote
// before and that is foreign now has two writers (V30). Ours must have versions
// above all of the other's (V33).
func (s *session) foreign(ctx context.Context, found Stamp) error {
	if s.cur != nil && s.cur.stamp.Log == s.opts.Log.ID() {
		return fmt.Errorf("%w: view %q, log %x wrote to it after us. Stop the other one, then 'tailwater view rebuild %s'",
			ErrOtherWriter, s.opts.View.Name, found.Log, s.opts.View.Name)
	}
	s.cur = nil
	s.because("another log wrote the target before")
	floor := eventlog.CSN(found.CSN)
	if floor >= s.opts.Log.Frontier() {
		if err := s.opts.Log.Skip(ctx, floor+eventlog.ForeignSkip); err != nil {
			if ctx.Err() != nil || errors.Is(err, eventlog.ErrFull) {
				return fmt.Errorf("move the log's versions above the target's: %w", err)
			}
			return logFault("move the log's versions above the target's", err)
		}
	}
	if s.opts.Restamp == nil {
		return nil
	}
	below, err := s.anyAtOrBelow(floor)
	if err != nil || !below {
		return err
	}
	if err := s.opts.Restamp(ctx, floor); err != nil {
		return fmt.Errorf("output the view again above CSN %d: %w", floor, err)
	}
	return nil
}

// anyAtOrBelow reports whether the newest version of any key is not above csn.
func (s *session) anyAtOrBelow(csn eventlog.CSN) (bool, error) {
	enough := errors.New("enough")
	err := s.opts.Log.NewestByKey(s.topic.ID, func(_ []byte, c eventlog.CSN, tombstone bool) error {
		if c <= csn && !tombstone {
			return enough
		}
		return nil
	})
	switch {
	case errors.Is(err, enough):
		return true, nil
	case err != nil:
		return false, s.readFault(err)
	}
	return false, nil
}

func (s *session) because(reason string) { s.log.Info("the target is to be built", "because", reason) }
