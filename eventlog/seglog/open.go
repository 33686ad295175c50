package seglog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"path"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

const txTopicName = eventlog.TopicTx

// txTopicSpec is the topic of the transactions' rows, written at sealing.
var txTopicSpec = eventlog.TopicSpec{
	Name: txTopicName, Partitions: 1, Cleanup: eventlog.CleanupDelete,
	Retention: 7 * 24 * time.Hour, RetentionBytes: 1 << 30, TombstoneRetention: 24 * time.Hour, Compression: "zstd",
}

// Open opens the log in a directory, or makes one there. The caller holds the
// data directory's lock: nobody else may write to it.
func Open(dir string, opts Options) (*Log, error) {
	l := newLog(dir, opts)
	for _, d := range []string{dir, l.path("journal"), l.path("topics")} {
		if err := l.fs().MkdirAll(d); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
	}
	for _, d := range []string{path.Dir(path.Clean(dir)), dir} { // their entries: the log itself, and what is in it (V17)
		if err := l.fs().SyncDir(d); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
	}
	rec, err := l.recover()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := l.checkClock(); err != nil {
		return nil, err
	}
	if err := l.resume(rec); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.token <- struct{}{}
	return l, nil
}

func newLog(dir string, opts Options) *Log {
	l := &Log{
		dir: dir, opts: opts.withDefaults(), token: make(chan struct{}, 1), spare: make(chan *prepared, maxSparePrepared),
		segs: map[partKey][]*segment{}, changed: make(chan struct{}), rolled: make(chan struct{}),
		pins: map[*pin]struct{}{}, readers: map[*reader]struct{}{},
		compacted: map[partKey]time.Time{}, damaged: map[partKey]error{}, back: map[partKey]heldBack{}, deleted: map[partKey]eventlog.Offset{}, dirty: map[partKey]time.Time{},
		sealNow: make(chan struct{}, 1), compactNow: make(chan struct{}, 1),
		seeds:   [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		streams: map[*stream]struct{}{}, stopped: make(chan struct{}),
	}
	l.quota.Store(l.opts.Quota)
	l.tail.max = l.opts.TailBytes
	return l
}

// resume makes the log writable behind what was recovered: in the newest file
// if that ended clean, else in a new one.
func (l *Log) resume(rec recovered) error {
	last := l.st.lastIngest
	if rec.fresh {
		if _, err := rand.Read(l.st.id[:]); err != nil {
			return err
		}
		if err := l.st.setTopic(eventlog.Topic{ID: txTopic, Spec: txTopicSpec}); err != nil {
			return err
		}
	}
	if rec.torn > 0 {
		l.st.skip()
		l.opts.Logger.Warn("cut a torn tail of the journal; offsets and sequence numbers skip 2^32",
			"file", rec.file.path, "byte", rec.file.size, "bytes", rec.torn, "last", time.UnixMicro(last).UTC())
	}
	l.st.nextCSN = max(l.st.nextCSN, eventlog.ClockCSN(l.opts.Clock()))
	if rec.fresh {
		return l.begin(1, 0)
	}
	f, err := l.fs().OpenWrite(rec.file.path)
	if err != nil {
		return err
	}
	if err := l.syncFound(f, rec); err != nil {
		return errors.Join(err, f.Close())
	}
	if rec.torn == 0 {
		l.w.f, l.w.file, l.w.end = f, rec.file, rec.file.size
		return nil
	}
	defer f.Close()
	// The next file's checkpoint says where this one ends, and keeps the skip.
	if err := l.begin(rec.file.number+1, rec.file.size); err != nil {
		return err
	}
	if err := f.Truncate(rec.file.size); err != nil { // harmless: nobody reads there
		l.opts.Logger.Warn("cut torn tail", "file", rec.file.path, "err", err)
	}
	return nil
}

// syncFound makes durable what an earlier process wrote: nothing is shown before
// it is (C2). Only the last entry can be in doubt (V18). If its sync failed, the
// system holds it for written and no further sync would write it: so it is
// written again, with the bytes that are there.
func (l *Log) syncFound(f vfs.File, rec recovered) error {
	b := make([]byte, rec.file.size-rec.last)
	if n, err := f.ReadAt(b, rec.last); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return fmt.Errorf("read %s: %w", rec.file.path, err)
	}
	if _, err := f.WriteAt(b, rec.last); err != nil {
		return l.failed("write again", rec.file.path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w (%w)", rec.file.path, ErrSync, err)
	}
	return l.fs().SyncDir(l.path("journal"))
}

// checkClock refuses a clock that would make sequence numbers useless (V20).
func (l *Log) checkClock() error {
	now := l.opts.Clock()
	if now.Year() > 2080 {
		return fmt.Errorf("open log: clock says %s: %w; set it", now.UTC().Format(time.RFC3339), ErrClock)
	}
	last := time.UnixMicro(l.st.lastIngest)
	if l.st.lastIngest > 0 && now.Sub(last) > 366*24*time.Hour && !l.opts.TrustClock {
		return fmt.Errorf("open log: clock says %s, the last record is of %s: %w; set it, or confirm that it is right",
			now.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339), ErrClock)
	}
	return nil
}
