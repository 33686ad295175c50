package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/connectors"
)

// errUnknownLayout means that a transaction in progress may have changed a table
// that it writes to. What it made is in the catalogue only once it is visible: the
// stream is opened again without transactions in progress, and brings it at its commit.
var errUnknownLayout = errors.New("a transaction in progress changed a table")

// known makes the table of a relation message of a transaction in progress, if the
// message describes the layout that the stream has already.
func (c *catalog) known(m relationMessage) (*relationUse, error) {
	use := &relationUse{wire: len(m.columns)}
	if !c.captures(m.schema + "." + m.name) {
		return use, nil
	}
	c.mu.Lock()
	t := c.streamed[m.oid]
	c.mu.Unlock()
	if t == nil || t.schema != m.schema || t.name != m.name {
		return nil, fmt.Errorf("table %s.%s: %w", m.schema, m.name, errUnknownLayout)
	}
	if use.columns = placesOf(t, m); len(use.columns) != len(m.columns) {
		return nil, fmt.Errorf("table %s: %w", t, errUnknownLayout)
	}
	use.table = t
	return use, nil
}

// locksSQL finds tables that a transaction in progress holds against everybody.
const locksSQL = `
SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks x JOIN pg_catalog.pg_locks r USING (virtualtransaction)
WHERE x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock' AND x.transactionid = $1::pg_catalog.xid
  AND r.locktype = 'relation' AND r.mode = 'AccessExclusiveLock' AND r.relation = ANY($2::pg_catalog.oid[])`

// unchanged tells, once the commit of a streamed transaction has come, that the
// tables still are as its rows were read. Its commit may not be visible yet: then
// it holds its locks, among them the one that a change of a table takes. The locks
// are looked at first: a transaction that holds none is visible to what follows.
func (c *catalog) unchanged(ctx context.Context, s *session, tables map[uint32]*table, xid uint32) error {
	if len(tables) == 0 {
		return nil
	}
	n, err := s.text(ctx, locksSQL, fmt.Sprint(xid), oidArray(slices.Sorted(maps.Keys(tables))))
	if err != nil {
		return fmt.Errorf("read the locks of transaction %d: %w", xid, err)
	}
	if n != "0" {
		return fmt.Errorf("transaction %d: %w", xid, errUnknownLayout)
	}
	for oid, t := range tables {
		now, err := c.current(ctx, s, oid)
		if err != nil {
			return err
		}
		if now == nil || now.topic() != t.topic() || !bytes.Equal(now.layout.AppendLayout(nil), t.layout.AppendLayout(nil)) {
			return fmt.Errorf("table %s: %w", t, errUnknownLayout)
		}
		c.mu.Lock()
		delete(c.fresh, oid) // the stream described it
		c.mu.Unlock()
	}
	return nil
}

// errMessageParts means that it is not known which logical messages of a
// transaction in progress were rolled back.
var errMessageParts = errors.New("a transaction in progress has messages and was rolled back in parts")

// wholeTx asks the next connection for transactions at their commit only, since
// this one cannot be read while it is in progress; other errors stay as they are.
func (c *Connector) wholeTx(tx string, err error) error {
	if !errors.Is(err, errUnknownLayout) && !errors.Is(err, errMessageParts) {
		return err
	}
	c.mu.Lock()
	c.whole = tx
	c.mu.Unlock()
	return fmt.Errorf("%w: it comes at its commit: %w", connectors.ErrReopen, err)
}

// takeWhole returns the transaction for which the next connection brings all
// transactions only at their commit, "" if it need not.
func (c *Connector) takeWhole() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tx := c.whole
	c.whole = ""
	return tx
}

// ofProgress ends a connection that brings transactions only at their commit, once
// the log has the one that this was for, or it was rolled back.
func (s *source) ofProgress(ctx context.Context) error {
	if s.whole == "" {
		return nil
	}
	if s.wholeUntil == 0 {
		return s.watch.do(ctx, func(q *session) error {
			state, err := q.text(ctx, "SELECT pg_catalog.pg_xact_status($1::pg_catalog.xid8)", s.whole)
			if err != nil || state == "in progress" {
				return err
			}
			s.wholeUntil, _, err = s.server.insertLSN(ctx, q)
			return err
		})
	}
	if LSN(s.confirmed.Load()) < s.wholeUntil {
		return nil
	}
	return fmt.Errorf("source %s: %w: transactions come while they are in progress again", s.o.Source, connectors.ErrReopen)
}
