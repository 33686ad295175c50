package crashlab

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

// In topics that are compacted a value is three columns, "a|b|c", of which "~" is unchanged.

const (
	opInsert = 1
	opDelete = 3
)

// mergeRows is what the lab's logs merge partial records with.
func mergeRows(_ eventlog.Topic, older, newer eventlog.Record) ([]byte, bool, error) {
	n, o := strings.Split(string(newer.Value), "|"), strings.Split(string(older.Value), "|")
	if len(n) != len(o) {
		return nil, false, fmt.Errorf("%q and %q have different columns", older.Value, newer.Value)
	}
	for i := range n {
		if n[i] == "~" {
			n[i] = o[i]
		}
	}
	return []byte(strings.Join(n, "|")), !slices.Contains(n, "~"), nil
}

// row is a key's value; open tells that it came under another key and lacks what is there.
type row struct {
	value string
	open  bool
}

// table is what the records of a topic amount to.
type table struct {
	rows  map[string]row
	moved map[eventlog.CSN]row // rows that the delete halves of key changes took away
}

func newTable() *table { return &table{map[string]row{}, map[eventlog.CSN]row{}} }

// apply folds one record in; they come by CSN and seq.
func (t *table) apply(r *eventlog.Record) {
	key, moved := string(r.Key), r.Flags&eventlog.FlagMoved != 0
	old, have := t.rows[key]
	switch {
	case r.Op == opEvery:
		clear(t.rows)
	case r.Value == nil:
		if delete(t.rows, key); moved && have {
			t.moved[r.CSN] = old
		}
	case r.Flags&eventlog.FlagPartial == 0:
		t.rows[key] = row{value: string(r.Value)}
	default:
		if moved {
			old, have = t.moved[r.CSN]
		}
		value := string(r.Value)
		if have {
			v, _, err := mergeRows(eventlog.Topic{}, eventlog.Record{Value: []byte(old.value)}, *r)
			if err != nil {
				panic(err) // all values of the lab have the same columns
			}
			value = string(v)
		}
		t.rows[key] = row{value, moved || have && old.open}
	}
}

// differs tells in what t is not as want, "" if it is.
func (t *table) differs(want *table) string {
	for _, k := range slices.Sorted(maps.Keys(want.rows)) {
		if got, ok := t.rows[k]; !ok || got.value != want.rows[k].value {
			return fmt.Sprintf("%s is %q (%v), want %q", k, got.value, ok, want.rows[k].value)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.rows)) {
		if _, ok := want.rows[k]; !ok {
			return fmt.Sprintf("%s is %q, want none", k, t.rows[k].value)
		}
	}
	return ""
}

// sourceTable returns the rows of a topic as its source has them.
func (l *life) sourceTable(topic eventlog.TopicID) *table {
	if t := l.tables[topic]; t != nil {
		return t
	}
	t := newTable()
	for _, k := range l.model.txs {
		for i := range k.tx.Records {
			if r := &k.tx.Records[i]; r.Topic == topic && k.fate == acknowledged {
				t.apply(r)
			}
		}
	}
	l.tables[topic] = t
	return t
}

// change makes a change that a source could make: one record, or the two halves of a key change.
func (l *life) change(topic eventlog.TopicID, id string, seq uint32) []eventlog.Record {
	t := l.sourceTable(topic)
	key, to := l.key(), l.key()
	old, have := t.rows[key]
	_, taken := t.rows[to]
	r := eventlog.Record{Topic: topic, Seq: seq, Op: opInsert, Key: []byte(key), Value: l.columns(id, seq)}
	out := []eventlog.Record{r}
	switch n := l.rng.IntN(60); {
	case n == 0:
		out[0] = truncate(topic, seq, r.Value)
	case n < 12 && have:
		out[0].Op, out[0].Value = opDelete, nil
	case n < 25 && have: // leaves a column alone
		out[0].Flags, out[0].Value = eventlog.FlagPartial, unchanged(r.Value)
	case n < 32 && have && !old.open && !taken: // and the same under another key
		out[0].Op, out[0].Flags, out[0].Value = opDelete, eventlog.FlagMoved, nil
		r.Seq, r.Flags, r.Key, r.Value = seq+1, eventlog.FlagMoved|eventlog.FlagPartial, []byte(to), unchanged(r.Value)
		out = append(out, r)
	}
	for i := range out {
		t.apply(&out[i])
	}
	return out
}

// whole makes a record that stands by itself, for streams and the outputs of views.
func (l *life) whole(topic eventlog.TopicID, id string, seq uint32, source bool) eventlog.Record {
	r := eventlog.Record{Topic: topic, Seq: seq, Op: opInsert, Key: []byte(l.key()), Value: l.columns(id, seq)}
	switch n := l.rng.IntN(60); {
	case n == 0 && source:
		return truncate(topic, seq, r.Value)
	case n < 12:
		r.Op, r.Value = opDelete, nil
	}
	return r
}

func (l *life) key() string { return fmt.Sprint("k", l.rng.IntN(20)) }

func (l *life) columns(id string, seq uint32) []byte {
	return fmt.Appendf(nil, "%s/%d|%*d|%s", id, seq, 1+l.rng.IntN(l.values), seq, id)
}

// unchanged makes a value's last column one that the change left alone.
func unchanged(value []byte) []byte {
	return append(bytes.Clone(value[:bytes.LastIndexByte(value, '|')+1]), '~')
}

func truncate(topic eventlog.TopicID, seq uint32, value []byte) eventlog.Record {
	return eventlog.Record{Topic: topic, Seq: seq, Op: opEvery, Partition: eventlog.EveryPartition, Key: []byte(eventlog.TruncateKey), Value: value}
}
