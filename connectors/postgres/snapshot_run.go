package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/snapshot"
)

// snapshotRunner is the goroutine behind Run: it waits for old transactions,
// compares storage and reads chunks, one thing at a time over one session.
type snapshotRunner struct {
	*snapshots
	reader  *chunkReader
	barrier uint64 // transaction id that all transactions in progress at Open are below; 0: passed
	waited  time.Time
	told    bool
}

const (
	barrierPoll = 50 * time.Millisecond
	barrierTell = 5 * time.Second // then people are told what is waited for
	retryFirst  = 20 * time.Millisecond
	retryMost   = 2 * time.Second
)

func (r *snapshotRunner) close() {
	if r.reader != nil {
		r.reader.session.close()
	}
}

func (r *snapshotRunner) run(ctx context.Context) error {
	o := r.start.options
	if r.start.server.standby {
		return r.standby()
	}
	s, err := r.start.connect(ctx)
	if err != nil {
		return err
	}
	r.reader = &chunkReader{server: r.start.server, session: s, source: o.Source, chunkRows: o.Snapshot.ChunkRows, current: r.start.current, last: map[uint32]*table{}}
	if err := r.setBarrier(ctx); err != nil {
		return err
	}
	poll := time.NewTicker(barrierPoll)
	defer poll.Stop()
	var discover <-chan time.Time
	if o.Discover > 0 {
		t := time.NewTicker(o.Discover)
		defer t.Stop()
		discover = t.C
	}
	ticks := poll.C
	if err := r.knowPartitions(ctx); err != nil {
		return err
	}
	signal(r.checks)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-r.reads:
			err = r.chunk(ctx, a)
		case <-ticks:
			if err = r.passBarrier(ctx); r.barrier == 0 {
				ticks = nil
			}
		case <-discover:
			err = r.check(ctx)
		case <-r.checks:
			err = r.check(ctx)
		case <-r.settle:
			err = r.look(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// standby: its snapshots do not tell what is running (V3).
func (r *snapshotRunner) standby() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = true
	for topic := range r.tables {
		if st := r.m.Table(topic); st.Running || st.Owed > 0 {
			return fmt.Errorf("%w: tables cannot be read from a standby yet (table %s): set the dsn of the primary", errStandby, topic)
		}
	}
	return nil
}

// setBarrier takes a transaction id: every transaction in progress now has a
// lower one. The list in a pg_snapshot would not do, it leaves out those whose
// id is above the last one that ended.
func (r *snapshotRunner) setBarrier(ctx context.Context) error {
	text, err := r.reader.session.text(ctx, "SELECT pg_catalog.pg_current_xact_id()")
	if err != nil {
		return fmt.Errorf("take a transaction id to wait for those in progress: %w", err)
	}
	if r.barrier, err = strconv.ParseUint(text, 10, 64); err != nil {
		return fmt.Errorf("read a transaction id: %w", err)
	}
	r.waited = time.Now()
	return r.passBarrier(ctx)
}

// passBarrier releases what waits once all those transactions have ended.
func (r *snapshotRunner) passBarrier(ctx context.Context) error {
	if r.barrier == 0 {
		return nil
	}
	v, err := r.visibility(ctx)
	if err != nil {
		return err
	}
	if v.xmin < r.barrier {
		r.mu.Lock()
		r.waits++
		r.mu.Unlock()
		if !r.told && time.Since(r.waited) > barrierTell {
			r.told = true
			r.start.logger.Info("snapshots wait for transactions that were open at the start to end", "source", r.start.options.Source, "oldest", v.xmin)
		}
		return nil
	}
	r.barrier = 0
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.Settle(v)
	r.m.Release()
	for topic := range r.tables {
		r.m.ReleaseTable(topic)
	}
	signal(r.ready)
	return nil
}

func (r *snapshotRunner) visibility(ctx context.Context) (*visibility, error) {
	text, err := r.reader.session.text(ctx, "SELECT pg_catalog.pg_current_snapshot()")
	if err != nil {
		return nil, fmt.Errorf("read which transactions are in progress: %w", err)
	}
	return parseVisibility(text)
}

// look forgets the transactions that are visible by now.
func (r *snapshotRunner) look(ctx context.Context) error {
	v, err := r.visibility(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.Settle(v)
	return nil
}

// chunk reads one chunk and delivers it.
func (r *snapshotRunner) chunk(ctx context.Context, a *snapshot.Action) error {
	if a.Attempt > 0 {
		if err := pause(ctx, min(retryFirst<<min(a.Attempt-1, 10), retryMost)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	t := r.tables[a.Topic]
	r.mu.Unlock()
	if t == nil {
		r.gone(a.Topic)
		return nil
	}
	start := time.Now()
	chunk, err := r.readChunk(ctx, t, a)
	switch {
	case errors.Is(err, errTableGone):
		r.gone(a.Topic)
		return nil
	case errors.Is(err, errAttached):
		return r.reopen(ctx, t)
	case errors.Is(err, errCondition):
		r.giveUp(a, err)
		return nil
	case err != nil:
		return fmt.Errorf("read a chunk of table %s: %w", t, err)
	}
	r.mu.Lock()
	r.m.Deliver(chunk)
	r.mu.Unlock()
	r.start.poke()
	signal(r.ready)
	if rate := r.start.options.Snapshot.Rate; rate > 0 && chunk.Rows != nil {
		due := time.Duration(len(chunk.Rows.Events)) * time.Second / time.Duration(rate)
		return pause(ctx, due-time.Since(start))
	}
	return nil
}

// readChunk reads it, by its present name if the table was renamed.
func (r *snapshotRunner) readChunk(ctx context.Context, t *table, a *snapshot.Action) (*snapshot.Chunk, error) {
	chunk, err := r.reader.read(ctx, t, a)
	if errors.Is(err, errShape) { // altered since the chunk's types were looked up
		chunk, err = r.reader.read(ctx, t, a)
	}
	if !errors.Is(err, errTableGone) {
		return chunk, err
	}
	now, err := r.start.current(ctx, r.reader.session, t.oid)
	if err != nil {
		return nil, err
	}
	if now == nil || now.topic() != t.topic() {
		return nil, errTableGone
	}
	return r.reader.read(ctx, now, a)
}

// knowPartitions notes which storage there was when the replication connection
// was made. Before PostgreSQL 15 that connection may go on to leave out the
// changes of a table that becomes a partition later: pgoutput looks up once
// how a relation is published.
func (r *snapshotRunner) knowPartitions(ctx context.Context) error {
	if r.start.server.version >= 150000 {
		return nil
	}
	var oids []uint32
	r.mu.Lock()
	for _, t := range r.tables {
		oids = append(oids, t.oid)
	}
	r.mu.Unlock()
	all, err := readStorage(ctx, r.reader.session, r.start.server, oids)
	if err != nil {
		return err
	}
	r.reader.partitions = map[uint32]bool{}
	for _, list := range all {
		for _, s := range list {
			r.reader.partitions[s.oid] = true
		}
	}
	return nil
}

// reopen ends the source, to be opened again, once the log has all that
// committed before: the next connection then sees the new partition alone.
func (r *snapshotRunner) reopen(ctx context.Context, t *table) error {
	insert, _, err := r.start.server.insertLSN(ctx, r.reader.session)
	if err != nil {
		return err
	}
	for {
		pos, _ := r.start.history.Last()
		if at, err := parsePosition(pos); err == nil && at.end >= insert {
			return fmt.Errorf("%w: table %s has a new partition", connectors.ErrReopen, t)
		}
		if err := pause(ctx, barrierPoll); err != nil {
			return err
		}
	}
}

// check compares the storage and the types of the tables that no run is reading
// with what they were: a rewrite, partitions that came or went, labels that were
// renamed (V4, and changes without row events).
func (r *snapshotRunner) check(ctx context.Context) error {
	r.mu.Lock()
	var oids []uint32
	tables := map[uint32]*table{}
	for _, t := range r.tables {
		oids = append(oids, t.oid)
		tables[t.oid] = t
	}
	r.mu.Unlock()
	all, err := readStorage(ctx, r.reader.session, r.start.server, oids)
	if err != nil {
		return err
	}
	for oid, now := range all {
		if r.reader.attached(now) {
			return r.reopen(ctx, tables[oid])
		}
	}
	shapes, err := readShapes(ctx, r.reader.session, r.start.server, oids)
	if err != nil {
		return err
	}
	insert, _, err := r.start.server.insertLSN(ctx, r.reader.session)
	if err != nil {
		return err
	}
	v, err := r.visibility(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.Settle(v)
	r.shapes, r.looked = shapes, true
	for oid, t := range tables {
		if now := all[oid]; len(now) > 0 || t.partitioned {
			if err := r.compare(t, now, insert); err != nil {
				return err
			}
		}
	}
	r.start.poke()
	signal(r.ready)
	return nil
}

// compare deals with one table; the caller holds mu.
func (r *snapshotRunner) compare(t *table, now []storage, insert LSN) error {
	st := r.m.Table(t.topic())
	if st.Running || st.Run == 0 || st.Cursor == nil || r.m.Checking(t.topic()) {
		return nil
	}
	cursor, err := decodeChunkCursor(st.Cursor)
	if err != nil {
		return fmt.Errorf("run %d of table %s: %w", st.Run, t, err)
	}
	movedBy, added := cursor.compare(now)
	switch {
	case len(movedBy) > 0:
		r.start.logger.Info("the table's storage is another than before", "source", r.start.options.Source, "table", t.String())
		r.m.Check(t.topic(), snapshot.Place(insert), cursor.moved(movedBy, now))
	case len(added) > 0:
		cursor.mode = planAdded
		r.begin(snapshot.Start{Topic: t.topic(), Floor: true, NoSweep: true, Total: totalRows(added), Cursor: cursor.encode()})
	default:
		return r.compareShape(t, cursor, now, insert)
	}
	return nil
}
