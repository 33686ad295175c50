package seglog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// target is what SeekCSN and SeekTime look for: the first record that has it.
// Its other methods say where no such record can be, from the indexes alone.
type target struct {
	byTime bool
	csn    eventlog.CSN // at or above
	micros int64        // or committed at or after
}

func (t target) matches(r *eventlog.Record) bool {
	if t.byTime {
		return r.Time >= t.micros
	}
	return r.CSN >= t.csn
}

// inBatch reports whether a batch of a segment may hold the first match. Times
// are kept in ms there: of batches that end in the very ms, several may say yes.
func (t target) inBatch(x *segmentIndex, i int) bool {
	if t.byTime {
		return x.batches[i].maxTime >= t.micros/1000 // both cut off alike
	}
	if i+1 < len(x.batches) {
		return x.batches[i+1].before >= t.csn
	}
	return x.maxCSN >= t.csn
}

// inFile reports whether a journal file may hold a match; next is the first CSN
// behind it. The caller holds the lock.
func (t target) inFile(f *journalFile, next eventlog.CSN) bool {
	if t.byTime {
		return f.maxTime >= t.micros
	}
	return next > t.csn
}

// place returns the ordinal at the last place of a file before which nothing
// matches. The caller holds the lock.
func (t target) place(f *journalFile) uint64 {
	if t.byTime {
		return f.seekTime(t.micros)
	}
	return f.seekCSN(t.csn)
}

// SeekCSN returns the first offset of a kept record with a CSN at or above csn,
// the partition's end if there is none.
func (l *Log) SeekCSN(topic eventlog.TopicID, partition int32, csn eventlog.CSN) (eventlog.Offset, error) {
	off, err := l.seek(topic, partition, target{csn: csn})
	if err != nil {
		return 0, fmt.Errorf("seek CSN %d in topic %d partition %d: %w", csn, topic, partition, err)
	}
	return off, nil
}

// SeekTime returns the first offset of a kept record that was committed at or
// after a time, the partition's end if there is none.
func (l *Log) SeekTime(topic eventlog.TopicID, partition int32, micros int64) (eventlog.Offset, error) {
	off, err := l.seek(topic, partition, target{byTime: true, micros: micros})
	if err != nil {
		return 0, fmt.Errorf("seek a time in topic %d partition %d: %w", topic, partition, err)
	}
	return off, nil
}

func (l *Log) seek(topic eventlog.TopicID, partition int32, t target) (eventlog.Offset, error) {
	top, ok := l.topicByID(topic)
	if !ok || partition < 0 || int(partition) >= top.Spec.Partitions {
		return 0, eventlog.ErrUnknownTopic
	}
	k := partKey{topic, partition}
	for tries := 0; ; tries++ {
		end := l.EndOffsets(topic)[partition] // what comes later is not below it
		off, sealed, err := l.seekSealed(k, t)
		if err == nil && off < 0 {
			off, err = l.seekJournal(k, t, sealed)
		}
		switch {
		case errors.Is(err, errSealed) && tries < reloads:
			continue // sealed meanwhile: the segments hold it
		case err != nil:
			return 0, err
		case off < 0:
			return end, nil
		}
		return off, nil
	}
}

// seekSealed looks in the segments; off is negative if there is no match below
// sealed, the offset behind the last segment.
func (l *Log) seekSealed(k partKey, t target) (off, sealed eventlog.Offset, err error) {
	for {
		seg, idx, err := l.indexAt(k, sealed)
		if err != nil || seg == nil {
			return -1, sealed, err
		}
		off, err := l.seekSegment(seg, idx, t)
		if vfs.IsNotExist(err) && l.replaced(seg, k, sealed) {
			continue
		}
		if err != nil || off >= 0 {
			return off, sealed, err
		}
		sealed = seg.next
	}
}

// indexAt returns the segment at or behind an offset with its index; nil if there is none.
func (l *Log) indexAt(k partKey, off eventlog.Offset) (*segment, *segmentIndex, error) {
	for {
		seg := l.segmentAt(k, off)
		if seg == nil {
			return nil, nil, nil
		}
		idx, err := seg.index(l.fs())
		if vfs.IsNotExist(err) && l.replaced(seg, k, off) {
			continue
		}
		return seg, idx, err
	}
}

// replaced reports whether a segment whose file is gone is no longer the one at an offset.
func (l *Log) replaced(seg *segment, k partKey, off eventlog.Offset) bool {
	return l.vanished() == nil && l.segmentAt(k, off) != seg
}

func (l *Log) seekSegment(seg *segment, idx *segmentIndex, t target) (eventlog.Offset, error) {
	var f vfs.File
	for i := range idx.batches {
		if !t.inBatch(idx, i) {
			continue
		}
		if f == nil {
			var err error
			if f, err = l.fs().Open(seg.path); err != nil {
				return 0, err
			}
			defer f.Close()
		}
		b, err := seg.batch(f, idx, i)
		if err != nil {
			return 0, err
		}
		off, err := seekBatch(&b, t)
		if err != nil {
			return 0, seg.corrupt(idx.batches[i].pos, "%v", err)
		}
		if off >= 0 {
			return off, nil
		}
	}
	return -1, nil
}

// seekBatch returns the offset of a batch's first match, or a negative one.
func seekBatch(b *eventlog.Batch, t target) (eventlog.Offset, error) {
	it, err := b.Records()
	if err != nil {
		return 0, err
	}
	for {
		var r eventlog.Record
		ok, err := it.Next(&r)
		if err != nil || !ok {
			return -1, err
		}
		if t.matches(&r) {
			return r.Offset, nil
		}
	}
}

// span is a journal file that may hold what is looked for, and where in it.
type span struct {
	ordinal uint64          // to start from
	end     uint64          // ordinal behind the file
	next    eventlog.Offset // of the partition behind the file
}

// spans lists the files with records of a partition that may match.
func (l *Log) spans(k partKey, t target, low eventlog.Offset) ([]span, error) {
	l.mu.RLock()
	files := slices.Clone(l.files)
	l.mu.RUnlock()
	for _, f := range files {
		if err := l.openIndex(f); err != nil {
			return nil, err
		}
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []span
	for i, f := range files {
		s := span{end: l.st.ordinal, next: l.st.topic(k.topic).next[k.partition]}
		csn := l.st.nextCSN
		if i+1 < len(files) {
			n := files[i+1]
			s.end, s.next, csn = n.ordinal, n.start(k.topic, k.partition), n.nextCSN
		}
		if s.next > low && s.next > f.start(k.topic, k.partition) && t.inFile(f, csn) {
			s.ordinal = t.place(f)
			out = append(out, s)
		}
	}
	return out, nil
}

// openIndex loads a closed file's index if that was not done.
func (l *Log) openIndex(file *journalFile) error {
	l.mu.RLock()
	known := len(file.index) > 0 || l.files[len(l.files)-1] == file
	l.mu.RUnlock()
	if known {
		return nil
	}
	f, err := l.fs().Open(file.path)
	if vfs.IsNotExist(err) {
		if err = l.vanished(); err == nil {
			err = errSealed
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	l.indexOf(f, file)
	return nil
}

// seekJournal looks in the journal for a match at or above low; negative if there is none.
func (l *Log) seekJournal(k partKey, t target, low eventlog.Offset) (eventlog.Offset, error) {
	spans, err := l.spans(k, t, low)
	if err != nil {
		return 0, err
	}
	p := &partReader{l: l, key: k, next: low, jc: journalCursor{l: l}}
	defer p.jc.close()
	defer p.closeStream()
	for _, s := range spans {
		p.jc.ordinal = max(p.jc.ordinal, s.ordinal)
		for p.jc.ordinal < s.end && p.next < s.next {
			g, err := p.jc.next()
			if err != nil {
				return 0, err
			}
			if g == nil {
				return -1, nil
			}
			p.jc.ordinal = g.end()
			if off, err := p.seekGroup(g, t); err != nil || off >= 0 {
				return off, err
			}
		}
	}
	return -1, nil
}

func (p *partReader) seekGroup(g *group, t target) (eventlog.Offset, error) {
	if a := g.stream; a != nil && !t.matches(&eventlog.Record{CSN: a.tx.CSN, Time: a.tx.CommitTime}) {
		return -1, nil // all its records have these
	}
	if err := p.take(g); err != nil {
		return 0, err
	}
	for {
		var r eventlog.Record
		ok, err := p.fromGroup(&r)
		if !ok && err == nil {
			if ok, err = p.fromStream(); ok {
				continue
			}
		}
		if err != nil || !ok {
			return -1, err
		}
		if t.matches(&r) {
			return r.Offset, nil
		}
	}
}

// startAtTime moves a reader's start to the first transaction of its FromTime.
func (r *reader) startAtTime() error {
	if r.spec.FromTime == 0 {
		return nil
	}
	first := r.l.StartOffsets(txTopic)[0]
	off, err := r.l.SeekTime(txTopic, 0, r.spec.FromTime)
	if err == nil && off > first { // at the first row kept, what is older may do too
		r.ordinal = max(r.ordinal, uint64(off))
	}
	return err
}

// checkFrom reports offsets to start from that retention has deleted.
func (l *Log) checkFrom(r *reader) error {
	for topic, from := range r.spec.From {
		for p, off := range from {
			if !r.shows(topic) {
				continue
			}
			if err := l.checkRange(partKey{topic, int32(p)}, off); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRange reports an offset below the first kept one of a topic whose old
// records are deleted. What compaction leaves out is a gap, at the start too.
func (l *Log) checkRange(k partKey, from eventlog.Offset) error {
	t, ok := l.topicByID(k.topic)
	if !ok || t.Spec.Cleanup != eventlog.CleanupDelete || int(k.partition) >= t.Spec.Partitions {
		return nil
	}
	if start := l.StartOffsets(k.topic)[k.partition]; from < start {
		return fmt.Errorf("topic %q partition %d offset %d: %w; the first kept offset is %d",
			t.Spec.Name, k.partition, from, eventlog.ErrOutOfRange, start)
	}
	return nil
}
