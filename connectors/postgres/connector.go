package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/snapshot"
)

// Connector implements connectors.Connector for one database.
type Connector struct {
	opts Options
	// coordinate makes the coordinator of a source; newCoordinator but in tests.
	coordinate func(coordinatorStart) (coordinator, error)
	asked      chan struct{} // capacity 1: End wants the open source to tell its position

	mu   sync.Mutex // guards what follows
	end  LSN        // the greatest that End returned
	open *source
	// reopening: the set of tables changed and no source is open yet that has the new one.
	reopening bool
	warned    map[string]bool // warnings that were logged
	signals   []connectors.Signal
	whole     string // see takeWhole
}

// New returns a connector; it does no I/O.
func New(o Options) *Connector {
	return &Connector{opts: o.withDefaults(), coordinate: newCoordinator, asked: make(chan struct{}, 1)}
}

// Describe implements connectors.Connector.
func (c *Connector) Describe(ctx context.Context) (*connectors.Description, error) {
	s, err := connect(ctx, &c.opts, false)
	if err != nil {
		return nil, err
	}
	defer s.close()
	v, err := surveyDatabase(ctx, &c.opts, s, &survey{describe: true})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.opts.Source, err)
	}
	tables, err := newCatalog(&c.opts, nil).load(ctx, s, v.tables)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", c.opts.Source, err)
	}
	v.warnTypes(tables)
	v.warnFolded(ctx, s, tables)
	if err := v.checkReplication(ctx, &c.opts); err != nil {
		return nil, err
	}
	d := &connectors.Description{Server: v.server.String(), Rows: map[string]int64{}, Problems: v.problems}
	for _, t := range tables {
		d.Tables = append(d.Tables, t.layout)
		d.Rows[t.topic()] = t.rows
	}
	return d, nil
}

// warnTypes warns of types that are kept as text, once a type, and of geometries that lose a part.
func (v *survey) warnTypes(tables []*table) {
	seen := map[uint32]bool{}
	for _, t := range tables {
		for i := range t.columns {
			if c := &t.layout.Columns[i]; measured(c.SourceType) {
				v.warn(t.String(), "", "column %s is %s: GeoJSON has no place for M, which is left out", c.Name, c.SourceType)
			}
			for _, u := range t.columns[i].typ.unknowns() {
				if !seen[u.oid] {
					seen[u.oid] = true
					v.warn(t.String(), "", "type %s of column %s is not known and is captured as text", u.name, t.layout.Columns[i].Name)
				}
			}
		}
	}
}

// checkReplication tries the kind of connection that the stream needs.
func (v *survey) checkReplication(ctx context.Context, o *Options) error {
	for _, p := range v.problems {
		if !p.Warning && p.Table == "" {
			return nil // it would fail for what is said already
		}
	}
	s, err := connect(ctx, o, true)
	if err != nil {
		v.problem("", "", "a replication connection: %v", err)
		return nil
	}
	s.close()
	return nil
}

// Open implements connectors.Connector.
func (c *Connector) Open(ctx context.Context, h connectors.History) (connectors.Source, error) {
	o := &c.opts
	schemas, err := h.Schemas()
	if err != nil {
		return nil, fmt.Errorf("source %s: read the log's schemas: %w", o.Source, err)
	}
	sql, err := connect(ctx, o, false)
	if err != nil {
		return nil, err
	}
	v := &survey{}
	if _, known := h.Last(); known {
		v.fresh = func(r *relation) bool { return schemas[change.TableTopic(o.Source, r.schema, r.name)] == nil }
	}
	v, err = surveyDatabase(ctx, o, sql, v)
	if err == nil {
		err = v.err(o.Source)
	} else {
		err = fmt.Errorf("source %s: %w", o.Source, err)
	}
	if err != nil {
		sql.close()
		return nil, err
	}
	c.warn(v.problems)
	s, err := c.start(ctx, h, schemas, v, sql)
	if err != nil {
		sql.close()
		return nil, err
	}
	return s, nil
}

// warn logs each warning once.
func (c *Connector) warn(problems []connectors.Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range problems {
		if id := p.Table + "\x00" + p.Message; !c.warned[id] {
			if c.warned == nil {
				c.warned = map[string]bool{}
			}
			c.warned[id] = true
			c.opts.Logger.Warn(p.Message, "source", c.opts.Source, "table", p.Table)
		}
	}
}

// start makes what is missing in the database and opens the stream; it takes sql over.
func (c *Connector) start(ctx context.Context, h connectors.History, schemas map[string]*change.Schema, v *survey, sql *session) (*source, error) {
	o := &c.opts
	added := map[uint32]bool{}
	for _, r := range v.publication.lacking(v.tables) {
		added[r.oid] = true
	}
	if err := ensurePublication(ctx, o, sql, v, v.fresh != nil); err != nil {
		return nil, fmt.Errorf("source %s: %w", o.Source, err)
	}
	p := &opener{o: o, history: h, server: v.server, sql: sql, db: v.database}
	var err error
	if p.repl, err = connect(ctx, o, true); err != nil {
		return nil, err
	}
	defer func() { p.repl.close() }()
	if p.flushed, err = v.server.identify(ctx, p.repl); err != nil {
		return nil, fmt.Errorf("source %s: %w", o.Source, err)
	}
	at, made, err := p.ensureSlot(ctx)
	if err != nil {
		return nil, err
	}
	catalog := newCatalog(o, schemas)
	tables, err := catalog.load(ctx, sql, v.tables)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", o.Source, err)
	}
	values := &survey{}
	values.warnTypes(tables)
	values.warnFolded(ctx, sql, tables)
	c.warn(values.problems)
	var oids []uint32
	for _, t := range tables {
		oids = append(oids, t.oid)
	}
	published, err := readPublished(ctx, sql, v.server, o.Publication, oids) // before the stream: the watcher sees what is altered later
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", o.Source, err)
	}
	shapes, err := readShapes(ctx, sql, v.server, oids)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", o.Source, err)
	}
	whole := c.takeWhole()
	w, err := p.startStream(ctx, at.end, whole == "" && v.server.version >= 140000)
	if err != nil {
		return nil, err
	}
	s := &source{o: o, connector: c, history: h, server: v.server, catalog: catalog, wire: w, queue: newQueue(o.QueueBytes),
		meta: &sharedSession{o: o, s: sql}, watch: &sharedSession{o: o}, known: map[uint32]string{}, published: published, shapes: shapes, user: v.user,
		running: map[string]*snapshot.Streamed{}, whole: whole, wake: make(chan struct{}, 1), flush: make(chan struct{}, 1), lastTick: o.Clock()}
	for _, t := range tables {
		s.known[t.oid] = t.String()
	}
	return s, c.begin(s, tables, added, at, made, p.flushed)
}

// begin sets a source going whose connection streams.
func (c *Connector) begin(s *source, tables []*table, added map[uint32]bool, at place, made bool, flushed LSN) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.stats.rows = map[string]int64{}
	s.stats.state.Store("streaming")
	s.stats.retained.Store(-1)
	s.idle = at.end
	s.received.Store(uint64(at.end))
	if made {
		s.tickNow, s.noteIntent = true, true
	} else {
		s.returned.Store(uint64(at.end))
		s.confirmed.Store(uint64(at.end))
	}
	a := &assembler{source: s.o.Source, system: s.server.system, timeline: s.server.timeline, partBytes: s.o.PartBytes, xid: s.server.xid, held: at.end,
		relation: func(m relationMessage) (*relationUse, error) { return s.describe(ctx, m) },
		retype:   func(t *table) (*table, error) { return s.retype(ctx, t) },
		known:    s.catalog.known, whole: c.wholeTx,
		unchanged: func(tables map[uint32]*table, xid uint32) error {
			return s.meta.do(ctx, func(q *session) error { return s.catalog.unchanged(ctx, q, tables, xid) })
		},
		emit:     func(b *change.Batch, end LSN, signals []signalMessage) error { return s.deliver(ctx, b, end, signals) },
		messages: newMessageRules(s.o)}
	co, err := c.coordinate(coordinatorStart{options: s.o, logger: s.o.Logger, history: s.history, server: s.server, tables: tables, logged: maps.Clone(s.catalog.layouts.last),
		added: added, published: s.published, shapes: s.shapes,
		connect: func(ctx context.Context) (*session, error) { return connect(ctx, s.o, false) },
		current: s.catalog.current, poke: func() { signal(s.wake) }, retype: func() { a.stale.Store(true) }})
	if err != nil {
		cancel()
		_ = s.wire.close()
		return fmt.Errorf("source %s: snapshot: %w", s.o.Source, err)
	}
	s.coordinator = co
	c.mu.Lock()
	c.open, c.reopening = s, false
	c.end = min(c.end, flushed) // what a crash of the server took never comes
	c.mu.Unlock()
	s.run(ctx, a)
	return nil
}

// describe is the assembler's relation.
func (s *source) describe(ctx context.Context, m relationMessage) (*relationUse, error) {
	var use *relationUse
	var changed *layoutChange
	err := s.meta.do(ctx, func(q *session) (err error) {
		use, changed, err = s.catalog.describe(ctx, q, m)
		return err
	})
	if err == nil && changed != nil {
		v := &survey{}
		v.warnTypes([]*table{changed.now})
		s.connector.warn(v.problems)
		err = s.queue.put(ctx, item{layout: changed})
	}
	return use, err
}

// retype is the assembler's.
func (s *source) retype(ctx context.Context, t *table) (now *table, err error) {
	err = s.meta.do(ctx, func(q *session) (err error) {
		now, err = s.catalog.retype(ctx, q, t)
		return err
	})
	return now, err
}

func (c *Connector) closed(s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == s {
		c.open = nil
	}
}

// wanted returns the LSN that callers of End wait for.
func (c *Connector) wanted() LSN {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// End implements connectors.Connector: the insert LSN (V16).
func (c *Connector) End(ctx context.Context) (change.Position, error) {
	s, err := connect(ctx, &c.opts, false)
	if err != nil {
		return change.Position{}, err
	}
	defer s.close()
	sv, err := readServer(ctx, s)
	if err == nil {
		err = sv.readControl(ctx, s)
	}
	if err != nil {
		return change.Position{}, fmt.Errorf("source %s: %w", c.opts.Source, err)
	}
	insert, flushed, err := sv.insertLSN(ctx, s)
	if err != nil {
		return change.Position{}, fmt.Errorf("source %s: %w", c.opts.Source, err)
	}
	if insert > flushed {
		if err := sv.nudge(ctx, s); err != nil {
			c.opts.Logger.Debug("nudge", "source", c.opts.Source, "err", err)
		}
	}
	c.mu.Lock()
	c.end = max(c.end, insert)
	open := c.open
	c.mu.Unlock()
	if open != nil {
		signal(c.asked)
		signal(open.wake)
		if err := open.discover(ctx, s); err != nil && !errors.Is(err, connectors.ErrReopen) {
			return change.Position{}, fmt.Errorf("source %s: %w", c.opts.Source, err)
		}
	}
	return place{sv.system, sv.timeline, insert, insert}.position(), nil
}

// Reached implements connectors.Connector. Nothing is reached while a source
// is to be opened that captures new tables.
func (c *Connector) Reached(durable, end change.Position) bool {
	c.mu.Lock()
	reopening := c.reopening
	c.mu.Unlock()
	if reopening {
		return false
	}
	d, err := parsePosition(durable)
	if err != nil {
		return false
	}
	e, err := parsePosition(end)
	return err == nil && d.system == e.system && d.end >= e.end
}

// publicationComment marks a publication as one that Drop may drop.
const publicationComment = "made by Tailwater"

// Drop implements connectors.Connector: it drops the slot, and the publication if it was made here.
func (c *Connector) Drop(ctx context.Context) error {
	o := &c.opts
	s, err := connect(ctx, o, false)
	if err != nil {
		return err
	}
	defer s.close()
	sl, err := readSlot(ctx, s, o.Slot)
	if err != nil {
		return fmt.Errorf("source %s: %w", o.Source, err)
	}
	db, err := s.text(ctx, "SELECT pg_catalog.current_database()")
	if err != nil {
		return fmt.Errorf("source %s: %w", o.Source, err)
	}
	if sl.exists && (sl.plugin != "pgoutput" || sl.database != db) {
		return (&opener{o: o}).foreign(sl)
	}
	if sl.exists {
		if err := dropSlot(ctx, o, s); err != nil {
			return fmt.Errorf("source %s: %w", o.Source, err)
		}
		o.Logger.Info("slot dropped", "source", o.Source, "slot", o.Slot)
	}
	comment, err := s.text(ctx, "SELECT (SELECT pg_catalog.obj_description(oid, 'pg_publication') FROM pg_catalog.pg_publication WHERE pubname = $1)", o.Publication)
	if err != nil {
		return fmt.Errorf("source %s: read publication %s: %w", o.Source, o.Publication, err)
	}
	if !strings.HasPrefix(comment, publicationComment) {
		return nil
	}
	if err := s.exec(ctx, "DROP PUBLICATION IF EXISTS "+quoteName(o.Publication)); err != nil {
		return fmt.Errorf("source %s: drop publication %s: %w", o.Source, o.Publication, err)
	}
	o.Logger.Info("publication dropped", "source", o.Source, "publication", o.Publication)
	return nil
}
