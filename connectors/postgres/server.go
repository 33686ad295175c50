package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// server is what a server says about itself.
type server struct {
	version       int    // server_version_num, 150018
	versionText   string // "15.18"
	encoding      string
	standby       bool
	pageSize      uint64
	segmentSize   uint64
	senderTimeout time.Duration // wal_sender_timeout; 0: none
	xid           uint64        // the next transaction id when asked, 64 bits
	system        string        // system identifier
	timeline      uint32
}

func (sv *server) String() string { return "PostgreSQL " + sv.versionText }

const serverSQL = `
SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_version'),
  pg_catalog.current_setting('server_encoding'), pg_catalog.pg_is_in_recovery(),
  pg_catalog.current_setting('wal_block_size'),
  pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')),
  (SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'),
  pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())`

const controlSQL = `
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()),
  (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint())`

// readServer asks a session; system and timeline come from identify.
func readServer(ctx context.Context, s *session) (*server, error) {
	rows, err := s.query(ctx, serverSQL)
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	r := rows[0]
	xid, err := strconv.ParseUint(string(r[7]), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the server's transaction id: %w", err)
	}
	sv := &server{version: int(toInt(r[0])), versionText: string(r[1]), encoding: string(r[2]), standby: isTrue(r[3]),
		pageSize: uint64(toInt(r[4])), segmentSize: uint64(toInt(r[5])),
		senderTimeout: time.Duration(toInt(r[6])) * time.Millisecond, xid: xid}
	if sv.version < 130000 {
		return nil, fmt.Errorf("%s is too old: 13 or later is needed", sv)
	}
	return sv, nil
}

// readControl fills system identifier and timeline from the control file.
func (sv *server) readControl(ctx context.Context, s *session) error {
	rows, err := s.query(ctx, controlSQL)
	if err != nil {
		return fmt.Errorf("read the system identifier: %w", err)
	}
	sv.system, sv.timeline = string(rows[0][0]), uint32(toInt(rows[0][1]))
	return nil
}

// identify asks a replication session for system identifier, timeline and the
// end of the flushed log.
func (sv *server) identify(ctx context.Context, repl *session) (flushed LSN, err error) {
	rows, err := repl.simple(ctx, "IDENTIFY_SYSTEM")
	if err != nil {
		return 0, fmt.Errorf("identify the server: %w", err)
	}
	if len(rows) != 1 || len(rows[0]) < 3 {
		return 0, fmt.Errorf("identify the server: an answer of another form")
	}
	sv.system, sv.timeline = string(rows[0][0]), uint32(toInt(rows[0][1]))
	return ParseLSN(string(rows[0][2]))
}

// insertLSN returns where the last record inserted in the server's log ends
// (V16), and where the flushed log ends; on a standby both are what it has replayed.
func (sv *server) insertLSN(ctx context.Context, s *session) (insert, flushed LSN, err error) {
	sql := "SELECT pg_catalog.pg_current_wal_insert_lsn(), pg_catalog.pg_current_wal_flush_lsn()"
	if sv.standby {
		sql = "SELECT pg_catalog.pg_last_wal_replay_lsn(), pg_catalog.pg_last_wal_replay_lsn()"
	}
	rows, err := s.query(ctx, sql)
	if err != nil {
		return 0, 0, fmt.Errorf("read the end of the server's log: %w", err)
	}
	if insert, err = ParseLSN(string(rows[0][0])); err != nil {
		return 0, 0, err
	}
	if flushed, err = ParseLSN(string(rows[0][1])); err != nil {
		return 0, 0, err
	}
	return floorInsert(insert, sv.pageSize, sv.segmentSize), flushed, nil
}

// nudge makes an idle primary flush its log by a transaction that holds nothing
// but a message of our own, which is not captured. Failing is no harm: the server's
// own activity does the same within seconds.
func (sv *server) nudge(ctx context.Context, s *session) error {
	if sv.standby {
		return nil
	}
	return sv.emit(ctx, s, prefixNudge)
}

// emit writes an empty message in a transaction of its own, which is flushed at
// once and waits for no standby.
func (sv *server) emit(ctx context.Context, s *session, prefix string) error {
	return s.exec(ctx, "SET synchronous_commit = local; SELECT pg_catalog.pg_logical_emit_message(true, '"+prefix+"', '')")
}
