package image

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Options says how a Store is opened. The zero value works.
type Options struct {
	CacheBytes    int64 // block cache; default 64 MiB
	MemTableBytes uint64
	ReadOnly      bool
	Logger        *slog.Logger // default: discarded
	// Fatal is called when the store can no longer be trusted (its write-ahead
	// log failed) and must not return. Default: exit with code 1.
	Fatal func(msg string)
}

// Store is an ordered map of bytes with atomic batches: what was committed
// without sync is lost, if at all, from the end. Its methods may be called
// from any goroutine.
type Store struct {
	db    *pebble.DB
	cache *pebble.Cache
}

// OpenStore opens or makes the store in dir.
func OpenStore(dir string, o Options) (*Store, error) {
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 16 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(string) { os.Exit(1) }
	}
	cache := pebble.NewCache(o.CacheBytes)
	opts := &pebble.Options{
		Cache:                       cache,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      &logger{log: o.Logger, fatal: o.Fatal},
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                500,
		ReadOnly:                    o.ReadOnly,
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := openLocked(dir, opts)
	if err != nil {
		cache.Unref()
		if errors.Is(err, syscall.EAGAIN) {
			err = errors.New("another process has it open; try again when that has ended")
		}
		return nil, fmt.Errorf("open state %s: %w", dir, err)
	}
	return &Store{db: db, cache: cache}, nil
}

// How long a store waits for its lock: a command that reads a stopped data
// directory holds it for a moment.
const (
	lockWait  = 5 * time.Second
	lockPause = 50 * time.Millisecond
)

// openLocked opens the store once its lock is free.
func openLocked(dir string, opts *pebble.Options) (*pebble.DB, error) {
	for until := time.Now().Add(lockWait); ; time.Sleep(lockPause) {
		db, err := pebble.Open(dir, opts)
		if err == nil || !errors.Is(err, syscall.EAGAIN) || time.Now().After(until) {
			return db, err
		}
	}
}

// logger sends the engine's own words to slog; they name files, never keys.
type logger struct {
	log   *slog.Logger
	fatal func(string)
}

func (l *logger) Infof(format string, args ...any)  { l.log.Debug(fmt.Sprintf(format, args...)) }
func (l *logger) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }
func (l *logger) Fatalf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	l.log.Error("state store failed, the process must end", "err", msg)
	l.fatal(msg)
}

// Checkpoint writes a copy of the store as it is now into dir, which must not exist.
func (s *Store) Checkpoint(dir string) error {
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("copy state to %s: %w", dir, err)
	}
	return nil
}

// DiskBytes returns the bytes that the store takes on disk.
func (s *Store) DiskBytes() uint64 { return s.db.Metrics().DiskSpaceUsage() }

// Close flushes nothing that was not committed. All batches and snapshots must be closed before.
func (s *Store) Close() error {
	err := s.db.Close()
	s.cache.Unref()
	return err
}

// Reader is a view of a store: a Batch on top of it, or a Snapshot. One goroutine.
type Reader interface {
	// Get appends the value of key to dst; ok is false if there is none.
	Get(dst, key []byte) (value []byte, ok bool, err error)
	// Scan calls fn for each key in [lower, upper) in order until it returns
	// false. The bytes are valid inside fn, which must not use the Reader.
	Scan(lower, upper []byte, fn func(key, value []byte) (bool, error)) error
}

// scanner keeps one iterator for all scans of a reader.
type scanner struct {
	source pebble.Reader
	frozen bool                  // nothing it reads changes while it is open
	it     *pebble.Iterator      // of scans
	point  *pebble.Iterator      // of gets, when frozen
	opts   [2]pebble.IterOptions // the engine compares old bounds with new ones
	bounds [2][]byte
	turn   int
}

func (s *scanner) Get(dst, key []byte) ([]byte, bool, error) {
	if s.frozen {
		return s.seek(dst, key)
	}
	v, closer, err := s.source.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, fmt.Errorf("read state: %w", err)
	}
	dst = append(dst, v...)
	return dst, true, closer.Close()
}

// seek is Get by an iterator that stays open, which is cheaper than many gets.
func (s *scanner) seek(dst, key []byte) ([]byte, bool, error) {
	if s.point == nil {
		var err error
		if s.point, err = s.source.NewIter(nil); err != nil {
			return dst, false, fmt.Errorf("read state: %w", err)
		}
	}
	if !s.point.SeekGE(key) || !bytes.Equal(s.point.Key(), key) {
		return dst, false, s.point.Error()
	}
	v, err := s.point.ValueAndErr()
	if err != nil {
		return dst, false, fmt.Errorf("read state: %w", err)
	}
	return append(dst, v...), true, nil
}

func (s *scanner) Scan(lower, upper []byte, fn func(k, v []byte) (bool, error)) error {
	if err := s.position(lower, upper); err != nil {
		return fmt.Errorf("scan state: %w", err)
	}
	for valid := s.it.First(); valid; valid = s.it.Next() {
		v, err := s.it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan state: %w", err)
		}
		if more, err := fn(s.it.Key(), v); !more || err != nil {
			return err
		}
	}
	if err := s.it.Error(); err != nil {
		return fmt.Errorf("scan state: %w", err)
	}
	return nil
}

func (s *scanner) position(lower, upper []byte) error {
	s.turn = 1 - s.turn
	buf := append(append(s.bounds[s.turn][:0], lower...), upper...)
	s.bounds[s.turn] = buf
	opts := &s.opts[s.turn]
	opts.LowerBound, opts.UpperBound = buf[:len(lower):len(lower)], buf[len(lower):]
	if len(lower) == 0 {
		opts.LowerBound = nil // the engine seeks to a bound that is there, and takes none of length 0
	}
	if s.it != nil && s.frozen {
		s.it.SetBounds(opts.LowerBound, opts.UpperBound)
		return nil
	}
	if s.it != nil {
		s.it.SetOptions(opts)
		return nil
	}
	var err error
	s.it, err = s.source.NewIter(opts)
	return err
}

func (s *scanner) close() error {
	var errs []error
	if s.it != nil {
		errs = append(errs, s.it.Close())
	}
	if s.point != nil {
		errs = append(errs, s.point.Close())
	}
	s.it, s.point = nil, nil
	return errors.Join(errs...)
}

// Snapshot is a Store at one moment.
type Snapshot struct {
	scanner
	snap *pebble.Snapshot
}

// Snapshot returns the store as it is now. Close it before the store.
func (s *Store) Snapshot() *Snapshot {
	snap := s.db.NewSnapshot()
	return &Snapshot{scanner: scanner{source: snap, frozen: true}, snap: snap}
}

// View returns another Reader of the same moment, for another goroutine; close it before the Snapshot.
func (s *Snapshot) View() *View { return &View{scanner{source: s.snap, frozen: true}} }

// Close ends the snapshot.
func (s *Snapshot) Close() error { return errors.Join(s.close(), s.snap.Close()) }

// Frozen returns a Reader of the batch as it is now: it does not see later
// writes. Close it before the batch.
func (b *Batch) Frozen() *View { return &View{scanner{source: b.b, frozen: true}} }

// View is a Reader of one moment of a Snapshot or a Batch.
type View struct{ scanner }

// Close ends the view, not its snapshot.
func (v *View) Close() error { return v.close() }

// Batch collects writes over a Store, sees them, and commits them at once.
type Batch struct {
	scanner
	b *pebble.Batch
}

// Batch starts a batch. Commit or Close it.
func (s *Store) Batch() *Batch {
	b := s.db.NewIndexedBatch()
	return &Batch{scanner: scanner{source: b}, b: b}
}

// Set writes a key; the bytes are copied.
func (b *Batch) Set(key, value []byte) error { return b.b.Set(key, value, nil) }

// Delete removes a key.
func (b *Batch) Delete(key []byte) error { return b.b.Delete(key, nil) }

// DeleteRange removes all keys in [lower, upper).
func (b *Batch) DeleteRange(r [2][]byte) error { return b.b.DeleteRange(r[0], r[1], nil) }

// Size returns the bytes collected.
func (b *Batch) Size() int { return b.b.Len() }

// Commit applies the batch and ends it; with sync it is durable, and all before it.
func (b *Batch) Commit(sync bool) error {
	opts := pebble.NoSync
	if sync {
		opts = pebble.Sync
	}
	err := b.close()
	if err == nil {
		err = b.b.Commit(opts)
	}
	if err = errors.Join(err, b.b.Close()); err != nil {
		return fmt.Errorf("commit state: %w", err)
	}
	return nil
}

// Close drops the batch.
func (b *Batch) Close() error { return errors.Join(b.close(), b.b.Close()) }
