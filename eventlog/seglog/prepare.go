package seglog

import (
	"github.com/tailwater/tailwater/eventlog"
)

const (
	// maxBatch ends a journal batch of one partition and begins another in the same entry.
	maxBatch = 64 << 20
	// spareMemory bounds what prepared requests keep for the next ones, all together.
	spareMemory = 8 << 20
	// compressFrom is the size from which a batch is compressed where the journal is.
	compressFrom = 1 << 10
	// maxSparePrepared bounds how many prepared requests are kept.
	maxSparePrepared = 4
)

// prepared is the transactions of a request, encoded by their caller as far as
// that is possible while their places are unknown: offsets count from 0 in each
// partition, CSNs from the request's first. The token's holder adds to the drafts
// what they count from, and writes the transactions' rows.
type prepared struct {
	l      *Log
	plans  []*partPlan
	bodies []*body
	nPlans int           // of plans, in use
	nBody  int           // of bodies
	lookup [][]*partPlan // by topic id and partition; nil: not in this request
	runs   []run         // of all transactions, the batches counted in this request
	ends   []int         // where each transaction's runs end
	byTx   []*partPlan   // partitions with records of the current transaction
	csns   eventlog.CSN  // how many CSNs the request takes

	// section is what the entry holds of the batches: each topic, partition,
	// size and draft. Where it is large it lies in mem, with room before it for
	// the rest of an entry.
	section []byte
	mem     *slab
	small   []byte // memory of a section that is not large
	memory  int64  // kept while it is spare
}

// partPlan is a partition's part in a request.
type partPlan struct {
	key   partKey
	count eventlog.Offset // records so far
	body  int             // index of the batch being built
	run   uint32          // records of the current transaction in it
	base  eventlog.Offset // where the records begin in the log, once that is known
}

// body is a batch of a request.
type body struct {
	plan    *partPlan
	outputs bool // its CSNs are final
	builder eventlog.BatchBuilder
	draft   eventlog.Draft
	at      int // where its draft begins in the section
}

// prepare encodes transactions. The caller owns what it returns until recycle.
func (l *Log) prepare(txs []*eventlog.Tx) *prepared {
	var p *prepared
	select {
	case p = <-l.spare:
		l.spareBytes.Add(-p.memory)
	default:
		p = &prepared{l: l}
	}
	head := entryHead0
	for _, tx := range txs {
		p.addTx(tx)
		head += rowBound(tx)
	}
	p.makeSection(head + len(p.runs)*runBound)
	return p
}

func (p *prepared) addTx(tx *eventlog.Tx) {
	csn := tx.CSN
	if tx.Kind != eventlog.TxOutput {
		csn = p.csns
		p.csns++
	}
	p.byTx = p.byTx[:0]
	for i := range tx.Records {
		r := &tx.Records[i]
		r.CSN, r.Time = csn, tx.CommitTime
		parts := p.partitions(r.Topic)
		if r.Partition != eventlog.EveryPartition {
			r.Partition = eventlog.PartitionOf(r.Key, len(parts))
			p.add(r, r.Partition, false, tx.Kind)
			continue
		}
		for k := len(parts) - 1; k >= 0; k-- { // r.Partition stays as it is until the group is durable
			p.add(r, int32(k), true, tx.Kind)
		}
	}
	for _, plan := range p.byTx {
		p.endRun(plan)
	}
	p.ends = append(p.ends, len(p.runs))
}

// partitions returns the plans of a topic's partitions, nil where there is none yet.
func (p *prepared) partitions(topic eventlog.TopicID) []*partPlan {
	for len(p.lookup) <= int(topic) {
		p.lookup = append(p.lookup, nil)
	}
	if p.lookup[topic] == nil {
		t, _ := p.l.topicByID(topic) // CheckGroup found it, and its partition count is frozen
		p.lookup[topic] = make([]*partPlan, t.Spec.Partitions)
	}
	return p.lookup[topic]
}

// add puts a record into its partition's batch.
func (p *prepared) add(r *eventlog.Record, partition int32, every bool, kind eventlog.TxKind) {
	plan := p.lookup[r.Topic][partition]
	if plan == nil {
		plan = p.newPlan(partKey{r.Topic, partition})
	}
	r.Offset = plan.count
	outputs := kind == eventlog.TxOutput
	var b *body
	if plan.body >= 0 {
		b = p.bodies[plan.body]
	}
	if b == nil || b.outputs != outputs || !b.builder.Fits(r) || b.builder.Size() > maxBatch {
		p.endRun(plan)
		b = p.newBody(plan, outputs, r.CSN)
	}
	if plan.run == 0 {
		p.byTx = append(p.byTx, plan)
	}
	b.builder.Add(r, every)
	plan.run++
	plan.count++
}

func (p *prepared) newPlan(k partKey) *partPlan {
	if p.nPlans == len(p.plans) {
		p.plans = append(p.plans, new(partPlan))
	}
	plan := p.plans[p.nPlans]
	p.nPlans++
	*plan = partPlan{key: k, body: -1}
	p.lookup[k.topic][k.partition] = plan
	return plan
}

func (p *prepared) newBody(plan *partPlan, outputs bool, base eventlog.CSN) *body {
	if p.nBody == len(p.bodies) {
		p.bodies = append(p.bodies, new(body))
	}
	b := p.bodies[p.nBody]
	plan.body = p.nBody
	p.nBody++
	b.plan, b.outputs = plan, outputs
	b.builder.Reset(base, true)
	return b
}

// endRun ends the current transaction's run in the batch of a partition.
func (p *prepared) endRun(plan *partPlan) {
	if plan.run > 0 {
		p.runs = append(p.runs, run{uint32(plan.body), plan.run})
		plan.run = 0
	}
}

// makeSection writes the drafts behind room for head bytes.
func (p *prepared) makeSection(head int) {
	size := 0
	for _, b := range p.bodies[:p.nBody] {
		if b.builder.Size() >= compressFrom {
			b.builder.Compress(p.l.opts.Compression)
		}
		size += batchBound + b.builder.EncodedSize()
	}
	var s []byte
	if size > maxShared {
		p.mem = p.l.mem.slabs.take(head + size)
		s = p.mem.b[head:head]
	} else {
		s = p.small[:0]
	}
	for _, b := range p.bodies[:p.nBody] {
		s = appendBatchHead(s, b.plan.key, b.builder.EncodedSize())
		b.at = len(s)
		s, b.draft = b.builder.AppendDraft(s)
	}
	p.section = s
	if p.mem == nil {
		p.small = s
	}
}

// fill gives the caller's records the places that they have got, or would have.
func (p *prepared) fill(txs []*eventlog.Tx, durable bool) {
	for _, tx := range txs {
		for i := range tx.Records {
			r := &tx.Records[i]
			partition := r.Partition
			if partition == eventlog.EveryPartition {
				partition = 0
			}
			r.CSN = tx.CSN
			r.Offset += p.lookup[r.Topic][partition].base
			if durable {
				r.Partition = partition // else it may be appended again
			}
		}
	}
}

// recycle keeps a prepared request's memory for the next one.
func (p *prepared) recycle() {
	if p.mem != nil {
		p.mem.release()
	}
	p.memory = int64(cap(p.small))
	for _, plan := range p.plans[:p.nPlans] {
		p.lookup[plan.key.topic][plan.key.partition] = nil
	}
	for _, b := range p.bodies {
		p.memory += int64(b.builder.Memory())
	}
	if p.l.spareBytes.Add(p.memory) > spareMemory {
		p.l.spareBytes.Add(-p.memory)
		return
	}
	p.nPlans, p.nBody, p.csns = 0, 0, 0
	p.runs, p.ends, p.section, p.mem = p.runs[:0], p.ends[:0], nil, nil
	select {
	case p.l.spare <- p:
	default:
		p.l.spareBytes.Add(-p.memory)
	}
}
