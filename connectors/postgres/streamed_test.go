package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/testkit"
)

// newStreamRig is a captureRig whose transactions come while they are in progress once they have 64 kB.
func newStreamRig(t *testing.T, dsn string, ddl ...string) *captureRig {
	t.Helper()
	r := newCaptureRig(t, dsn, ddl...)
	r.opts.DecodingMemory, r.opts.StatsInterval = 64<<10, 50*time.Millisecond
	r.con = New(r.opts)
	return r
}

// Stream begins a transaction whose steps fail as appends do.
func (l *failingLog) Stream(ctx context.Context) (eventlog.Stream, error) {
	s, err := l.MemLog.Stream(ctx)
	return &failingStream{s, l}, err
}

type failingStream struct {
	eventlog.Stream
	l *failingLog
}

func (s *failingStream) step() error {
	if s.l.left.Add(-1) == 0 {
		return errCrash
	}
	return nil
}

func (s *failingStream) Add(sub uint32, records []eventlog.Record) error {
	s.l.streamed.Add(1)
	if err := s.step(); err != nil {
		return err
	}
	return s.Stream.Add(sub, records)
}

func (s *failingStream) Commit(ctx context.Context, tx *eventlog.Tx) error {
	if err := s.step(); err != nil {
		return err
	}
	s.l.adopted.Add(1)
	return s.Stream.Commit(ctx, tx)
}

// writeLarge makes large transactions of which parts are rolled back, or all; a
// few of them change the table's layout.
func writeLarge(c *pgx.Conn, rng *rand.Rand, ddl *atomic.Int64) {
	for i := range 60 {
		tx, err := c.Begin(context.Background())
		if err != nil {
			return
		}
		if i == 45 {
			n := ddl.Add(1)
			_, err = tx.Exec(context.Background(), fmt.Sprintf("ALTER TABLE items ADD c%d text DEFAULT 'd%d'", n, n))
		}
		for i := 0; err == nil && i < 1+rng.IntN(4); i++ {
			var part pgx.Tx
			if part, err = tx.Begin(context.Background()); err != nil {
				break
			}
			if failed := writePart(part, rng); failed != nil || rng.IntN(3) == 0 {
				err = part.Rollback(context.Background())
			} else {
				err = part.Commit(context.Background())
			}
		}
		if err != nil || rng.IntN(6) == 0 {
			_ = tx.Rollback(context.Background())
		} else {
			_ = tx.Commit(context.Background())
		}
	}
}

// writePart changes many rows.
func writePart(tx pgx.Tx, rng *rand.Rand) (err error) {
	from, salt := rng.IntN(3000), rng.Int32()
	exec := func(sql string, args ...any) { _, err = tx.Exec(context.Background(), sql, args...) }
	switch rng.IntN(20) {
	case 0, 1, 2, 3:
		exec("INSERT INTO items SELECT g, $3, 'large', repeat(md5((g + $3)::text), 100) FROM generate_series($1::int, $2::int) g ON CONFLICT DO NOTHING", from, from+150, salt)
	case 4, 5:
		exec("DELETE FROM items WHERE id BETWEEN $1 AND $2", from, from+100)
	case 6, 7, 8:
		exec("UPDATE items SET id = id + 5000 - 10000 * (id / 5000) WHERE id % 5000 BETWEEN $1 AND $2", from, from+100)
	case 9, 10, 11, 12:
		exec("UPDATE items SET body = repeat(md5((id + $3)::text), 90) WHERE id BETWEEN $1 AND $2", from, from+100, salt)
	case 13:
		exec("TRUNCATE items")
		if err == nil {
			exec("INSERT INTO items SELECT g, $1, 'anew', repeat(md5((g + $1)::text), 100) FROM generate_series(1, 1500) g", salt)
		}
	default:
		exec("UPDATE items SET n = $3 WHERE id BETWEEN $1 AND $2", from, from+600, salt)
	}
	return err
}

// TestStreamedUnderLoad: tables are read while transactions come in progress,
// whole and in parts, rolled back and not, with changes of the table's layout among
// them, and the capture is killed at one step of the log after the other.
func TestStreamedUnderLoad(t *testing.T) {
	messageVersions(t, func(t *testing.T, dsn string) {
		rng := rand.New(rand.NewPCG(2, 99))
		r := newStreamRig(t, dsn, itemsSQL)
		w := startWriters(t, dsn, 2, 1)
		var large sync.WaitGroup
		var ddl atomic.Int64
		for i := range uint64(2) {
			c := testkit.Connect(t, dsn)
			large.Go(func() { writeLarge(c, rand.New(rand.NewPCG(3, i)), &ddl) })
		}
		t.Cleanup(large.Wait)
		for range 12 {
			r.crashAfter(1 + rng.IntN(40))
		}
		r.start()
		large.Wait()
		w.stop()
		r.settled()
		r.same("items")
		r.once()
		r.streamedTx("UPDATE items SET n = n + 1", "UPDATE items SET body = repeat(md5(body), 80) WHERE id % 2 = 0")
		r.same("items")
		t.Logf("%d additions to streams, %d adopted, %d layouts", r.log.streamed.Load(), r.log.adopted.Load(), ddl.Load())
	})
}

// once reads the whole log: transactions come once, in the order of their commits.
func (r *captureRig) once() {
	r.t.Helper()
	rd, err := r.log.Read(eventlog.ReadSpec{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	seen, last := map[string]bool{}, LSN(0)
	for {
		tx, err := rd.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if tx == nil {
			return
		}
		if tx.Kind != eventlog.TxSource {
			continue
		}
		pos, err := change.DecodePosition(tx.Position)
		if err != nil {
			r.t.Fatal(err)
		}
		at, err := parsePosition(pos)
		if err != nil || at.commit < last || tx.ID != "" && seen[tx.ID] {
			r.t.Errorf("transaction %s at %s behind %s, seen=%v: %v", tx.ID, pos, last, seen[tx.ID], err)
		}
		seen[tx.ID], last = true, at.end
	}
}

// streamedTx runs one transaction that comes in progress, and returns what is in the log of it.
func (r *captureRig) streamedTx(sql ...string) []string {
	r.t.Helper()
	before := r.log.adopted.Load()
	testkit.Eventually(r.t, 30*time.Second, "transactions come in progress", func() error {
		if r.src.(*source).whole != "" {
			r.reopened()
			return fmt.Errorf("not yet")
		}
		return nil
	})
	lines := r.sentTx(sql...)
	if r.log.adopted.Load() == before {
		r.t.Errorf("no transaction in progress was adopted: %s", sql)
	}
	return lines
}

// sentTx runs one transaction and returns what is in the log of it.
func (r *captureRig) sentTx(sql ...string) []string {
	r.t.Helper()
	frontier := r.log.Stats().Frontier
	r.exec("BEGIN; " + strings.Join(sql, "; ") + "; COMMIT")
	r.settled()
	rd, err := r.log.Read(readAfter(frontier))
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	var lines []string
	for {
		tx, err := rd.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if tx == nil {
			return lines
		}
		seq := int64(-1)
		for i := range tx.Records {
			rec := &tx.Records[i]
			if int64(rec.Seq) < seq || tx.Kind == eventlog.TxSource && rec.CSN != tx.CSN {
				r.t.Errorf("record %+v behind seq %d", rec, seq)
			}
			seq = int64(rec.Seq)
			if tx.Kind == eventlog.TxSource {
				lines = append(lines, change.Op(rec.Op).String())
			}
		}
	}
}

// TestStreamedMessages: messages and signals inside a transaction in progress come
// with it, but for those of parts that were rolled back.
func TestStreamedMessages(t *testing.T) {
	r := newStreamRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	const fill = "INSERT INTO items SELECT g, 1, 'x', repeat(md5(g::text), 100) FROM generate_series(%d, %d) g"
	emit := func(prefix, content string) string {
		return fmt.Sprintf("SELECT pg_logical_emit_message(true, '%s', '%s')", prefix, content)
	}
	const ask = `{"snapshot":"public.items"}`
	lines := r.streamedTx(emit("m", "first"), fmt.Sprintf(fill, 11501, 11600), "SAVEPOINT a", fmt.Sprintf(fill, 11601, 11650), "RELEASE a", emit("m", "last"))
	if n := strings.Count(strings.Join(lines, " "), "message"); n != 2 || lines[0] != "message" || len(lines) != 152 {
		t.Errorf("%d records, %d of them messages: %v", len(lines), n, lines[:3])
	}
	// Messages of a part that was rolled back are not told from others in progress.
	lines = r.sentTx(emit("m", "first"), fmt.Sprintf(fill, 10001, 10100), "SAVEPOINT a", emit("m", "lost"), emit("tailwater", ask), fmt.Sprintf(fill, 10101, 10200),
		"ROLLBACK TO a", fmt.Sprintf(fill, 10201, 10300), emit("m", "last"))
	if n := strings.Count(strings.Join(lines, " "), "message"); n != 2 || lines[0] != "message" || len(lines) != 202 {
		t.Errorf("%d records, %d of them messages: %v", len(lines), n, lines[:3])
	}
	if m := r.newestRun("items"); m.Run != 1 {
		t.Errorf("a signal that was rolled back began %+v", m)
	}
	r.streamedTx(fmt.Sprintf(fill, 11001, 11200), emit("tailwater", ask), fmt.Sprintf(fill, 11201, 11300))
	r.ran("items", 2)
	r.same("items")
	before := r.src.Stats().Rows["insert"]
	r.streamedTx(fmt.Sprintf(fill, 12001, 12100), "SAVEPOINT a", fmt.Sprintf(fill, 12101, 12200), "ROLLBACK TO a", fmt.Sprintf(fill, 12301, 12330))
	if n := r.src.Stats().Rows["insert"] - before; n != 130 {
		t.Errorf("%d inserts are counted", n)
	}
	r.same("items")
}

// TestStreamedLayouts: what a transaction in progress makes of its table is known
// only at its commit; the stream is opened again and brings it then.
func TestStreamedLayouts(t *testing.T) {
	const fill = "INSERT INTO items SELECT g, 1, 'x', repeat(md5(g::text), 100) FROM generate_series(5001, 5300) g"
	for name, sql := range map[string]string{
		"added":              "ALTER TABLE items ADD extra int DEFAULT 7; " + fill,
		"added behind":       fill + "; ALTER TABLE items ADD extra int DEFAULT 7; UPDATE items SET extra = 8 WHERE id % 3 = 0",
		"dropped":            "ALTER TABLE items DROP name; INSERT INTO items SELECT g, 1, repeat(md5(g::text), 100) FROM generate_series(5001, 5300) g",
		"another of a name":  "ALTER TABLE items DROP name, DROP body; ALTER TABLE items ADD name text, ADD body text; " + fill,
		"retyped":            "ALTER TABLE items ALTER n TYPE bigint; " + fill,
		"another key":        "ALTER TABLE items DROP CONSTRAINT items_pkey; ALTER TABLE items ADD PRIMARY KEY (id, n); " + fill,
		"renamed column":     "ALTER TABLE items RENAME n TO m; " + fill,
		"in a lost part":     "SAVEPOINT a; ALTER TABLE items ADD extra int DEFAULT 7; " + fill + "; ROLLBACK TO a; " + fill,
		"of another meaning": "ALTER TABLE items DROP n; ALTER TABLE items ADD n int DEFAULT 5; UPDATE items SET name = 'y' WHERE id < 1500",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStreamRig(t, testkit.Postgres(t), itemsSQL)
			r.start()
			r.ran("items", 1)
			r.exec("UPDATE items SET n = 0 WHERE id = 1")
			r.settled()
			r.exec("BEGIN; " + sql + "; COMMIT")
			r.settled()
			r.same("items")
			r.exec("UPDATE items SET body = 'after' WHERE id < 10", "DELETE FROM items WHERE id = 11")
			r.settled()
			r.same("items")
			r.once()
		})
	}
}

// TestStreamedDescribed: what a transaction in progress described counts for
// others once it has committed, and not if it was rolled back.
func TestStreamedDescribed(t *testing.T) {
	r := newStreamRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	r.stop()
	r.start() // nothing is described to this connection
	const fill = "INSERT INTO items SELECT g, 1, 'x', repeat(md5(g::text), 100) FROM generate_series(5001, 5300) g"
	r.exec("BEGIN; "+fill+"; ROLLBACK", "UPDATE items SET n = 1 WHERE id = 1")
	r.settled()
	r.stop()
	r.start()
	r.streamedTx(fill)
	r.exec("UPDATE items SET n = 2 WHERE id = 2")
	r.settled()
	r.same("items")
	r.once()
}

// TestV5StreamedBeforeCollection: blocks of a transaction come, then a chunk is
// read, then the transaction commits and comes to the log before the chunk does.
func TestV5StreamedBeforeCollection(t *testing.T) {
	r := newStreamRig(t, testkit.Postgres(t), itemsSQL)
	r.start()
	r.ran("items", 1)
	tx := openTx(t, r.dsn, "UPDATE items SET name = 'old blocks', body = repeat(md5(id::text), 95)", "DELETE FROM items WHERE id % 10 = 0")
	testkit.Eventually(t, 30*time.Second, "blocks came", func() error {
		if r.log.streamed.Load() == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	if err := r.src.(interface {
		Snapshot(topic, where string) error
	}).Snapshot(change.TableTopic(r.opts.Source, "public", "items"), ""); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, "chunks are read", func() error {
		if m := r.newestRun("items"); m.Run != 2 || m.Rows < 300 {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.ran("items", 2)
	r.same("items")
	if r.log.adopted.Load() == 0 {
		t.Error("no transaction in progress was adopted")
	}
}

// TestStreamedHangingLayout: a transaction that changed its table has written its
// commit and waits for a standby, so that the catalogue does not show it: its locks do.
func TestStreamedHangingLayout(t *testing.T) {
	primary, standby := syncPair(t)
	r := newStreamRig(t, primary.URL, itemsSQL)
	r.start()
	r.ran("items", 1)
	r.exec("UPDATE items SET n = 0 WHERE id = 1")
	r.settled()
	standby.Pause()
	committed := hang(t, primary.URL, "BEGIN; UPDATE items SET name = 'y', body = repeat(md5(id::text), 95); ALTER TABLE items DROP n; ALTER TABLE items ADD n int; COMMIT")
	testkit.Eventually(t, 30*time.Second, "transactions come at their commit alone", func() error {
		r.reopened()
		if r.src.(*source).whole == "" {
			return fmt.Errorf("they come in progress")
		}
		return nil
	})
	if n := r.log.adopted.Load(); n != 0 || r.log.streamed.Load() == 0 {
		t.Errorf("%d transactions were adopted, %d blocks came", n, r.log.streamed.Load())
	}
	standby.Resume()
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
}
