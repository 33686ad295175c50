package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// writer is what the token's holder needs to write.
type writer struct {
	f     vfs.File
	file  *journalFile
	end   int64 // of what is durable in the file; the next entry begins here
	dirty bool  // bytes of a failed write may be behind end
	// indexed is the end behind an index entry already written.
	indexed int64
	stray   string // a new file that could not be finished
	encoder groupEncoder
}

// ready reports whether the log takes writes, after mending what a failed one left.
func (l *Log) ready() error {
	l.mu.RLock()
	fatal := l.fatal
	l.mu.RUnlock()
	if fatal != nil {
		return fatal
	}
	if l.w.stray != "" {
		if err := l.removeStray(); err != nil {
			return err
		}
	}
	if l.w.dirty {
		return l.cutDirty()
	}
	return nil
}

// cutDirty removes, durably, what a failed write left behind the last good entry.
func (l *Log) cutDirty() error {
	if err := l.w.f.Truncate(l.w.end); err != nil {
		return l.failed("cut", l.w.file.path, err)
	}
	if err := l.sync(); err != nil {
		return err
	}
	l.w.dirty = false
	return nil
}

// removeStray removes, durably, a new journal file that could not be finished:
// as long as it may exist the file before it must not grow.
func (l *Log) removeStray() error {
	if err := l.fs().Remove(l.w.stray); err != nil && !vfs.IsNotExist(err) {
		return l.failed("remove", l.w.stray, err)
	}
	if err := l.syncDir(l.path("journal")); err != nil {
		return err
	}
	l.w.stray = ""
	return nil
}

// failed wraps an error after which the log goes on: ErrFull where there was no space.
func (l *Log) failed(what, path string, err error) error {
	if vfs.IsFull(err) {
		return fmt.Errorf("%s %s: %w; free space, appending resumes by itself (%w)", what, path, eventlog.ErrFull, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// sync syncs the newest file. A failure that is not for want of space is the log's end.
func (l *Log) sync() error {
	if err := l.w.f.Sync(); err != nil {
		l.w.dirty = true
		return l.syncFailed(l.w.file.path, err)
	}
	l.mu.Lock()
	l.counts.syncs++
	l.mu.Unlock()
	return nil
}

// syncDir makes a directory's entries durable; its failures are those of a file's sync.
func (l *Log) syncDir(dir string) error {
	if err := l.fs().SyncDir(dir); err != nil {
		return l.syncFailed(dir, err)
	}
	return nil
}

func (l *Log) syncFailed(path string, err error) error {
	if vfs.IsFull(err) {
		return l.failed("sync", path, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = fmt.Errorf("sync %s: %w (%w)", path, ErrSync, err)
	return l.fatal
}

// writeEntry writes one entry and syncs it; after an error nothing of it is there or will be.
func (l *Log) writeEntry(entry []byte) error {
	l.w.dirty = true
	if _, err := l.w.f.WriteAt(entry, l.w.end); err != nil {
		err = l.failed("write", l.w.file.path, err)
		return errors.Join(err, l.tryCut())
	}
	if err := l.sync(); err != nil {
		return errors.Join(err, l.tryCut())
	}
	l.w.dirty = false
	l.w.end += int64(len(entry))
	return nil
}

// tryCut cuts at once what a failed write left, so that it does not become
// visible at the next start; if that fails too, ready tries again.
func (l *Log) tryCut() error {
	l.mu.RLock()
	fatal := l.fatal
	l.mu.RUnlock()
	if fatal != nil {
		return nil
	}
	if err := l.cutDirty(); err != nil && !errors.Is(err, eventlog.ErrFull) {
		return err
	}
	return nil
}

// publish makes a durable group visible.
func (l *Log) publish(g *pendingGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pos := l.w.end - int64(len(g.entry))
	csn := l.st.nextCSN
	l.w.file.note(pos, l.st.ordinal, csn)
	for _, t := range g.topics {
		if err := l.st.setTopic(t); err != nil {
			panic(err) // the encoder made it from this state
		}
	}
	for _, m := range g.marks {
		if err := l.st.setMark(m); err != nil {
			panic(err) // made by this program
		}
	}
	for _, tx := range g.txs {
		l.st.applyTx(tx)
		l.w.file.saw(tx)
	}
	for _, p := range g.ends {
		l.st.topic(p.key.topic).next[p.key.partition] = p.next
	}
	l.w.file.size = l.w.end
	l.counts.appends++
	l.counts.bytes += int64(len(g.entry))
	if len(g.txs) == 0 {
		g.mem.release()
		return
	}
	l.tail.add(tailGroup{kind: kindGroup, first: g.first, end: l.st.ordinal, csn: csn, payload: g.payload(), mem: g.mem})
	close(l.changed)
	l.changed = make(chan struct{})
}

// maybeRoll begins a new journal file when the newest has grown enough.
func (l *Log) maybeRoll() error {
	if l.w.file.bytes()-l.w.file.size+l.w.end < l.opts.FileBytes || l.w.end <= l.w.file.body {
		return nil
	}
	return l.roll()
}

// roll closes the newest file with its index and begins the next.
func (l *Log) roll() error {
	old := l.w.file
	if len(old.index) > 0 && l.w.indexed != l.w.end {
		if err := l.writeEntry(appendIndexEntry(nil, old)); err != nil {
			return err
		}
		l.w.indexed = l.w.end
		l.mu.Lock()
		old.size = l.w.end
		l.mu.Unlock()
	}
	if err := l.begin(old.number+1, l.w.end); err != nil {
		return err
	}
	l.mu.Lock()
	close(l.rolled)
	l.rolled = make(chan struct{})
	l.mu.Unlock()
	return nil
}

// begin makes journal file number, behind one that ends at prevEnd, and writes
// there from now on. File and directory are synced before anything is acknowledged (V17).
func (l *Log) begin(number uint64, prevEnd int64) error {
	path := l.path("journal/" + journalName(number))
	l.w.stray = path
	f, err := l.fs().Create(path)
	if err != nil {
		return l.failed("make", path, err)
	}
	b := beginEntry(appendFileHeader(nil, number))
	b = l.st.appendCheckpoint(b, prevEnd)
	finishEntry(b, fileHeaderSize, seedOf(number), kindCheckpoint)
	if _, err = f.WriteAt(b, 0); err != nil {
		return errors.Join(l.failed("begin", path, err), f.Close())
	}
	if err = f.Sync(); err == nil {
		err = l.fs().SyncDir(l.path("journal"))
	}
	if err != nil {
		return errors.Join(l.syncFailed(path, err), f.Close())
	}
	l.w.stray = ""
	jf := &journalFile{
		number: number, path: path, size: int64(len(b)), body: int64(len(b)),
		nextCSN: l.st.nextCSN, ordinal: l.st.ordinal, starts: l.st.offsets(), maxTime: noTime,
	}
	old := l.w.f
	l.mu.Lock()
	l.files = append(slices.Clip(l.files), jf)
	l.counts.syncs++
	l.mu.Unlock()
	l.w.f, l.w.file, l.w.end, l.w.indexed, l.w.dirty = f, jf, jf.size, 0, false
	if old != nil {
		if err := old.Close(); err != nil {
			l.opts.Logger.Warn("close journal file", "err", err)
		}
	}
	return nil
}

// appendIndexEntry appends the entry that ends a closed file:
//
//	version u8 = 2, uvarint points, each uvarint pos, ordinal and CSN as the
//	difference to the point before, and varint largest commit time (µs) of the
//	file's records before it; varint largest commit time of all its records;
//	u32 size of the whole entry
//
// Version 1 had no times.
func appendIndexEntry(dst []byte, f *journalFile) []byte {
	start := len(dst)
	dst = append(beginEntry(dst), indexVersion)
	dst = binary.AppendUvarint(dst, uint64(len(f.index)))
	var last indexPoint
	for _, p := range f.index {
		dst = binary.AppendUvarint(dst, uint64(p.pos-last.pos))
		dst = binary.AppendUvarint(dst, p.ordinal-last.ordinal)
		dst = binary.AppendUvarint(dst, uint64(p.csn-last.csn))
		dst = binary.AppendVarint(dst, p.maxTime)
		last = p
	}
	dst = binary.AppendVarint(dst, f.maxTime)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-start+4))
	finishEntry(dst, start, seedOf(f.number), kindIndex)
	return dst
}

const indexVersion = 2

// decodeIndex reads the payload of an index entry, and the largest commit time of the file's records.
func decodeIndex(payload []byte) ([]indexPoint, int64, error) {
	c := &cursor{b: payload}
	v := c.byte()
	if v != 1 && v != indexVersion {
		return nil, 0, fmt.Errorf("index of version %d; this program reads 1 and %d", v, indexVersion)
	}
	size := 4
	time := c.varint
	if v == 1 {
		size, time = 3, func() int64 { return anyTime }
	}
	points := make([]indexPoint, c.count(size))
	var last indexPoint
	for i := range points {
		last = indexPoint{last.pos + int64(c.uvarint()), last.ordinal + c.uvarint(), last.csn + eventlog.CSN(c.uvarint()), time()}
		points[i] = last
	}
	maxTime := time()
	if c.take(4); c.bad || len(c.b) != 0 {
		return nil, 0, fmt.Errorf("index: %w", errShort)
	}
	return points, maxTime, nil
}
