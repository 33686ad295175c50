package sink

import (
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// batch is what one write will hold: the newest version of each key, copied out of the reader.
type batch struct {
	updates []Update
	byKey   map[string]int
	bytes   int
	records int               // read, coalesced ones included
	offsets []eventlog.Offset // next of each partition behind the batch
	csn     eventlog.CSN      // largest read
	time    int64             // when the log got it, µs
	oldest  int64             // commit time of the first record, µs; 0 = none
}

func newBatch(offsets []eventlog.Offset) *batch {
	return &batch{byKey: map[string]int{}, offsets: append([]eventlog.Offset(nil), offsets...)}
}

// add takes one record of the view's topic.
func (b *batch) add(r *eventlog.Record, ingest int64) error {
	b.records++
	if int(r.Partition) < len(b.offsets) && r.Offset >= b.offsets[r.Partition] {
		b.offsets[r.Partition] = r.Offset + 1
	}
	b.csn = max(b.csn, r.CSN)
	b.time = max(b.time, ingest, r.Time)
	if b.oldest == 0 {
		b.oldest = r.Time
	}
	key := change.Key(r.Key)
	if _, control := key.Control(); control || len(key) == 0 {
		return nil
	}
	if i, ok := b.byKey[string(key)]; ok {
		if u := &b.updates[i]; uint64(r.CSN) >= u.Version {
			u.Doc, u.Version = copyDoc(r.Value), uint64(r.CSN)
			b.bytes += len(r.Value)
		}
		return nil
	}
	id, err := change.DocumentID(key)
	if err != nil {
		return fmt.Errorf("partition %d offset %d of the view's topic: %w", r.Partition, r.Offset, err)
	}
	key = append(change.Key(nil), key...)
	b.byKey[string(key)] = len(b.updates)
	b.updates = append(b.updates, Update{ID: id, Key: key, Doc: copyDoc(r.Value), Version: uint64(r.CSN)})
	b.bytes += len(key) + len(r.Value)
	return nil
}

// copyDoc keeps nil, a tombstone, apart from an empty value.
func copyDoc(v []byte) []byte {
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}
