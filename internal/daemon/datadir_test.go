package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestLockedBy: who finds a directory locked is told by whom, and what to do.
func TestLockedBy(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	for _, tt := range []struct{ holder, command, way string }{
		{lockRun, lockRun, "stop it, or give this one another data_dir"},
		{lockRun, lockCompact, "try again once it answers"},
		{lockRun, lockDrop, "stop it first"},
		{lockCompact, lockRun, "it ends by itself: try again then"},
		{lockDrop, lockCompact, "it ends by itself: try again then"},
	} {
		path := t.TempDir()
		d, err := openDataDir(path, tt.holder, logger)
		if err != nil {
			t.Fatal(err)
		}
		_, err = openDataDir(path, tt.command, logger)
		if want := fmt.Sprintf("%s is locked by process %d (%s); ", path, os.Getpid(), tt.holder); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tt.way) {
			t.Errorf("%s beside %s: %v; want %q and %q", tt.command, tt.holder, err, want, tt.way)
		}
		d.close()
		again, err := openDataDir(path, tt.command, logger)
		if err != nil {
			t.Fatalf("when it was free again: %v", err)
		}
		again.close()
	}
	for owner, want := range map[string]string{"": "locked by another process; try again", "17\n": "process 17 (tailwater run); stop it"} {
		if got := lockedText("d", owner, lockRun); !strings.Contains(got, want) {
			t.Errorf("owner %q: %s; want %q", owner, got, want)
		}
	}
}
