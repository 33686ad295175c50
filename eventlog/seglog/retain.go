package seglog

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// txQuotaShare is the part of the quota that the rows of _tx may take at most.
const txQuotaShare = 8

// Expire deletes the oldest segments of topics with cleanup delete, as far as
// their retention by time and size says. The newest segment of a partition may go
// too; offsets go on in the journal. Run does it in the background.
func (l *Log) Expire() error {
	l.compactMu.Lock()
	defer l.compactMu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	for _, t := range l.Topics() {
		if t.Spec.Cleanup != eventlog.CleanupDelete {
			continue
		}
		for p := range t.Spec.Partitions {
			if err := l.retainPartition(t, partKey{t.ID, int32(p)}); err != nil {
				return fmt.Errorf("expire segments of topic %q partition %d: %w", t.Spec.Name, p, err)
			}
		}
	}
	return nil
}

func (l *Log) retainPartition(t eventlog.Topic, k partKey) error {
	n, err := l.expired(t, k)
	if err == nil && k.topic == txTopic {
		n, err = l.passedRows(n)
	}
	if n == 0 || err != nil {
		return err
	}
	l.mu.RLock()
	gone := slices.Clone(l.segs[k][:n])
	if k.topic == txTopic {
		gone = l.unread(gone)
	}
	l.mu.RUnlock()
	if k.topic == txTopic && len(gone) > 0 {
		if err := l.moveTxStart(gone); err != nil {
			return err
		}
	}
	l.mu.Lock()
	if k.topic == txTopic {
		gone = l.unread(gone) // a reader may have begun before the start was moved
	}
	if len(gone) > 0 {
		l.deleted[k] = gone[len(gone)-1].next
	}
	l.setSegments(k, slices.Clone(l.segs[k][len(gone):]))
	l.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	dir := path.Dir(gone[0].path)
	for _, s := range gone { // oldest first and each durably, so that no crash leaves a hole
		if err := l.fs().Remove(s.path); err != nil && !vfs.IsNotExist(err) {
			return err
		}
		if err := l.syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// expired counts the oldest segments that retention does not keep.
func (l *Log) expired(t eventlog.Topic, k partKey) (n int, err error) {
	l.mu.RLock()
	segs := l.segs[k]
	l.mu.RUnlock()
	var total int64
	for _, s := range segs {
		total += s.size
	}
	// The limit by size is the topic's, over all its partitions.
	most := t.Spec.RetentionBytes / int64(t.Spec.Partitions)
	if quota := l.quota.Load(); k.topic == txTopic && quota > 0 {
		most = min(most, quota/txQuotaShare) // the rows are for people; views read on without them
	}
	oldest := l.opts.Clock().Add(-t.Spec.Retention)
	for n < len(segs) {
		tooMuch := t.Spec.RetentionBytes > 0 && total > most
		if !tooMuch && t.Spec.Retention <= 0 {
			break
		}
		if !tooMuch {
			newest, err := l.newestTime(segs[n])
			if err != nil {
				return 0, err
			}
			if !newest.Before(oldest) {
				break
			}
		}
		total -= segs[n].size
		n++
	}
	return n, nil
}

// newestTime returns the largest commit time in a segment, to the millisecond.
func (l *Log) newestTime(s *segment) (time.Time, error) {
	idx, err := s.index(l.fs())
	if err != nil {
		return time.Time{}, err
	}
	var ms int64
	for _, b := range idx.batches {
		ms = max(ms, b.maxTime)
	}
	return time.UnixMilli(ms), nil
}

// passedRows returns how many of the n oldest segments of _tx no cursor on it
// still needs, and notes what the others hold.
func (l *Log) passedRows(n int) (int, error) {
	free, back := n, heldBack{}
	defer func() { l.noteBack(partKey{txTopic, 0}, back) }()
	passed := l.limitsOf(txTopic).tombstones
	l.mu.RLock()
	segs := l.segs[partKey{txTopic, 0}][:n]
	l.mu.RUnlock()
	for i, s := range segs {
		idx, err := s.index(l.fs())
		if err != nil {
			return 0, err
		}
		if free == n {
			if idx.maxCSN <= passed {
				continue
			}
			newest, err := l.newestTime(s)
			if err != nil {
				return 0, err
			}
			free, back.since = i, newest.UnixMicro()
		}
		back.upTo, back.limit, back.bytes = idx.maxCSN, passed, back.bytes+s.size
	}
	return free, nil
}

// unread leaves out the segments of _tx with rows that an open reader will ask
// for, or that the journal holds too: a round of sealing that ended early may have
// left the records of those only there. The caller holds the lock.
func (l *Log) unread(segs []*segment) []*segment {
	least := l.oldestFile().ordinal
	for r := range l.readers {
		least = min(least, r.pinned.Load())
	}
	for n, s := range segs {
		if uint64(s.next) > least {
			return segs[:n]
		}
	}
	return segs
}

// moveTxStart durably notes, before rows of _tx go, up to where _tx and the records
// of each partition have lost them. Readers begin behind that: rows that a crash
// or another reader kept there show nothing twice.
func (l *Log) moveTxStart(gone []*segment) error {
	l.mu.RLock()
	start, err := l.st.txStart()
	l.mu.RUnlock()
	if err != nil {
		return err
	}
	if start.ends == nil {
		start.ends = map[partKey]eventlog.Offset{}
	}
	c := newSegCursor(l, partKey{txTopic, 0}, gone[0].base)
	defer c.close()
	end := gone[len(gone)-1].next
	rows := partKey{txTopic, 0}
	start.ends[rows] = max(start.ends[rows], end)
	var runs []sealedRun
	for {
		var r eventlog.Record
		ok, err := c.nextBelow(end, &r)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		var tx eventlog.Tx
		if runs, err = decodeTxRow(r.Value, &tx, runs[:0]); err != nil {
			return c.seg.corrupt(c.at, "%v", err)
		}
		start.csn = max(start.csn, r.CSN)
		for _, run := range runs {
			start.ends[run.key] = max(start.ends[run.key], run.first+eventlog.Offset(run.count))
		}
	}
	return l.saveOwn(start.mark())
}

// expiredEnd returns the offset below which this process deleted a partition's
// segments, 0 for none: a reader that is there already must hear of it.
func (l *Log) expiredEnd(k partKey) eventlog.Offset {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.deleted[k]
}
