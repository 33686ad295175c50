package seglog

import (
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
)

// CorruptError reports bytes that cannot be what was written there. It matches eventlog.ErrCorrupt.
type CorruptError struct {
	Path   string // file
	Pos    int64  // byte position of the bad entry or batch
	Reason string // what did not match
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: byte %d: %s", e.Path, e.Pos, e.Reason)
}

// Is matches eventlog.ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == eventlog.ErrCorrupt }

// Sentinels.
var (
	// ErrSync matches every answer of a log after a sync failed: what the disk
	// holds is unknown, the process must exit and recover at its next start.
	ErrSync = errors.New("seglog: sync of the journal failed; exit and start again")
	// ErrReadOnly matches writes to a log opened with OpenReadOnly.
	ErrReadOnly = errors.New("seglog: log is open for reading only")
	// ErrClock matches an Open refused because of the clock.
	ErrClock = errors.New("seglog: clock cannot be right")
)
