package snapshot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// simLog is the log: what was appended, and what of it is durable.
type simLog struct {
	entries []simEntry
}

type simEntry struct {
	batch *change.Batch
	place int   // records of the database's log streamed so far; for a transaction
	swept []int // keys that its sweep found
}

func (l *simLog) append(b *change.Batch, place int) {
	e := simEntry{batch: b, place: place}
	l.entries = append(l.entries, e)
	if b.Sweep != nil {
		l.entries[len(l.entries)-1].swept = l.sweep(b.Sweep)
	}
}

// sweep finds the keys whose newest record is older than the run's beginning, as ingest does.
func (l *simLog) sweep(s *change.Sweep) []int {
	since := 0
	for i, e := range l.entries {
		for _, c := range e.batch.Controls {
			if c.Key.Compare(s.Since) == 0 {
				since = i
			}
		}
	}
	newest := map[int]int{}
	for i, e := range l.entries[:len(l.entries)-1] {
		e.each(func(op change.Op, key int, _ change.Row) {
			switch op {
			case change.OpTruncate:
				clear(newest)
			case change.OpDelete:
				delete(newest, key)
			default:
				newest[key] = i
			}
		})
	}
	var keys []int
	for key, at := range newest {
		if at < since {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// each calls fn for the rows of an entry, in order.
func (e *simEntry) each(fn func(op change.Op, key int, after change.Row)) {
	for i := range e.batch.Events {
		ev := &e.batch.Events[i]
		key := 0
		if ev.Op != change.OpTruncate {
			key = decodeSimKey(e.batch.Key(ev))
		}
		after, _ := e.batch.After(ev)
		fn(ev.Op, key, after)
	}
	for _, key := range e.swept {
		fn(change.OpDelete, key, change.Row{})
	}
}

func decodeSimKey(k change.Key) int {
	parts, err := change.DecodeKey(k)
	if err != nil || len(parts) != 1 {
		panic(fmt.Sprintf("key %s: %v", k, err))
	}
	return int(parts[0].Int64())
}

// fold returns the table that the log's readers see, and the keys not whole.
func (l *simLog) fold() (rows map[int]simRow, unfilled []int) {
	data := map[int]change.Row{}
	for i := range l.entries {
		l.entries[i].each(func(op change.Op, key int, after change.Row) {
			switch {
			case op == change.OpTruncate:
				clear(data)
			case op == change.OpDelete:
				delete(data, key)
			default:
				after.Data = slices.Clone(after.Data)
				if old, ok := data[key]; ok && after.Partial() {
					merged, err := change.Merge(after, old)
					if err != nil {
						panic(err)
					}
					after.Data = merged
				}
				data[key] = after
			}
		})
	}
	rows = map[int]simRow{}
	for key, row := range data {
		if row.Partial() {
			unfilled = append(unfilled, key)
			continue
		}
		rows[key] = decodeSimRow(row)
	}
	slices.Sort(unfilled)
	return rows, unfilled
}

func decodeSimRow(row change.Row) simRow {
	v, err := row.Values(nil)
	if err != nil {
		panic(err)
	}
	return simRow{int(v[0].Int64()), int(v[1].Int64()), int(v[2].Int64())}
}

// bag returns the rows of a keyless table's log as a sorted multiset.
func (l *simLog) bag() []string {
	var rows []string
	for i := range l.entries {
		b := l.entries[i].batch
		for j := range b.Events {
			e := &b.Events[j]
			if e.Op == change.OpTruncate {
				rows = nil
				continue
			}
			if before, ok := b.Before(e); ok {
				at := slices.Index(rows, decodeSimRow(before).String())
				if at < 0 {
					rows = append(rows, "missing "+decodeSimRow(before).String())
				} else {
					rows = slices.Delete(rows, at, at+1)
				}
			}
			if after, ok := b.After(e); ok {
				rows = append(rows, decodeSimRow(after).String())
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// marks returns the newest marks in log order, and the open requests.
func (l *simLog) marks() (marks []*change.SnapshotMark, requests []change.Key) {
	open := map[string]bool{}
	for _, e := range l.entries {
		for _, c := range e.batch.Controls {
			if _, key, ok := change.DecodeRereadKey(c.Key); ok {
				delete(open, string(key))
				if c.Value != nil {
					open[string(key)] = true
				}
				continue
			}
			m, err := change.DecodeSnapshotMark(c.Key, c.Value)
			if err != nil {
				panic(err)
			}
			marks = slices.DeleteFunc(marks, func(o *change.SnapshotMark) bool { return o.Key().Compare(m.Key()) == 0 })
			marks = append(marks, m)
		}
	}
	for k := range open {
		requests = append(requests, change.Key(k))
	}
	return marks, requests
}

// since returns the index of the oldest unfinished run's beginning; len if there is none.
func (l *simLog) since() int {
	begun := map[uint64]int{}
	for i, e := range l.entries {
		for _, c := range e.batch.Controls {
			if m, err := change.DecodeSnapshotMark(c.Key, c.Value); err == nil {
				switch m.State {
				case change.SnapshotBegun:
					begun[m.Run] = i
				case change.SnapshotDone, change.SnapshotStopped:
					delete(begun, m.Run)
				}
			}
		}
	}
	at := len(l.entries)
	for _, i := range begun {
		at = min(at, i)
	}
	return at
}

// describe prints an entry for scripts.
func (e *simEntry) describe() string {
	var w strings.Builder
	b := e.batch
	switch {
	case b.Sweep != nil:
		fmt.Fprintf(&w, "append sweep %v", e.swept)
	case b.Kind == change.Chunk:
		w.WriteString("append chunk")
	default:
		w.WriteString("append tx")
	}
	for i := range b.Events {
		ev := &b.Events[i]
		w.WriteString(" " + ev.Op.String())
		if len(ev.Schema.Key) > 0 && ev.Op != change.OpTruncate {
			w.WriteString(" " + strconv.Itoa(decodeSimKey(b.Key(ev))))
		}
		if after, ok := b.After(ev); ok {
			w.WriteString(describeRow(after))
		}
		w.WriteString(";")
	}
	for _, c := range b.Controls {
		if _, key, ok := change.DecodeRereadKey(c.Key); ok {
			word := " request "
			if c.Value == nil {
				word = " answered "
			}
			w.WriteString(word + strconv.Itoa(decodeSimKey(key)) + ";")
			continue
		}
		m, err := change.DecodeSnapshotMark(c.Key, c.Value)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&w, " %s run %d;", [...]string{"begun", "progress", "done", "stopped"}[m.State], m.Run)
	}
	return strings.TrimSuffix(w.String(), ";")
}

func describeRow(row change.Row) string {
	v, err := row.Values(nil)
	if err != nil {
		panic(err)
	}
	text := ""
	for i := 1; i < len(v); i++ {
		if v[i].IsUnchanged() {
			text += " " + row.Schema.Columns[i].Name + "=unchanged"
		} else {
			text += fmt.Sprintf(" %s=%d", row.Schema.Columns[i].Name, v[i].Int64())
		}
	}
	return text
}
