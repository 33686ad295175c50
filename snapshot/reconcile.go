package snapshot

import (
	"fmt"

	"github.com/tailwater/tailwater/change"
)

// reconciled is a chunk as it is appended.
type reconciled struct {
	batch *change.Batch
	rows  int64
	owed  []change.Key // left out, and to be read again
}

// join makes of a chunk what is appended; ok is false if it must be read again.
func (w *window) join(c *Chunk) (r reconciled, ok bool, err error) {
	if c.Schema != nil && len(c.Schema.Key) == 0 {
		r, ok = w.reconcileRows(c)
		return r, ok, nil
	}
	r, err = w.reconcile(c)
	return r, err == nil, err
}

// reconcile leaves out the chunk's rows that the stream deleted or sent whole
// since the collection began and lays streamed partial values over the others.
func (w *window) reconcile(c *Chunk) (reconciled, error) {
	if w.truncated {
		return reconciled{batch: emptyChunk(c.Rows)}, nil
	}
	if !w.touches(c.Rows) {
		return reconciled{batch: c.Rows, rows: int64(len(c.Rows.Events))}, nil
	}
	r := reconciled{batch: emptyChunk(c.Rows)}
	for i := range c.Rows.Events {
		e := &c.Rows.Events[i]
		key := c.Rows.Key(e)
		after, ok := c.Rows.After(e)
		if !ok {
			return r, fmt.Errorf("a chunk row of %s has no values", w.topic)
		}
		t := w.keys[string(key)]
		switch {
		case t == nil:
			r.batch.Add(e.Schema, e.Op, e.Flags, key, nil, after.Data)
		case t.gone:
			continue
		case t.mixed || !sameLayout(t.row.Schema, after.Schema):
			r.owed = append(r.owed, append(change.Key(nil), key...))
			continue
		default:
			data, err := change.Merge(t.row, change.Row{Schema: t.row.Schema, Data: after.Data})
			if err != nil {
				return r, fmt.Errorf("join a chunk row of %s with the stream: %w", w.topic, err)
			}
			r.batch.Add(t.row.Schema, e.Op, e.Flags, key, nil, data)
		}
		r.rows++
	}
	return r, nil
}

func (w *window) touches(b *change.Batch) bool {
	if len(w.keys) == 0 {
		return false
	}
	for i := range b.Events {
		if w.keys[string(b.Key(&b.Events[i]))] != nil {
			return true
		}
	}
	return false
}

func emptyChunk(like *change.Batch) *change.Batch {
	return &change.Batch{Source: like.Source, Kind: change.Chunk, Tx: like.Tx, CommitTime: like.CommitTime}
}

// reconcileRows is reconcile for a table without a key: the chunk is the whole
// table, begins with a truncate, and takes the changes that its view does not
// contain as a multiset of rows. ok is false if layouts differ or a row to be
// removed is not there: the chunk is read again.
func (w *window) reconcileRows(c *Chunk) (r reconciled, ok bool) {
	rows := newBag()
	for i := range c.Rows.Events {
		after, _ := c.Rows.After(&c.Rows.Events[i])
		rows.add(after.Data)
	}
	for _, ch := range w.rows {
		switch {
		case c.View.Contains(ch.tx):
		case ch.truncate:
			rows = newBag()
		case !sameLayout(ch.schema, c.Schema):
			return r, false
		default:
			if ch.before != nil && !rows.remove(ch.before) {
				return r, false
			}
			if ch.after != nil {
				rows.add(ch.after)
			}
		}
	}
	r.batch = emptyChunk(c.Rows)
	r.batch.Add(c.Schema, change.OpTruncate, change.FlagSnapshot, nil, nil, nil)
	for _, row := range rows.list {
		if row != nil {
			r.batch.Add(c.Schema, change.OpRead, change.FlagSnapshot, nil, nil, row)
			r.rows++
		}
	}
	return r, true
}

// bag is a multiset of rows that keeps their order.
type bag struct {
	list [][]byte
	at   map[string][]int
}

func newBag() *bag { return &bag{at: map[string][]int{}} }

func (b *bag) add(row []byte) {
	b.at[string(row)] = append(b.at[string(row)], len(b.list))
	b.list = append(b.list, row)
}

func (b *bag) remove(row []byte) bool {
	at := b.at[string(row)]
	if len(at) == 0 {
		return false
	}
	b.list[at[len(at)-1]] = nil
	b.at[string(row)] = at[:len(at)-1]
	return true
}
