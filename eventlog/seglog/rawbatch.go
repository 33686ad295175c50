package seglog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// RawBatch is a record batch as it lies in a file.
type RawBatch struct {
	Path      string
	Pos       int64 // byte position in the file
	Topic     eventlog.TopicID
	Partition int32
	Batch     eventlog.Batch // its header, as far as it could be read
	// Records are the batch's; their bytes are valid until the callback returns.
	Records []eventlog.Record
	// Bad says why the batch, or what should hold batches here, cannot be read; nil: it is whole.
	Bad error
}

// Batches calls fn for each batch of a topic: of a partition, or with a negative
// one of all. What is sealed comes partition by partition, then what is only in
// the journal, in its order. Damage is shown and passed over.
func (l *Log) Batches(ctx context.Context, topic eventlog.TopicID, partition int32, fn func(*RawBatch) error) error {
	t, ok := l.topicByID(topic)
	if !ok || int(partition) >= t.Spec.Partitions {
		return fmt.Errorf("dump topic %d partition %d: %w", topic, partition, eventlog.ErrUnknownTopic)
	}
	d := dumper{l: l, ctx: ctx, topic: topic, fn: fn, sealed: make([]eventlog.Offset, t.Spec.Partitions), partition: partition}
	for p := range t.Spec.Partitions {
		if partition < 0 || int(partition) == p {
			if err := d.segments(partKey{topic, int32(p)}); err != nil {
				return err
			}
		}
	}
	return d.journal()
}

type dumper struct {
	l         *Log
	ctx       context.Context
	topic     eventlog.TopicID
	partition int32 // negative: all
	fn        func(*RawBatch) error
	sealed    []eventlog.Offset // the offset behind what was shown of each partition's segments
	records   []eventlog.Record
}

func (d *dumper) segments(k partKey) error {
	for {
		if d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		s := d.l.segmentAt(k, d.sealed[k.partition])
		if s == nil {
			return nil
		}
		err := d.segment(s)
		if vfs.IsNotExist(err) && d.l.replaced(s, k, d.sealed[k.partition]) {
			continue
		}
		if err != nil {
			return err
		}
		d.sealed[k.partition] = s.next
	}
}

func (d *dumper) segment(s *segment) error {
	f, err := d.l.fs().Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	idx, err := s.readIndex(f)
	if err != nil {
		return d.bad(s.key, err)
	}
	for i := range idx.batches {
		if d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		raw := RawBatch{Path: s.path, Pos: idx.batches[i].pos, Topic: s.key.topic, Partition: s.key.partition}
		if raw.Batch, raw.Bad = s.batch(f, idx, i); raw.Bad != nil {
			raw.Batch = d.headOf(s, f, idx, i)
		}
		if err := d.show(&raw); err != nil {
			return err
		}
	}
	return nil
}

// headOf is what a damaged batch's header says, as far as it agrees with the footer.
func (d *dumper) headOf(s *segment, f vfs.File, idx *segmentIndex, i int) eventlog.Batch {
	end := idx.end
	if i+1 < len(idx.batches) {
		end = idx.batches[i+1].pos
	}
	at := idx.batches[i]
	if b, err := s.readAt(f, at.pos, end-at.pos); err == nil {
		if h, err := eventlog.DecodeBatchHeader(b); err == nil && h.Base == at.base && h.Size == len(b) {
			return h
		}
	}
	return eventlog.Batch{Base: at.base, Last: at.base, Size: int(end - at.pos)}
}

// bad shows damage that leaves no batch to show.
func (d *dumper) bad(k partKey, err error) error {
	var c *CorruptError
	if !errors.As(err, &c) {
		return err
	}
	return d.fn(&RawBatch{Path: c.Path, Pos: c.Pos, Topic: k.topic, Partition: k.partition, Bad: err})
}

// show decodes a batch's records and shows it.
func (d *dumper) show(raw *RawBatch) error {
	d.records = d.records[:0]
	if raw.Bad == nil {
		raw.Bad = d.decode(raw)
	}
	raw.Records = d.records
	var damage *CorruptError
	if raw.Bad != nil && !errors.As(raw.Bad, &damage) {
		if !errors.Is(raw.Bad, eventlog.ErrCorrupt) {
			return raw.Bad
		}
		raw.Bad = &CorruptError{Path: raw.Path, Pos: raw.Pos, Reason: raw.Bad.Error()}
	}
	return d.fn(raw)
}

func (d *dumper) decode(raw *RawBatch) error {
	it, err := raw.Batch.Records()
	if err != nil {
		return err
	}
	for {
		r := eventlog.Record{Topic: raw.Topic, Partition: raw.Partition}
		ok, err := it.Next(&r)
		if err != nil || !ok {
			return err
		}
		d.records = append(d.records, r)
	}
}

// journal shows the batches that are in no segment.
func (d *dumper) journal() error {
	d.l.mu.RLock()
	files := slices.Clone(d.l.files)
	sizes := make([]int64, len(files))
	for i, f := range files {
		sizes[i] = f.size
	}
	d.l.mu.RUnlock()
	for i, file := range files {
		f, err := d.l.fs().Open(file.path)
		if vfs.IsNotExist(err) {
			continue // sealed meanwhile: the next dump shows its segments
		}
		if err == nil {
			err = d.journalFile(newScanner(f, file.path, file.number, file.body, sizes[i]))
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumper) journalFile(s *entryScanner) error {
	for d.ctx.Err() == nil {
		pos := s.pos
		kind, payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if err := d.bad(partKey{d.topic, -1}, err); err != nil {
				return err
			}
			at, found, err := s.goodBehind()
			if errors.Is(err, io.EOF) || err == nil && !found { // the file is cut short, or nothing good follows
				return nil
			}
			if err != nil {
				return err
			}
			s.pos = at
			continue
		}
		if kind != kindGroup && kind != kindAdopt {
			continue
		}
		g, err := decodeTransactions(kind, payload)
		switch {
		case err != nil:
			err = d.bad(partKey{d.topic, -1}, &CorruptError{Path: s.path, Pos: pos, Reason: err.Error()})
		case g.stream != nil:
			err = d.stream(g.stream)
		default:
			err = d.group(g, s.path, s.pos)
		}
		if err != nil {
			return err
		}
	}
	return d.ctx.Err()
}

// group shows the batches of a group whose entry ends at end. They are the last
// of its payload, each behind three numbers.
func (d *dumper) group(g *group, path string, end int64) error {
	places := make([]int64, len(g.batches))
	for i := len(g.batches) - 1; i >= 0; i-- {
		b := g.batches[i]
		places[i] = end - int64(len(b.data))
		end = places[i] - int64(uvarintLen(uint64(b.topic))+uvarintLen(uint64(b.partition))+uvarintLen(uint64(len(b.data))))
	}
	for i, b := range g.batches {
		if b.topic != d.topic || d.partition >= 0 && b.partition != d.partition || int(b.partition) >= len(d.sealed) {
			continue
		}
		raw := RawBatch{Path: path, Pos: places[i], Topic: b.topic, Partition: b.partition}
		raw.Batch, raw.Bad = eventlog.DecodeBatch(b.data)
		if raw.Bad == nil && raw.Batch.Last < d.sealed[b.partition] {
			continue
		}
		if err := d.show(&raw); err != nil {
			return err
		}
	}
	return nil
}

// stream shows the batches of a streamed file at the places of their chunks, with
// the offsets, CSN and time that the adopting entry gives. Those of aborted
// sub-transactions are among them.
func (d *dumper) stream(a *adoption) error {
	c, err := d.l.openStream(a)
	if vfs.IsNotExist(err) {
		if err = d.l.streamGone(a); err != nil {
			return d.bad(partKey{d.topic, -1}, err)
		}
		return nil // sealed meanwhile: the next dump shows its segments
	}
	if err != nil {
		return d.bad(partKey{d.topic, -1}, err)
	}
	defer c.close()
	var buf []byte
	for d.ctx.Err() == nil {
		var k *chunk
		if k, buf, err = c.next(buf); err != nil {
			return d.bad(partKey{d.topic, -1}, err)
		}
		if k == nil {
			return nil
		}
		for _, b := range k.batches {
			part := a.part(partKey{b.topic, b.partition})
			if part == nil || b.topic != d.topic || d.partition >= 0 && b.partition != d.partition {
				continue
			}
			raw := RawBatch{Path: c.path, Pos: c.at, Topic: b.topic, Partition: b.partition}
			raw.Batch, raw.Bad = eventlog.DecodeBatch(b.data)
			raw.Batch.Base, raw.Batch.Last = raw.Batch.Base+part.first, raw.Batch.Last+part.first
			raw.Batch.BaseTime, raw.Batch.MaxTime = a.tx.CommitTime/1000, a.tx.CommitTime/1000
			raw.Batch.Producer = int64(a.tx.CSN)
			if err := d.show(&raw); err != nil {
				return err
			}
		}
	}
	return d.ctx.Err()
}

func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}
