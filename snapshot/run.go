package snapshot

import (
	"sort"

	"github.com/tailwater/tailwater/change"
)

// table is what the Machine knows of one topic.
type table struct {
	topic    string
	last     uint64 // number of its newest run
	run      *run_  // nil: none unfinished
	requests map[string]struct{}
	hold     int // while above 0, none of its chunks is read
}

// run_ is an unfinished run.
type run_ struct {
	mark     change.SnapshotMark // its Progress; Cursor is made when it is appended
	inner    []byte              // the connector's cursor
	owed     map[string]struct{} // keys to read again
	oneChunk bool
	sweep    bool
	reading  bool // its first collection has begun: partial records count
	complete bool // every chunk was appended
	// truncated: the stream emptied the table since the run began. All its rows
	// are in the stream, so that there is nothing left to read.
	truncated bool
}

func (m *Machine) table(topic string) *table {
	t := m.tables[topic]
	if t == nil {
		t = &table{topic: topic, requests: map[string]struct{}{}}
		m.tables[topic] = t
	}
	return t
}

// observe keeps the books of owed keys and requests over one streamed event.
func (t *table) observe(source string, b *change.Batch, e *change.Event) {
	if e.Op == change.OpTruncate {
		t.truncate(source, b)
		return
	}
	if len(e.Schema.Key) == 0 {
		return
	}
	key := b.Key(e)
	if e.Op == change.OpDelete || e.Flags&change.FlagPartial == 0 {
		t.settled(source, b, key)
		return
	}
	if e.Op == change.OpInsert {
		if _, ok := t.requests[string(key)]; !ok {
			t.requests[string(key)] = struct{}{}
			b.Controls = append(b.Controls, change.RereadRequest(source, t.topic, key))
		}
		return
	}
	if t.run != nil {
		t.run.partial(key)
	}
}

func (r *run_) partial(key change.Key) {
	if r.reading && !r.complete && r.mark.Where == "" {
		r.owed[string(key)] = struct{}{}
	}
}

// settled: the log holds the key whole, or deleted.
func (t *table) settled(source string, b *change.Batch, key change.Key) {
	if t.run != nil {
		delete(t.run.owed, string(key))
	}
	if _, ok := t.requests[string(key)]; ok {
		delete(t.requests, string(key))
		b.Controls = append(b.Controls, change.RereadAnswered(source, t.topic, key))
	}
}

func (t *table) truncate(source string, b *change.Batch) {
	for key := range t.requests {
		b.Controls = append(b.Controls, change.RereadAnswered(source, t.topic, change.Key(key)))
	}
	clear(t.requests)
	if t.run != nil {
		clear(t.run.owed)
		t.run.truncated, t.run.complete = true, true
	}
}

// append takes a reconciled chunk into the books and returns its batch.
func (t *table) append(source string, r *reading, got reconciled) *change.Batch {
	b := got.batch
	for _, key := range r.keys { // found or not, each is answered
		t.settled(source, b, key)
	}
	run := t.run
	if run == nil {
		return b
	}
	for i := range b.Events {
		if len(b.Events[i].Schema.Key) > 0 {
			t.settled(source, b, b.Key(&b.Events[i]))
		}
	}
	for _, key := range got.owed {
		run.owed[string(key)] = struct{}{}
	}
	if r.keys != nil {
		return b
	}
	run.inner, run.complete = r.chunk.Cursor, run.complete || r.chunk.Last
	run.mark.State = change.SnapshotProgress
	run.mark.Rows += got.rows
	run.mark.Bytes += r.chunk.Bytes
	if r.chunk.Total > 0 {
		run.mark.Total = r.chunk.Total
	}
	run.mark.Cursor = (&cursor{complete: run.complete, inner: run.inner}).append(nil)
	return b
}

// endInto puts the run's end into a batch that is appended anyway, if it can.
func (m *Machine) endInto(t *table, b *change.Batch) bool {
	run := t.run
	if !run.complete || run.sweep || len(run.owed) > 0 || len(t.requests) > 0 {
		return false
	}
	m.done(t, b)
	return true
}

// end returns the batch that ends the run, nil if it is not to end yet.
func (m *Machine) end(t *table) *change.Batch {
	run := t.run
	if run == nil || !run.complete || len(run.owed) > 0 || len(t.requests) > 0 {
		return nil
	}
	b := &change.Batch{Source: m.source, Kind: change.Chunk}
	if run.sweep {
		begun := change.SnapshotMark{Topic: t.topic, Run: run.mark.Run, State: change.SnapshotBegun}
		b.Sweep = &change.Sweep{Topic: t.topic, Since: begun.Key()}
	}
	m.done(t, b)
	return b
}

func (m *Machine) done(t *table, b *change.Batch) {
	t.run.mark.State = change.SnapshotDone
	t.run.mark.Cursor = (&cursor{complete: true, inner: t.run.inner}).append(nil)
	b.Controls = append(b.Controls, m.control(&t.run.mark))
	t.run = nil
	for i, topic := range m.order {
		if topic == t.topic {
			m.order = append(m.order[:i:i], m.order[i+1:]...)
			break
		}
	}
}

// choose picks the next chunk: requests first, then the runs in order.
func (m *Machine) choose() *reading {
	for _, topic := range m.topics() {
		if t := m.tables[topic]; t.hold == 0 && len(t.requests) > 0 {
			return &reading{topic: topic, keys: firstKeys(t.requests)}
		}
	}
	for _, topic := range m.order {
		t := m.tables[topic]
		switch {
		case t.hold > 0:
		case len(t.run.owed) > 0 && (t.run.complete || len(t.run.owed) >= owedKeys):
			return &reading{topic: topic, keys: firstKeys(t.run.owed)}
		case !t.run.complete:
			return &reading{topic: topic}
		}
	}
	return nil
}

func (m *Machine) topics() []string {
	list := make([]string, 0, len(m.tables))
	for topic := range m.tables {
		list = append(list, topic)
	}
	sort.Strings(list)
	return list
}

func firstKeys(set map[string]struct{}) []change.Key {
	list := make([]string, 0, len(set))
	for k := range set {
		list = append(list, k)
	}
	sort.Strings(list)
	keys := make([]change.Key, 0, rereadKeys)
	for _, k := range list[:min(len(list), rereadKeys)] {
		keys = append(keys, change.Key(k))
	}
	return keys
}
