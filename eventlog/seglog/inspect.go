package seglog

import (
	"context"
	"errors"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// TopicInfo says what the log holds of a topic.
type TopicInfo struct {
	Topic          eventlog.Topic
	Start, End     []eventlog.Offset // first kept and next offset of each partition
	Horizon        eventlog.CSN      // largest CSN at which compaction removed a value; 0: none
	Segments       int
	SegmentBytes   int64
	SegmentRecords int64
	JournalRecords int64 // that are in no segment yet

	// Only with the journal read:
	JournalBytes int64 // of the batches of those records
	NewestTime   int64 // largest commit time, µs since 1970; what is sealed counts to the ms; 0: no record

	sealed []eventlog.Offset // behind the last segment of each partition
}

// Inspect describes all topics in the order of their ids; with journal it reads
// the whole journal once for what is known from nowhere else.
func (l *Log) Inspect(ctx context.Context, journal bool) ([]TopicInfo, error) {
	l.mu.RLock()
	topics := slices.Clone(l.st.topics)
	infos := make([]TopicInfo, len(topics))
	var segs []*segment
	for i, t := range topics {
		infos[i] = TopicInfo{Topic: t.topic, End: slices.Clone(t.next), Horizon: t.horizon}
		for p := range t.next {
			k := partKey{t.topic.ID, int32(p)}
			infos[i].JournalRecords += l.unsealed(k)
			infos[i].sealed = append(infos[i].sealed, l.sealedEnd(k))
			segs = append(segs, l.segs[k]...)
		}
	}
	l.mu.RUnlock()
	for i := range infos {
		infos[i].Start = l.StartOffsets(infos[i].Topic.ID)
	}
	for _, s := range segs {
		if err := infos[s.key.topic-1].addSegment(l, s); err != nil {
			return nil, err
		}
	}
	if !journal {
		for i := range infos {
			infos[i].NewestTime = 0 // of the segments alone it would mislead
		}
		return infos, ctx.Err()
	}
	return infos, l.inspectJournal(ctx, infos)
}

func (t *TopicInfo) addSegment(l *Log, s *segment) error {
	idx, err := s.index(l.fs())
	if err != nil {
		if l.vanished() == nil && l.segmentAt(s.key, s.base) != s {
			return nil // replaced meanwhile
		}
		return err
	}
	t.Segments++
	t.SegmentBytes += s.size
	t.SegmentRecords += idx.records
	for _, b := range idx.batches {
		t.NewestTime = max(t.NewestTime, b.maxTime*1000)
	}
	return nil
}

// unsealed counts a partition's records that only the journal has. The caller holds the lock.
func (l *Log) unsealed(k partKey) (n int64) {
	at := l.sealedEnd(k)
	for i, f := range l.files {
		next := l.st.topic(k.topic).next[k.partition]
		if i+1 < len(l.files) {
			next = l.files[i+1].start(k.topic, k.partition)
		}
		n += eventlog.Apart(max(at, f.start(k.topic, k.partition)), next)
	}
	return n
}

// inspectJournal adds what the journal's groups say.
func (l *Log) inspectJournal(ctx context.Context, infos []TopicInfo) error {
	l.mu.RLock()
	c := journalCursor{l: l, ordinal: l.files[0].ordinal}
	l.mu.RUnlock()
	defer c.close()
	for ctx.Err() == nil {
		g, err := c.next()
		if errors.Is(err, errSealed) { // the oldest files went meanwhile
			l.mu.RLock()
			c.ordinal = l.files[0].ordinal
			l.mu.RUnlock()
			continue
		}
		if err != nil || g == nil {
			return err
		}
		c.ordinal = g.end()
		if g.stream != nil {
			addStream(infos, g.stream)
			continue
		}
		for _, b := range g.batches {
			h, err := eventlog.DecodeBatchHeader(b.data)
			if err != nil {
				return err
			}
			if int(b.topic) <= len(infos) && h.Last >= infos[b.topic-1].sealed[b.partition] {
				infos[b.topic-1].JournalBytes += int64(len(b.data))
			}
		}
		for i := range g.rows {
			row := &g.rows[i]
			infos[txTopic-1].NewestTime = max(infos[txTopic-1].NewestTime, row.tx.CommitTime)
			for _, run := range g.runsOf(i) {
				if id := g.batches[run.batch].topic; int(id) <= len(infos) {
					infos[id-1].NewestTime = max(infos[id-1].NewestTime, row.tx.CommitTime)
				}
			}
		}
	}
	return ctx.Err()
}

// addStream shares a streamed file's bytes out by records.
func addStream(infos []TopicInfo, a *adoption) {
	var total int64
	for _, p := range a.parts {
		total += int64(p.count)
	}
	infos[txTopic-1].NewestTime = max(infos[txTopic-1].NewestTime, a.tx.CommitTime)
	for _, p := range a.parts {
		if int(p.key.topic) > len(infos) {
			continue
		}
		i := &infos[p.key.topic-1]
		i.NewestTime = max(i.NewestTime, a.tx.CommitTime)
		if p.first+p.count > i.sealed[p.key.partition] {
			i.JournalBytes += a.length * int64(p.count) / max(total, 1)
		}
	}
}
