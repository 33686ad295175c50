package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/snapshot"
)

// snapshots is the coordinator: it drives a snapshot.Machine with what the
// stream and the chunk reader tell.
type snapshots struct {
	start  coordinatorStart
	ready  chan struct{}         // capacity 1: Chunk may return more
	reads  chan *snapshot.Action // capacity 1: the machine has one chunk read at a time
	checks chan struct{}         // capacity 1: compare the tables' storage now
	settle chan struct{}         // capacity 1: many transactions are not known to be visible

	mu     sync.Mutex // guards what follows; never held across a query
	m      *snapshot.Machine
	tables map[string]*table // by topic, in the newest layout known
	pace   map[string]pace   // by topic
	shapes map[uint32]shape  // by oid, as of the last look
	// attempt counts how often the present chunk was read in vain.
	attempt int
	looked  bool // the tables' storage was compared since the start
	// waits counts how often old transactions were found to go on.
	waits int
}

// pace is how fast a table is read, for the estimate of its end.
type pace struct {
	run   uint64
	since time.Time
	rows  int64 // that the run had then
}

// unsettledMost is how many transactions are kept until their visibility is looked up.
const unsettledMost = 10000

var errStandby = connectors.ErrPrerequisite

var _ coordinator = (*snapshots)(nil)

// newCoordinator takes up what the log says and begins the runs that are due.
func newCoordinator(start coordinatorStart) (coordinator, error) {
	c := &snapshots{start: start, ready: make(chan struct{}, 1), reads: make(chan *snapshot.Action, 1), checks: make(chan struct{}, 1),
		settle: make(chan struct{}, 1), m: snapshot.New(start.options.Source), tables: map[string]*table{}, pace: map[string]pace{}, shapes: start.shapes}
	for _, t := range start.tables {
		c.tables[t.topic()] = t
	}
	if err := c.restore(); err != nil {
		return nil, err
	}
	c.forgetOthers()
	c.beginDue()
	return c, nil
}

// restore reads the marks, the requests and, for runs that go on, what the log
// has had since they began.
func (c *snapshots) restore() error {
	h := c.start.history
	marks, err := h.Marks()
	if err != nil {
		return fmt.Errorf("read the snapshot marks: %w", err)
	}
	if err := c.m.Restore(marks, 0); err != nil {
		return err
	}
	if err := c.republished(); err != nil {
		return err
	}
	if slices.ContainsFunc(c.m.Tables(), func(topic string) bool { return c.m.Table(topic).Running }) {
		err := h.Recent(c.recall)
		if errors.Is(err, connectors.ErrBeyondRefill) {
			c.beginAnew(err)
		} else if err != nil {
			return fmt.Errorf("read what was appended since the snapshot began: %w", err)
		}
	}
	if rh, ok := h.(connectors.RequestHistory); ok {
		err := rh.Requests(func(topic string, key change.Key) error {
			c.m.Request(topic, key)
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.holdBack()
	return c.restorePaused()
}

// beginAnew gives up the unfinished runs, since what they have appended cannot be
// read, and begins others in their place: those mend it at their end. Like first
// runs they wait for the transactions in progress.
func (c *snapshots) beginAnew(damage error) {
	for _, topic := range c.m.Tables() {
		st := c.m.Table(topic)
		if !st.Running || c.tables[topic] == nil {
			continue
		}
		c.start.logger.Error("the snapshot begins anew: what it has appended is damaged", "source", c.start.options.Source, "table", topic, "run", st.Run, "err", damage)
		if st.Mark.Where != "" {
			c.m.Stop(topic)
			continue
		}
		c.begin(snapshot.Start{Topic: topic, Floor: st.Mark.Floor, Total: c.tables[topic].rows})
	}
}

func (c *snapshots) recall(r connectors.RecentTx) error {
	if r.Kind == change.Transaction {
		c.m.Recall(r.Tx)
	}
	for _, e := range r.Events {
		c.m.RecallEvent(r.Tx, e.Topic, e.Op, e.Flags, e.Key)
	}
	return nil
}

// holdBack decides what must wait for the transactions in progress now. A run
// that has appended a chunk has waited already (V1, V2), and the transactions
// appended since are known from the log (V5). Where there is no such run,
// nothing tells what was appended lately and may not be visible yet.
func (c *snapshots) holdBack() {
	known := false
	for topic, t := range c.tables {
		st := c.m.Table(topic)
		finished := st.Run > 0 && !st.Running && st.Mark.Run == st.Run && !c.start.added[t.oid]
		switch {
		case st.Running && st.Read && !c.start.added[t.oid]:
			known = true
		case !finished:
			c.m.HoldTable(topic)
		}
	}
	if !known {
		c.m.Hold()
	}
}

// forgetOthers drops what the log has of tables that are captured no more.
func (c *snapshots) forgetOthers() {
	for _, topic := range c.m.Tables() {
		if c.tables[topic] == nil {
			c.m.Forget(topic)
		}
	}
}

// beginDue begins the first runs, and those of tables that were not published meanwhile.
func (c *snapshots) beginDue() {
	for _, t := range c.start.tables {
		st := c.m.Table(t.topic())
		switch {
		case c.start.added[t.oid] && st.Run > 0:
		case st.Run == 0 && !c.start.options.Snapshot.Never:
		case st.Due:
		case st.Run > 0 && c.rekeyed(t):
		default:
			continue
		}
		c.begin(snapshot.Start{Topic: t.topic(), Floor: true, Total: t.rows})
	}
}

// rekeyed reports whether the rows in the log have another key than the table has now.
func (c *snapshots) rekeyed(t *table) bool {
	last := c.start.logged[t.topic()]
	return last != nil && !slices.Equal(last.KeyNames(), t.layout.KeyNames())
}

// begin starts a run; the caller holds mu or is alone.
func (c *snapshots) begin(s snapshot.Start) { c.began(s, c.m.Begin(c.withCursor(s))) }

// withCursor gives a run the state that the chunk reader begins with.
func (c *snapshots) withCursor(s snapshot.Start) snapshot.Start {
	if t := c.tables[s.Topic]; t != nil && s.Cursor == nil {
		s.Cursor = (&chunkCursor{published: c.start.published[t.oid], shape: c.shapes[t.oid].encode()}).encode()
	}
	return s
}

func (c *snapshots) began(s snapshot.Start, run uint64) {
	c.start.logger.Info("snapshot begins", "source", c.start.options.Source, "table", s.Topic, "run", run)
}

// Snapshot begins a run of a captured table on demand, of all its rows or of
// those with a condition.
func (c *snapshots) Snapshot(topic, where string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.onDemand(topic, where)
	if err != nil {
		return err
	}
	c.begin(s)
	signal(c.ready)
	return nil
}

// Signal implements coordinator.
func (c *snapshots) Signal(b *change.Batch, name, where string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	topic := ""
	for at, t := range c.tables {
		if t.String() == name {
			topic = at
		}
	}
	if topic == "" {
		return fmt.Errorf("table %s is not captured", name)
	}
	if c.start.server.standby {
		return errors.New("tables cannot be read from a standby yet")
	}
	s, err := c.onDemand(topic, where)
	if err != nil {
		return err
	}
	s = c.withCursor(s)
	c.began(s, c.m.BeginIn(b, s))
	b.Schemas = append(b.Schemas, c.tables[topic].layout)
	return nil
}

// onDemand makes the start of a run that somebody asks for; the caller holds mu.
func (c *snapshots) onDemand(topic, where string) (snapshot.Start, error) {
	if c.tables[topic] == nil {
		return snapshot.Start{}, fmt.Errorf("table %s is not captured", topic)
	}
	if c.m.Table(topic).Running {
		return snapshot.Start{}, fmt.Errorf("a snapshot of table %s is running", topic)
	}
	// A run that views wait for and that was stopped is made up for.
	s := snapshot.Start{Topic: topic, Where: where, Floor: where == "" && c.m.Table(topic).Due, Total: c.tables[topic].rows}
	if where != "" {
		// A part of the table does not mend what changed its storage: that is
		// looked for first.
		cursor, err := decodeChunkCursor(c.m.Table(topic).Cursor)
		if err != nil {
			return s, fmt.Errorf("snapshot of table %s: %w", topic, err)
		}
		cursor.mode = planAll
		s.Cursor = cursor.encode()
	}
	return s, nil
}

// Transaction implements coordinator.
func (c *snapshots) Transaction(b *change.Batch) error {
	truncated := false
	for i := range b.Events {
		truncated = truncated || b.Events[i].Op == change.OpTruncate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.Observe(b)
	c.observed(truncated)
	return nil
}

// observed asks for what a transaction makes due; the caller holds mu.
func (c *snapshots) observed(truncated bool) {
	if truncated {
		signal(c.checks) // its storage is another now, for a reason that is known yet
	}
	if c.m.Unsettled() >= unsettledMost && c.m.Unsettled()%1000 == 0 {
		signal(c.settle)
	}
}

// Streamed implements coordinator.
func (c *snapshots) Streamed(b *change.Batch, s *snapshot.Streamed) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, topic := range c.m.ObserveStreamed(b, s) {
		if t := c.tables[topic]; t != nil {
			c.begin(snapshot.Start{Topic: topic, Floor: c.m.Table(topic).Mark.Floor, Total: t.rows})
		}
	}
	c.observed(s.Rows()[change.OpTruncate] > 0)
	return nil
}

// Passed implements coordinator.
func (c *snapshots) Passed(lsn LSN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.Pass(snapshot.Place(lsn))
}

// Layout implements coordinator.
func (c *snapshots) Layout(was, now *table, retyped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[now.topic()] = now
	if retyped {
		c.begin(snapshot.Start{Topic: now.topic(), Floor: true, Total: now.rows})
		return
	}
	signal(c.checks) // it may have been a rewrite
}

// Chunk implements coordinator.
func (c *snapshots) Chunk() (*change.Batch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		a, err := c.m.Next()
		if err != nil {
			return nil, err
		}
		switch a.Kind {
		case snapshot.ActionAppend:
			c.announce(a.Batch)
			return a.Batch, nil
		case snapshot.ActionRead:
			c.attempt = a.Attempt
			c.reads <- &a
		case snapshot.ActionWait:
			return nil, nil
		}
	}
}

// announce puts the layouts of tables whose run begins into the batch, since a
// table may have no rows that would, and tells people of runs that end.
func (c *snapshots) announce(b *change.Batch) {
	for _, r := range b.Controls {
		if !change.IsSnapshotMark(r.Key) || r.Value == nil {
			continue
		}
		m, err := change.DecodeSnapshotMark(r.Key, r.Value)
		if err != nil {
			continue
		}
		switch m.State {
		case change.SnapshotBegun:
			if t := c.tables[m.Topic]; t != nil {
				b.Schemas = append(b.Schemas, t.layout)
			}
		case change.SnapshotDone:
			c.start.logger.Info("snapshot done", "source", c.start.options.Source, "table", m.Topic, "run", m.Run, "rows", m.Rows)
		case change.SnapshotStopped:
			c.start.logger.Info("snapshot given up", "source", c.start.options.Source, "table", m.Topic, "run", m.Run, "rows", m.Rows)
		}
	}
}

// Ready implements coordinator.
func (c *snapshots) Ready() <-chan struct{} { return c.ready }

// Wanted implements coordinator.
func (c *snapshots) Wanted() LSN {
	c.mu.Lock()
	defer c.mu.Unlock()
	return LSN(c.m.Wanted())
}

// Progress implements coordinator.
func (c *snapshots) Progress() []connectors.TableProgress {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.start.options.Clock()
	var list []connectors.TableProgress
	for topic := range c.tables {
		st := c.m.Table(topic)
		p := connectors.TableProgress{Topic: topic, Run: st.Run, State: "done", Rows: st.Mark.Rows, Bytes: st.Mark.Bytes, Total: st.Mark.Total}
		switch {
		case st.Run == 0 && !c.start.options.Snapshot.Never:
			p.State = "waiting"
		case st.Running && st.Paused && !st.Complete:
			p.State = "paused"
		case st.Due:
			p.State = "stopped"
		case st.Run > 0 && (!c.looked || c.m.Checking(topic)): // its storage may be another, and a run due
			p.State = "waiting"
		case st.GivenUp:
			p.State = "given up"
		case st.Running && !st.Read:
			p.State = "waiting"
		case st.Running:
			p.State = "running"
			c.estimate(&p, now)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b connectors.TableProgress) int { return slices.Compare([]byte(a.Topic), []byte(b.Topic)) })
	return list
}

// estimate fills Since and ETA from what was read since the first look.
func (c *snapshots) estimate(p *connectors.TableProgress, now time.Time) {
	at := c.pace[p.Topic]
	if at.run != p.Run {
		at = pace{run: p.Run, since: now, rows: p.Rows}
		c.pace[p.Topic] = at
	}
	p.Since = at.since
	if done, took := p.Rows-at.rows, now.Sub(at.since); done > 0 && p.Total > p.Rows {
		p.ETA = time.Duration(float64(took) / float64(done) * float64(p.Total-p.Rows))
	}
}

// gone stops what concerns a table that does not exist any more.
func (c *snapshots) gone(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.Forget(topic)
	delete(c.tables, topic)
	c.m.Deliver(&snapshot.Chunk{})
	c.start.logger.Warn("the table is gone; its snapshot was given up", "source", c.start.options.Source, "table", topic)
}

// giveUp stops an ad-hoc run whose condition the server refuses: left in the log
// as unfinished it would end the source at every start.
func (c *snapshots) giveUp(a *snapshot.Action, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.Stop(a.Topic)
	c.m.Deliver(&snapshot.Chunk{})
	signal(c.ready)
	c.start.logger.Warn("an ad-hoc snapshot was given up", "source", c.start.options.Source, "table", a.Topic, "run", a.Run, "err", err)
}

// Run implements coordinator.
func (c *snapshots) Run(ctx context.Context) error {
	r := &snapshotRunner{snapshots: c}
	defer r.close()
	err := r.run(ctx)
	if ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())) {
		return nil
	}
	return err
}
