package logtest

import (
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// SeekCSN returns the first offset with a CSN at or above csn.
func (m *MemLog) SeekCSN(topic eventlog.TopicID, partition int32, csn eventlog.CSN) (eventlog.Offset, error) {
	return m.seek(topic, partition, func(r *eventlog.Record) bool { return r.CSN >= csn })
}

// SeekTime returns the first offset that was committed at or after a time.
func (m *MemLog) SeekTime(topic eventlog.TopicID, partition int32, micros int64) (eventlog.Offset, error) {
	return m.seek(topic, partition, func(r *eventlog.Record) bool { return r.Time >= micros })
}

func (m *MemLog) seek(topic eventlog.TopicID, partition int32, matches func(*eventlog.Record) bool) (eventlog.Offset, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.parts[memPart{topic, partition}]
	if !ok {
		return 0, fmt.Errorf("seek in topic %d partition %d: %w", topic, partition, eventlog.ErrUnknownTopic)
	}
	for i := range p.records {
		if matches(&p.records[i]) {
			return eventlog.Offset(i), nil
		}
	}
	return eventlog.Offset(len(p.records)), nil
}

// ReadBackward reads the records below an offset, the newest first.
func (m *MemLog) ReadBackward(topic eventlog.TopicID, partition int32, before eventlog.Offset) (eventlog.PartitionReader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.parts[memPart{topic, partition}]
	if !ok {
		return nil, fmt.Errorf("read topic %d partition %d backward: %w", topic, partition, eventlog.ErrUnknownTopic)
	}
	before = max(0, min(before, eventlog.Offset(len(p.records))))
	return &memBackReader{left: p.records[:before]}, nil
}

type memBackReader struct{ left []eventlog.Record }

// Next returns the next older record.
func (r *memBackReader) Next() (eventlog.Record, bool, error) {
	if len(r.left) == 0 {
		return eventlog.Record{}, false, nil
	}
	rec := r.left[len(r.left)-1]
	r.left = r.left[:len(r.left)-1]
	return rec, true, nil
}

func (r *memBackReader) Close() error { return nil }

// TxFinder finds the transactions of records.
func (m *MemLog) TxFinder() eventlog.TxFinder { return memFinder{m} }

type memFinder struct{ m *MemLog }

// Find returns the transaction of a record.
func (f memFinder) Find(r *eventlog.Record) (eventlog.Tx, bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	for _, t := range f.m.txs {
		holds := func(o eventlog.Record) bool {
			return o.Topic == r.Topic && o.Seq == r.Seq && (o.Partition == r.Partition && o.Offset == r.Offset || o.Op == r.Op)
		}
		if t.tx.CSN == r.CSN && slices.ContainsFunc(t.tx.Records, holds) {
			tx := t.tx
			tx.Records = nil
			return tx, true, nil
		}
	}
	return eventlog.Tx{}, false, nil
}

func (f memFinder) Close() error { return nil }
