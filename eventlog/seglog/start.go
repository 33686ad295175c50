package seglog

import (
	"sort"

	"github.com/tailwater/tailwater/eventlog"
)

// start finds the ordinal at or before the first transaction that the reader shows.
func (r *reader) start() error {
	csn, byCSN := r.spec.After+1, r.needsCSN()
	r.l.mu.RLock()
	ordinal, ok := r.startInJournal(csn, byCSN)
	r.l.mu.RUnlock()
	if ok {
		r.ordinal = ordinal
		r.pinned.Store(ordinal)
		return nil
	}
	if !byCSN {
		csn = eventlog.MaxCSN
	}
	for topic, from := range r.spec.From {
		for p, off := range from {
			if !r.shows(topic) {
				continue
			}
			at, found, err := r.l.sealedCSN(partKey{topic, int32(p)}, off)
			if err != nil {
				return err
			}
			if found {
				csn = min(csn, at)
			}
		}
	}
	var err error
	if r.ordinal, err = r.l.sealedOrdinal(csn); err != nil {
		return err
	}
	r.rowless, err = r.startRowless()
	r.pinned.Store(r.ordinal)
	return err
}

// needsCSN reports whether some topic shown starts by CSN, not by offsets.
func (r *reader) needsCSN() bool {
	for _, t := range r.spec.Topics {
		if _, ok := r.spec.From[t]; !ok {
			return true
		}
	}
	return r.spec.Topics == nil
}

// startInJournal finds the last journal file that begins before all the reader
// shows, and the place in it; false if that lies in segments. The caller holds the lock.
func (r *reader) startInJournal(csn eventlog.CSN, byCSN bool) (uint64, bool) {
	l := r.l
	if (!byCSN || csn > l.st.frontier) && r.pastEnds() {
		return l.st.ordinal, true
	}
	i := sort.Search(len(l.files), func(i int) bool {
		return !r.before(l.files[i], csn, byCSN)
	}) - 1
	if i < 0 {
		return l.files[0].ordinal, l.firstFile()
	}
	ordinal := l.files[i].ordinal
	if !byCSN || len(r.spec.From) > 0 {
		return ordinal, true
	}
	ordinal = max(ordinal, l.files[i].seekCSN(csn))
	if at, ok := l.tail.findCSN(csn); ok {
		ordinal = max(ordinal, at)
	}
	return ordinal, true
}

// firstFile reports whether nothing was ever sealed.
func (l *Log) firstFile() bool { return l.files[0].number == 1 }

// before reports whether a file begins at or before all that the reader shows.
func (r *reader) before(f *journalFile, csn eventlog.CSN, byCSN bool) bool {
	if byCSN && f.nextCSN > csn {
		return false
	}
	for topic, from := range r.spec.From {
		for p, off := range from {
			if r.shows(topic) && f.start(topic, int32(p)) > off {
				return false
			}
		}
	}
	return true
}

// pastEnds reports whether all offsets to start from are at or beyond the log's end.
func (r *reader) pastEnds() bool {
	for topic, from := range r.spec.From {
		t := r.l.st.topic(topic)
		for p, off := range from {
			if r.shows(topic) && t != nil && p < len(t.next) && off < t.next[p] {
				return false
			}
		}
	}
	return true
}

// sealedCSN returns the CSN of the first sealed record at or above an offset.
func (l *Log) sealedCSN(k partKey, off eventlog.Offset) (eventlog.CSN, bool, error) {
	c := newSegCursor(l, k, off)
	defer c.close()
	var rec eventlog.Record
	ok, err := c.nextBelow(1<<62, &rec)
	return rec.CSN, ok, err
}

// sealedOrdinal returns an ordinal at or before the first sealed transaction with
// a CSN at or above csn; where there is none, that of the journal's beginning.
func (l *Log) sealedOrdinal(csn eventlog.CSN) (uint64, error) {
	l.mu.RLock()
	segs, begin := l.segs[partKey{txTopic, 0}], l.files[0].ordinal
	l.mu.RUnlock()
	for _, s := range segs {
		idx, err := s.index(l.fs())
		if err != nil {
			return 0, err
		}
		if idx.maxCSN >= csn {
			return min(begin, uint64(idx.batches[idx.findCSN(csn)].base)), nil
		}
	}
	return begin, nil
}
