package seglog

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tailwater/tailwater/eventlog"
)

// chunkVersion is the first byte of a chunk's payload:
//
//	version u8 = 1
//	uvarint sections, each uvarint sub-transaction, uvarint runs: each uvarint
//	  index of a batch, uvarint count
//	uvarint batches, each uvarint topic, partition, length, and the batch
//
// A run says that the section's next count records are the next in that batch.
// Offsets count from the partition's first in the stream; CSN and times are 0:
// the entry that adopts the file gives them. All records of a chunk have a lower
// seq than those of the next.
const chunkVersion = 1

// recordOverhead bounds what a record takes in a batch beside its key and value.
const recordOverhead = 64

// section is the run of a chunk's records that belong to one sub-transaction.
type section struct {
	sub  uint32
	runs []run
}

// chunk is a decoded chunk; its bytes are shared with the payload.
type chunk struct {
	sections []section
	batches  []batchRef
}

func decodeChunk(payload []byte) (*chunk, error) {
	c := &cursor{b: payload}
	if v := c.byte(); v != chunkVersion {
		return nil, fmt.Errorf("chunk of version %d; this program reads %d", v, chunkVersion)
	}
	k := &chunk{sections: make([]section, c.count(4))}
	for i := range k.sections {
		sub := c.uvarint()
		if sub > math.MaxUint32 {
			c.fail()
		}
		k.sections[i] = section{uint32(sub), make([]run, c.count(2))}
		if len(k.sections[i].runs) == 0 {
			c.fail()
		}
		for j := range k.sections[i].runs {
			k.sections[i].runs[j] = run{c.uint32(), c.uint32()}
		}
	}
	k.batches = make([]batchRef, c.count(3))
	for i := range k.batches {
		k.batches[i] = batchRef{eventlog.TopicID(c.uint32()), int32(c.uint32()), c.bytes()}
	}
	if c.bad || len(c.b) != 0 {
		return nil, fmt.Errorf("chunk: %w", errShort)
	}
	for i := range k.sections {
		for _, r := range k.sections[i].runs {
			if int(r.batch) >= len(k.batches) {
				return nil, fmt.Errorf("chunk: section %d names batch %d of %d", i, r.batch, len(k.batches))
			}
		}
	}
	return k, nil
}

// each calls fn for the records that are shown of the partitions wanted, with
// CSN, time and offset of the adoption; within a partition they come in order.
func (k *chunk) each(a *adoption, wanted func(partKey) bool, fn func(r *eventlog.Record, every bool) error) error {
	iters := make([]batchIter, len(k.batches))
	for i, b := range k.batches {
		if !wanted(partKey{b.topic, b.partition}) {
			continue
		}
		h, err := eventlog.DecodeBatchHeader(b.data)
		if err == nil && h.Size != len(b.data) {
			err = fmt.Errorf("batch of %d bytes in %d", h.Size, len(b.data))
		}
		if err == nil {
			err = iters[i].it.Reset(h)
		}
		if err != nil {
			return err
		}
		iters[i].started = true
	}
	for _, s := range k.sections {
		aborted := a.isAborted(s.sub)
		for _, run := range s.runs {
			if !iters[run.batch].started {
				continue
			}
			if err := k.run(a, run, &iters[run.batch].it, aborted, fn); err != nil {
				return err
			}
		}
	}
	for i := range iters {
		var r eventlog.Record
		if !iters[i].started {
			continue
		}
		if more, err := iters[i].it.Next(&r); err != nil || more {
			return fmt.Errorf("batch %d has records of no sub-transaction (%v)", i, err)
		}
	}
	return nil
}

// run reads the next records of a batch; of an aborted sub-transaction they are passed over.
func (k *chunk) run(a *adoption, run run, it *eventlog.RecordIter, aborted bool, fn func(r *eventlog.Record, every bool) error) error {
	ref := k.batches[run.batch]
	part := a.part(partKey{ref.topic, ref.partition})
	if part == nil {
		return fmt.Errorf("batch of topic %d partition %d, which the adopting entry does not name", ref.topic, ref.partition)
	}
	for range run.count {
		r := eventlog.Record{Topic: ref.topic, Partition: ref.partition}
		ok, err := it.Next(&r)
		if err != nil {
			return err
		}
		if !ok || r.Offset < 0 || r.Offset >= part.count {
			return fmt.Errorf("topic %d partition %d: fewer records than its sub-transactions have", ref.topic, ref.partition)
		}
		if aborted {
			continue
		}
		r.Offset += part.first
		r.CSN, r.Time = a.tx.CSN, a.tx.CommitTime
		if err := fn(&r, it.Every); err != nil {
			return err
		}
	}
	return nil
}

// spoolPart builds the batch of one partition in the chunk at hand.
type spoolPart struct {
	key     partKey
	next    eventlog.Offset // in the stream
	builder eventlog.BatchBuilder
	batch   uint32 // index in the chunk
	run     uint32 // records of the section at hand
	inChunk bool
}

// spool builds chunks. Nothing of the one at hand is lost before next is called.
type spool struct {
	parts    map[partKey]*spoolPart
	order    []*spoolPart // of the chunk's batches
	touched  []*spoolPart // in the section at hand
	sub      uint32       // of the section at hand
	sections []byte
	nSection uint64
	size     int // estimate of the chunk
}

// add takes a copy of a record into one partition.
func (s *spool) add(sub uint32, r *eventlog.Record, partition int32, every bool) {
	if len(s.touched) > 0 && s.sub != sub {
		s.endSection()
	}
	s.sub = sub
	k := partKey{r.Topic, partition}
	p := s.parts[k]
	if p == nil {
		if s.parts == nil {
			s.parts = map[partKey]*spoolPart{}
		}
		p = &spoolPart{key: k}
		s.parts[k] = p
	}
	if !p.inChunk {
		p.inChunk, p.batch = true, uint32(len(s.order))
		p.builder.Reset(0, true)
		s.order = append(s.order, p)
		s.size += 2 * recordOverhead
	}
	if p.run == 0 {
		s.touched = append(s.touched, p)
	}
	copied := *r
	copied.Partition, copied.Offset, copied.CSN, copied.Time = partition, p.next, 0, 0
	p.builder.Add(&copied, every)
	p.next++
	p.run++
	s.size += len(r.Key) + len(r.Value) + recordOverhead
}

func (s *spool) endSection() {
	if len(s.touched) == 0 {
		return
	}
	s.sections = binary.AppendUvarint(s.sections, uint64(s.sub))
	s.sections = binary.AppendUvarint(s.sections, uint64(len(s.touched)))
	for _, p := range s.touched {
		s.sections = binary.AppendUvarint(s.sections, uint64(p.batch))
		s.sections = binary.AppendUvarint(s.sections, uint64(p.run))
		p.run = 0
	}
	s.touched = s.touched[:0]
	s.nSection++
}

// appendChunk appends the chunk at hand as a payload.
func (s *spool) appendChunk(dst []byte) []byte {
	s.endSection()
	dst = binary.AppendUvarint(append(dst, chunkVersion), s.nSection)
	dst = append(dst, s.sections...)
	dst = binary.AppendUvarint(dst, uint64(len(s.order)))
	for _, p := range s.order {
		dst = binary.AppendUvarint(dst, uint64(p.key.topic))
		dst = binary.AppendUvarint(dst, uint64(p.key.partition))
		dst = binary.AppendUvarint(dst, uint64(p.builder.EncodedSize()))
		dst = p.builder.AppendTo(dst, eventlog.CompressionNone)
	}
	return dst
}

// next begins another chunk. The builders of all partitions keep no more memory
// together.
func (s *spool) next(memory int) {
	keep := max(4<<10, memory/max(1, len(s.parts)))
	for _, p := range s.order {
		p.inChunk = false
		p.builder.Shrink(keep)
	}
	s.order, s.sections, s.nSection, s.size = s.order[:0], s.sections[:0], 0, 0
}
