package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
)

// writers is how many connections the traffic comes from, so that transactions
// overlap and commit in another order than they began in.
const writers = 2

// Traffic changes the shop, rate transactions a second, until ctx ends: prices,
// texts, new products and reviews, deletes, reviews that move to another
// product, products that move between categories, renames with a wide fan-out,
// transactions of many rows, rolled-back ones, and changed primary keys. It
// outlives a restart of the server. nil means that ctx ended it.
func Traffic(ctx context.Context, dsn string, rate float64, seed uint64) error {
	return NewTrafficker(dsn, rate, seed).Run(ctx)
}

// Trafficker is Traffic that can be asked how much it has done.
type Trafficker struct {
	dsn  string
	rate float64
	seed uint64

	committed atomic.Int64
}

// NewTrafficker returns traffic that has not started; a rate of 0 or less is
// as fast as it goes.
func NewTrafficker(dsn string, rate float64, seed uint64) *Trafficker {
	return &Trafficker{dsn: dsn, rate: rate, seed: seed}
}

// Committed is the number of transactions committed so far.
func (t *Trafficker) Committed() int64 { return t.committed.Load() }

// Run is Traffic.
func (t *Trafficker) Run(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	for i := range uint64(writers) {
		g.Go(func() error { return t.write(gctx, rand.New(rand.NewPCG(t.seed, 100+i))) })
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// write is one connection's traffic; it connects again when the server went away.
func (t *Trafficker) write(ctx context.Context, r *rand.Rand) error {
	tick, stop := t.ticks()
	defer stop()
	var c *pgx.Conn
	defer func() {
		if c != nil {
			closeConn(c)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
		if c == nil || c.IsClosed() {
			var err error
			if c, err = connectPublic(ctx, t.dsn); err != nil {
				if !retryConnect(ctx, err) {
					return fmt.Errorf("live traffic: %w", err)
				}
				continue
			}
		}
		if err := t.one(ctx, c, r); err != nil && !c.IsClosed() && !harmless(err) {
			return fmt.Errorf("live traffic: %w", err)
		}
	}
}

func (t *Trafficker) ticks() (<-chan time.Time, func()) {
	if t.rate <= 0 {
		always := make(chan time.Time)
		close(always)
		return always, func() {}
	}
	ticker := time.NewTicker(max(time.Millisecond, time.Duration(writers*float64(time.Second)/t.rate)))
	return ticker.C, ticker.Stop
}

// retryConnect pauses after a refused connection and tells whether another try
// may help: not when the server answers that it does not want us.
func retryConnect(ctx context.Context, err error) bool {
	if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && !strings.HasPrefix(pgErr.Code, "57") { // 57: operator intervention, as a start or a stop
		return false
	}
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
	return true
}

// harmless tells errors that two writers at once may run into: a broken
// constraint (class 23), a deadlock or a serialization failure (class 40).
// The transaction is rolled back, which is traffic as well.
func harmless(err error) bool {
	pgErr := (*pgconn.PgError)(nil)
	return errors.As(err, &pgErr) && (strings.HasPrefix(pgErr.Code, "23") || strings.HasPrefix(pgErr.Code, "40"))
}

// connectPublic connects with the shop's schema as the only one searched.
func connectPublic(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["search_path"] = "public"
	return pgx.ConnectConfig(ctx, cfg)
}

// one runs one transaction.
func (t *Trafficker) one(ctx context.Context, c *pgx.Conn, r *rand.Rand) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // no effect after the commit
	changes := 1
	if r.IntN(10) == 0 {
		changes = 2 + r.IntN(12)
	}
	for range changes {
		if err := choose(r).run(ctx, tx, r); err != nil {
			return err
		}
	}
	if r.IntN(40) == 0 {
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	t.committed.Add(1)
	return nil
}
