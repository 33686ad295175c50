package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

const itemsSQL = `
CREATE TABLE items (id int PRIMARY KEY, n int, name text, body text);
ALTER TABLE items ALTER body SET STORAGE EXTERNAL;
INSERT INTO items SELECT g, g, 'item ' || g, repeat(md5(g::text), 100) FROM generate_series(1, 2000) g;`

// writers change items until stopped; the seed decides what they do.
type writers struct {
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func startWriters(t *testing.T, dsn string, seed uint64, n int) *writers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &writers{cancel: cancel}
	for i := range n {
		c := testkit.Connect(t, dsn)
		w.work.Go(func() { write(ctx, c, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	t.Cleanup(w.stop)
	return w
}

func (w *writers) stop() { w.cancel(); w.work.Wait() }

// write makes transactions; one that fails (a key is taken, a deadlock) is given up.
func write(ctx context.Context, c *pgx.Conn, rng *rand.Rand) {
	for ctx.Err() == nil {
		tx, err := c.Begin(context.Background())
		if err != nil {
			return
		}
		for range 1 + rng.IntN(4) {
			id, other := rng.IntN(3000), rng.IntN(4000)
			switch rng.IntN(10) {
			case 0, 1:
				_, err = tx.Exec(context.Background(), "INSERT INTO items VALUES ($1, $2, 'new', repeat(md5($2::text), 100)) ON CONFLICT DO NOTHING", id, rng.Int32())
			case 2:
				_, err = tx.Exec(context.Background(), "DELETE FROM items WHERE id = $1", id)
			case 3:
				_, err = tx.Exec(context.Background(), "UPDATE items SET id = $2 WHERE id = $1", id, other)
			case 4:
				_, err = tx.Exec(context.Background(), "UPDATE items SET body = repeat(md5($2::text), 90) WHERE id = $1", id, rng.Int32())
			default:
				_, err = tx.Exec(context.Background(), "UPDATE items SET n = $2 WHERE id = $1", id, rng.Int32())
			}
			if err != nil {
				break
			}
		}
		if err != nil || rng.IntN(10) == 0 {
			_ = tx.Rollback(context.Background())
		} else {
			_ = tx.Commit(context.Background())
		}
	}
}

// TestSnapshotUnderLoad: rows are read while others change them, and the capture
// is killed again and again at some append; the log ends equal to the table.
func TestSnapshotUnderLoad(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			const seed = 1
			rng := rand.New(rand.NewPCG(seed, 99))
			r := newCaptureRig(t, testkit.PostgresVersion(t, major), itemsSQL)
			w := startWriters(t, r.dsn, seed, 3)
			for range 8 {
				r.crashAfter(1 + rng.IntN(25))
			}
			r.start()
			testkit.Eventually(t, 60*time.Second, "the snapshot ends", r.snapshotsDone)
			w.stop()
			r.settled()
			r.same("items")
		})
	}
}

// TestSnapshotResumes: a run that was killed goes on behind its last chunk.
func TestSnapshotResumes(t *testing.T) {
	r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
	r.crashAfter(12)
	at := r.newestRun("items")
	if at == nil || at.State != change.SnapshotProgress || at.Rows == 0 || at.Rows >= 2000 {
		t.Fatalf("the run was killed at %+v, not in its middle", at)
	}
	before := r.log.Stats().Frontier
	r.start()
	r.settled()
	r.same("items")
	if end := r.newestRun("items"); end.Run != 1 || end.State != change.SnapshotDone || end.Rows != 2000 {
		t.Errorf("the run ended as %+v", end)
	}
	read := 0
	rd, err := r.log.Read(readAfter(before))
	if err != nil {
		t.Fatal(err)
	}
	for {
		tx, err := rd.Next()
		if err != nil {
			t.Fatal(err)
		}
		if tx == nil {
			break
		}
		for _, rec := range tx.Records {
			if change.Op(rec.Op) == change.OpRead {
				read++
			}
		}
	}
	if int64(read) != 2000-at.Rows {
		t.Errorf("%d rows were read again after %d of 2000", read, at.Rows)
	}
}
