package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// dropReplication removes the demo's slot and publication. A slot in use means
// that another demo runs on this server.
func dropReplication(ctx context.Context, c *pgx.Conn) error {
	var active bool
	var database string
	err := c.QueryRow(ctx, `select active, database from pg_replication_slots where slot_name = $1`, slot).Scan(&active, &database)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return fmt.Errorf("look for the slot of an earlier demo: %w", err)
	case active:
		return fmt.Errorf("the replication slot %s is in use in the database %q: another demo runs on this server; stop it first", slot, database)
	default:
		if _, err := c.Exec(ctx, `select pg_drop_replication_slot($1)`, slot); err != nil {
			return fmt.Errorf("drop the replication slot %s: %w", slot, err)
		}
	}
	if _, err := c.Exec(ctx, "DROP PUBLICATION IF EXISTS "+slot); err != nil {
		return fmt.Errorf("drop the publication %s: %w", slot, err)
	}
	return nil
}

// release drops slot and publication at the end, so that the server keeps
// nothing for a daemon that is gone. A killed daemon's connection may hold the
// slot for a moment. It works although the demo's own context has ended.
func (r *runner) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, r.opts.DSN)
	if err != nil {
		return fmt.Errorf("drop the demo's replication slot %s: %w; drop it yourself: select pg_drop_replication_slot('%[1]s')", slot, err)
	}
	defer closeConn(c)
	return poll(ctx, 20*time.Second, func() error { return dropReplication(ctx, c) })
}

// poll calls f every 50 ms until it returns nil, ctx ends or the time is over;
// then it returns f's last error.
func poll(ctx context.Context, timeout time.Duration, f func() error) error {
	deadline := time.After(timeout)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		if final := (*finalError)(nil); errors.As(err, &final) {
			return final.err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-deadline:
			return err
		case <-tick.C:
		}
	}
}

// finalError ends a poll at once.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
