package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// TestReserve: sources are refused while the reserve is touched and go on when
// there is space; what the views append is not refused.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logtest.Mem()
		free := uint64(100 << 20)
		l := &reservedLog{Log: log, path: "x", usage: func(string) (uint64, uint64, error) { return free, 1 << 40, nil }}
		tick := []*eventlog.Tx{{Kind: eventlog.TxTick, Source: "s"}}
		if err := l.Append(t.Context(), tick); !errors.Is(err, eventlog.ErrFull) {
			t.Errorf("with 100 MiB free: %v", err)
		}
		stream, err := l.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Add(0, nil); !errors.Is(err, eventlog.ErrFull) {
			t.Errorf("Add with 100 MiB free: %v", err)
		}
		if err := stream.Commit(t.Context(), tick[0]); !errors.Is(err, eventlog.ErrFull) {
			t.Errorf("Commit with 100 MiB free: %v", err)
		}
		if err := log.Append(t.Context(), tick); err != nil {
			t.Errorf("beside the reserve: %v", err)
		}
		free = 1 << 30
		time.Sleep(spaceEvery) // of the bubble's clock
		if err := l.Append(t.Context(), tick); err != nil {
			t.Errorf("with space again: %v", err)
		}
		if err := stream.Add(0, nil); err != nil {
			t.Errorf("Add with space again: %v", err)
		}
		if err := stream.Commit(t.Context(), tick[0]); err != nil {
			t.Errorf("Commit with space again: %v", err)
		}
	})
	if reserve(64<<20) != (64<<20)/20 || reserve(1<<40) != mostReserve {
		t.Error("the reserve is 5 %, at most 256 MiB")
	}
}
