package seglog

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

// rowlessReader reads the transactions of which _tx no longer has the rows: it
// merges the partitions, up to where their rows begin, by CSN and seq. Kind is
// guessed from the topic, source and position are unknown.
type rowlessReader struct {
	parts []*rowlessPart
}

// rowlessPart is a partition with its next record.
type rowlessPart struct {
	cur    *segCursor
	end    eventlog.Offset
	output bool
	head   eventlog.Record
	every  bool
	live   bool
}

// rowlessOutputs bounds the outputs shown as one transaction.
const rowlessOutputs = 1000

// isOutputTopic reports whether a topic holds outputs, which take no CSN of their own.
func isOutputTopic(name string) bool {
	return strings.HasPrefix(name, "view.") || strings.HasPrefix(name, "_dlq.")
}

// startRowless returns a reader of what the reader wants below the rows of _tx, and
// moves the reader to where those begin; nil if it wants nothing there.
func (r *reader) startRowless() (*rowlessReader, error) {
	l := r.l
	l.mu.RLock()
	start, err := l.st.txStart()
	l.mu.RUnlock()
	if err != nil || start.ends == nil {
		return nil, err
	}
	r.ordinal = max(r.ordinal, uint64(start.ends[partKey{txTopic, 0}]))
	m := &rowlessReader{}
	for _, k := range slices.SortedFunc(maps.Keys(start.ends), partKey.compare) { // a replay is the same again
		end := start.ends[k]
		if k.topic == txTopic {
			continue
		}
		t, ok := l.topicByID(k.topic)
		output := isOutputTopic(t.Spec.Name)
		if !ok || !r.shows(k.topic) || output && !r.spec.Outputs {
			continue
		}
		from := eventlog.Offset(0)
		if f, ok := r.spec.From[k.topic]; ok {
			if int(k.partition) < len(f) {
				from = f[k.partition]
			}
		} else if r.spec.After >= start.csn {
			continue
		}
		if from < end {
			m.parts = append(m.parts, &rowlessPart{cur: newSegCursor(l, k, from), end: end, output: output})
		}
	}
	for i := 0; i < len(m.parts); i++ {
		if err := m.parts[i].advance(r); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

// advance reads the partition's next record that the reader wants.
func (p *rowlessPart) advance(r *reader) error {
	for {
		var err error
		if p.live, err = p.cur.nextBelow(p.end, &p.head); err != nil || !p.live {
			return err
		}
		p.every = p.cur.every
		if !(p.every && p.head.Partition != 0) && !r.skips(&p.head) {
			return nil
		}
	}
}

// next puts the next transaction into r; false if there is none.
func (m *rowlessReader) next(r *reader) (bool, error) {
	first := m.first()
	if first == nil {
		return false, nil
	}
	csn, output := first.head.CSN, first.output
	r.tx = eventlog.Tx{Kind: eventlog.TxChunk, CSN: csn, CommitTime: first.head.Time}
	if output {
		r.tx.Kind, r.tx.Since = eventlog.TxOutput, csn
	}
	r.records, r.held = r.records[:0], r.held[:0]
	if output {
		return true, m.takeOutputs(r, first)
	}
	return true, m.takeSource(r)
}

// takeSource takes a transaction's records in order of their seq: all, or a piece.
func (m *rowlessReader) takeSource(r *reader) error {
	var parts []*rowlessPart
	for _, p := range m.parts {
		if p.live && p.head.CSN == r.tx.CSN && !p.output {
			parts = append(parts, p)
		}
	}
	for size := 0; len(parts) > 0; {
		if r.tx.More = r.spec.Pieces && size >= r.l.opts.StreamChunk; r.tx.More {
			return nil
		}
		i := 0
		for n, p := range parts {
			if p.head.Seq < parts[i].head.Seq {
				i = n
			}
		}
		p := parts[i]
		size += len(p.head.Key) + len(p.head.Value) + recordOverhead
		r.hold(p.head)
		if err := p.advance(r); err != nil {
			return err
		}
		if !p.live || p.head.CSN != r.tx.CSN {
			parts = slices.Delete(parts, i, i+1)
		}
	}
	return nil
}

// takeOutputs takes what one transaction, of perhaps several with this CSN, put
// into one partition: they cannot be told apart over partitions.
func (m *rowlessReader) takeOutputs(r *reader, p *rowlessPart) error {
	for p.live && p.head.CSN == r.tx.CSN && len(r.records) < rowlessOutputs {
		if n := len(r.records); n > 0 && p.head.Seq <= r.records[n-1].Seq {
			return nil
		}
		r.hold(p.head)
		if err := p.advance(r); err != nil {
			return err
		}
	}
	return nil
}

// first returns the partition with the next record; outputs follow what has their CSN.
func (m *rowlessReader) first() (first *rowlessPart) {
	for _, p := range m.parts {
		switch {
		case !p.live:
		case first == nil, p.head.CSN < first.head.CSN, p.head.CSN == first.head.CSN && first.output && !p.output:
			first = p
		}
	}
	return first
}

func (m *rowlessReader) close() {
	for _, p := range m.parts {
		p.cur.close()
	}
}

// hold keeps a copy of a record: its cursor may leave the batch that it is in.
func (r *reader) hold(rec eventlog.Record) {
	start := len(r.held)
	r.held = append(append(r.held, rec.Key...), rec.Value...)
	b := r.held[start:]
	if rec.Key != nil {
		rec.Key = b[:len(rec.Key):len(rec.Key)]
	}
	if rec.Value != nil {
		rec.Value = b[len(rec.Key):]
	}
	r.records = append(r.records, rec)
}
