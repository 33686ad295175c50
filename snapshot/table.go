package snapshot

import (
	"slices"

	"github.com/tailwater/tailwater/change"
)

// truncatesKept bounds the truncates of a table that can explain new storage.
const truncatesKept = 64

// table is what the Machine knows of one topic.
type table struct {
	topic     string
	last      uint64              // number of its newest run
	run       *tableRun           // nil: none unfinished
	base      change.SnapshotMark // of the last finished run; Run 0: none
	requests  map[string]struct{} // keys whose re-read was asked for
	truncates []string            // transactions, newest last
	hold      bool                // none of its chunks is read
	paused    bool                // no chunk of a run is read; keys that are owed are
	due       bool                // its newest run was given up, and views need it
}

// tableRun is an unfinished run.
type tableRun struct {
	mark     change.SnapshotMark // its newest mark
	inner    []byte              // the connector's cursor
	after    Place               // no collection begins before the stream passed it
	owed     map[string]struct{} // keys to read again
	sweep    bool
	reading  bool // its first collection has begun: partial records count
	complete bool // every chunk was appended
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
	partial := e.Op != change.OpDelete && e.Flags&change.FlagPartial != 0
	if t.run == nil && len(t.requests) == 0 && !(partial && e.Op == change.OpInsert) {
		return
	}
	key := b.Key(e)
	switch {
	case !partial:
		t.settled(source, b, key)
	case e.Op == change.OpInsert:
		if _, ok := t.requests[string(key)]; !ok {
			t.requests[string(key)] = struct{}{}
			b.Controls = append(b.Controls, change.RereadRequest(source, t.topic, key))
		}
	case t.run != nil:
		t.run.partial(key)
	}
}

// partial notes that the log may hold the key without some of its values.
func (r *tableRun) partial(key change.Key) {
	if r.counts() {
		r.owed[string(key)] = struct{}{}
	}
}

// counts reports whether partial records are owed.
func (r *tableRun) counts() bool { return r.reading && !r.complete && r.mark.Where == "" }

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
	for _, key := range sortedKeys(t.requests) {
		b.Controls = append(b.Controls, change.RereadAnswered(source, t.topic, key))
	}
	clear(t.requests)
	if t.run != nil {
		clear(t.run.owed)
	}
	if len(t.truncates) == truncatesKept {
		t.truncates = slices.Delete(t.truncates, 0, 1)
	}
	t.truncates = append(t.truncates, b.Tx)
}

// explained reports whether streamed truncates made the table's new storage.
func (t *table) explained(moved *Moved) bool {
	for _, tx := range moved.Txs {
		if !slices.Contains(t.truncates, tx) {
			return false
		}
	}
	return true
}

// append takes a reconciled chunk into the books.
func (t *table) append(source string, r *reading, got reconciled) {
	b := got.batch
	again := map[string]bool{}
	for _, key := range got.owed {
		again[string(key)] = true
	}
	for _, key := range r.keys {
		if r.window.keys[string(key)] == nil && !again[string(key)] {
			t.settled(source, b, key) // found or not: there is nothing else to know
		}
	}
	if t.run != nil || len(t.requests) > 0 {
		for i := range b.Events {
			if len(b.Events[i].Schema.Key) > 0 {
				t.settled(source, b, b.Key(&b.Events[i]))
			}
		}
	}
	run := t.run
	if run == nil {
		return
	}
	for _, key := range got.owed {
		run.owed[string(key)] = struct{}{}
	}
	if r.keys != nil {
		return
	}
	run.inner, run.complete = r.chunk.Cursor, run.complete || r.chunk.Last
	run.mark.State = change.SnapshotProgress
	run.mark.Rows += got.rows
	run.mark.Bytes += r.chunk.Bytes
	if r.chunk.Total > 0 {
		run.mark.Total = r.chunk.Total
	}
	run.mark.Cursor = run.cursor()
}

func (r *tableRun) cursor() []byte {
	return (&cursor{complete: r.complete, sweep: r.sweep, inner: r.inner}).append(nil)
}

func sortedKeys(set map[string]struct{}) []change.Key {
	list := make([]string, 0, len(set))
	for k := range set {
		list = append(list, k)
	}
	slices.Sort(list)
	keys := make([]change.Key, len(list))
	for i, k := range list {
		keys[i] = change.Key(k)
	}
	return keys
}
