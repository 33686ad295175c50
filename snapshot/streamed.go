package snapshot

import (
	"maps"
	"slices"

	"github.com/tailwater/tailwater/change"
)

// streamedKeys is how many keys of partial updates are kept of one transaction in
// progress. Above it a run of their table is begun again.
const streamedKeys = 200_000

// streamedSubs is for how many sub-transactions rows are counted apart.
const streamedSubs = 10_000

// Streamed is what is kept of a transaction in progress whose rows are in the log's
// storage already: which tables it wrote to, and the few events without which
// the Machine's books are wrong: truncates, and the keys of partial records. The
// other keys are not kept, since its rows may be many and no run may ever need them.
// The zero value is empty.
type Streamed struct {
	topics  map[string]*streamedTopic
	events  []streamedEvent
	aborted map[uint32]bool
	rows    map[uint32]*[8]int64 // by sub-transaction and op
}

type streamedTopic struct {
	name    string
	partial int  // updates among the events
	many    bool // and no more are kept
}

type streamedEvent struct {
	sub   uint32
	topic *streamedTopic
	op    change.Op
	key   change.Key
}

// Add takes note of a batch InProgress and adds the requests that its rows need to
// its Controls. It keeps nothing of the batch's memory.
func (s *Streamed) Add(source string, b *change.Batch) {
	if s.topics == nil {
		s.topics, s.aborted, s.rows = map[string]*streamedTopic{}, map[uint32]bool{}, map[uint32]*[8]int64{}
	}
	rows := s.count(b.Sub)
	var t *streamedTopic
	for i := range b.Events {
		e := &b.Events[i]
		rows[e.Op&7]++
		if e.Op == change.OpMessage {
			continue
		}
		if t == nil || t.name != e.Schema.Topic {
			if t = s.topics[e.Schema.Topic]; t == nil {
				t = &streamedTopic{name: e.Schema.Topic}
				s.topics[t.name] = t
			}
		}
		partial := e.Op != change.OpDelete && e.Flags&change.FlagPartial != 0
		switch {
		case e.Op == change.OpTruncate:
			s.events = append(s.events, streamedEvent{b.Sub, t, e.Op, nil})
		case len(e.Schema.Key) == 0 || !partial:
		case e.Op == change.OpInsert:
			key := append(change.Key(nil), b.Key(e)...)
			s.events = append(s.events, streamedEvent{b.Sub, t, e.Op, key})
			b.Controls = append(b.Controls, change.RereadRequest(source, t.name, key))
		case t.partial < streamedKeys:
			t.partial++
			s.events = append(s.events, streamedEvent{b.Sub, t, e.Op, append(change.Key(nil), b.Key(e)...)})
		default:
			t.many = true
		}
	}
}

// count returns the counter of a sub-transaction; beyond streamedSubs they share one.
func (s *Streamed) count(sub uint32) *[8]int64 {
	if s.rows[sub] == nil && len(s.rows) >= streamedSubs {
		sub = 0
	}
	if s.rows[sub] == nil {
		s.rows[sub] = &[8]int64{}
	}
	return s.rows[sub]
}

// Rollback forgets a sub-transaction.
func (s *Streamed) Rollback(sub uint32) {
	if s.aborted != nil {
		s.aborted[sub] = true
		delete(s.rows, sub)
	}
}

// Rows returns how many events by op were not rolled back; of sub-transactions
// that share a counter all are counted.
func (s *Streamed) Rows() (n [8]int64) {
	for _, rows := range s.rows {
		for op := range n {
			n[op] += rows[op]
		}
	}
	return n
}

// ObserveStreamed takes note of a transaction that was streamed and is adopted
// next: b is its last batch, and takes Controls. A chunk that is being read is read
// again unless it contains the transaction, since the keys that it touched are
// not known; one that contains it is newer than all of its rows. again names the
// tables whose run must begin anew.
func (m *Machine) ObserveStreamed(b *change.Batch, s *Streamed) (again []string) {
	m.inside = false
	m.recent[b.Tx] = struct{}{}
	if r := m.current; r != nil && r.window != nil && s.topics[r.topic] != nil {
		r.window.touched(b.Tx)
	}
	for i := range s.events {
		if e := &s.events[i]; !s.aborted[e.sub] {
			m.observeKept(b, e)
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(s.topics)) {
		if run := m.table(topic).run; s.topics[topic].many && run != nil && run.counts() {
			again = append(again, topic)
		}
	}
	return again
}

func (m *Machine) observeKept(b *change.Batch, e *streamedEvent) {
	t := m.table(e.topic.name)
	switch e.op {
	case change.OpTruncate:
		if r := m.current; r != nil && r.topic == t.topic && r.window != nil && !r.again {
			r.window.truncate()
		}
		t.truncate(m.source, b)
	case change.OpInsert:
		t.requests[string(e.key)] = struct{}{}
	default:
		if t.run != nil {
			t.run.partial(e.key)
		}
	}
}
