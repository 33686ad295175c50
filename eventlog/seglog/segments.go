package seglog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// topicDir is the name of a topic's directory: its id and, for people, the end of its name.
func topicDir(t eventlog.Topic) string {
	short := []byte(t.Spec.Name)
	for i, c := range short {
		if !(c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			short[i] = '-'
		}
	}
	if len(short) > 48 {
		short = short[len(short)-48:]
	}
	return fmt.Sprintf("%06d-%s", t.ID, short)
}

func parseTopicDir(name string) (eventlog.TopicID, bool) {
	digits, _, ok := strings.Cut(name, "-")
	n, err := strconv.ParseUint(digits, 10, 31)
	return eventlog.TopicID(n), ok && err == nil && n > 0 && len(digits) >= 6
}

// loadSegments lists the segments of all topics by their names.
func (l *Log) loadSegments() error {
	l.segs, l.segBytes = map[partKey][]*segment{}, 0
	dirs, err := l.fs().ReadDir(l.path("topics"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		id, ok := parseTopicDir(dir)
		if !ok {
			l.opts.Logger.Warn("leaving a directory alone that is not the log's", "directory", l.path("topics/"+dir))
			continue
		}
		if err := l.loadTopicDir(id, l.path("topics/"+dir)); err != nil {
			return err
		}
	}
	for _, segs := range l.segs {
		for _, s := range segs {
			l.segBytes += s.size
		}
	}
	return l.dropCovered()
}

// listTopicDir lists a topic's directory. While another process compacts there, a
// listing may miss both a new segment and those that it replaces: for reading
// only, it is repeated until two in a row are the same.
func (l *Log) listTopicDir(dir string) ([]string, error) {
	names, err := l.fs().ReadDir(dir)
	for try := 0; err == nil && l.readOnly && try < reloads; try++ {
		var again []string
		if again, err = l.fs().ReadDir(dir); slices.Equal(names, again) {
			break
		}
		names = again
	}
	return names, err
}

func (l *Log) loadTopicDir(id eventlog.TopicID, dir string) error {
	names, err := l.listTopicDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".tmp") && !l.readOnly {
			if err := l.fs().Remove(dir + "/" + name); err != nil {
				return err
			}
		}
		if s, ok := parseSegmentName(name); ok {
			s.key.topic, s.path = id, dir+"/"+name
			if s.size, err = sizeOf(l.fs(), s.path); err != nil {
				return err
			}
			l.segs[s.key] = append(l.segs[s.key], s)
		}
	}
	return nil
}

// dropCovered removes segments that were compacted into others: the crash came
// before their removal.
func (l *Log) dropCovered() error {
	for k, segs := range l.segs {
		slices.SortFunc(segs, func(a, b *segment) int {
			return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(b.next, a.next), cmp.Compare(b.gen, a.gen))
		})
		kept := segs[:0]
		for _, s := range segs {
			if n := len(kept); n == 0 || s.next > kept[n-1].next || s.base < kept[n-1].base {
				kept = append(kept, s)
				continue
			}
			if l.readOnly {
				continue
			}
			// The two are there together only until the old one is removed: a crash came
			// between. Should the new one not be what was written, nothing is removed.
			if _, err := kept[len(kept)-1].index(l.fs()); err != nil {
				return err
			}
			l.opts.Logger.Info("removing a segment that was compacted", "file", s.path)
			if err := l.fs().Remove(s.path); err != nil && !vfs.IsNotExist(err) {
				return err
			}
		}
		l.setSegments(k, kept)
	}
	return nil
}

// markDirty notes that a partition has something to compact. The caller holds the lock.
func (l *Log) markDirty(k partKey) {
	t := l.st.topic(k.topic)
	if _, known := l.dirty[k]; !known && t != nil && t.topic.Spec.Cleanup == eventlog.CleanupCompact {
		l.dirty[k] = l.opts.Clock()
	}
}

// setSegments replaces a partition's segments. The caller holds the lock.
func (l *Log) setSegments(k partKey, segs []*segment) {
	for _, s := range l.segs[k] {
		l.segBytes -= s.size
	}
	for _, s := range segs {
		l.segBytes += s.size
	}
	l.segs[k] = segs
}

func sizeOf(fsys vfs.FS, name string) (int64, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}

// checkSegments reports segments that do not fit the journal: overlapping each
// other, of unknown topics, beyond its end, or with a hole before it begins.
func (l *Log) checkSegments() error {
	for k, segs := range l.segs {
		t := l.st.topic(k.topic)
		if t == nil || int(k.partition) >= len(t.next) {
			return &CorruptError{Path: segs[0].path, Reason: "segment of a topic or partition that the journal does not know"}
		}
		for i := 1; i < len(segs); i++ {
			switch {
			case segs[i].base < segs[i-1].next:
				return &CorruptError{Path: segs[i].path, Reason: "segment overlaps " + segs[i-1].path}
			case segs[i].base > segs[i-1].next:
				return missingSegment(segs[i], segs[i-1].next)
			}
		}
		if segs[0].base > 0 && t.topic.Spec.Cleanup != eventlog.CleanupDelete {
			return missingSegment(segs[0], 0)
		}
		if last := segs[len(segs)-1]; last.next > t.next[k.partition] {
			return &CorruptError{Path: last.path, Reason: fmt.Sprintf("segment goes beyond the journal's end, offset %d", t.next[k.partition])}
		}
	}
	if err := l.checkTails(); err != nil {
		return err
	}
	return l.checkBeginning()
}

// missingSegment names the hole before a segment: segments follow each other
// without one, whatever compaction has left of their records.
func missingSegment(behind *segment, from eventlog.Offset) error {
	return &CorruptError{Path: behind.path, Reason: fmt.Sprintf("the segment before it is missing, with offsets %d to %d", from, behind.base-1)}
}

// checkTails reports partitions whose last segments are missing: what the journal
// no longer has is sealed. Only cuts leave a gap, of known size (V20).
func (l *Log) checkTails() error {
	if len(l.files) == 0 {
		return nil
	}
	for _, t := range l.st.topics {
		for p := range t.next {
			k := partKey{t.topic.ID, int32(p)}
			sealed, begins := l.sealedEnd(k), l.files[0].start(k.topic, k.partition)
			if sealed >= begins || (begins-sealed)%eventlog.ForeignSkip == 0 || t.topic.Spec.Cleanup == eventlog.CleanupDelete && len(l.segs[k]) == 0 {
				continue
			}
			return &CorruptError{Path: l.path("topics/" + topicDir(t.topic)), Reason: fmt.Sprintf(
				"partition %d: segments with offsets %d to %d are missing", p, sealed, begins-1)}
		}
	}
	return nil
}

// checkBeginning reports a journal whose oldest files are missing: the sealed rows
// of _tx reach to the first file. Only cuts leave a gap, of known size (V20).
// Where retention has deleted all rows there is nothing to compare with.
func (l *Log) checkBeginning() error {
	rows := partKey{txTopic, 0}
	if len(l.files) == 0 || len(l.segs[rows]) == 0 && l.st.marks[txStartMark] != nil {
		return nil
	}
	first := l.files[0]
	sealed := uint64(l.sealedEnd(rows))
	if sealed >= first.ordinal || (first.ordinal-sealed)%eventlog.ForeignSkip == 0 {
		return nil
	}
	return &CorruptError{Path: l.path("journal/" + journalName(first.number-1)), Reason: fmt.Sprintf(
		"file is missing: the journal begins with transaction %d, sealed are those before %d", first.ordinal, sealed)}
}

// sealedEnd returns the offset behind a partition's last segment. The caller holds the lock.
func (l *Log) sealedEnd(k partKey) eventlog.Offset {
	if s := l.segs[k]; len(s) > 0 {
		return s[len(s)-1].next
	}
	return 0
}

// segmentAt returns the segment that holds an offset, or the first behind it.
func (l *Log) segmentAt(k partKey, off eventlog.Offset) *segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	segs := l.segs[k]
	i := sort.Search(len(segs), func(i int) bool { return segs[i].next > off })
	if i == len(segs) {
		return nil
	}
	return segs[i]
}

// topicMeta is the file meta in a topic's directory: for people, and for the day when the journal is lost.
type topicMeta struct {
	ID         eventlog.TopicID `json:"id"`
	Name       string           `json:"name"`
	Partitions int              `json:"partitions"`
	Cleanup    eventlog.Cleanup `json:"cleanup"`
}

// makeTopicDir makes a topic's directory with its meta file and returns its path.
func (l *Log) makeTopicDir(t eventlog.Topic) (string, error) {
	dir := l.path("topics/" + topicDir(t))
	if f, err := l.fs().Open(dir + "/meta"); err == nil {
		return dir, f.Close()
	}
	if err := l.fs().MkdirAll(dir); err != nil {
		return "", err
	}
	if err := l.syncDir(l.path("topics")); err != nil {
		return "", err
	}
	meta, err := json.MarshalIndent(topicMeta{t.ID, t.Spec.Name, t.Spec.Partitions, t.Spec.Cleanup}, "", "  ")
	if err != nil {
		return "", err
	}
	return dir, vfs.WriteFile(l.fs(), dir, "meta", append(meta, '\n'))
}
