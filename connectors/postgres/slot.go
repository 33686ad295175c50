package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tailwater/tailwater/connectors"
)

// slot is a replication slot as the server has it.
type slot struct {
	exists    bool
	plugin    string
	database  string
	active    bool
	pid       string
	restart   LSN // oldest log kept for it; 0: none
	confirmed LSN
	walStatus string // reserved, extended, unreserved, lost
}

func readSlot(ctx context.Context, s *session, name string) (slot, error) {
	rows, err := s.query(ctx, `SELECT COALESCE(plugin::pg_catalog.text, slot_type), database, active, active_pid, restart_lsn, confirmed_flush_lsn, wal_status
		FROM pg_catalog.pg_replication_slots WHERE slot_name = $1`, name)
	if err != nil {
		return slot{}, fmt.Errorf("read slot %s: %w", name, err)
	}
	if len(rows) == 0 {
		return slot{}, nil
	}
	r := rows[0]
	sl := slot{exists: true, plugin: string(r[0]), database: string(r[1]), active: isTrue(r[2]), pid: string(r[3]), walStatus: string(r[6])}
	if r[4] != nil {
		if sl.restart, err = ParseLSN(string(r[4])); err != nil {
			return slot{}, err
		}
	}
	if r[5] != nil {
		if sl.confirmed, err = ParseLSN(string(r[5])); err != nil {
			return slot{}, err
		}
	}
	return sl, nil
}

// intent is the note that a slot is about to be made (V15).
type intent struct {
	slot   string
	system string
	lsn    LSN // where the server's log was
}

func (n intent) encode() []byte {
	return []byte(strings.Join([]string{"1", n.slot, n.system, n.lsn.String()}, "\n"))
}

func decodeIntent(b []byte) (intent, bool) {
	f := strings.Split(string(b), "\n")
	if len(f) != 4 || f[0] != "1" {
		return intent{}, false
	}
	lsn, err := ParseLSN(f[3])
	return intent{f[1], f[2], lsn}, err == nil
}

// opener holds what Open works with while it looks at the slot.
type opener struct {
	o       *Options
	history connectors.History
	server  *server
	flushed LSN // end of the server's flushed log
	sql     *session
	repl    *session
	db      string
}

// wayOut is what a user can do when the stream cannot go on.
func (p *opener) wayOut() string {
	return fmt.Sprintf("`tailwater drop --source %s --yes` and a new start read its tables anew", p.o.Source)
}

// ensureSlot returns where streaming starts. made tells that the slot was made
// now and the log has nothing of this source yet.
func (p *opener) ensureSlot(ctx context.Context) (start place, made bool, err error) {
	pos, known := p.history.Last()
	sl, err := readSlot(ctx, p.sql, p.o.Slot)
	if err != nil {
		return place{}, false, err
	}
	if known {
		if start, err = parsePosition(pos); err != nil {
			return place{}, false, err
		}
		if err := p.checkHistory(ctx, start); err != nil {
			return place{}, false, err
		}
		if err := p.checkKnown(sl, start); err != nil {
			return place{}, false, err
		}
		return start, false, p.clearIntent()
	}
	if sl.exists {
		if err := p.dropOurs(ctx, sl); err != nil {
			return place{}, false, err
		}
	}
	lsn, err := p.createSlot(ctx)
	return place{p.server.system, p.server.timeline, lsn, lsn}, true, err
}

func (p *opener) clearIntent() error {
	note, err := p.history.Intent()
	if err != nil || note == nil {
		return err
	}
	return p.history.SetIntent(nil)
}

// checkHistory compares the server's history with that of the log (V14).
func (p *opener) checkHistory(ctx context.Context, at place) error {
	sv := p.server
	if at.system != sv.system {
		return fmt.Errorf("source %s: %w: another server answers (system identifier %s, the log has %s of %s): correct the dsn, or %s",
			p.o.Source, connectors.ErrRewound, sv.system, at.position(), at.system, p.wayOut())
	}
	if sv.timeline < at.timeline {
		return fmt.Errorf("source %s: %w: the server is on timeline %d, the log on %d: a restored copy or a former primary answers; correct the dsn, or %s",
			p.o.Source, connectors.ErrRewound, sv.timeline, at.timeline, p.wayOut())
	}
	if sv.timeline > at.timeline {
		fork, err := p.forkOf(ctx, at.timeline)
		if err != nil {
			return err
		}
		if fork < at.end {
			return fmt.Errorf("source %s: %w: timeline %d left timeline %d at %s, before the end of the log at %s: what the log has behind it was lost at the promotion; %s",
				p.o.Source, connectors.ErrRewound, sv.timeline, at.timeline, fork, at.end, p.wayOut())
		}
	}
	if p.flushed < at.end {
		return fmt.Errorf("source %s: %w: the server's log ends at %s, ours at %s: it was restored from a backup, or lost its last writes; %s",
			p.o.Source, connectors.ErrRewound, p.flushed, at.end, p.wayOut())
	}
	return nil
}

// forkOf returns where the server's timeline, or its ancestor, left the given one; 0 if it never was on it.
func (p *opener) forkOf(ctx context.Context, timeline uint32) (LSN, error) {
	rows, err := p.repl.simple(ctx, fmt.Sprintf("TIMELINE_HISTORY %d", p.server.timeline))
	if err != nil {
		return 0, fmt.Errorf("read the history of timeline %d: %w", p.server.timeline, err)
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return 0, fmt.Errorf("read the history of timeline %d: an answer of another form", p.server.timeline)
	}
	return parseTimelineHistory(string(rows[0][1]), timeline)
}

// parseTimelineHistory reads lines "PARENT LSN reason".
func parseTimelineHistory(content string, timeline uint32) (LSN, error) {
	for _, line := range strings.Split(content, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") || toOID([]byte(f[0])) != timeline {
			continue
		}
		return ParseLSN(f[1])
	}
	return 0, nil
}

// checkKnown checks the slot of a log that has a position.
func (p *opener) checkKnown(sl slot, at place) error {
	lost := func(format string, args ...any) error {
		return fmt.Errorf("source %s: %w: %s; the log ends at %s and what came after it is gone: %s",
			p.o.Source, connectors.ErrPositionLost, fmt.Sprintf(format, args...), at.end, p.wayOut())
	}
	switch {
	case !sl.exists:
		return lost("slot %s does not exist any more", p.o.Slot)
	case sl.plugin != "pgoutput" || sl.database != p.db:
		return p.foreign(sl)
	case sl.walStatus == "lost" || sl.restart == 0:
		return lost("slot %s was invalidated by the server (max_slot_wal_keep_size, idle_replication_slot_timeout or a conflict)", p.o.Slot)
	case sl.confirmed > at.end:
		return lost("slot %s was confirmed up to %s, by another reader or a log that is lost", p.o.Slot, sl.confirmed)
	}
	return nil
}

func (p *opener) foreign(sl slot) error {
	return fmt.Errorf("source %s: %w: slot %s belongs to plug-in %s in database %s: set another `slot:`", p.o.Source, connectors.ErrUnknownSlot, p.o.Slot, sl.plugin, sl.database)
}

// dropOurs drops a slot that we were just making when we were stopped, and
// refuses any other that the log does not know.
func (p *opener) dropOurs(ctx context.Context, sl slot) error {
	if sl.plugin != "pgoutput" || sl.database != p.db {
		return p.foreign(sl)
	}
	note, err := p.history.Intent()
	if err != nil {
		return fmt.Errorf("read the note of slot %s: %w", p.o.Slot, err)
	}
	n, ok := decodeIntent(note)
	ours := ok && n.slot == p.o.Slot && n.system == p.server.system && (sl.confirmed == 0 || sl.confirmed >= n.lsn)
	if !ours {
		return fmt.Errorf("source %s: %w: slot %s exists, but this data directory has nothing of it: if no other reader uses it, `tailwater drop --source %s --yes` removes it; else set another `slot:`",
			p.o.Source, connectors.ErrUnknownSlot, p.o.Slot, p.o.Source)
	}
	err = dropSlot(ctx, p.o, p.sql)
	if err == nil {
		p.o.Logger.Info("slot of an interrupted start dropped", "source", p.o.Source, "slot", p.o.Slot)
	}
	return err
}

// dropSlot drops the slot, waiting while it is in use.
func dropSlot(ctx context.Context, o *Options, s *session) error {
	deadline := time.Now().Add(o.BusyTimeout)
	for {
		_, err := s.query(ctx, "SELECT pg_catalog.pg_drop_replication_slot($1)", o.Slot)
		switch {
		case err == nil || sqlState(err) == "42704": // it is gone
			return nil
		case sqlState(err) != "55006":
			return fmt.Errorf("drop slot %s: %w", o.Slot, err)
		case time.Now().After(deadline):
			return fmt.Errorf("drop slot %s: %w: %w: stop its reader first", o.Slot, connectors.ErrBusy, err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// createSlot makes the slot and returns its consistent point. The server waits
// for every transaction in progress to end.
func (p *opener) createSlot(ctx context.Context) (LSN, error) {
	n := intent{p.o.Slot, p.server.system, p.flushed}
	if err := p.history.SetIntent(n.encode()); err != nil {
		return 0, fmt.Errorf("note that slot %s is being made: %w", p.o.Slot, err)
	}
	stop := time.AfterFunc(5*time.Second, func() {
		p.o.Logger.Info("waiting for open transactions to end, so that the slot can begin", "source", p.o.Source, "slot", p.o.Slot)
	})
	defer stop.Stop()
	rows, err := p.repl.simple(ctx, "CREATE_REPLICATION_SLOT "+quoteName(p.o.Slot)+" LOGICAL pgoutput NOEXPORT_SNAPSHOT")
	if err != nil {
		return 0, fmt.Errorf("make slot %s: %w", p.o.Slot, err)
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return 0, fmt.Errorf("make slot %s: an answer of another form", p.o.Slot)
	}
	p.o.Logger.Info("slot made", "source", p.o.Source, "slot", p.o.Slot, "position", string(rows[0][1]))
	return ParseLSN(string(rows[0][1]))
}

// startStream starts replication behind at, with or without the transactions in progress; a slot that is still held is waited for.
func (p *opener) startStream(ctx context.Context, at LSN, inProgress bool) (*wire, error) {
	options := "proto_version '1'"
	if inProgress {
		options = "proto_version '2', streaming 'on'"
	}
	options += ", publication_names '" + strings.ReplaceAll(quoteName(p.o.Publication), "'", "''") + "'"
	if p.server.version >= 140000 && (!p.o.NoMessages || p.o.Signals != SignalsOff) {
		options += ", messages 'true'"
	}
	command := fmt.Sprintf("START_REPLICATION SLOT %s LOGICAL %s (%s)", quoteName(p.o.Slot), at, options)
	deadline := time.Now().Add(p.o.BusyTimeout)
	for {
		if p.o.DecodingMemory > 0 {
			if err := p.repl.exec(ctx, fmt.Sprintf("SET logical_decoding_work_mem = '%dkB'", p.o.DecodingMemory>>10)); err != nil {
				return nil, fmt.Errorf("source %s: set logical_decoding_work_mem: %w", p.o.Source, err)
			}
		}
		w, err := startReplication(ctx, p.repl, command, 30*time.Second)
		switch {
		case err == nil:
			return w, nil
		case sqlState(err) != "55006":
			return nil, streamError(p.o, err)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("source %s: %w: slot %s: %w: stop the other reader, or set another `slot:`", p.o.Source, connectors.ErrBusy, p.o.Slot, err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
		p.repl.close() // its connection was taken over
		if p.repl, err = connect(ctx, p.o, true); err != nil {
			return nil, err
		}
	}
}

// streamError names the errors of the server that no retry mends.
func streamError(o *Options, err error) error {
	text := err.Error()
	lost := sqlState(err) == "58P01" || strings.Contains(text, "can no longer get changes") || strings.Contains(text, "can no longer access replication slot")
	if lost || sqlState(err) == "42704" && strings.Contains(text, "replication slot") {
		return fmt.Errorf("source %s: %w: %w: `tailwater drop --source %s --yes` and a new start read its tables anew", o.Source, connectors.ErrPositionLost, err, o.Source)
	}
	if sqlState(err) == "42704" && strings.Contains(text, "publication") {
		return fmt.Errorf("source %s: %w: %w: the publication was dropped and what it did not publish meanwhile is not in the stream: `tailwater drop --source %s --yes` and a new start read its tables anew",
			o.Source, connectors.ErrPositionLost, err, o.Source)
	}
	return fmt.Errorf("source %s: %w", o.Source, err)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

var errClosed = errors.New("source is closed")
