package snapshot

import (
	"maps"
	"slices"

	"github.com/tailwater/tailwater/change"
)

// Start asks for a run.
type Start struct {
	Topic string
	// Floor: views of the table emit nothing until the run is done.
	Floor  bool
	Where  string // condition; such a run sweeps nothing
	Total  int64  // estimate of the rows
	Cursor []byte // the connector's own state at the run's start
	// After is the end of the source's log, read after Cursor's state was. The
	// first collection begins behind it: until then the stream still tells what
	// preceded a rewrite that the chunks contain.
	After Place
	// NoSweep: keys that the run does not find stay (a table without a key, a
	// run over new partitions alone).
	NoSweep bool
}

// Begin starts a run; one that the table has unfinished is given up for it.
// The run's first record is among the next batches that Next answers.
func (m *Machine) Begin(s Start) (run uint64) {
	b := &change.Batch{Source: m.source, Kind: change.Chunk}
	m.ready = append(m.ready, b)
	return m.BeginIn(b, s)
}

// BeginIn starts a run whose first record is in b: the last batch of the
// transaction that was observed last, which asks for it. Both or none are in the log.
func (m *Machine) BeginIn(b *change.Batch, s Start) (run uint64) {
	t := m.table(s.Topic)
	m.stop(t, b)
	t.last++
	t.truncates = nil // one that precedes the run's first record leaves rows to the sweep
	t.due = t.due && s.Where != ""
	t.run = &tableRun{inner: s.Cursor, after: s.After, owed: map[string]struct{}{},
		sweep: t.last > 1 && s.Where == "" && !s.NoSweep,
		mark:  change.SnapshotMark{Topic: s.Topic, Run: t.last, Floor: s.Floor, Where: s.Where, Total: s.Total}}
	c := cursor{sweep: t.run.sweep, inner: s.Cursor, pending: slices.Collect(maps.Keys(m.recent))}
	t.run.mark.Cursor = c.append(nil)
	b.Controls = append(b.Controls, m.control(&t.run.mark))
	m.order = append(m.order, s.Topic)
	return t.last
}

// Stop gives up a table's unfinished run, if it has one.
func (m *Machine) Stop(topic string) {
	b := &change.Batch{Source: m.source, Kind: change.Chunk}
	if m.stop(m.table(topic), b); len(b.Controls) > 0 {
		m.ready = append(m.ready, b)
	}
}

func (m *Machine) stop(t *table, b *change.Batch) {
	if t.run == nil {
		return
	}
	t.run.mark.State = change.SnapshotStopped
	t.due = t.due || t.run.mark.Floor
	b.Controls = append(b.Controls, m.control(&t.run.mark))
	m.leave(t)
}

// Pause keeps the chunks of a table's runs from being read until Resume.
func (m *Machine) Pause(topic string) { m.table(topic).paused = true }

// Resume ends Pause.
func (m *Machine) Resume(topic string) { m.table(topic).paused = false }

// leave ends the bookkeeping of a table's run.
func (m *Machine) leave(t *table) {
	t.run = nil
	m.order = slices.DeleteFunc(m.order, func(topic string) bool { return topic == t.topic })
	r := m.current
	switch {
	case r == nil || r.topic != t.topic || r.keys != nil:
	case r.chunk != nil || r.window == nil:
		m.current = nil
	default:
		r.drop = true
	}
}

// Forget drops a table that is captured no more, with its run and its requests.
// A run that was finished counts no more, since what follows is not streamed.
func (m *Machine) Forget(topic string) {
	t := m.table(topic)
	b := &change.Batch{Source: m.source, Kind: change.Chunk}
	if t.run == nil && t.base.Run > 0 {
		t.base.State = change.SnapshotStopped
		b.Controls = append(b.Controls, m.control(&t.base))
	}
	t.base = change.SnapshotMark{}
	m.stop(t, b)
	for _, key := range sortedKeys(t.requests) {
		b.Controls = append(b.Controls, change.RereadAnswered(m.source, topic, key))
	}
	clear(t.requests)
	if r := m.current; r != nil && r.topic == topic {
		if r.drop = true; r.chunk != nil {
			m.current = nil
		}
	}
	if len(b.Controls) > 0 {
		m.ready = append(m.ready, b)
	}
}

// moved deals with a table whose storage is another: a truncate left nothing
// to read, everything after it was streamed; else the table is read anew.
func (m *Machine) moved(topic string, moved *Moved) {
	t := m.table(topic)
	run := t.run
	switch {
	case !t.explained(moved):
		m.Begin(Start{Topic: topic, Floor: true, After: m.passed, Total: moved.Total, Cursor: moved.Cursor, NoSweep: moved.NoSweep})
	case run != nil:
		run.complete, run.inner = true, moved.Explained
	default:
		m.Note(topic, moved.Explained)
	}
}

// Note replaces the connector's state behind the last run of a table that has
// finished one and has none in progress.
func (m *Machine) Note(topic string, inner []byte) {
	t := m.table(topic)
	if t.run != nil || t.base.Run == 0 {
		return
	}
	t.base.Cursor = (&cursor{complete: true, inner: inner}).append(nil)
	mark := t.base
	mark.State = change.SnapshotProgress
	m.ready = append(m.ready, &change.Batch{Source: m.source, Kind: change.Chunk, Controls: []change.Control{m.control(&mark)}})
}

// ended reports whether nothing but the last mark of the run is missing.
func (t *table) ended() bool {
	return t.run != nil && t.run.complete && len(t.run.owed) == 0 && len(t.requests) == 0
}

// endInto puts the run's end into the batch of its last chunk, if it can.
func (m *Machine) endInto(t *table, b *change.Batch) bool {
	if !t.ended() || t.run.sweep {
		return false
	}
	m.done(t, b)
	return true
}

// endAny returns the batch that ends a run; nil if none is to end yet.
func (m *Machine) endAny() *change.Batch {
	for _, topic := range m.order {
		t := m.tables[topic]
		if !t.ended() {
			continue
		}
		b := &change.Batch{Source: m.source, Kind: change.Chunk}
		if t.run.sweep {
			begun := change.SnapshotMark{Topic: t.topic, Run: t.run.mark.Run, State: change.SnapshotBegun}
			b.Sweep = &change.Sweep{Topic: t.topic, Since: begun.Key()}
		}
		m.done(t, b)
		return b
	}
	return nil
}

func (m *Machine) done(t *table, b *change.Batch) {
	t.run.mark.State = change.SnapshotDone
	t.run.mark.Cursor = t.run.cursor()
	b.Controls = append(b.Controls, m.control(&t.run.mark))
	t.base, t.due = t.run.mark, t.due && t.run.mark.Where != ""
	m.leave(t)
}

// choose picks the next chunk: requests and runs in turns, runs in order.
func (m *Machine) choose() *reading {
	if m.hold {
		return nil
	}
	pick := m.chooseRun()
	if asked := m.chooseRequest(); asked != nil && (pick == nil || !m.byKey) {
		pick = asked
	}
	m.byKey = pick != nil && pick.keys != nil
	return pick
}

func (m *Machine) chooseRequest() *reading {
	for _, topic := range slices.Sorted(maps.Keys(m.tables)) {
		if t := m.tables[topic]; !t.hold && len(t.requests) > 0 {
			return &reading{topic: topic, keys: firstKeys(t.requests)}
		}
	}
	return nil
}

func (m *Machine) chooseRun() *reading {
	for _, topic := range m.order {
		t := m.tables[topic]
		switch {
		case t.hold || t.paused && !t.run.complete || m.passed < t.run.after:
		case len(t.run.owed) > 0 && (t.run.complete || len(t.run.owed) >= owedKeys && !m.byKey):
			return &reading{topic: topic, keys: firstKeys(t.run.owed)}
		case !t.run.complete:
			return &reading{topic: topic}
		}
	}
	return nil
}

func firstKeys(set map[string]struct{}) []change.Key {
	keys := sortedKeys(set)
	return keys[:min(len(keys), rereadKeys)]
}
