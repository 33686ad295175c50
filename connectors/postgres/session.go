package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// pins are the settings that shape the text of values. They are sent in the
// startup packet, where they win over the role's and the database's settings,
// and read back.
var pins = map[string]string{
	"client_encoding":    "UTF8",
	"DateStyle":          "ISO, MDY",
	"IntervalStyle":      "iso_8601",
	"TimeZone":           "UTC",
	"extra_float_digits": "1",
	"bytea_output":       "hex",
	"lc_monetary":        "C",
	"xmloption":          "content",
	"search_path":        "",
	// Names as reg… types print them.
	"quote_all_identifiers": "off",
}

// More settings of sessions that read catalogue and rows: a query that row
// security would filter fails, and no setting of the role's ends a chunk.
var sqlSettings = map[string]string{
	"row_security":                        "off",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "0",
	"default_transaction_read_only":       "off",
}

// Timeouts that not every version has, which a startup packet therefore cannot
// set: none of the role's ends a chunk, a large transaction or a session between two looks.
const noTimeouts = `SELECT pg_catalog.set_config(n, '0', false) FROM (VALUES ('transaction_timeout'), ('idle_session_timeout')) v(n)
  WHERE pg_catalog.current_setting(n, true) IS NOT NULL; `

// session is a connection with the pins. One goroutine.
type session struct {
	conn *pgconn.PgConn
}

// connect opens a session; replication makes it a walsender's.
func connect(ctx context.Context, o *Options, replication bool) (*session, error) {
	cfg, err := connConfig(o)
	if err != nil {
		return nil, err
	}
	maps.Copy(cfg.RuntimeParams, pins)
	cfg.RuntimeParams["application_name"] = "tailwater " + o.Source
	if replication {
		cfg.RuntimeParams["replication"] = "database"
	} else {
		maps.Copy(cfg.RuntimeParams, sqlSettings)
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, connectError(o, cfg, err)
	}
	s := &session{conn: conn}
	if err := s.checkPins(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// checkPins takes timeouts off and reads the pins back, by the simple protocol that a walsender takes too.
func (s *session) checkPins(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(pins))
	var sql strings.Builder
	for i, n := range names {
		if i > 0 {
			sql.WriteString(", ")
		}
		sql.WriteString("pg_catalog.current_setting('" + n + "')")
	}
	rows, err := s.simple(ctx, noTimeouts+"SELECT "+sql.String())
	if err != nil {
		return fmt.Errorf("read the session's settings: %w", err)
	}
	for i, n := range names {
		got := string(rows[0][i])
		if n == "search_path" && got == `""` {
			got = ""
		}
		if got != pins[n] {
			return fmt.Errorf("setting %s of the session is %q although %q was asked for: a pooler between drops startup parameters; connect to the server itself", n, got, pins[n])
		}
	}
	return nil
}

// close ends the session. It may be repeated.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// query runs one statement and returns its rows as text; nil is null.
func (s *session) query(ctx context.Context, sql string, args ...string) ([][][]byte, error) {
	var rows [][][]byte
	err := s.each(ctx, sql, args, func(fields [][]byte) error {
		row := make([][]byte, len(fields))
		for i, f := range fields {
			row[i] = slices.Clone(f)
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// each runs one statement and calls fn for its rows, whose memory fn does not keep.
func (s *session) each(ctx context.Context, sql string, args []string, fn func(fields [][]byte) error) error {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	r := s.conn.ExecParams(ctx, sql, values, nil, nil, nil)
	var failed error
	for failed == nil && r.NextRow() {
		failed = fn(r.Values())
	}
	_, err := r.Close()
	if failed != nil {
		return failed
	}
	return err
}

// simple runs statements by the simple protocol and returns the rows of the last that has any.
func (s *session) simple(ctx context.Context, sql string) ([][][]byte, error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows [][][]byte
	for _, r := range results {
		if r.Err != nil {
			return nil, r.Err
		}
		if len(r.FieldDescriptions) > 0 {
			rows = r.Rows
		}
	}
	return rows, nil
}

// exec runs statements whose rows do not matter.
func (s *session) exec(ctx context.Context, sql string) error {
	_, err := s.simple(ctx, sql)
	return err
}

// text returns the single value of a statement; "" for null.
func (s *session) text(ctx context.Context, sql string, args ...string) (string, error) {
	rows, err := s.query(ctx, sql, args...)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || len(rows[0]) < 1 {
		return "", fmt.Errorf("one row expected, %d came", len(rows))
	}
	return string(rows[0][0]), nil
}

// sqlState returns the server's error code, "" if err is not the server's.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// bools and numbers of text results; the catalogue's own columns, so that a
// wrong form is no input but our own mistake and reads as zero.
func isTrue(b []byte) bool { return string(b) == "t" }

func toInt(b []byte) int64 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}

func toOID(b []byte) uint32 { return uint32(toInt(b)) }
