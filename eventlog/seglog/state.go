package seglog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// topicState is a topic and where its partitions end.
type topicState struct {
	topic eventlog.Topic
	next  []eventlog.Offset
	// horizon is the largest CSN at which compaction removed a value (V21).
	horizon eventlog.CSN
}

// state is what all entries so far amount to; a checkpoint entry holds it whole.
type state struct {
	id         [16]byte
	nextCSN    eventlog.CSN // given to the next transaction, at least
	frontier   eventlog.CSN // given to the last one
	ordinal    uint64       // of the next transaction
	lastIngest int64        // µs since 1970
	sources    map[string]eventlog.SourceState
	topics     []*topicState // topic id - 1
	byName     map[string]*topicState
	marks      map[string]eventlog.Checkpoint
	cursors    map[string]eventlog.Cursor // of the marks that are cursors, by consumer
}

func newState() *state {
	return &state{
		nextCSN: 1, sources: map[string]eventlog.SourceState{},
		byName: map[string]*topicState{}, marks: map[string]eventlog.Checkpoint{}, cursors: map[string]eventlog.Cursor{},
	}
}

func (s *state) topic(id eventlog.TopicID) *topicState {
	if id == 0 || int64(id) > int64(len(s.topics)) {
		return nil
	}
	return s.topics[id-1]
}

// setTopic makes a topic or changes its spec.
func (s *state) setTopic(t eventlog.Topic) error {
	switch have := s.topic(t.ID); {
	case have != nil && (have.topic.Spec.Name != t.Spec.Name || have.topic.Spec.Partitions != t.Spec.Partitions):
		return fmt.Errorf("topic %d is %q with %d partitions, not %q with %d", t.ID,
			have.topic.Spec.Name, have.topic.Spec.Partitions, t.Spec.Name, t.Spec.Partitions)
	case have != nil:
		have.topic = t
	case int64(t.ID) != int64(len(s.topics))+1 || s.byName[t.Spec.Name] != nil:
		return fmt.Errorf("topic %d %q behind %d topics", t.ID, t.Spec.Name, len(s.topics))
	default:
		ts := &topicState{topic: t, next: make([]eventlog.Offset, t.Spec.Partitions)}
		s.topics = append(s.topics, ts)
		s.byName[t.Spec.Name] = ts
	}
	return nil
}

func (s *state) setMark(m mark) error {
	switch {
	case isOwnMark(m.consumer):
		return s.setOwn(m)
	case m.value == nil:
		delete(s.marks, m.consumer)
	default:
		s.marks[m.consumer] = m.value
	}
	return nil
}

// applyTx advances the state by a transaction's row.
func (s *state) applyTx(tx *eventlog.Tx) {
	if tx.Kind != eventlog.TxOutput {
		s.frontier, s.nextCSN = tx.CSN, tx.CSN+1
		if len(tx.Position) > 0 {
			s.sources[tx.Source] = eventlog.SourceState{
				Position: slices.Clone(tx.Position), CSN: tx.CSN, CommitTime: tx.CommitTime,
			}
		}
	}
	s.lastIngest = max(s.lastIngest, tx.IngestTime)
	s.ordinal++
	if t := s.topic(txTopic); t != nil {
		t.next[0] = eventlog.Offset(s.ordinal)
	}
}

// applyGroup advances the state by a group read from the journal, and reports what cannot follow it.
func (s *state) applyGroup(g *group) error {
	for _, t := range g.topics {
		if err := s.setTopic(t); err != nil {
			return err
		}
	}
	for _, m := range g.marks {
		if err := s.setMark(m); err != nil {
			return err
		}
	}
	if len(g.rows) > 0 && g.first != s.ordinal {
		return fmt.Errorf("transaction %d where %d was due", g.first, s.ordinal)
	}
	for i := range g.rows {
		tx := &g.rows[i].tx
		if tx.Kind == eventlog.TxOutput && tx.CSN > s.frontier || tx.Kind != eventlog.TxOutput && tx.CSN < s.nextCSN {
			return fmt.Errorf("%v transaction with CSN %d behind CSN %d", tx.Kind, tx.CSN, s.frontier)
		}
		s.applyTx(tx)
	}
	if g.stream != nil {
		return s.applyAdoption(g.stream)
	}
	for _, b := range g.batches {
		if err := s.applyBatch(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) applyBatch(b batchRef) error {
	t := s.topic(b.topic)
	if t == nil || b.topic == txTopic || b.partition < 0 || int(b.partition) >= len(t.next) {
		return fmt.Errorf("batch of unknown topic %d partition %d", b.topic, b.partition)
	}
	h, err := eventlog.DecodeBatchHeader(b.data)
	if err != nil {
		return err
	}
	if h.Base != t.next[b.partition] || h.Size != len(b.data) {
		return fmt.Errorf("topic %d partition %d: batch at offset %d where %d was due", b.topic, b.partition, h.Base, t.next[b.partition])
	}
	t.next[b.partition] = h.Last + 1
	return nil
}

// skip leaves room for what a torn tail may have held (V20).
func (s *state) skip() {
	s.nextCSN += eventlog.ForeignSkip
	s.ordinal += eventlog.ForeignSkip
	for _, t := range s.topics {
		for p := range t.next {
			t.next[p] += eventlog.ForeignSkip
		}
	}
}

// offsets returns a copy of where all partitions end.
func (s *state) offsets() map[eventlog.TopicID][]eventlog.Offset {
	m := make(map[eventlog.TopicID][]eventlog.Offset, len(s.topics))
	for _, t := range s.topics {
		m[t.topic.ID] = slices.Clone(t.next)
	}
	return m
}

// checkpointVersion is the first byte of a checkpoint's payload:
//
//	version u8 = 1, 16 bytes log id, uvarint end of the file before (0: there is none)
//	uvarint next CSN, frontier, next ordinal; varint last ingest time (µs)
//	uvarint topics, each a topic, uvarint horizon, uvarint next offset of each partition
//	uvarint sources, each string name, bytes position, uvarint CSN, varint commit time
//	uvarint marks
const checkpointVersion = 1

func (s *state) appendCheckpoint(dst []byte, prevEnd int64) []byte {
	dst = append(append(dst, checkpointVersion), s.id[:]...)
	dst = binary.AppendUvarint(dst, uint64(prevEnd))
	dst = binary.AppendUvarint(dst, uint64(s.nextCSN))
	dst = binary.AppendUvarint(dst, uint64(s.frontier))
	dst = binary.AppendUvarint(dst, s.ordinal)
	dst = binary.AppendVarint(dst, s.lastIngest)
	dst = binary.AppendUvarint(dst, uint64(len(s.topics)))
	for _, t := range s.topics {
		dst = appendTopic(dst, t.topic)
		dst = binary.AppendUvarint(dst, uint64(t.horizon))
		for _, o := range t.next {
			dst = binary.AppendUvarint(dst, uint64(o))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.sources)))
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		src := s.sources[name]
		dst = appendBytes(appendString(dst, name), src.Position)
		dst = binary.AppendUvarint(dst, uint64(src.CSN))
		dst = binary.AppendVarint(dst, src.CommitTime)
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.marks)))
	for _, name := range slices.Sorted(maps.Keys(s.marks)) {
		dst = appendMark(dst, mark{name, s.marks[name]})
	}
	return dst
}

// decodeCheckpoint reads a checkpoint's payload.
func decodeCheckpoint(payload []byte) (s *state, prevEnd int64, err error) {
	c := &cursor{b: payload}
	if v := c.byte(); v != checkpointVersion {
		return nil, 0, fmt.Errorf("checkpoint of version %d; this program reads %d", v, checkpointVersion)
	}
	s = newState()
	copy(s.id[:], c.take(16))
	prevEnd = int64(c.offset())
	s.nextCSN, s.frontier, s.ordinal, s.lastIngest = c.csn(), c.csn(), uint64(c.offset()), c.varint()
	for range c.count(10) {
		if err := c.topicState(s); err != nil {
			return nil, 0, err
		}
	}
	for range c.count(4) {
		name, position := c.string(), c.bytes()
		s.sources[name] = eventlog.SourceState{Position: slices.Clone(position), CSN: c.csn(), CommitTime: c.varint()}
	}
	for range c.count(3) {
		if err := s.setMark(c.mark()); err != nil {
			return nil, 0, fmt.Errorf("checkpoint: %w", err)
		}
	}
	if c.bad || len(c.b) != 0 {
		return nil, 0, fmt.Errorf("checkpoint: %w", errShort)
	}
	return s, prevEnd, nil
}

func (c *cursor) topicState(s *state) error {
	t := c.topic()
	horizon := c.csn()
	if c.bad || t.Spec.Partitions > len(c.b) {
		return fmt.Errorf("checkpoint: %w", errShort)
	}
	if err := s.setTopic(t); err != nil {
		return err
	}
	ts := s.topic(t.ID)
	ts.horizon = horizon
	for p := range ts.next {
		ts.next[p] = c.offset()
	}
	return nil
}
