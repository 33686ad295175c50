package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tailwater/tailwater/eventlog"
)

// reservedLog is the log as sources write to it: it refuses their appends while
// the file system has less than a reserve free. The log, the views and the
// cursors work on in the reserve, so that a filling disk stops
// acknowledgements before it stops anything else (C8).
type reservedLog struct {
	eventlog.Log
	path  string
	usage func(path string) (free, total uint64, err error)

	mu sync.Mutex
	at time.Time
	ok bool
}

const (
	mostReserve = 256 << 20
	spaceEvery  = 200 * time.Millisecond
)

// reserve is 5 % of the file system, at most 256 MiB.
func reserve(total uint64) uint64 { return min(total/20, mostReserve) }

// Append refuses with ErrFull while the reserve is touched.
func (l *reservedLog) Append(ctx context.Context, group []*eventlog.Tx) error {
	if err := l.touched(); err != nil {
		return err
	}
	return l.Log.Append(ctx, group)
}

// Stream begins a transaction that is refused as appends are.
func (l *reservedLog) Stream(ctx context.Context) (eventlog.Stream, error) {
	s, err := l.Log.Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &reservedStream{s, l}, nil
}

// reservedStream is a stream of a reservedLog.
type reservedStream struct {
	eventlog.Stream
	l *reservedLog
}

func (s *reservedStream) Add(sub uint32, records []eventlog.Record) error {
	if err := s.l.touched(); err != nil {
		return err
	}
	return s.Stream.Add(sub, records)
}

func (s *reservedStream) Commit(ctx context.Context, tx *eventlog.Tx) error {
	if err := s.l.touched(); err != nil {
		return err
	}
	return s.Stream.Commit(ctx, tx)
}

// touched answers ErrFull while the reserve is touched.
func (l *reservedLog) touched() error {
	if l.space() {
		return nil
	}
	return fmt.Errorf("%w: the file system of %s has less than the reserve free; make space, it goes on by itself", eventlog.ErrFull, l.path)
}

// space asks the file system now and then.
func (l *reservedLog) space() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < spaceEvery {
		return l.ok
	}
	l.at, l.ok = time.Now(), true
	if free, total, err := l.usage(l.path); err == nil {
		l.ok = free > reserve(total)
	}
	return l.ok
}

// fileSystem tells the bytes of the file system that a path is on.
func fileSystem(path string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize), nil
}
