package seglog

import (
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
)

// pressedShare is the share of the quota from which the log is sealed and
// compacted early.
const pressedShare = 0.9

// pressedRoll is the part of the quota that the newest journal file may be when
// the log is pressed; a larger one is closed.
const pressedRoll = 32

// diskBytes is what the log has on disk. The caller holds the lock.
func (l *Log) diskBytes() int64 {
	n := l.segBytes + l.streaming.Load()
	for _, f := range l.files {
		n += f.bytes()
	}
	return n
}

// pressed reports whether the quota is nearly used up, or would be by what was refused last.
func (l *Log) pressed() bool {
	quota := l.quota.Load()
	if quota <= 0 {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return float64(l.diskBytes()+l.refused.Load()) > float64(quota)*pressedShare // what did not fit may be large
}

// SetQuota changes what the log may have on disk; 0: no limit.
func (l *Log) SetQuota(bytes int64) { l.quota.Store(bytes) }

// checkQuota refuses a request with changes of sources when the quota is used up.
// The marks of consumers, ticks and the outputs of views still go in: they are
// small, and without them nothing could be freed.
func (l *Log) checkQuota(r *request) error {
	if !r.counts() {
		return nil
	}
	return l.checkSpace(int64(max(r.size, 0)))
}

// checkSpace refuses bytes of a source that the quota has no room for.
func (l *Log) checkSpace(size int64) error {
	quota := l.quota.Load()
	if quota <= 0 {
		return nil
	}
	l.mu.RLock()
	used := l.diskBytes()
	l.mu.RUnlock()
	if float64(used) > float64(quota)*pressedShare {
		wake(l.sealNow)
		wake(l.compactNow)
	}
	if used+size <= quota {
		l.refused.Store(0)
		return nil
	}
	l.refused.Store(max(size, 1))
	wake(l.sealNow)
	wake(l.compactNow)
	return fmt.Errorf("append: %w: the log has %d bytes, its quota is %d; it is compacted now and goes on by itself if that frees enough, else raise log.quota or give topics a retention",
		eventlog.ErrFull, used, quota)
}

// counts reports whether a request brings changes of a source.
func (r *request) counts() bool {
	for _, tx := range r.txs {
		if (tx.Kind == eventlog.TxSource || tx.Kind == eventlog.TxChunk) && len(tx.Records) > 0 {
			return true
		}
	}
	return false
}

// wake makes a background loop look again.
func wake(loop chan<- struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}
