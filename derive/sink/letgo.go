package sink

import (
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
)

// A log that is full lets go the cursor of a sink that is too far behind, one that
// was damaged those of all sinks of the topic, and with them deletes that were not
// sent. Then everything is sent again and the target swept, which finds what was
// deleted.

// wasLetGo reports whether the log keeps nothing for the worker any more.
func (w *Worker) wasLetGo() bool {
	return w.opts.Log.Cursors()[CheckpointName(w.opts.SinkName, w.opts.View.Name)].LetGo
}

// startOver durably notes that everything is to be sent, and only then takes
// from the log that it had to be. The stamp stays known: it tells another writer.
func (s *session) startOver() error {
	name := CheckpointName(s.opts.SinkName, s.opts.View.Name)
	c := &cursor{phase: phaseBuild}
	if s.cur != nil {
		c.fingerprint, c.stamp = s.cur.fingerprint, s.cur.stamp
	}
	err := s.opts.Log.SaveCheckpoint(name, c.append(nil))
	if err == nil {
		err = s.opts.Log.SetCursor(name, nil)
	}
	switch {
	case errors.Is(err, eventlog.ErrFull):
		return fmt.Errorf("note that everything is to be sent: %w", err)
	case err != nil:
		return logFault("note that everything is to be sent", err)
	}
	s.log.Warn("the log, full or damaged, could not keep the deletes that this sink has not seen; sending everything")
	s.cur = c
	return nil
}

// startsOver reports that nothing of the target counts since startOver.
func (c *cursor) startsOver() bool { return c != nil && len(c.offsets) == 0 }
