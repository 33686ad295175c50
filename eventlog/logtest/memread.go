package logtest

import (
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// Read starts a reader.
func (m *MemLog) Read(spec eventlog.ReadSpec) (eventlog.Reader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range spec.Topics {
		if t == 0 || int(t) > len(m.topics) {
			return nil, fmt.Errorf("read topic %d: %w", t, eventlog.ErrUnknownTopic)
		}
	}
	return &memReader{m: m, spec: spec}, nil
}

type memReader struct {
	m    *MemLog
	spec eventlog.ReadSpec
	next int
	rest []eventlog.Tx // pieces still to come of the transaction before next
}

// Next returns the next transaction or piece, or nil at the frontier.
func (r *memReader) Next() (*eventlog.Tx, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if len(r.rest) > 0 {
		tx := r.rest[0]
		r.rest = r.rest[1:]
		return &tx, nil
	}
	for r.next < len(r.m.txs) {
		tx := r.m.txs[r.next].tx
		pieces := r.m.txs[r.next].pieces
		r.next++
		if tx.Kind == eventlog.TxOutput && !r.spec.Outputs || r.spec.FromTime != 0 && tx.CommitTime < r.spec.FromTime {
			continue
		}
		if r.spec.Pieces && len(pieces) > 0 {
			if r.rest = r.pieces(&tx, pieces); len(r.rest) > 0 {
				tx, r.rest = r.rest[0], r.rest[1:]
				return &tx, nil
			}
		}
		shown := r.shown(&tx)
		if len(shown) == 0 && (r.spec.Topics != nil || tx.CSN <= r.spec.After) {
			continue
		}
		tx.Records = shown
		return &tx, nil
	}
	return nil, nil
}

// pieces returns the pieces of a transaction that show anything.
func (r *memReader) pieces(tx *eventlog.Tx, begins []int) (out []eventlog.Tx) {
	for i, begin := range begins {
		end := len(tx.Records)
		if i+1 < len(begins) {
			end = begins[i+1]
		}
		piece := *tx
		piece.Records = tx.Records[begin:end]
		if piece.Records = r.shown(&piece); len(piece.Records) > 0 {
			out = append(out, piece)
		}
	}
	for i := range out {
		out[i].More = i < len(out)-1
	}
	return out
}

func (r *memReader) shown(tx *eventlog.Tx) []eventlog.Record {
	var out []eventlog.Record
	for _, rec := range tx.Records {
		if r.spec.Topics != nil && !slices.Contains(r.spec.Topics, rec.Topic) {
			continue
		}
		if from, ok := r.spec.From[rec.Topic]; ok {
			if int(rec.Partition) < len(from) && rec.Offset < from[rec.Partition] {
				continue
			}
		} else if tx.CSN <= r.spec.After {
			continue
		}
		out = append(out, rec)
	}
	return out
}

func (r *memReader) Close() error { return nil }

// ReadPartition starts at an offset of one partition.
func (m *MemLog) ReadPartition(topic eventlog.TopicID, partition int32, from eventlog.Offset) (eventlog.PartitionReader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.parts[memPart{topic, partition}]
	if !ok {
		return nil, fmt.Errorf("read topic %d partition %d: %w", topic, partition, eventlog.ErrUnknownTopic)
	}
	return &memPartReader{m: m, p: p, next: max(from, 0)}, nil
}

type memPartReader struct {
	m    *MemLog
	p    *memPartition
	next eventlog.Offset
}

// Next returns the next record.
func (r *memPartReader) Next() (eventlog.Record, bool, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	for r.p.gone[r.next] {
		r.next++
	}
	if int(r.next) >= len(r.p.records) {
		return eventlog.Record{}, false, nil
	}
	rec := r.p.records[r.next]
	r.next++
	return rec, true, nil
}

func (r *memPartReader) Close() error { return nil }
