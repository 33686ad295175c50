package crashlab

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

// What compaction and retention may take away, and nothing else:
//
//   - Of a topic with cleanup delete the first records of a partition, as many as
//     there were when retention last ran.
//   - Of a compacted topic any record, if all folds stay what they were: from
//     nothing as of each CSN from the horizon on, and from each state that the
//     cursor or a pin admits to the end. A partial record may have taken older values.
//   - The first rows of _tx, as many as there were when retention last ran. The
//     records of those transactions are still read, by CSN.

func (m *model) topicOf(id eventlog.TopicID) eventlog.Topic {
	i := slices.IndexFunc(m.topic, func(t eventlog.Topic) bool { return t.ID == id })
	return m.topic[i]
}

// placeOf returns a record's partition, before the log has told it too.
func (m *model) placeOf(r *eventlog.Record) place {
	if r.Op == opEvery {
		return place{r.Topic, 0}
	}
	return place{r.Topic, eventlog.PartitionOf(r.Key, m.topicOf(r.Topic).Spec.Partitions)}
}

// comparePartitions compares what each partition by itself shows with the
// transactions read, and with those appended.
func (m *model) comparePartitions(log eventlog.Log, got []eventlog.Tx, parts map[place][]eventlog.Record, report reporter) (f Faults) {
	want, read := map[place][]eventlog.Record{}, map[place][]eventlog.Record{}
	for _, k := range m.txs {
		for _, r := range k.tx.Records {
			p := m.placeOf(&r)
			want[p] = append(want[p], r)
		}
	}
	for i := range got {
		for _, r := range got[i].Records {
			p := place{r.Topic, r.Partition}
			read[p] = append(read[p], r)
		}
	}
	for p, got := range parts {
		what := sameRecords(read[p], shownOnce(got))
		if what == "" {
			what = m.samePartition(p, got, want[p], log.EndOffsets(p.topic)[p.partition])
		}
		if what != "" {
			report("topic %d partition %d: %s", p.topic, p.partition, what)
			f.Wrong++
		}
	}
	for _, t := range m.topic {
		if !isCompacted(t) || f.Any() {
			continue
		}
		if what := m.foldsDiffer(log, t, want, parts); what != "" {
			report("topic %q: %s", t.Spec.Name, what)
			f.Wrong++
		}
	}
	return f
}

// shownOnce leaves out the copies that a reader of transactions does not show.
func shownOnce(records []eventlog.Record) []eventlog.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r eventlog.Record) bool { return r.Op == opEvery && r.Partition != 0 })
}

// sameRecords compares a partition's records as transactions showed them with those it shows itself.
func sameRecords(inTxs, alone []eventlog.Record) string {
	if len(inTxs) != len(alone) {
		return fmt.Sprintf("%d records, in transactions %d", len(alone), len(inTxs))
	}
	for i := range alone {
		if a, b := &inTxs[i], &alone[i]; !sameRecord(a, b) {
			return fmt.Sprintf("record %d is %+v, in its transaction %+v", i, *b, *a)
		}
	}
	return ""
}

func sameRecord(a, b *eventlog.Record) bool {
	return a.Topic == b.Topic && a.Partition == b.Partition && a.Offset == b.Offset && a.CSN == b.CSN && a.Seq == b.Seq &&
		a.Op == b.Op && a.Flags == b.Flags && a.Time == b.Time &&
		bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
}

// samePartition tells what of a partition is there that was not appended, or gone that may not go.
func (m *model) samePartition(p place, got, want []eventlog.Record, end eventlog.Offset) string {
	every := func(r eventlog.Record) bool { return r.Op == opEvery } // its copies are counted by the suite
	got, want = slices.DeleteFunc(slices.Clone(got), every), slices.DeleteFunc(slices.Clone(want), every)
	gone := len(want) - len(got)
	switch m.topicOf(p.topic).Spec.Cleanup {
	case eventlog.CleanupDelete:
		if gone > m.mayGo[p] {
			return fmt.Sprintf("%d records, want %d, of which %d may be gone", len(got), len(want), m.mayGo[p])
		}
		want = want[max(gone, 0):]
	case eventlog.CleanupCompact:
		want = sameKept(got, want)
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := &got[i], &want[i]; !sameSpot(g, w) || !isFormOf(g, w) {
			return fmt.Sprintf("record %d is %+v, want %+v", i, *g, *w)
		}
		if got[i].Offset >= end {
			return fmt.Sprintf("offset %d at or beyond the end %d", got[i].Offset, end)
		}
	}
	return ""
}

// sameKept returns those of want that got has, too.
func sameKept(got, want []eventlog.Record) (out []eventlog.Record) {
	for i := range want {
		if n := len(out); n < len(got) && sameSpot(&got[n], &want[i]) {
			out = append(out, want[i])
		}
	}
	return out
}

// sameSpot reports whether a record is where one was appended. Outputs of several
// transactions may have one CSN: one of a stream is told from them by its value.
func sameSpot(got, want *eventlog.Record) bool {
	return (want.Offset == unplaced && isFormOf(got, want) || got.Offset == want.Offset) && got.CSN == want.CSN && got.Seq == want.Seq && bytes.Equal(got.Key, want.Key)
}

// unplaced is the offset of a record of a stream before it was read.
const unplaced = -1

// isFormOf reports whether a record is as it was appended, or has taken values that it lacked.
func isFormOf(got, want *eventlog.Record) bool {
	if got.Flags == want.Flags && bytes.Equal(got.Value, want.Value) && (got.Value == nil) == (want.Value == nil) {
		return true
	}
	if want.Flags&eventlog.FlagPartial == 0 || got.Value == nil || got.Flags|eventlog.FlagPartial != want.Flags {
		return false
	}
	g, w := strings.Split(string(got.Value), "|"), strings.Split(string(want.Value), "|")
	return slices.EqualFunc(g, w, func(g, w string) bool { return w == "~" || g == w })
}

// foldsDiffer compares what a compacted topic amounts to with what was appended.
func (m *model) foldsDiffer(log eventlog.Log, t eventlog.Topic, wantParts, gotParts map[place][]eventlog.Record) string {
	var want, got []eventlog.Record
	for p := range int32(t.Spec.Partitions) {
		want, got = append(want, wantParts[place{t.ID, p}]...), append(got, gotParts[place{t.ID, p}]...)
	}
	inOrder(want, isView(t))
	inOrder(got, isView(t))
	horizon := log.Horizon(t.ID)
	if horizon > log.Frontier() {
		return fmt.Sprintf("horizon %d is beyond the frontier %d", horizon, log.Frontier())
	}
	whole, what := foldTogether(want, got, horizon)
	if what != "" {
		return what
	}
	for _, from := range startsFrom(want, m.admitted(log, t.ID, horizon)) {
		state := newTable()
		for i := range want {
			if want[i].CSN <= from {
				state.apply(&want[i])
			}
		}
		for i := range got {
			if got[i].CSN > from {
				state.apply(&got[i])
			}
		}
		if what := state.differs(whole); what != "" {
			return fmt.Sprintf("from the state as of CSN %d (horizon %d) to the end: %s", from, horizon, what)
		}
	}
	return ""
}

// inOrder sorts records of a topic by CSN and seq. Outputs of several transactions
// may have one CSN: those of a key follow each other in its partition.
func inOrder(records []eventlog.Record, outputs bool) {
	slices.SortStableFunc(records, func(a, b eventlog.Record) int {
		if c := cmp.Compare(a.CSN, b.CSN); c != 0 || outputs {
			return c
		}
		return cmp.Compare(a.Seq, b.Seq)
	})
}

// foldTogether folds both from nothing and compares them as of each CSN from the horizon on.
func foldTogether(want, got []eventlog.Record, horizon eventlog.CSN) (whole *table, what string) {
	w, g := newTable(), newTable()
	j := 0
	for i := range want {
		w.apply(&want[i])
		csn := want[i].CSN
		if i+1 < len(want) && want[i+1].CSN == csn {
			continue
		}
		for ; j < len(got) && got[j].CSN <= csn; j++ {
			g.apply(&got[j])
		}
		if csn < horizon {
			continue
		}
		if what := g.differs(w); what != "" {
			return w, fmt.Sprintf("as of CSN %d (horizon %d): %s", csn, horizon, what)
		}
	}
	return w, ""
}

// admitted returns the CSN from which on a consumer's state may go on from the log.
func (m *model) admitted(log eventlog.Log, topic eventlog.TopicID, horizon eventlog.CSN) eventlog.CSN {
	from := horizon
	if c, ok := log.Cursors()[cursorName]; ok && slices.Contains(c.Topics, topic) {
		from = c.Passed
	}
	if m.pin != nil {
		if h, ok := m.pin.horizon[topic]; ok {
			from = min(from, h)
		}
	}
	return from
}

// startsFrom picks a few CSNs of records at or above one.
func startsFrom(records []eventlog.Record, least eventlog.CSN) (out []eventlog.CSN) {
	const most = 5
	i, _ := slices.BinarySearchFunc(records, least, func(r eventlog.Record, csn eventlog.CSN) int { return cmp.Compare(r.CSN, csn) })
	for n := range min(most, len(records)-i) {
		out = append(out, records[i+n*(len(records)-i)/most].CSN)
	}
	return out
}

// compareRowless checks transactions whose rows have gone: they come before all
// others, by CSN, those of sources once and whole. Their records are compared by partition.
func (m *model) compareRowless(got []eventlog.Tx, report reporter) (f Faults) {
	last, output := eventlog.CSN(0), false
	for i := range got {
		tx := &got[i]
		isOutput := tx.Kind == eventlog.TxOutput
		if tx.CSN < last || tx.CSN == last && !(isOutput) {
			report("records with CSN %d are shown behind those with CSN %d (outputs: %v)", tx.CSN, last, output)
			f.Wrong++
		}
		if !slices.IsSortedFunc(tx.Records, func(a, b eventlog.Record) int { return cmp.Compare(a.Seq, b.Seq) }) {
			report("records of the transaction with CSN %d are out of order", tx.CSN)
			f.Wrong++
		}
		last, output = tx.CSN, isOutput
	}
	return f
}

// isRowless reports whether a transaction read has no row any more.
func isRowless(tx *eventlog.Tx) bool { return tx.ID == "" && len(tx.Records) > 0 }
