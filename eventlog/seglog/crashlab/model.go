package crashlab

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// fate is what is known of an append.
type fate uint8

const (
	acknowledged fate = iota // must be there, once
	unknown                  // no answer came: whole or not at all
	refused                  // must never be there
)

// kept is an append and what is known of it.
type kept struct {
	tx   *eventlog.Tx
	fate fate
	// rowMayGo: retention ran since it was appended.
	rowMayGo bool
}

// model is what the log must hold.
type model struct {
	txs   []*kept // in order
	byID  map[string]*kept
	marks map[string][][]byte // values that a consumer's mark may have
	next  int
	topic []eventlog.Topic
	// skipped is a CSN that the frontier has reached by Skip.
	skipped eventlog.CSN
	mayGo   map[place]int // records at the beginning of partitions that retention may have deleted
	cursors []string      // values that the cursor may have
	pin     *pinned       // nil: none is held
}

func newModel() *model {
	return &model{byID: map[string]*kept{}, marks: map[string][][]byte{}, mayGo: map[place]int{}, cursors: []string{cursorText(nil)}}
}

func (m *model) add(tx *eventlog.Tx, f fate) {
	k := &kept{tx: tx, fate: f}
	m.txs = append(m.txs, k)
	m.byID[tx.ID] = k
}

// doubt makes a transaction that was refused one of unknown fate again: the last
// one, also if a look has found it absent since.
func (m *model) doubt(id string) {
	k := m.byID[id]
	if k.fate = unknown; !slices.Contains(m.txs, k) {
		m.txs = append(m.txs, k)
	}
}

// Faults counts what is not as it must be.
type Faults struct{ Lost, Duplicate, Reordered, Wrong int }

// Any reports whether there is any.
func (f Faults) Any() bool { return f != Faults{} }

func (f *Faults) add(o Faults) {
	f.Lost += o.Lost
	f.Duplicate += o.Duplicate
	f.Reordered += o.Reordered
	f.Wrong += o.Wrong
}

// compare looks at a log after a restart, reports what is not right, and settles
// what was unknown. An error is one of the log's: the same log may be compared again.
func (m *model) compare(log eventlog.Log, report reporter) (f Faults, err error) {
	got, err := readAll(log)
	if err != nil {
		return f, err
	}
	parts, err := m.readPartitions(log)
	if err != nil {
		return f, err
	}
	rowless := 0
	for rowless < len(got) && isRowless(&got[rowless]) {
		rowless++
	}
	f.add(m.compareRowless(got[:rowless], report))
	named, frontier := m.compareNamed(got[rowless:], report)
	f.add(named)
	if rowless > 0 {
		frontier = max(frontier, got[rowless-1].CSN)
	}
	// The last transactions may be known by nothing but a row that has gone; outputs
	// behind them do not move the frontier.
	lastGone := false
	for _, k := range slices.Backward(m.txs) {
		if k.tx.Kind != eventlog.TxOutput {
			lastGone = k.rowMayGo
			break
		}
	}
	if at := log.Frontier(); at < frontier || at > frontier && !lastGone || at < m.skipped {
		report("frontier %d, the last transaction has %d, skipped to %d", at, frontier, m.skipped)
		f.Wrong++
	}
	f.add(m.compareStates(log, report))
	f.add(m.comparePartitions(log, got, parts, report))
	pieces, err := comparePieces(log, got, report)
	f.add(pieces)
	return f, err
}

// compareNamed compares transactions that have their rows, and settles what was
// unknown; frontier is the CSN of the last.
func (m *model) compareNamed(got []eventlog.Tx, report reporter) (f Faults, frontier eventlog.CSN) {
	seen := map[string]bool{}
	at := 0 // place in m.txs behind the last transaction seen
	for i := range got {
		tx := &got[i]
		if tx.Kind != eventlog.TxOutput {
			frontier = tx.CSN
		}
		if tx.ID == "" && len(tx.Records) == 0 {
			continue // a tick of Skip
		}
		k := m.byID[tx.ID]
		switch {
		case k == nil || k.fate == refused:
			report("transaction %q was never accepted", tx.ID)
			f.Wrong++
			continue
		case seen[tx.ID]:
			report("transaction %q is there twice", tx.ID)
			f.Duplicate++
			continue
		}
		seen[tx.ID] = true
		if i := slices.Index(m.txs[at:], k); i < 0 {
			report("transaction %q is out of order", tx.ID)
			f.Reordered++
		} else {
			at += i + 1
		}
		if what := m.differs(k, tx); what != "" {
			report("transaction %q: %s", tx.ID, what)
			f.Wrong++
		}
	}
	f.add(m.settle(seen, report))
	return f, frontier
}

// readAll returns copies of all transactions.
func readAll(log eventlog.Log) (out []eventlog.Tx, err error) {
	r, err := log.Read(eventlog.ReadSpec{Outputs: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil || tx == nil {
			return out, err
		}
		out = append(out, cloneTx(tx))
	}
}

func cloneTx(tx *eventlog.Tx) eventlog.Tx {
	c := *tx
	c.Position, c.Note = bytes.Clone(tx.Position), bytes.Clone(tx.Note)
	c.Records = slices.Clone(tx.Records)
	for i := range c.Records {
		c.Records[i].Key, c.Records[i].Value = bytes.Clone(c.Records[i].Key), bytes.Clone(c.Records[i].Value)
	}
	return c
}

// settle decides what was unknown, and counts what is missing: no row may be
// behind one that is there.
func (m *model) settle(seen map[string]bool, report reporter) (f Faults) {
	left := m.txs[:0]
	anySeen := false
	for _, k := range m.txs {
		switch {
		case seen[k.tx.ID]:
			k.fate, anySeen = acknowledged, true
			left = append(left, k)
		case k.fate == acknowledged && k.rowMayGo && !anySeen:
			left = append(left, k)
		case k.fate == acknowledged:
			report("transaction %q is lost", k.tx.ID)
			f.Lost++
		default:
			k.fate = refused // from now on it must stay away
		}
	}
	m.txs = left
	return f
}

// differs tells in what a transaction read differs from the one appended; one
// whose fate was unknown is taken as it is read, but for what its caller gave.
func (m *model) differs(k *kept, got *eventlog.Tx) string {
	want := k.tx
	if got.Kind != want.Kind || got.Source != want.Source || !bytes.Equal(got.Position, want.Position) ||
		!bytes.Equal(got.Note, want.Note) || got.CommitTime != want.CommitTime || got.Since != want.Since {
		return fmt.Sprintf("row %+v, want %+v", *got, *want)
	}
	if k.fate == acknowledged && (got.CSN != want.CSN || got.IngestTime != want.IngestTime) {
		return fmt.Sprintf("CSN %d at %d, acknowledged were %d at %d", got.CSN, got.IngestTime, want.CSN, want.IngestTime)
	}
	if what := m.recordsDiffer(k, got); what != "" {
		return what
	}
	want.CSN, want.IngestTime = got.CSN, got.IngestTime
	return ""
}

// recordsDiffer compares records; those that were cleaned away are looked at by partition.
func (m *model) recordsDiffer(k *kept, got *eventlog.Tx) string {
	left := got.Records
	for i := range k.tx.Records {
		w := &k.tx.Records[i]
		if k.fate != acknowledged {
			w.CSN, w.Time = got.CSN, got.CommitTime
		}
		if len(left) == 0 || left[0].Seq != w.Seq {
			if m.topicOf(w.Topic).Spec.Cleanup != eventlog.CleanupNone {
				continue
			}
			return fmt.Sprintf("%d records, want %d; record %d is missing", len(got.Records), len(k.tx.Records), i)
		}
		g := &left[0]
		left = left[1:]
		if g.Topic != w.Topic || g.Op != w.Op || !bytes.Equal(g.Key, w.Key) || g.CSN != got.CSN || !isFormOf(g, w) ||
			!isCompacted(m.topicOf(w.Topic)) && !bytes.Equal(g.Value, w.Value) {
			return fmt.Sprintf("record %d is %+v, want %+v", i, *g, *w)
		}
		if k.fate == acknowledged && w.Offset != unplaced && (g.Offset != w.Offset || g.Partition != w.Partition) {
			return fmt.Sprintf("record %d is at %d/%d, acknowledged was %d/%d", i, g.Partition, g.Offset, w.Partition, w.Offset)
		}
		w.Offset, w.Partition = g.Offset, g.Partition
	}
	if len(left) > 0 {
		return fmt.Sprintf("record %+v is one too many", left[0])
	}
	return ""
}

// compareStates checks positions of sources and marks.
func (m *model) compareStates(log eventlog.Log, report reporter) (f Faults) {
	last := map[string]*eventlog.Tx{}
	for _, k := range m.txs {
		if k.tx.Kind != eventlog.TxOutput && len(k.tx.Position) > 0 {
			last[k.tx.Source] = k.tx
		}
	}
	for source, tx := range last {
		if s, ok := log.SourceState(source); !ok || !bytes.Equal(s.Position, tx.Position) || s.CSN != tx.CSN {
			report("source %s is at %q, CSN %d; want %q, CSN %d", source, s.Position, s.CSN, tx.Position, tx.CSN)
			f.Wrong++
		}
	}
	for consumer, values := range m.marks {
		c, err := log.Checkpoint(consumer)
		if err != nil || !slices.ContainsFunc(values, func(v []byte) bool { return bytes.Equal(v, c) }) {
			report("mark of %s is %q, %v; want one of %q", consumer, c, err, values)
			f.Wrong++
		}
		m.marks[consumer] = [][]byte{bytes.Clone(c)}
	}
	cursor := cursorText(nil)
	if c, ok := log.Cursors()[cursorName]; ok {
		cursor = cursorText(&c)
	}
	if !slices.Contains(m.cursors, cursor) {
		report("cursor is %s, want one of %q", cursor, m.cursors)
		f.Wrong++
	}
	m.cursors = []string{cursor}
	return f
}

type place struct {
	topic     eventlog.TopicID
	partition int32
}

// readPartitions reads each partition by itself.
func (m *model) readPartitions(log eventlog.Log) (map[place][]eventlog.Record, error) {
	out := map[place][]eventlog.Record{}
	for _, t := range m.topic {
		for p := range int32(t.Spec.Partitions) {
			got, err := readPartition(log, t.ID, p)
			if err != nil {
				return nil, fmt.Errorf("partition %s/%d: %w", t.Spec.Name, p, err)
			}
			out[place{t.ID, p}] = got
		}
	}
	return out, nil
}

func readPartition(log eventlog.Log, topic eventlog.TopicID, p int32) (out []eventlog.Record, err error) {
	r, err := log.ReadPartition(topic, p, log.StartOffsets(topic)[p])
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return out, err
		}
		rec.Key, rec.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
		out = append(out, rec)
	}
}
