package snapshot

import (
	"bytes"

	"github.com/tailwater/tailwater/change"
)

// window is the collection of touched keys of one table: from before a chunk's
// snapshot is taken until the chunk is appended.
type window struct {
	topic     string
	before    map[string]struct{} // transactions appended before it began, not known to be visible
	only      map[string]struct{} // the keys that matter; nil: all
	keys      map[string]*touch
	bytes     int  // memory of keys and rows, about
	truncated bool // the whole table, since it began
	rows      []rowChange
	// streamed are transactions whose keys are not known (see Streamed).
	streamed []string
}

// touch is what the stream did to one key since the collection began.
type touch struct {
	gone bool // deleted, or sent whole: the chunk's row is older
	// layouts differ between the partial rows: they cannot be merged here.
	mixed bool
	row   change.Row // the partial rows merged; Data nil if gone
}

// rowChange is a change of a table without a key, which takes part as a multiset.
type rowChange struct {
	tx            string
	truncate      bool
	before, after []byte
	schema        *change.Schema
}

func newWindow(topic string, recent map[string]struct{}) *window {
	w := &window{topic: topic, before: make(map[string]struct{}, len(recent)), keys: map[string]*touch{}}
	for tx := range recent {
		w.before[tx] = struct{}{}
	}
	return w
}

// restrict forgets all keys but those of the chunk, once it is read.
func (w *window) restrict(b *change.Batch) {
	w.only = make(map[string]struct{}, len(b.Events))
	for i := range b.Events {
		w.only[string(b.Key(&b.Events[i]))] = struct{}{}
	}
	for k, t := range w.keys {
		if _, ok := w.only[k]; !ok {
			w.bytes -= len(k) + 96 + len(t.row.Data)
			delete(w.keys, k)
		}
	}
}

// missing reports whether a transaction appended before the collection began is not in the view.
func (w *window) missing(v View) bool {
	for tx := range w.before {
		if !v.Contains(tx) {
			return true
		}
	}
	return false
}

// observe notes one event of the window's table.
func (w *window) observe(b *change.Batch, e *change.Event) {
	if len(e.Schema.Key) == 0 {
		w.observeRow(b, e)
		return
	}
	if e.Op == change.OpTruncate {
		w.truncate()
		return
	}
	key := b.Key(e)
	if w.only != nil {
		if _, ok := w.only[string(key)]; !ok {
			return
		}
	}
	t := w.keys[string(key)]
	if t == nil {
		t = &touch{}
		w.keys[string(key)] = t
		w.bytes += len(key) + 96
	}
	after, ok := b.After(e)
	if e.Op == change.OpDelete || e.Flags&change.FlagPartial == 0 || !ok {
		w.bytes -= len(t.row.Data)
		*t = touch{gone: true}
		return
	}
	if !t.gone && !t.mixed {
		w.bytes -= len(t.row.Data)
		t.add(after)
		w.bytes += len(t.row.Data)
	}
}

// truncate notes that the whole table was emptied.
func (w *window) truncate() {
	w.truncated = true
	clear(w.keys)
	w.bytes = 0
}

// touched notes a streamed transaction. Partial rows before it may be older than
// its own of the same key, or newer than what the chunk has: which of the two is
// not known, and the key is read again.
func (w *window) touched(tx string) {
	w.streamed = append(w.streamed, tx)
	for _, t := range w.keys {
		if !t.gone {
			w.bytes -= len(t.row.Data)
			*t = touch{mixed: true}
		}
	}
}

// overtaken reports whether a streamed transaction touched what the view does not have of it.
func (w *window) overtaken(v View) bool {
	for _, tx := range w.streamed {
		if !v.Contains(tx) {
			return true
		}
	}
	return false
}

// add lays a later partial row over the ones before.
func (t *touch) add(row change.Row) {
	if t.row.Data == nil {
		t.row = change.Row{Schema: row.Schema, Data: bytes.Clone(row.Data)}
		return
	}
	if !sameLayout(row.Schema, t.row.Schema) {
		*t = touch{mixed: true}
		return
	}
	data, err := change.Merge(row, t.row)
	if err != nil {
		*t = touch{mixed: true}
		return
	}
	t.row = change.Row{Schema: row.Schema, Data: data}
}

func (w *window) observeRow(b *change.Batch, e *change.Event) {
	c := rowChange{tx: b.Tx, schema: e.Schema, truncate: e.Op == change.OpTruncate}
	if before, ok := b.Before(e); ok {
		c.before = bytes.Clone(before.Data)
	}
	if after, ok := b.After(e); ok {
		c.after = bytes.Clone(after.Data)
	}
	w.rows = append(w.rows, c)
	w.bytes += len(c.before) + len(c.after) + 96
}

// sameLayout reports whether rows of both schemas have the same columns.
func sameLayout(a, b *change.Schema) bool {
	if a == b {
		return true
	}
	if len(a.Columns) != len(b.Columns) {
		return false
	}
	for i := range a.Columns {
		if a.Columns[i].Number != b.Columns[i].Number || a.Columns[i].Kind != b.Columns[i].Kind {
			return false
		}
	}
	return true
}
