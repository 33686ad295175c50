package seglog

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// txTopic is the topic _tx, made with the log: one record a transaction, at its ordinal.
const txTopic eventlog.TopicID = 1

// Log is an eventlog.Log on local disk.
type Log struct {
	dir      string
	opts     Options
	readOnly bool

	queueMu sync.Mutex
	queue   []*request
	closing bool
	stopped chan struct{}        // closed by Close
	streams map[*stream]struct{} // in progress
	// streamNumber is the number of the last stream.
	streamNumber uint64

	token chan struct{} // holds one value while nobody writes
	w     writer        // of the token's holder
	mem   entryMemory   // likewise, but for its slabs

	spare      chan *prepared
	spareBytes atomic.Int64 // in spare

	sealMu    sync.Mutex // one sealing at a time
	compactMu sync.Mutex // one compaction or expiry at a time; taken after sealMu, if both
	seeds     [2]maphash.Seed
	quota     atomic.Int64
	streaming atomic.Int64 // bytes of streams in progress
	refused   atomic.Int64 // bytes asked for last that the quota had no room for; 0: it had
	laggard   atomic.Pointer[eventlog.Laggard]
	cursorMu  sync.Mutex // one change of cursors at a time
	// sealNow and compactNow wake the background loops before their time.
	sealNow    chan struct{}
	compactNow chan struct{}

	mu    sync.RWMutex // guards what follows
	st    *state       // of what is durable
	files []*journalFile
	tail  tail
	segs  map[partKey][]*segment
	// segBytes is the size of all segments.
	segBytes  int64
	pins      map[*pin]struct{}
	readers   map[*reader]struct{}
	compacted map[partKey]time.Time       // when a partition was last compacted by this process
	deleted   map[partKey]eventlog.Offset // behind what this process deleted by retention
	damaged   map[partKey]error           // partitions that are not compacted any more
	back      map[partKey]heldBack        // what cursors kept as of the last pass of this process
	dirty     map[partKey]time.Time       // when the oldest segment came that compaction has not looked at
	doomed    []*journalFile              // sealed, to be deleted; changed by the holder of sealMu
	changed   chan struct{}
	rolled    chan struct{} // closed when a journal file was closed
	closed    bool
	fatal     error
	counts    counts
}

type counts struct{ appends, syncs, bytes, compactions, removed int64 }

type partKey struct {
	topic     eventlog.TopicID
	partition int32
}

func (l *Log) path(elem string) string { return l.dir + "/" + elem }

func (l *Log) fs() vfs.FS { return l.opts.FS }

// ID names the log for as long as its directory lives.
func (l *Log) ID() [16]byte {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.st.id
}

// Topic returns the topic of that name.
func (l *Log) Topic(name string) (eventlog.Topic, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if t := l.st.byName[name]; t != nil {
		return t.topic, true
	}
	return eventlog.Topic{}, false
}

func (l *Log) topicByID(id eventlog.TopicID) (eventlog.Topic, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if t := l.st.topic(id); t != nil {
		return t.topic, true
	}
	return eventlog.Topic{}, false
}

// Topics returns all topics in the order of their ids.
func (l *Log) Topics() []eventlog.Topic {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := make([]eventlog.Topic, len(l.st.topics))
	for i, t := range l.st.topics {
		out[i] = t.topic
	}
	return out
}

// Frontier returns the largest CSN for which every record with CSN <= it is durable.
func (l *Log) Frontier() eventlog.CSN {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.st.frontier
}

// Changed returns a channel that is closed at the next append.
func (l *Log) Changed() <-chan struct{} {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.changed
}

// SourceState returns the last durable position of a source.
func (l *Log) SourceState(source string) (eventlog.SourceState, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s, ok := l.st.sources[source]
	s.Position = slices.Clone(s.Position)
	return s, ok
}

// EndOffsets returns the next offset of each partition.
func (l *Log) EndOffsets(topic eventlog.TopicID) []eventlog.Offset {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if t := l.st.topic(topic); t != nil {
		return slices.Clone(t.next)
	}
	return nil
}

// StartOffsets returns the first offset of each partition that is still kept.
func (l *Log) StartOffsets(topic eventlog.TopicID) []eventlog.Offset {
	l.mu.RLock()
	defer l.mu.RUnlock()
	t := l.st.topic(topic)
	if t == nil {
		return nil
	}
	out := make([]eventlog.Offset, len(t.next))
	for p := range out {
		if s := l.segs[partKey{topic, int32(p)}]; len(s) > 0 {
			out[p] = s[0].base
		} else if len(l.files) > 0 {
			out[p] = l.files[0].start(topic, int32(p))
		}
	}
	return out
}

// Checkpoint returns the mark of a consumer, nil if there is none.
func (l *Log) Checkpoint(consumer string) (eventlog.Checkpoint, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.st.marks[consumer]), nil
}

// Checkpoints returns the marks of all consumers.
func (l *Log) Checkpoints() (map[string]eventlog.Checkpoint, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := make(map[string]eventlog.Checkpoint, len(l.st.marks))
	for k, v := range l.st.marks {
		if !isOwnMark(k) {
			out[k] = slices.Clone(v)
		}
	}
	return out, nil
}

// Stats describes the log.
func (l *Log) Stats() eventlog.Stats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := eventlog.Stats{
		Frontier: l.st.frontier, AppendedBytes: l.counts.bytes, Appends: l.counts.appends, Syncs: l.counts.syncs,
		JournalFiles: len(l.files), Laggard: l.laggard.Load(), Compactions: l.counts.compactions, Removed: l.counts.removed,
	}
	for _, since := range l.dirty {
		if at := since.UnixMicro(); s.DirtySince == 0 || at < s.DirtySince {
			s.DirtySince = at
		}
	}
	for k, err := range l.damaged {
		s.Damaged = append(s.Damaged, fmt.Errorf("topic %q partition %d is not compacted: %w", l.st.topic(k.topic).topic.Spec.Name, k.partition, err))
	}
	for _, f := range l.files {
		s.JournalBytes += f.bytes()
	}
	if len(l.files) > 0 {
		s.OldestCSN = l.files[0].nextCSN
	}
	for _, t := range l.st.topics {
		ts := l.topicStats(t)
		s.SegmentBytes += ts.Bytes
		s.DirtyBytes += ts.Dirty
		s.Topics = append(s.Topics, ts)
	}
	return s
}

func (l *Log) topicStats(t *topicState) eventlog.TopicStats {
	ts := eventlog.TopicStats{Name: t.topic.Spec.Name, Partitions: t.topic.Spec.Partitions, Horizon: t.horizon}
	for p, next := range t.next {
		segs := l.segs[partKey{t.topic.ID, int32(p)}]
		start := l.files[0].start(t.topic.ID, int32(p))
		if len(segs) > 0 {
			start = segs[0].base
		}
		ts.Records += eventlog.Apart(start, next)
		dirty, total := dirtyBytes(segs, l.st.clean(partKey{t.topic.ID, int32(p)}).offset)
		ts.Bytes += total
		if t.topic.Spec.Cleanup == eventlog.CleanupCompact {
			ts.Dirty += dirty
		}
	}
	return ts
}

// Close waits for appends in flight and refuses further ones.
func (l *Log) Close() error {
	l.queueMu.Lock()
	first := !l.closing
	l.closing = true
	if first {
		close(l.stopped)
	}
	l.queueMu.Unlock()
	if !first || l.readOnly {
		return nil
	}
	<-l.token // nobody writes any more, and nobody will
	for l.queued() {
		l.commitQueued()
	}
	l.endStreams()
	l.sealMu.Lock()
	defer l.sealMu.Unlock()
	l.compactMu.Lock()
	defer l.compactMu.Unlock()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if l.w.f == nil {
		return nil
	}
	if err := l.w.f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", l.w.file.path, err)
	}
	return nil
}

var _ eventlog.Log = (*Log)(nil)
