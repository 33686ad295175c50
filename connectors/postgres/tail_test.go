package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestLostTailStopsTheSource flips a bit in the journal's last entry, which was
// acknowledged and told to the server. The log takes it for torn and cuts it; the
// slot, confirmed beyond the log's end, tells.
func TestLostTailStopsTheSource(t *testing.T) {
	disk := vfs.NewMem()
	log, err := seglog.Open("log", seglog.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	at := place{system: "7", timeline: 1}
	for n := range LSN(3) {
		at.commit, at.end = 100*n, 100*n+50
		tx := &eventlog.Tx{Kind: eventlog.TxTick, Source: "shop", Position: at.position().Append(nil)}
		if err := log.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
			t.Fatal(err)
		}
	}
	sl := slot{exists: true, plugin: "pgoutput", database: "shop", restart: 1, confirmed: at.end, walStatus: "reserved"}
	p := &opener{o: &Options{Source: "shop", Slot: "tailwater_shop"}, db: "shop"}
	check := func() error {
		t.Helper()
		log, err := seglog.Open("log", seglog.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		s, ok := log.SourceState("shop")
		if !ok {
			t.Fatal("the log has no position")
		}
		pos, err := change.DecodePosition(s.Position)
		if err != nil {
			t.Fatal(err)
		}
		end, err := parsePosition(pos)
		if err != nil {
			t.Fatal(err)
		}
		return p.checkKnown(sl, end)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := check(); err != nil {
		t.Fatalf("a healthy log: %v", err)
	}
	const name = "log/journal/000000000001.journal"
	disk.Flip(name, disk.Files()[name]*8-20)
	err = check()
	if !errors.Is(err, connectors.ErrPositionLost) || !strings.Contains(err.Error(), "tailwater drop --source shop") {
		t.Errorf("after a flipped bit in the last entry: %v, want ErrPositionLost and the way out", err)
	}
}
