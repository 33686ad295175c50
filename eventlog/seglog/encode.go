package seglog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tailwater/tailwater/eventlog"
)

// Bounds of what is encoded: parts of an entry are never longer.
const (
	entryHead0 = entryHeaderSize + 1 + 4*binary.MaxVarintLen64 // all but topics, marks and transactions
	runBound   = 2 * binary.MaxVarintLen32
	batchBound = 3 * binary.MaxVarintLen32
)

// rowBound bounds a transaction's row without its runs.
func rowBound(tx *eventlog.Tx) int {
	return 1 + 9*binary.MaxVarintLen64 + len(tx.Source) + len(tx.Position) + len(tx.ID) + len(tx.Note)
}

// partEnd is a partition's end if the group at hand gets durable.
type partEnd struct {
	key     partKey
	next    eventlog.Offset
	touched bool
}

// pendingGroup is a group that is encoded but not durable.
type pendingGroup struct {
	entry  []byte // header and payload
	mem    *slab  // in which the entry lies, held
	topics []eventlog.Topic
	marks  []mark
	first  uint64
	txs    []*eventlog.Tx
	ends   []*partEnd
}

func (g *pendingGroup) payload() []byte { return g.entry[entryHeaderSize:] }

// groupEncoder assigns CSNs and offsets and writes a group's entry. Nothing that
// it changes outlives a failed write: it starts from the log's durable state.
type groupEncoder struct {
	l       *Log
	g       pendingGroup
	nextCSN eventlog.CSN
	ingest  int64
	rows    []byte
	head    []byte // the entry up to its batches
	batches int
	parts   []*prepared  // with batches, in order
	ends    [][]*partEnd // by topic id and partition
}

// encodeGroup encodes the requests that are possible; the others get their
// errors. nil: none was. What it returns is valid until the next call.
func (l *Log) encodeGroup(taken []*request) (*pendingGroup, error) {
	e := &l.w.encoder
	e.begin(l)
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
			e.addRequest(r)
		}
	}
	if e.nextCSN > eventlog.MaxCSN {
		return nil, fmt.Errorf("append: CSN %d is beyond %d", e.nextCSN, eventlog.MaxCSN)
	}
	if len(e.g.topics)+len(e.g.marks)+len(e.g.txs) == 0 {
		return nil, nil
	}
	return &e.g, e.finish()
}

// begin forgets the last group.
func (e *groupEncoder) begin(l *Log) {
	st := l.st // only the token's holder, which we are, changes it
	for _, p := range e.g.ends {
		p.touched = false
	}
	clear(e.g.txs)
	clear(e.parts)
	e.l = l
	e.g = pendingGroup{first: st.ordinal, txs: e.g.txs[:0], ends: e.g.ends[:0]}
	e.nextCSN, e.ingest = st.nextCSN, max(st.lastIngest, l.opts.Clock().UnixMicro())
	e.rows, e.head, e.batches, e.parts = e.rows[:0], e.head[:0], 0, e.parts[:0]
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

// addRequest gives a request's transactions and batches their places.
func (e *groupEncoder) addRequest(r *request) {
	p, first, start := r.prepared, e.nextCSN, 0
	for i, tx := range r.txs {
		tx.IngestTime = e.ingest
		if tx.Kind != eventlog.TxOutput {
			tx.CSN = e.nextCSN
			e.nextCSN++
		}
		e.g.txs = append(e.g.txs, tx)
		e.addRow(tx, p.runs[start:p.ends[i]])
		start = p.ends[i]
	}
	if p.nBody == 0 {
		return
	}
	for _, plan := range p.plans[:p.nPlans] {
		end := e.end(plan.key)
		plan.base = end.next
		end.next += plan.count
	}
	for _, b := range p.bodies[:p.nBody] {
		csn := first
		if b.outputs {
			csn = 0
		}
		b.draft.Place(p.section[b.at:b.at+b.draft.Size], b.plan.base, csn)
	}
	e.parts = append(e.parts, p)
	e.batches += p.nBody
}

func (e *groupEncoder) addRow(tx *eventlog.Tx, runs []run) {
	e.rows = appendTxHead(e.rows, tx)
	e.rows = binary.AppendUvarint(e.rows, uint64(len(runs)))
	for _, r := range runs {
		e.rows = binary.AppendUvarint(e.rows, uint64(e.batches)+uint64(r.batch))
		e.rows = binary.AppendUvarint(e.rows, uint64(r.count))
	}
}

// end returns where a partition ends behind what is in the group so far.
func (e *groupEncoder) end(k partKey) *partEnd {
	for len(e.ends) <= int(k.topic) {
		e.ends = append(e.ends, nil)
	}
	t := e.l.st.topic(k.topic)
	if e.ends[k.topic] == nil {
		e.ends[k.topic] = make([]*partEnd, t.topic.Spec.Partitions)
	}
	p := e.ends[k.topic][k.partition]
	if p == nil {
		p = &partEnd{key: k}
		e.ends[k.topic][k.partition] = p
	}
	if !p.touched {
		p.touched, p.next = true, t.next[k.partition]
		e.g.ends = append(e.g.ends, p)
	}
	return p
}

// finish assembles the entry. A group of one large request lies where that was
// prepared, and only its head is written.
func (e *groupEncoder) finish() error {
	h := append(beginEntry(e.head), groupVersion)
	h = binary.AppendUvarint(h, uint64(len(e.g.topics)))
	for _, t := range e.g.topics {
		h = appendTopic(h, t)
	}
	h = binary.AppendUvarint(h, uint64(len(e.g.marks)))
	for _, m := range e.g.marks {
		h = appendMark(h, m)
	}
	h = binary.AppendUvarint(h, e.g.first)
	h = binary.AppendUvarint(h, uint64(len(e.g.txs)))
	h = append(h, e.rows...)
	h = binary.AppendUvarint(h, uint64(e.batches))
	e.head = h

	size := len(h)
	for _, p := range e.parts {
		size += len(p.section)
	}
	if size-entryHeaderSize > maxEntry {
		return fmt.Errorf("append: a group of %d bytes; %d are possible", size, maxEntry)
	}
	if !e.inPlace() {
		e.g.entry, e.g.mem = e.l.mem.take(size)
		at := copy(e.g.entry, h)
		for _, p := range e.parts {
			at += copy(e.g.entry[at:], p.section)
		}
	}
	e.sum()
	return nil
}

// inPlace puts the head before the section of the only request, if there is room.
func (e *groupEncoder) inPlace() bool {
	if len(e.parts) != 1 || e.parts[0].mem == nil {
		return false
	}
	p := e.parts[0]
	at := len(p.mem.b) - cap(p.section) - len(e.head)
	if at < 0 {
		return false
	}
	copy(p.mem.b[at:], e.head)
	e.g.entry = p.mem.b[at : at+len(e.head)+len(p.section)]
	p.mem.hold()
	e.g.mem = p.mem
	return true
}

// sum completes the entry's header as finishEntry does, without reading again
// what the drafts know the checksums of.
func (e *groupEncoder) sum() {
	b := e.g.entry
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-entryHeaderSize))
	b[8] = kindGroup
	crc, at, section := seedOf(e.l.w.file.number), 4, len(e.head)
	for _, p := range e.parts {
		for _, d := range p.bodies[:p.nBody] {
			end := section + d.at + d.draft.Size
			crc = crc32.Update(crc, castagnoli, b[at:end-d.draft.Tail])
			crc = d.draft.Checksum(crc, b[end-d.draft.Tail:end])
			at = end
		}
		section += len(p.section)
	}
	binary.LittleEndian.PutUint32(b, crc32.Update(crc, castagnoli, b[at:]))
}

func appendBatchHead(dst []byte, k partKey, size int) []byte {
	dst = binary.AppendUvarint(dst, uint64(k.topic))
	dst = binary.AppendUvarint(dst, uint64(k.partition))
	return binary.AppendUvarint(dst, uint64(size))
}
