package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/snapshot"
)

// Limits of one chunk beside its rows; each is looked at between two fetches.
const (
	chunkBytes = 8 << 20
	chunkTime  = 2 * time.Second
	chunkPages = 32768 // pages scanned at most: 256 MiB
	firstFetch = 64    // rows; later as many as the bytes seen so far allow
	mostFetch  = 2000
)

// chunkReader reads chunks over one session. One goroutine.
type chunkReader struct {
	server    *server
	session   *session
	source    string
	chunkRows int
	current   func(ctx context.Context, s *session, oid uint32) (*table, error)
	last      map[uint32]*table // by oid, so that an equal layout is the same one
	// partitions are the storages that the replication connection knows; nil: it learns of new ones.
	partitions map[uint32]bool
}

// attached reports whether the replication connection does not know one of the storages.
func (r *chunkReader) attached(now []storage) bool {
	return r.partitions != nil && slices.ContainsFunc(now, func(s storage) bool { return !r.partitions[s.oid] })
}

// errTableGone says that the table does not exist any more, or not under its name.
var errTableGone = errors.New("the table is gone")

// errAttached says that the table has a partition that the stream may leave out.
var errAttached = errors.New("a partition was attached")

// errCondition says that the server cannot evaluate the condition of an ad-hoc run.
var errCondition = errors.New("the condition cannot be evaluated")

// conditionError marks an error that the condition of an ad-hoc run made: its
// syntax, a name it uses, a value it cannot take. Trying again would not help.
func (c *chunkRead) conditionError(err error) error {
	code := sqlState(err)
	if c.action.Where == "" || c.action.Keys != nil || len(code) != 5 {
		return err
	}
	switch code[:2] {
	case "0A", "42": // names and syntax
		return fmt.Errorf("%w: %w", errCondition, err)
	case "21", "22", "2F", "38", "39": // the server's words may quote a row's value
		return fmt.Errorf("%w for some row: the server answers SQLSTATE %s", errCondition, code)
	}
	return err
}

// chunkRead is one chunk as it is being read.
type chunkRead struct {
	r      *chunkReader
	action *snapshot.Action
	table  *table
	view   *visibility
	now    []storage
	cursor *chunkCursor
	batch  *change.Batch
	chunk  *snapshot.Chunk
	// unflushed: the server's log was not flushed up to the chunk's end.
	unflushed bool
}

// read reads the chunk of an action in a transaction of its own.
func (r *chunkReader) read(ctx context.Context, t *table, a *snapshot.Action) (*snapshot.Chunk, error) {
	c := &chunkRead{r: r, action: a, table: t}
	chunk, err := c.inTransaction(ctx)
	if err == nil {
		err = r.session.exec(ctx, "COMMIT")
		if err == nil && c.unflushed {
			// If that fails, the server's own rhythm brings the stream past it.
			if nudged := r.server.nudge(ctx, r.session); nudged != nil && r.session.conn.IsClosed() {
				err = nudged
			}
		}
		return chunk, err
	}
	if !r.session.conn.IsClosed() {
		if rollback := r.session.exec(ctx, "ROLLBACK"); rollback != nil {
			r.session.close()
		}
	}
	if code := sqlState(err); !errors.Is(err, errCondition) && (code == "42P01" || code == "3F000") { // undefined table, schema
		err = errTableGone
	}
	return nil, err
}

// inTransaction locks the table, then takes the snapshot, then looks at the
// storage: in another order a rewrite between them leaves rows out (V4).
func (c *chunkRead) inTransaction(ctx context.Context) (*snapshot.Chunk, error) {
	s := c.r.session
	lock := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE " + c.from() + " IN ACCESS SHARE MODE"
	if err := s.exec(ctx, lock); err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, `SELECT pg_catalog.pg_current_snapshot(), (EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::pg_catalog.int8,
		pg_catalog.to_regclass($1)::pg_catalog.oid`, c.table.sql())
	if err != nil {
		return nil, err
	}
	if toOID(rows[0][2]) != c.table.oid {
		return nil, errTableGone
	}
	if c.view, err = parseVisibility(string(rows[0][0])); err != nil {
		return nil, err
	}
	c.chunk = &snapshot.Chunk{View: c.view}
	if slices.ContainsFunc(c.action.Before, func(tx string) bool { return !c.view.Contains(tx) }) {
		return c.chunk, nil
	}
	all, err := readStorage(ctx, s, c.r.server, []uint32{c.table.oid})
	if err != nil {
		return nil, err
	}
	if c.now = all[c.table.oid]; c.r.attached(c.now) {
		return nil, errAttached
	}
	if c.table, err = c.r.layout(ctx, c.table.oid); err != nil {
		return nil, err
	}
	c.batch = &change.Batch{Source: c.r.source, Kind: change.Chunk, CommitTime: toInt(rows[0][1])}
	c.chunk.Rows, c.chunk.Schema = c.batch, c.table.layout
	if err := c.rows(ctx); err != nil {
		return nil, err
	}
	c.chunk.Bytes = int64(c.batch.Size())
	after, flushed, err := c.r.server.insertLSN(ctx, s)
	c.chunk.After, c.unflushed = snapshot.Place(after), after > flushed
	return c.chunk, err
}

// layout returns the table as the chunk's snapshot has it.
func (r *chunkReader) layout(ctx context.Context, oid uint32) (*table, error) {
	t, err := r.current(ctx, r.session, oid)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, errTableGone
	}
	if last := r.last[oid]; last != nil && last.topic() == t.topic() && string(last.layout.AppendLayout(nil)) == string(t.layout.AppendLayout(nil)) {
		t.layout = last.layout
	}
	r.last[oid] = t
	return t, nil
}

// from returns the table for FROM and LOCK: the partitions of a partitioned
// one with it, and not the tables that inherit from another.
func (c *chunkRead) from() string {
	if c.table.partitioned {
		return c.table.sql()
	}
	return "ONLY " + c.table.sql()
}

// rows reads what the action asks for.
func (c *chunkRead) rows(ctx context.Context) error {
	if c.action.Keys != nil {
		return c.byKeys(ctx)
	}
	var err error
	if c.cursor, err = decodeChunkCursor(c.action.Cursor); err != nil {
		return err
	}
	movedBy, added := c.cursor.compare(c.now)
	if len(added) > 0 && c.cursor.mode == byKeyOrder {
		movedBy = append(movedBy, "") // its keys may lie behind us
	}
	if len(movedBy) > 0 {
		moved := c.cursor.moved(movedBy, c.now)
		c.chunk.Moved = &moved
		return nil
	}
	if !c.cursor.planned() {
		keyOrder, err := c.keyOrder()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(added, func(s storage) bool { return !s.readable }) {
			c.cursor.mode = planAll // it cannot be read by itself
		}
		c.cursor = c.cursor.plan(c.now, keyOrder)
		c.chunk.Cursor, c.chunk.Total, c.chunk.Last = c.cursor.encode(), totalRows(c.now), c.cursor.next() == nil
		return nil // the stream passes the plan before the first chunk is read
	}
	for _, s := range added {
		c.cursor.storage = append(c.cursor.storage, storage{oid: s.oid, filenode: s.filenode})
	}
	if c.cursor.mode == byKeyOrder {
		err = c.inKeyOrder(ctx)
	} else {
		err = c.inPlaceOrder(ctx)
	}
	c.chunk.Cursor, c.chunk.Total, c.chunk.Last = c.cursor.encode(), totalRows(c.now), c.cursor.next() == nil
	return err
}

// keyOrder tells whether the table is to be read in the order of its key.
func (c *chunkRead) keyOrder() (bool, error) {
	closed := slices.IndexFunc(c.now, func(s storage) bool { return !s.readable })
	switch {
	case c.table.plainKey():
		return c.r.server.version < 140000 || closed >= 0, nil
	case closed >= 0:
		return false, fmt.Errorf("%w: the role may not read partition %s: GRANT SELECT ON %s TO it", connectors.ErrPrerequisite, c.now[closed].name, c.now[closed].name)
	}
	return false, nil
}

func (c *chunkRead) where() string {
	if c.action.Where == "" {
		return ""
	}
	return " AND (" + c.action.Where + "\n)"
}

// inPlaceOrder reads on behind the last row of a storage.
func (c *chunkRead) inPlaceOrder(ctx context.Context) error {
	st := c.cursor.next()
	if st == nil {
		return nil
	}
	i := slices.IndexFunc(c.now, func(s storage) bool { return s.oid == st.oid })
	end := uint64(st.page) + chunkPages
	bound, whole := fmt.Sprintf(" AND ctid < '(%d,0)'", min(end, 1<<32-1)), false
	pages, err := c.r.session.text(ctx, "SELECT pg_catalog.pg_relation_size($1::pg_catalog.oid) / pg_catalog.current_setting('block_size')::pg_catalog.int8", fmt.Sprint(st.oid))
	if err != nil {
		return err
	}
	if uint64(toInt([]byte(pages))) <= end {
		bound, whole = "", true
	}
	sql := fmt.Sprintf("SELECT %s, ctid FROM ONLY %s WHERE ctid > '(%d,%d)'%s%s", c.table.selectList(), c.now[i].name, st.page, st.item, bound, c.where())
	stopped, err := c.fetch(ctx, sql, func(extra []byte) error {
		st.started = true
		_, err := fmt.Sscanf(string(extra), "(%d,%d)", &st.page, &st.item)
		return err
	})
	switch {
	case err != nil || stopped:
	case whole:
		st.done = true
	default:
		st.started, st.page, st.item = true, uint32(min(end, 1<<32-2)), 0
	}
	return err
}

// inKeyOrder reads on behind the last key.
func (c *chunkRead) inKeyOrder(ctx context.Context) error {
	var names, after []string
	for i, k := range c.table.layout.Key {
		names = append(names, quoteName(c.table.layout.Columns[k].Name))
		if c.cursor.key != nil {
			if i == len(c.cursor.key) {
				return fmt.Errorf("%w: the key of table %s changed", errChunkCursor, c.table)
			}
			after = append(after, quoteText(c.cursor.key[i]))
		}
	}
	sql := fmt.Sprintf("SELECT %s, NULL FROM %s WHERE true", c.table.selectList(), c.from())
	if c.cursor.key != nil {
		sql += fmt.Sprintf(" AND (%s) > (%s)", strings.Join(names, ", "), strings.Join(after, ", "))
	}
	sql += c.where() + " ORDER BY " + strings.Join(names, ", ")
	stopped, err := c.fetch(ctx, sql, nil)
	if err == nil && !stopped {
		for i := range c.cursor.storage {
			c.cursor.storage[i].done = true
		}
	}
	return err
}

// fetch runs a query through a cursor until it has a chunk's worth of rows;
// stopped tells that there may be more. place is called with the field behind the columns.
func (c *chunkRead) fetch(ctx context.Context, sql string, place func(extra []byte) error) (stopped bool, err error) {
	s := c.r.session
	// By the extended protocol, which takes one statement: a condition cannot bring another.
	if _, err := s.query(ctx, "DECLARE tailwater NO SCROLL CURSOR FOR "+sql); err != nil {
		return false, c.conditionError(err)
	}
	start, n := time.Now(), min(firstFetch, c.r.chunkRows)
	for {
		got, err := c.fetchSome(ctx, n, place)
		if err != nil || got < n {
			return false, c.conditionError(err)
		}
		rows, size := len(c.batch.Events), c.batch.Size()
		if rows >= c.r.chunkRows || size >= chunkBytes || time.Since(start) > chunkTime {
			return true, nil
		}
		room := (chunkBytes - size) / (size/rows + 1)
		n = max(1, min(room, mostFetch, c.r.chunkRows-rows))
	}
}

func (c *chunkRead) fetchSome(ctx context.Context, n int, place func(extra []byte) error) (got int, err error) {
	columns := len(c.table.columns)
	var last []byte
	err = c.r.session.each(ctx, fmt.Sprintf("FETCH %d FROM tailwater", n), nil, func(fields [][]byte) error {
		got++
		last = append(last[:0], fields[columns]...)
		if c.cursor.mode == byKeyOrder {
			c.cursor.key = c.cursor.key[:0]
			for _, k := range c.table.layout.Key {
				c.cursor.key = append(c.cursor.key, string(fields[k]))
			}
		}
		return c.table.appendRead(c.batch, fields[:columns])
	})
	if err == nil && got > 0 && place != nil {
		err = place(last)
	}
	return got, err
}

// byKeys reads the rows of single keys.
func (c *chunkRead) byKeys(ctx context.Context) error {
	condition, args, ok := c.table.keyCondition(c.action.Keys)
	if !ok {
		condition = "true"
	}
	wanted := map[string]bool{}
	for _, k := range c.action.Keys {
		wanted[string(k)] = true
	}
	var key []byte
	return c.r.session.each(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s", c.table.selectList(), c.from(), condition), args, func(fields [][]byte) error {
		var err error
		if key, err = c.table.appendKeyText(key[:0], fields); err != nil || !wanted[string(key)] {
			return err
		}
		return c.table.appendRead(c.batch, fields)
	})
}
