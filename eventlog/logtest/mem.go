package logtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// MemLog is an eventlog.Log that lives in memory.
type MemLog struct {
	// Clock gives the time; nil means time.Now. Set it before the first call.
	Clock func() time.Time
	// FailAppend, if set, is called before each append; its error is returned.
	FailAppend func() error

	mu       sync.Mutex
	id       [16]byte
	topics   []eventlog.Topic
	byName   map[string]eventlog.TopicID
	parts    map[memPart]*memPartition
	txs      []memTx // in the order of their appends
	sources  map[string]eventlog.SourceState
	marks    map[string]eventlog.Checkpoint
	next     eventlog.CSN
	frontier eventlog.CSN
	ingest   int64
	changed  chan struct{}
	cursors  map[string]eventlog.Cursor
	horizons map[eventlog.TopicID]eventlog.CSN
	closed   bool
	life     int // counts Close
	appends  int64
	bytes    int64
}

type memPart struct {
	topic     eventlog.TopicID
	partition int32
}

type memPartition struct {
	records []eventlog.Record
	gone    map[eventlog.Offset]bool // compacted away
}

// memTx is a transaction as it was appended; copies of an EveryPartition record
// appear once, as of partition 0.
type memTx struct {
	tx eventlog.Tx
	// pieces are the places in its records at which a streamed transaction's
	// pieces begin; nil if it was not streamed.
	pieces []int
}

// Mem returns an empty log in memory.
func Mem() *MemLog {
	m := &MemLog{
		byName: map[string]eventlog.TopicID{}, parts: map[memPart]*memPartition{},
		sources: map[string]eventlog.SourceState{}, marks: map[string]eventlog.Checkpoint{},
		cursors: map[string]eventlog.Cursor{}, horizons: map[eventlog.TopicID]eventlog.CSN{}, changed: make(chan struct{}), next: 1,
	}
	if _, err := rand.Read(m.id[:]); err != nil {
		panic(err) // crypto/rand never fails on a supported system
	}
	return m
}

// Reopen makes a closed log usable again, as a restart would: CSNs go on at or above the clock's.
func (m *MemLog) Reopen() *MemLog {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = false
	m.next = max(m.next, eventlog.ClockCSN(m.now()))
	return m
}

func (m *MemLog) now() time.Time {
	if m.Clock != nil {
		return m.Clock()
	}
	return time.Now()
}

// ID names the log.
func (m *MemLog) ID() [16]byte { return m.id }

// EnsureTopic returns the topic of that name, making it if needed.
func (m *MemLog) EnsureTopic(spec eventlog.TopicSpec) (eventlog.Topic, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventlog.Topic{}, eventlog.ErrClosed
	}
	if id, ok := m.byName[spec.Name]; ok {
		t := &m.topics[id-1]
		merged, err := eventlog.MergeSpec(t.Spec, spec)
		if err != nil {
			return eventlog.Topic{}, err
		}
		t.Spec = merged
		return *t, nil
	}
	spec, err := eventlog.CompleteSpec(spec)
	if err != nil {
		return eventlog.Topic{}, err
	}
	t := eventlog.Topic{ID: eventlog.TopicID(len(m.topics) + 1), Spec: spec}
	m.topics = append(m.topics, t)
	m.byName[spec.Name] = t.ID
	for p := range spec.Partitions {
		m.parts[memPart{t.ID, int32(p)}] = &memPartition{gone: map[eventlog.Offset]bool{}}
	}
	return t, nil
}

// Topic returns the topic of that name.
func (m *MemLog) Topic(name string) (eventlog.Topic, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.byName[name]
	if !ok {
		return eventlog.Topic{}, false
	}
	return m.topics[id-1], true
}

// Topics returns all topics in the order of their ids.
func (m *MemLog) Topics() []eventlog.Topic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.topics)
}

func (m *MemLog) topic(id eventlog.TopicID) (eventlog.Topic, bool) {
	if id == 0 || int(id) > len(m.topics) {
		return eventlog.Topic{}, false
	}
	return m.topics[id-1], true
}

// Append appends the group.
func (m *MemLog) Append(ctx context.Context, group []*eventlog.Tx) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.FailAppend != nil {
		if err := m.FailAppend(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventlog.ErrClosed
	}
	if err := eventlog.CheckGroup(group, m.frontier, m.topic); err != nil {
		return err
	}
	for _, tx := range group {
		m.append(tx)
	}
	m.appends++
	close(m.changed)
	m.changed = make(chan struct{})
	return nil
}

func (m *MemLog) append(tx *eventlog.Tx) {
	m.ingest = max(m.ingest, m.now().UnixMicro())
	tx.IngestTime = m.ingest
	if tx.Kind != eventlog.TxOutput {
		tx.CSN = m.next
		m.next++
		m.frontier = tx.CSN
	}
	if len(tx.Position) > 0 && tx.Kind != eventlog.TxOutput {
		m.sources[tx.Source] = eventlog.SourceState{Position: slices.Clone(tx.Position), CSN: tx.CSN, CommitTime: tx.CommitTime}
	}
	for i := range tx.Records {
		m.place(tx, &tx.Records[i])
	}
	m.txs = append(m.txs, memTx{tx: cloneTx(tx)})
}

// place gives one record its partition and offset and keeps a copy in each partition that it belongs to.
func (m *MemLog) place(tx *eventlog.Tx, r *eventlog.Record) {
	t, _ := m.topic(r.Topic)
	r.CSN, r.Time = tx.CSN, tx.CommitTime
	m.bytes += int64(len(r.Key) + len(r.Value))
	if r.Partition != eventlog.EveryPartition {
		r.Partition = eventlog.PartitionOf(r.Key, t.Spec.Partitions)
		m.put(r)
		return
	}
	for p := t.Spec.Partitions - 1; p >= 0; p-- { // partition 0 last: its offset stays in r
		r.Partition = int32(p)
		m.put(r)
	}
}

func (m *MemLog) put(r *eventlog.Record) {
	p := m.parts[memPart{r.Topic, r.Partition}]
	r.Offset = eventlog.Offset(len(p.records))
	p.records = append(p.records, cloneRecord(*r))
}

func cloneRecord(r eventlog.Record) eventlog.Record {
	r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
	return r
}

func cloneTx(tx *eventlog.Tx) eventlog.Tx {
	c := *tx
	c.Position, c.Note = slices.Clone(tx.Position), slices.Clone(tx.Note)
	c.Records = make([]eventlog.Record, len(tx.Records))
	for i := range tx.Records {
		c.Records[i] = cloneRecord(tx.Records[i])
	}
	slices.SortStableFunc(c.Records, func(a, b eventlog.Record) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return c
}

// Frontier returns the CSN of the last transaction.
func (m *MemLog) Frontier() eventlog.CSN {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.frontier
}

// Changed returns a channel that is closed at the next append.
func (m *MemLog) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// SourceState returns the last position of a source.
func (m *MemLog) SourceState(source string) (eventlog.SourceState, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sources[source]
	return s, ok
}

// EndOffsets returns the next offset of each partition.
func (m *MemLog) EndOffsets(topic eventlog.TopicID) []eventlog.Offset {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.topic(topic)
	if !ok {
		return nil
	}
	out := make([]eventlog.Offset, t.Spec.Partitions)
	for p := range out {
		out[p] = eventlog.Offset(len(m.parts[memPart{topic, int32(p)}].records))
	}
	return out
}

// StartOffsets returns the first offset of each partition: this log keeps everything.
func (m *MemLog) StartOffsets(topic eventlog.TopicID) []eventlog.Offset {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.topic(topic)
	if !ok {
		return nil
	}
	return make([]eventlog.Offset, t.Spec.Partitions)
}

// SealedDamage finds none: nothing of a MemLog is on disk.
func (m *MemLog) SealedDamage(context.Context, eventlog.TopicID) error { return nil }

// SetAside has nothing to remove.
func (m *MemLog) SetAside(context.Context, eventlog.TopicID, []eventlog.Offset) (int, error) {
	return 0, nil
}

// LetGoAll lets go the cursors on a topic that can begin anew.
func (m *MemLog) LetGoAll(topic eventlog.TopicID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range m.cursors {
		if c.Rebuilds && slices.Contains(c.Topics, topic) {
			c.LetGo = true
			m.cursors[name] = c
		}
	}
	return nil
}

// NewestByKey calls fn for the newest record of every key.
func (m *MemLog) NewestByKey(topic eventlog.TopicID, fn func(key []byte, csn eventlog.CSN, tombstone bool) error) error {
	m.mu.Lock()
	t, ok := m.topic(topic)
	newest := map[string]eventlog.Record{}
	if ok {
		for p := range t.Spec.Partitions {
			for _, r := range m.parts[memPart{topic, int32(p)}].records {
				if len(r.Key) > 0 && r.Key[0] != 0 {
					newest[string(r.Key)] = r
				}
			}
		}
	}
	m.mu.Unlock()
	if !ok {
		return fmt.Errorf("newest by key of topic %d: %w", topic, eventlog.ErrUnknownTopic)
	}
	for _, k := range slices.Sorted(maps.Keys(newest)) {
		if err := fn([]byte(k), newest[k].CSN, newest[k].Value == nil); err != nil {
			return err
		}
	}
	return nil
}

// SaveCheckpoint replaces the mark of a consumer.
func (m *MemLog) SaveCheckpoint(consumer string, c eventlog.Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventlog.ErrClosed
	}
	if c == nil {
		delete(m.marks, consumer)
		return nil
	}
	m.marks[consumer] = append(eventlog.Checkpoint{}, c...)
	return nil
}

// Checkpoint returns the mark of a consumer.
func (m *MemLog) Checkpoint(consumer string) (eventlog.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks[consumer], nil
}

// Checkpoints returns all marks.
func (m *MemLog) Checkpoints() (map[string]eventlog.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.marks), nil
}

// SetCursor registers or moves a consumer's cursor; nil removes it.
func (m *MemLog) SetCursor(consumer string, c *eventlog.Cursor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return eventlog.ErrClosed
	case c == nil:
		delete(m.cursors, consumer)
	case m.cursors[consumer].LetGo:
		return fmt.Errorf("set cursor of %q: %w", consumer, eventlog.ErrLetGo)
	default:
		m.cursors[consumer] = eventlog.Cursor{Topics: slices.Clone(c.Topics), Passed: c.Passed, Values: c.Values, Rebuilds: c.Rebuilds}
	}
	return nil
}

// LetGo lets a consumer's cursor go, as a full log does.
func (m *MemLog) LetGo(consumer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.cursors[consumer]; ok {
		c.LetGo = true
		m.cursors[consumer] = c
	}
}

// Cursors returns all cursors.
func (m *MemLog) Cursors() map[string]eventlog.Cursor {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.cursors)
}

// Horizon returns how far Compact has gone.
func (m *MemLog) Horizon(topic eventlog.TopicID) eventlog.CSN {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.horizons[topic]
}

// Pin does nothing: this log is compacted when its owner says so.
func (m *MemLog) Pin([]eventlog.TopicID, eventlog.CSN) (release func()) { return func() {} }

// Skip moves the next CSN to at least csn.
func (m *MemLog) Skip(ctx context.Context, csn eventlog.CSN) error {
	m.mu.Lock()
	m.next = max(m.next, csn)
	m.mu.Unlock()
	return m.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxTick, CommitTime: m.now().UnixMicro()}})
}

// Stats describes the log.
func (m *MemLog) Stats() eventlog.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := eventlog.Stats{Frontier: m.frontier, Appends: m.appends, AppendedBytes: m.bytes}
	for _, t := range m.topics {
		ts := eventlog.TopicStats{Name: t.Spec.Name, Partitions: t.Spec.Partitions}
		for p := range t.Spec.Partitions {
			ts.Records += int64(len(m.parts[memPart{t.ID, int32(p)}].records))
		}
		s.Topics = append(s.Topics, ts)
	}
	return s
}

// Close refuses further writes.
func (m *MemLog) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.life++ // streams in progress end
	return nil
}

var _ eventlog.Log = (*MemLog)(nil)
