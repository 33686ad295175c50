package seglog

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/tailwater/tailwater/eventlog"
)

// partReader reads one partition: what is sealed, then what the journal holds.
type partReader struct {
	l      *Log
	key    partKey
	next   eventlog.Offset
	seg    *segCursor
	sealed eventlog.Offset // all below it is in segments; at least
	inLog  bool            // behind the segments
	jc     journalCursor
	queue  []eventlog.Batch // of the group at hand
	it     eventlog.RecordIter
	live   bool
	rows   []eventlog.Record // of the group at hand, for _tx; of the chunk at hand
	stream *chunkFile        // at hand
	buf    []byte
	sought bool   // what the journal was entered at is not yet known to be right
	begin  uint64 // ordinal of the file's beginning, which is
	again  bool   // it was not
	closed bool
}

// ReadPartition starts at an offset of one partition.
func (l *Log) ReadPartition(topic eventlog.TopicID, partition int32, from eventlog.Offset) (eventlog.PartitionReader, error) {
	t, ok := l.topicByID(topic)
	if !ok || partition < 0 || int(partition) >= t.Spec.Partitions {
		return nil, fmt.Errorf("read topic %d partition %d: %w", topic, partition, eventlog.ErrUnknownTopic)
	}
	k := partKey{topic, partition}
	if err := l.checkRange(k, max(from, 0)); err != nil {
		return nil, err
	}
	return &partReader{l: l, key: k, next: max(from, 0), seg: newSegCursor(l, k, max(from, 0)), jc: journalCursor{l: l}}, nil
}

// Next returns the next record; ok is false at the end.
func (p *partReader) Next() (r eventlog.Record, ok bool, err error) {
	for {
		if p.closed {
			return r, false, eventlog.ErrClosed
		}
		if !p.inLog {
			if ok, err = p.fromSegments(&r); ok || err != nil {
				return r, ok, err
			}
			if !p.enterJournal() {
				continue
			}
		}
		ok, err = p.fromJournal(&r)
		if errors.Is(err, errSealed) {
			p.inLog = false // sealed under us: the segments hold it
			continue
		}
		return r, ok, err
	}
}

func (p *partReader) fromSegments(r *eventlog.Record) (bool, error) {
	for {
		ok, err := p.seg.nextBelow(p.sealed, r)
		if ok {
			p.next = r.Offset + 1
		}
		if ok || err != nil {
			return ok, err
		}
		p.next = max(p.next, p.sealed)
		p.l.mu.RLock()
		end := p.l.sealedEnd(p.key)
		p.l.mu.RUnlock()
		if end <= p.sealed {
			return false, nil
		}
		p.sealed = end
		p.seg.seek(p.next)
	}
}

// enterJournal goes to the last place in the journal known to be at or before
// p.next; false if more was sealed since.
func (p *partReader) enterJournal() bool {
	file, ok := p.journalFile()
	if ok && file != nil {
		p.jc.ordinal = p.l.seekOffset(file, p.key, p.next)
		p.begin, p.sought = file.ordinal, p.jc.ordinal > file.ordinal
	}
	return ok
}

// journalFile returns the last file that begins at or before p.next; nil if there is nothing yet.
func (p *partReader) journalFile() (*journalFile, bool) {
	p.l.mu.RLock()
	defer p.l.mu.RUnlock()
	if p.l.sealedEnd(p.key) > p.next {
		return nil, false
	}
	files := p.l.files
	i := sort.Search(len(files), func(i int) bool { return files[i].start(p.key.topic, p.key.partition) > p.next }) - 1
	p.inLog, p.live, p.queue, p.rows, p.sought = true, false, nil, nil, false
	if t := p.l.st.topic(p.key.topic); p.next >= t.next[p.key.partition] {
		p.jc.ordinal = p.l.st.ordinal
		return nil, true
	}
	if p.key.topic == txTopic { // its offsets are the ordinals
		p.jc.ordinal = max(uint64(p.next), files[max(i, 0)].ordinal)
		return nil, true
	}
	if i < 0 {
		p.jc.ordinal = files[0].ordinal
		return nil, true
	}
	return files[i], true
}

func (p *partReader) fromJournal(r *eventlog.Record) (bool, error) {
	for {
		if ok, err := p.fromGroup(r); ok || err != nil {
			return ok, err
		}
		if ok, err := p.fromStream(); err != nil {
			return false, err
		} else if ok {
			continue
		}
		g, err := p.jc.next()
		if err != nil || g == nil {
			return false, err
		}
		if err := p.take(g); err != nil {
			p.queue, p.live = p.queue[:0], false
			p.jc.close() // at the same group again, if anybody asks
			return false, err
		}
		p.jc.ordinal = g.end()
		if p.again {
			p.jc.ordinal, p.again = p.begin, false
		}
	}
}

// take queues what a group holds for the partition.
func (p *partReader) take(g *group) error {
	p.queue, p.rows = p.queue[:0], p.rows[:0]
	if p.key.topic == txTopic {
		var err error
		p.rows, err = appendTxRecords(p.rows, g)
		return err
	}
	if g.stream != nil {
		if part := g.stream.part(p.key); part != nil && p.misled(part.first) {
			return nil
		}
		return p.takeStream(g.stream)
	}
	for _, b := range g.batches {
		if b.topic != p.key.topic || b.partition != p.key.partition {
			continue
		}
		h, err := eventlog.DecodeBatchHeader(b.data)
		if err != nil {
			return err
		}
		if p.misled(h.Base) {
			return nil
		}
		if h.Last >= p.next {
			p.queue = append(p.queue, h)
		}
	}
	return nil
}

// misled reports that a probe led behind p.next, as the first offset of the
// partition met from there on tells; the file is then read from its beginning.
func (p *partReader) misled(first eventlog.Offset) bool {
	p.again, p.sought = p.sought && first > p.next, false
	return p.again
}

// fromGroup returns the next record of what take queued.
func (p *partReader) fromGroup(r *eventlog.Record) (bool, error) {
	for len(p.rows) > 0 {
		*r = p.rows[0]
		p.rows = p.rows[1:]
		if r.Offset >= p.next {
			p.next = r.Offset + 1
			return true, nil
		}
	}
	for {
		for p.live {
			*r = eventlog.Record{Topic: p.key.topic, Partition: p.key.partition}
			ok, err := p.it.Next(r)
			if err != nil {
				return false, err
			}
			p.live = ok
			if ok && r.Offset >= p.next {
				p.next = r.Offset + 1
				return true, nil
			}
		}
		if len(p.queue) == 0 {
			return false, nil
		}
		if err := p.it.Reset(p.queue[0]); err != nil {
			return false, err
		}
		p.it.Skip(p.next)
		p.queue, p.live = p.queue[1:], true
	}
}

// Close ends the reader.
func (p *partReader) Close() error {
	p.closed = true
	p.seg.close()
	p.jc.close()
	p.closeStream()
	return nil
}

// appendTxRecords appends the records that a group has in the topic _tx.
func appendTxRecords(dst []eventlog.Record, g *group) ([]eventlog.Record, error) {
	if g.stream != nil {
		return append(dst, g.stream.txRecord()), nil
	}
	next := make([]eventlog.Offset, len(g.batches))
	for i, b := range g.batches {
		h, err := eventlog.DecodeBatchHeader(b.data)
		if err != nil {
			return nil, err
		}
		next[i] = h.Base
	}
	for i := range g.rows {
		tx := &g.rows[i].tx
		runs := make([]sealedRun, 0, len(g.runsOf(i)))
		for _, r := range g.runsOf(i) {
			b := g.batches[r.batch]
			if next[r.batch] > 1<<62 {
				return nil, fmt.Errorf("topic %d partition %d: offset %d", b.topic, b.partition, next[r.batch])
			}
			runs = append(runs, sealedRun{partKey{b.topic, b.partition}, next[r.batch], r.count})
			next[r.batch] += eventlog.Offset(r.count)
		}
		dst = append(dst, eventlog.Record{
			Topic: txTopic, Offset: eventlog.Offset(g.first) + eventlog.Offset(i), CSN: tx.CSN,
			Time: tx.CommitTime, Value: appendTxRow(nil, tx, runs),
		})
	}
	return dst, nil
}

// NewestByKey calls fn for every key with the CSN of its newest record.
func (l *Log) NewestByKey(topic eventlog.TopicID, fn func(key []byte, csn eventlog.CSN, tombstone bool) error) error {
	t, ok := l.topicByID(topic)
	if !ok {
		return fmt.Errorf("newest by key of topic %d: %w", topic, eventlog.ErrUnknownTopic)
	}
	for p := range t.Spec.Partitions { // a key lives in one partition
		if err := l.newestInPartition(partKey{topic, int32(p)}, fn); err != nil {
			return err
		}
	}
	return nil
}

type newest struct {
	csn       eventlog.CSN
	tombstone bool
}

func (l *Log) newestInPartition(k partKey, fn func(key []byte, csn eventlog.CSN, tombstone bool) error) error {
	pr, err := l.ReadPartition(k.topic, k.partition, l.StartOffsets(k.topic)[k.partition])
	if err != nil {
		return err
	}
	defer pr.Close()
	byKey := map[string]newest{}
	for {
		r, ok, err := pr.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if len(r.Key) > 0 && r.Key[0] != 0 {
			byKey[string(r.Key)] = newest{r.CSN, r.Value == nil}
		}
	}
	keys := make([]string, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := fn([]byte(key), byKey[key].csn, byKey[key].tombstone); err != nil {
			return err
		}
	}
	return nil
}
