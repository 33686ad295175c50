package seglog

import (
	"encoding/binary"
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
)

// maxBatch ends a journal batch of one partition and begins another in the same entry.
const maxBatch = 64 << 20

// builderMemory is what the builders of all partitions keep for the next group.
const builderMemory = 64 << 20

// partBuilder builds the batches of one partition in the group at hand.
type partBuilder struct {
	topic     eventlog.TopicID
	partition int32
	next      eventlog.Offset // of the next record, if the group gets durable
	builder   eventlog.BatchBuilder
	batch     uint32 // index of the batch being built
	run       uint32 // records of the current transaction in it
	touched   bool
}

// pendingGroup is a group that is encoded but not durable.
type pendingGroup struct {
	entry  []byte // header and payload, in memory of its own
	topics []eventlog.Topic
	marks  []mark
	first  uint64
	txs    []*eventlog.Tx
	parts  []*partBuilder
}

func (g *pendingGroup) payload() []byte { return g.entry[entryHeaderSize:] }

// groupEncoder assigns CSNs and offsets and writes a group's entry. Nothing that
// it changes outlives a failed write: it starts from the log's durable state.
type groupEncoder struct {
	l       *Log
	g       *pendingGroup
	nextCSN eventlog.CSN
	ingest  int64
	rows    []byte
	runs    []byte
	nRuns   uint64
	batches []sealedBatch
	byTx    []*partBuilder // partitions with records of the current transaction
}

// sealedBatch is a finished batch; nil data: still in its builder.
type sealedBatch struct {
	p    *partBuilder
	data []byte
}

// encodeGroup encodes the requests that are possible; the others get their errors. nil: none was.
func (l *Log) encodeGroup(taken []*request) (*pendingGroup, error) {
	st := l.st // only the token's holder, which we are, changes it
	e := &groupEncoder{l: l, g: &pendingGroup{first: st.ordinal}, nextCSN: st.nextCSN}
	e.ingest = max(st.lastIngest, l.opts.Clock().UnixMicro())
	defer e.release()
	for _, r := range taken {
		switch {
		case r.topic != nil:
			r.made, r.err = e.addTopic(*r.topic)
		case r.mark != nil:
			e.g.marks = append(e.g.marks, *r.mark)
		default:
			if r.err = l.checkQuota(r); r.err != nil {
				continue
			}
			if r.size == skipRequest {
				e.nextCSN = max(e.nextCSN, r.txs[0].CSN)
			}
			for _, tx := range r.txs {
				e.addTx(tx)
			}
		}
	}
	if e.nextCSN > eventlog.MaxCSN {
		return nil, fmt.Errorf("append: CSN %d is beyond %d", e.nextCSN, eventlog.MaxCSN)
	}
	if len(e.g.topics)+len(e.g.marks)+len(e.g.txs) == 0 {
		return nil, nil
	}
	return e.g, e.finish()
}

func (e *groupEncoder) addTopic(spec eventlog.TopicSpec) (eventlog.Topic, error) {
	for i := range e.g.topics { // asked for twice in one group
		if e.g.topics[i].Spec.Name == spec.Name {
			merged, err := eventlog.MergeSpec(e.g.topics[i].Spec, spec)
			if err == nil {
				e.g.topics[i].Spec = merged
			}
			return e.g.topics[i], err
		}
	}
	st := e.l.st
	t := eventlog.Topic{}
	var err error
	if have := st.byName[spec.Name]; have != nil {
		t.ID = have.topic.ID
		t.Spec, err = eventlog.MergeSpec(have.topic.Spec, spec)
		if err == nil && t.Spec == have.topic.Spec {
			return t, nil
		}
	} else {
		t.ID = eventlog.TopicID(len(st.topics) + 1)
		for _, made := range e.g.topics {
			t.ID = max(t.ID, made.ID+1)
		}
		t.Spec, err = eventlog.CompleteSpec(spec)
	}
	if err == nil {
		e.g.topics = append(e.g.topics, t)
	}
	return t, err
}

func (e *groupEncoder) addTx(tx *eventlog.Tx) {
	tx.IngestTime = e.ingest
	if tx.Kind != eventlog.TxOutput {
		tx.CSN = e.nextCSN
		e.nextCSN++
	}
	e.g.txs = append(e.g.txs, tx)
	e.runs, e.nRuns, e.byTx = e.runs[:0], 0, e.byTx[:0]
	for i := range tx.Records {
		r := &tx.Records[i]
		r.CSN, r.Time = tx.CSN, tx.CommitTime
		parts := e.l.st.topic(r.Topic).topic.Spec.Partitions
		if r.Partition != eventlog.EveryPartition {
			r.Partition = eventlog.PartitionOf(r.Key, parts)
			r.Offset = e.add(r, r.Partition, false)
			continue
		}
		for p := parts - 1; p >= 0; p-- { // r.Partition stays as it is until the group is durable
			r.Offset = e.add(r, int32(p), true)
		}
	}
	for _, p := range e.byTx {
		e.endRun(p)
	}
	e.rows = appendTxHead(e.rows, tx)
	e.rows = binary.AppendUvarint(e.rows, e.nRuns)
	e.rows = append(e.rows, e.runs...)
}

// add puts a record into its partition's batch and returns its offset.
func (e *groupEncoder) add(r *eventlog.Record, partition int32, every bool) eventlog.Offset {
	p := e.part(r.Topic, partition)
	r.Offset = p.next
	if !p.builder.Fits(r) || p.builder.Size() > maxBatch {
		e.endRun(p)
		e.batches[p.batch].data = p.builder.AppendTo(nil, eventlog.CompressionNone)
		e.begin(p, r.CSN)
	} else if p.builder.Len() == 0 {
		p.builder.Reset(r.CSN, true)
	}
	if p.run == 0 {
		e.byTx = append(e.byTx, p)
	}
	p.builder.Add(r, every)
	p.run++
	p.next++
	return r.Offset
}

func (e *groupEncoder) begin(p *partBuilder, base eventlog.CSN) {
	p.batch = uint32(len(e.batches))
	p.builder.Reset(base, true)
	e.batches = append(e.batches, sealedBatch{p: p})
}

// endRun writes the current transaction's run in p's batch.
func (e *groupEncoder) endRun(p *partBuilder) {
	if p.run == 0 {
		return
	}
	e.runs = binary.AppendUvarint(e.runs, uint64(p.batch))
	e.runs = binary.AppendUvarint(e.runs, uint64(p.run))
	e.nRuns++
	p.run = 0
}

// part returns the builder of a partition, ready for this group.
func (e *groupEncoder) part(topic eventlog.TopicID, partition int32) *partBuilder {
	w := &e.l.w
	for len(w.parts) <= int(topic) {
		w.parts = append(w.parts, nil)
	}
	if w.parts[topic] == nil {
		w.parts[topic] = make([]*partBuilder, e.l.st.topic(topic).topic.Spec.Partitions)
	}
	p := w.parts[topic][partition]
	if p == nil {
		p = &partBuilder{topic: topic, partition: partition}
		w.builders++
		w.parts[topic][partition] = p
	}
	if !p.touched {
		p.touched, p.run = true, 0
		p.next = e.l.st.topic(topic).next[partition]
		e.g.parts = append(e.g.parts, p)
		e.begin(p, 0)
	}
	return p
}

// finish assembles the entry.
func (e *groupEncoder) finish() error {
	size := entryHeaderSize + len(e.rows) + 64
	for _, b := range e.batches {
		size += len(b.data) + b.p.builder.Size() + 128
	}
	if size > maxEntry {
		return fmt.Errorf("append: a group of %d bytes; %d are possible", size, maxEntry)
	}
	b := beginEntry(make([]byte, 0, size))
	b = append(b, groupVersion)
	b = binary.AppendUvarint(b, uint64(len(e.g.topics)))
	for _, t := range e.g.topics {
		b = appendTopic(b, t)
	}
	b = binary.AppendUvarint(b, uint64(len(e.g.marks)))
	for _, m := range e.g.marks {
		b = appendMark(b, m)
	}
	b = binary.AppendUvarint(b, e.g.first)
	b = binary.AppendUvarint(b, uint64(len(e.g.txs)))
	b = append(b, e.rows...)
	b = binary.AppendUvarint(b, uint64(len(e.batches)))
	for _, s := range e.batches {
		b = appendBatch(b, s)
	}
	finishEntry(b, 0, seedOf(e.l.w.file.number), kindGroup)
	e.g.entry = b
	return nil
}

func appendBatch(b []byte, s sealedBatch) []byte {
	b = binary.AppendUvarint(b, uint64(s.p.topic))
	b = binary.AppendUvarint(b, uint64(s.p.partition))
	if s.data == nil {
		b = binary.AppendUvarint(b, uint64(s.p.builder.EncodedSize()))
		return s.p.builder.AppendTo(b, eventlog.CompressionNone)
	}
	return appendBytes(b, s.data)
}

// release makes the partitions' builders ready for the next group.
func (e *groupEncoder) release() {
	keep := max(16<<10, builderMemory/max(1, e.l.w.builders))
	for _, p := range e.g.parts {
		p.touched = false
		p.builder.Shrink(keep)
	}
}

// fill gives the callers what was assigned, once it is durable.
func (g *pendingGroup) fill() {
	for _, tx := range g.txs {
		for i := range tx.Records {
			if r := &tx.Records[i]; r.Partition == eventlog.EveryPartition {
				r.Partition = 0
			}
		}
	}
}
