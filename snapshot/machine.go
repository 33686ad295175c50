package snapshot

import (
	"slices"

	"github.com/tailwater/tailwater/change"
)

// Limits of what is held in memory for one chunk.
const (
	rereadKeys   = 100      // keys of one chunk that is read by key
	owedKeys     = 5000     // owed keys that are read before the run goes on
	collectBytes = 64 << 20 // touched keys; above it the chunk is read again
)

// Chunk is what the connector read for an ActionRead.
type Chunk struct {
	View  View
	After Place // end of the source's log, read after the chunk's snapshot was taken
	// Rows are the rows read, OpRead events of kind Chunk; the Machine keeps it.
	// nil: the reader saw a transaction of Before missing and stopped.
	Rows   *change.Batch
	Schema *change.Schema // layout that the rows were read with
	Cursor []byte         // the connector's state behind this chunk
	Bytes  int64
	Total  int64 // a better estimate; 0: keep the last
	Last   bool  // the table has no further chunk
	Moved  *Moved
}

// Moved says that the table's storage is another than at the run's beginning.
type Moved struct {
	// Txs are the transactions that exchanged it; all of them must be streamed
	// truncates to explain it. "" is one that is not known.
	Txs []string
	// Explained is the connector's state behind all chunks, if they do.
	Explained []byte
	// Of another run, as in Start, if not.
	Cursor  []byte
	Total   int64
	NoSweep bool
}

// ActionKind says what the connector does next.
type ActionKind uint8

const (
	ActionWait   ActionKind = iota // for a transaction, for progress of the stream, for the reader
	ActionAppend                   // append Batch, before anything that is observed later
	ActionRead                     // read a chunk, then call Deliver
)

// Action is what the connector does next.
type Action struct {
	Kind  ActionKind
	Batch *change.Batch

	Topic  string
	Run    uint64 // 0: keys that are read outside of a run
	Where  string
	Cursor []byte       // the connector's state behind the last chunk
	Keys   []change.Key // read the rows with these keys; nil: the next chunk
	// Before are transactions that the view must contain; a reader that sees
	// one missing may stop at once.
	Before []string
	// Attempt counts, from 0, how often this chunk was read in vain.
	Attempt int
}

// Machine decides for one source; see doc.go. It belongs to one goroutine.
type Machine struct {
	source  string
	tables  map[string]*table
	order   []string            // topics with an unfinished run, in the order in which those began
	recent  map[string]struct{} // transactions appended and not known to be visible
	passed  Place
	inside  bool // between the batches of one transaction
	hold    bool // no chunk at all is read
	current *reading
	byKey   bool // the last chunk was read by key: a run comes next
	checks  []check
	ready   []*change.Batch // to append first
}

// reading is the one chunk being read or waiting for the stream.
type reading struct {
	topic   string
	keys    []change.Key
	window  *window // nil: to be read, first or again
	chunk   *Chunk  // nil until delivered
	again   bool    // whatever is delivered is read again
	drop    bool    // whatever is delivered is of no use
	attempt int
}

// check is a Check that waits for the stream.
type check struct {
	topic string
	after Place
	moved Moved
}

// New returns a Machine of that source, which knows no table.
func New(source string) *Machine {
	return &Machine{source: source, tables: map[string]*table{}, recent: map[string]struct{}{}}
}

// Observe takes note of a batch of kind Transaction that is appended next, and
// adds to its Controls. It keeps nothing of the batch's memory.
func (m *Machine) Observe(b *change.Batch) {
	m.inside = b.More
	if !b.More && b.Tx != "" { // a message that stands alone has none, and no rows
		m.recent[b.Tx] = struct{}{}
	}
	var t *table
	for i := range b.Events {
		e := &b.Events[i]
		if e.Op == change.OpMessage {
			continue
		}
		if t == nil || t.topic != e.Schema.Topic {
			t = m.table(e.Schema.Topic)
		}
		if r := m.current; r != nil && r.topic == t.topic && r.window != nil {
			m.collect(r, b, e)
		}
		t.observe(m.source, b, e)
	}
}

func (m *Machine) collect(r *reading, b *change.Batch, e *change.Event) {
	if r.again {
		return
	}
	r.window.observe(b, e)
	if r.window.bytes > collectBytes {
		r.again = true
		r.window.keys, r.window.rows = nil, nil
	}
}

// Pass tells that everything that ended at or below p was observed.
func (m *Machine) Pass(p Place) { m.passed = max(m.passed, p) }

// Wanted returns the place that something waits for the stream to pass; 0 for none.
func (m *Machine) Wanted() Place {
	var p Place
	if r := m.current; r != nil && r.chunk != nil {
		p = r.chunk.After
	}
	for i := range m.checks {
		p = max(p, m.checks[i].after)
	}
	for _, topic := range m.order {
		p = max(p, m.tables[topic].run.after)
	}
	if p <= m.passed {
		return 0
	}
	return p
}

// Settle forgets the transactions that the view contains.
func (m *Machine) Settle(v View) {
	for tx := range m.recent {
		if v.Contains(tx) {
			delete(m.recent, tx)
		}
	}
}

// Unsettled returns how many transactions are not known to be visible. They
// are kept in memory: call Settle now and then.
func (m *Machine) Unsettled() int { return len(m.recent) }

// Hold keeps all chunks from being read until Release.
func (m *Machine) Hold() { m.hold = true }

// Release ends Hold.
func (m *Machine) Release() { m.hold = false }

// HoldTable keeps the chunks of one table from being read until ReleaseTable.
func (m *Machine) HoldTable(topic string) { m.table(topic).hold = true }

// ReleaseTable ends HoldTable.
func (m *Machine) ReleaseTable(topic string) { m.table(topic).hold = false }

// Check tells that, outside of a run, a table's storage was found to be
// another than before. Once the stream passed after, a streamed truncate
// explains it, or a run begins.
func (m *Machine) Check(topic string, after Place, moved Moved) {
	m.checks = append(m.checks, check{topic, after, moved})
}

// Checking reports whether a Check of the topic waits for the stream.
func (m *Machine) Checking(topic string) bool {
	return slices.ContainsFunc(m.checks, func(c check) bool { return c.topic == topic })
}

// Deliver answers an ActionRead.
func (m *Machine) Deliver(c *Chunk) {
	r := m.current
	switch {
	case r == nil || r.window == nil:
		return
	case r.drop:
		m.current = nil
	case c.Moved != nil && c.View != nil && !r.again:
		r.chunk = c
	case r.again || c.View == nil || r.window.missing(c.View) || c.Rows == nil:
		r.retry()
	default:
		r.chunk = c
		if r.keys == nil && (c.Schema == nil || len(c.Schema.Key) > 0) {
			r.window.restrict(c.Rows)
		}
	}
	if c.View != nil {
		m.Settle(c.View)
	}
}

// retry makes the next ActionRead read the same chunk with a new collection.
func (r *reading) retry() {
	r.chunk, r.window, r.again = nil, nil, false
	r.attempt++
}

// Next says what to do. It answers ActionWait until something was observed,
// passed, delivered or begun, and between the batches of one transaction.
func (m *Machine) Next() (Action, error) {
	if m.inside {
		return Action{}, nil
	}
	for {
		m.runChecks()
		if len(m.ready) > 0 {
			b := m.ready[0]
			m.ready = m.ready[1:]
			return Action{Kind: ActionAppend, Batch: b}, nil
		}
		r := m.current
		switch {
		case r == nil:
			if b := m.endAny(); b != nil {
				return Action{Kind: ActionAppend, Batch: b}, nil
			}
			if m.current = m.choose(); m.current == nil {
				return Action{}, nil
			}
		case r.window == nil && (r.drop || r.keys == nil && m.table(r.topic).paused):
			m.current = nil
		case r.window == nil:
			if m.hold || m.table(r.topic).hold {
				return Action{}, nil
			}
			return m.read(r), nil
		case r.chunk == nil || m.passed < r.chunk.After:
			return Action{}, nil
		case r.again:
			r.retry()
		case r.chunk.Moved != nil:
			m.current = nil
			m.moved(r.topic, r.chunk.Moved)
		default:
			if b, err := m.finish(r); b != nil || err != nil {
				return Action{Kind: ActionAppend, Batch: b}, err
			}
		}
	}
}

func (m *Machine) runChecks() {
	rest := m.checks[:0]
	for _, c := range m.checks {
		if c.after > m.passed {
			rest = append(rest, c)
			continue
		}
		if m.table(c.topic).run == nil { // else its reader will find it
			m.moved(c.topic, &c.moved)
		}
	}
	m.checks = rest
}

// read opens a collection.
func (m *Machine) read(r *reading) Action {
	r.window = newWindow(r.topic, m.recent)
	if r.keys != nil {
		r.window.only = map[string]struct{}{}
		for _, k := range r.keys {
			r.window.only[string(k)] = struct{}{}
		}
	}
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

// finish makes the batch of a chunk that the stream has caught up with; nil if
// it must be read again, or nothing of it is left.
func (m *Machine) finish(r *reading) (*change.Batch, error) {
	if r.window.overtaken(r.chunk.View) {
		r.retry()
		return nil, nil
	}
	got, ok, err := r.window.join(r.chunk)
	if err != nil {
		return nil, err
	}
	if !ok {
		r.retry()
		return nil, nil
	}
	m.current = nil
	t := m.tables[r.topic]
	t.append(m.source, r, got)
	if t.run != nil && r.keys == nil && !m.endInto(t, got.batch) {
		got.batch.Controls = append(got.batch.Controls, m.control(&t.run.mark))
	}
	if len(got.batch.Events) == 0 && len(got.batch.Controls) == 0 {
		return nil, nil
	}
	return got.batch, nil
}

func (m *Machine) control(mark *change.SnapshotMark) change.Control {
	return change.Control{Topic: change.TopicSnapshots + m.source, Key: mark.Key(), Value: mark.Append(nil)}
}
