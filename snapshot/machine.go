package snapshot

import (
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/change"
)

// Limits of what is held in memory for one chunk.
const (
	rereadKeys     = 100       // keys of one chunk that is read by key
	owedKeys       = 5000      // owed keys that are read before the run goes on
	collectBytes   = 256 << 20 // touched keys; above it the chunk is read again
	startPlace     = Place(0)
	firstRunNumber = 1
)

// Start asks for a run.
type Start struct {
	Topic string
	// Floor: views of the table emit nothing until the run is done.
	Floor  bool
	Where  string // condition; such a run sweeps nothing
	Total  int64  // estimate of the rows
	Cursor []byte // the connector's own state at the run's start
	// OneChunk: the table has no key and is read as one chunk.
	OneChunk bool
}

// Chunk is what the connector read for an ActionRead.
type Chunk struct {
	View  View
	After Place // end of the source's log, read after the chunk's snapshot was taken
	// Rows are the rows read, OpRead events of kind Chunk. The Machine keeps it.
	Rows   *change.Batch
	Schema *change.Schema // layout that the rows were read with
	Cursor []byte         // the connector's state behind this chunk
	Bytes  int64
	Total  int64 // a better estimate; 0: keep the last
	Last   bool  // the table has no further chunk
}

// ActionKind says what the connector does next.
type ActionKind uint8

const (
	ActionWait   ActionKind = iota // for a transaction, for progress of the stream, for the reader
	ActionAppend                   // append Batch, before anything that is observed later
	ActionRead                     // read a chunk, then call Deliver or Moved
)

// Action is what the connector does next.
type Action struct {
	Kind  ActionKind
	Batch *change.Batch

	Topic  string
	Run    uint64
	Where  string
	Cursor []byte       // the connector's state behind the last chunk
	Keys   []change.Key // read the rows with these keys; nil: the next chunk
	// Before are transactions that the view must contain; a reader that sees
	// one missing may stop at once and deliver a Chunk with the view alone.
	Before []string
	// Attempt counts, from 0, how often this chunk was read in vain.
	Attempt int
}

// Machine decides for one source; see doc.go. It belongs to one goroutine.
type Machine struct {
	source  string
	tables  map[string]*table
	order   []string            // topics, in the order in which their runs began
	recent  map[string]struct{} // transactions appended and not known to be visible
	passed  Place
	inside  bool // between the batches of one transaction
	current *reading
	ready   []*change.Batch // to append first
}

// reading is the one chunk being read or waiting for the stream.
type reading struct {
	topic   string
	keys    []change.Key
	window  *window
	chunk   *Chunk // nil until delivered
	again   bool   // whatever is delivered is read again
	drop    bool   // whatever is delivered is of no use
	attempt int
}

// New returns a Machine of that source, which knows no table.
func New(source string) *Machine {
	return &Machine{source: source, tables: map[string]*table{}, recent: map[string]struct{}{}}
}

// Observe takes note of a batch of kind Transaction that is appended next, and
// adds to its Controls. It keeps nothing of the batch's memory.
func (m *Machine) Observe(b *change.Batch) {
	m.inside = b.More
	if !b.More {
		m.recent[b.Tx] = struct{}{}
	}
	var topic string
	var t *table
	for i := range b.Events {
		e := &b.Events[i]
		if e.Schema.Topic != topic {
			topic = e.Schema.Topic
			t = m.tables[topic]
		}
		if t == nil && e.Flags&(change.FlagMoved|change.FlagPartial) == change.FlagMoved|change.FlagPartial && e.Op == change.OpInsert {
			t = m.table(topic)
		}
		if t != nil {
			m.observe(t, b, e)
		}
	}
}

func (m *Machine) observe(t *table, b *change.Batch, e *change.Event) {
	r := m.current
	if r != nil && r.topic == t.topic {
		r.window.observe(b, e)
		if r.window.bytes > collectBytes {
			r.again = true
			r.window.reset()
		}
	}
	t.observe(m.source, b, e)
	if t.run != nil && t.run.truncated && r != nil && r.topic == t.topic && r.keys == nil {
		r.drop = true
	}
}

// Pass tells that everything that ended at or below p was observed.
func (m *Machine) Pass(p Place) { m.passed = max(m.passed, p) }

// Wanted returns the place that a chunk waits for the stream to pass; 0 for none.
func (m *Machine) Wanted() Place {
	if r := m.current; r != nil && r.chunk != nil && m.passed < r.chunk.After {
		return r.chunk.After
	}
	return startPlace
}

// Settle forgets the transactions that the view contains.
func (m *Machine) Settle(v View) {
	for tx := range m.recent {
		if v.Contains(tx) {
			delete(m.recent, tx)
		}
	}
}

// Unsettled returns how many transactions are not known to be visible. Settle
// it now and then: they are kept in memory.
func (m *Machine) Unsettled() int { return len(m.recent) }

// Begin starts a run; one that the table has unfinished is given up for it.
// The run's first record is the next batch that Next answers.
func (m *Machine) Begin(s Start) (run uint64) {
	t := m.table(s.Topic)
	b := &change.Batch{Source: m.source, Kind: change.Chunk}
	if t.run != nil {
		t.run.mark.State = change.SnapshotStopped
		b.Controls = append(b.Controls, m.control(&t.run.mark))
		m.abandon(s.Topic)
	}
	t.last++
	t.run = &run_{oneChunk: s.OneChunk, sweep: t.last > firstRunNumber && s.Where == "" && !s.OneChunk,
		inner: s.Cursor, owed: map[string]struct{}{},
		mark: change.SnapshotMark{Topic: s.Topic, Run: t.last, Floor: s.Floor, Where: s.Where, Total: s.Total}}
	c := cursor{inner: s.Cursor}
	for tx := range m.recent {
		c.pending = append(c.pending, tx)
	}
	t.run.mark.Cursor = c.append(nil)
	b.Controls = append(b.Controls, m.control(&t.run.mark))
	m.ready = append(m.ready, b)
	m.order = append(m.order, s.Topic)
	return t.last
}

// abandon gives up the reading of a topic.
func (m *Machine) abandon(topic string) {
	if m.current != nil && m.current.topic == topic {
		if m.current.chunk != nil {
			m.current = nil
		} else {
			m.current.drop = true
		}
	}
	m.order = slices.DeleteFunc(m.order, func(t string) bool { return t == topic })
}

// Forget drops a table that is captured no more; its run, if any, is given up.
func (m *Machine) Forget(topic string) {
	t := m.tables[topic]
	if t == nil {
		return
	}
	b := &change.Batch{Source: m.source, Kind: change.Chunk}
	if t.run != nil {
		t.run.mark.State = change.SnapshotStopped
		b.Controls = append(b.Controls, m.control(&t.run.mark))
	}
	for key := range t.requests {
		b.Controls = append(b.Controls, change.RereadAnswered(m.source, topic, change.Key(key)))
	}
	if len(b.Controls) > 0 {
		m.ready = append(m.ready, b)
	}
	m.abandon(topic)
	t.run, t.requests = nil, map[string]struct{}{}
}

// Moved answers an ActionRead: the table's rows were rewritten or are others
// since the run began. It reports whether a truncate explains it: then the run
// is complete, else the caller begins another once the stream passed after.
func (m *Machine) Moved() {
	m.current = nil
}

// Deliver answers an ActionRead.
func (m *Machine) Deliver(c *Chunk) {
	r := m.current
	switch {
	case r == nil:
		return
	case r.drop:
		m.current = nil
	case r.again || c.View == nil || r.window.missing(c.View) || c.Rows == nil:
		m.again(r)
	default:
		r.chunk = c
	}
	if c.View != nil {
		m.Settle(c.View)
	}
}

// again makes the next ActionRead read the same chunk with a new collection.
func (m *Machine) again(r *reading) {
	r.chunk, r.window, r.again = nil, nil, false
	r.attempt++
}

// Reading reports whether a chunk is being read.
func (m *Machine) Reading() bool { return m.current != nil && m.current.window != nil && m.current.chunk == nil }

func (m *Machine) control(mark *change.SnapshotMark) change.Control {
	return change.Control{Topic: change.TopicSnapshots + m.source, Key: mark.Key(), Value: mark.Append(nil)}
}

// Next says what to do. It answers ActionWait until something was observed,
// passed, delivered or begun, and between the batches of one transaction.
func (m *Machine) Next() (Action, error) {
	if m.inside {
		return Action{}, nil
	}
	if len(m.ready) > 0 {
		b := m.ready[0]
		m.ready = m.ready[1:]
		return Action{Kind: ActionAppend, Batch: b}, nil
	}
	if r := m.current; r != nil {
		switch {
		case r.window == nil:
			return m.read(r), nil
		case r.chunk == nil || m.passed < r.chunk.After:
			return Action{}, nil
		}
		return m.finish(r)
	}
	for _, topic := range m.order {
		if b := m.end(m.tables[topic]); b != nil {
			return Action{Kind: ActionAppend, Batch: b}, nil
		}
	}
	if m.current = m.choose(); m.current == nil {
		return Action{}, nil
	}
	return m.read(m.current), nil
}

// read opens a collection.
func (m *Machine) read(r *reading) Action {
	r.window = newWindow(r.topic, m.recent)
	a := Action{Kind: ActionRead, Topic: r.topic, Keys: r.keys, Attempt: r.attempt}
	for tx := range m.recent {
		a.Before = append(a.Before, tx)
	}
	if t := m.tables[r.topic]; t.run != nil {
		t.run.reading = true
		a.Run, a.Where, a.Cursor = t.run.mark.Run, t.run.mark.Where, t.run.inner
	}
	return a
}

// finish makes the batch of a chunk that the stream has caught up with.
func (m *Machine) finish(r *reading) (Action, error) {
	t := m.tables[r.topic]
	if r.again {
		m.again(r)
		return m.read(r), nil
	}
	if r.drop {
		m.current = nil
		return m.Next()
	}
	var got reconciled
	var err error
	if r.chunk.Schema != nil && len(r.chunk.Schema.Key) == 0 {
		var ok bool
		if got, ok = r.window.reconcileRows(r.chunk); !ok {
			m.again(r)
			return m.read(r), nil
		}
	} else if got, err = r.window.reconcile(r.chunk); err != nil {
		return Action{}, fmt.Errorf("snapshot of %s: %w", r.topic, err)
	}
	m.current = nil
	b := t.append(m.source, r, got)
	if t.run != nil && r.keys == nil {
		if end := m.endInto(t, b); !end {
			b.Controls = append(b.Controls, m.control(&t.run.mark))
		}
	}
	return Action{Kind: ActionAppend, Batch: b}, nil
}
