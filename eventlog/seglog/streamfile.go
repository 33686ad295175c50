package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// A streamed file, version 1, is a 16-byte header ("TWST", u16 version, u16
// zero, u64 number) and then chunks: entries as in the journal, of kind 5,
// seeded with the file's own number. While its transaction is in progress it is
// NUMBER.stream.tmp in the journal's directory, then JOURNAL-NUMBER.stream, with
// the number of the journal file whose entry adopts it and with which it goes.
const (
	streamVersion   = 1
	streamSuffix    = ".stream"
	streamTmpSuffix = ".stream.tmp"
)

var streamMagic = [4]byte{'T', 'W', 'S', 'T'}

// streamFile is an adopted file.
type streamFile struct {
	number uint64
	size   int64
}

func streamTmpName(number uint64) string { return fmt.Sprintf("%012d%s", number, streamTmpSuffix) }

func streamName(journal, number uint64) string {
	return fmt.Sprintf("%012d-%d%s", journal, number, streamSuffix)
}

// parseStreamName reads the name of a streamed file; journal 0: one in progress.
func parseStreamName(name string) (journal, number uint64, ok bool) {
	if digits, tmp := strings.CutSuffix(name, streamTmpSuffix); tmp {
		number, ok = parseDecimal(digits)
		return 0, number, ok && streamTmpName(number) == name
	}
	both, found := strings.CutSuffix(name, streamSuffix)
	first, second, cut := strings.Cut(both, "-")
	journal, ok1 := parseDecimal(first)
	number, ok2 := parseDecimal(second)
	return journal, number, found && cut && ok1 && ok2 && streamName(journal, number) == name
}

func parseDecimal(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n > 0
}

func appendStreamHeader(dst []byte, number uint64) []byte {
	dst = append(dst, streamMagic[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, streamVersion)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	return binary.LittleEndian.AppendUint64(dst, number)
}

func checkStreamHeader(b []byte, number uint64) error {
	switch {
	case [4]byte(b[:4]) != streamMagic:
		return fmt.Errorf("magic %q is not a streamed file's", b[:4])
	case binary.LittleEndian.Uint16(b[4:]) != streamVersion:
		return fmt.Errorf("streamed file of version %d; this program reads %d", binary.LittleEndian.Uint16(b[4:]), streamVersion)
	case binary.LittleEndian.Uint16(b[6:]) != 0:
		return fmt.Errorf("header with unknown flags %#x", binary.LittleEndian.Uint16(b[6:]))
	case binary.LittleEndian.Uint64(b[8:]) != number:
		return fmt.Errorf("header names streamed file %d", binary.LittleEndian.Uint64(b[8:]))
	}
	return nil
}

func (l *Log) streamPath(a *adoption) string {
	return l.path("journal/" + streamName(a.journal, a.number))
}

// bytes is what a journal file and the streamed files that it adopted take.
func (f *journalFile) bytes() int64 {
	n := f.size
	for _, s := range f.streams {
		n += s.size
	}
	return n
}

// replayAdoption notes the streamed file of an entry of jf; a CorruptError names
// one that is not there.
func (l *Log) replayAdoption(jf *journalFile, a *adoption) error {
	path := l.streamPath(a)
	if a.journal != jf.number {
		return fmt.Errorf("adopts %s for journal file %d", path, a.journal)
	}
	size, err := sizeOf(l.fs(), path)
	if vfs.IsNotExist(err) {
		return missingStream(path, a)
	}
	if err != nil {
		return &ioError{err}
	}
	if size < a.length {
		return &CorruptError{Path: path, Pos: size, Reason: fmt.Sprintf("file ends, it had %d bytes", a.length)}
	}
	jf.streams = append(jf.streams, streamFile{a.number, a.length})
	return nil
}

func missingStream(path string, a *adoption) error {
	return &CorruptError{Path: path, Reason: fmt.Sprintf("streamed file of %d bytes is missing, transaction with CSN %d is in it", a.length, a.tx.CSN)}
}

// located makes what was wrong with an entry a CorruptError that names it, but
// for errors that name a file themselves.
func located(path string, pos int64, err error) error {
	var bad *CorruptError
	var io *ioError
	if errors.As(err, &bad) || errors.As(err, &io) {
		return err
	}
	return &CorruptError{Path: path, Pos: pos, Reason: err.Error()}
}

// loadStreams lists the streamed files: those of closed journal files live as
// long as these; of the newest those that an entry adopts, which its scan has
// noted. All others are what a crash left, and are removed.
func (l *Log) loadStreams() error {
	names, err := l.fs().ReadDir(l.path("journal"))
	if err != nil {
		return err
	}
	for _, name := range names {
		journal, number, ok := parseStreamName(name)
		if !ok {
			continue
		}
		l.streamNumber = max(l.streamNumber, number)
		if err := l.loadStream(name, journal, number); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) loadStream(name string, journal, number uint64) error {
	path := l.path("journal/" + name)
	if len(l.files) > 0 {
		first, newest := l.files[0], l.files[len(l.files)-1]
		if journal >= first.number && journal < newest.number {
			size, err := sizeOf(l.fs(), path)
			if err != nil {
				return err
			}
			jf := l.files[journal-first.number]
			jf.streams = append(jf.streams, streamFile{number, size})
			return nil
		}
		for _, s := range newest.streams {
			if journal == newest.number && s.number == number {
				return nil
			}
		}
	}
	if l.readOnly {
		return nil // it may be another process's, at work
	}
	if journal > 0 && (len(l.files) == 0 || journal > l.files[len(l.files)-1].number) {
		l.opts.Logger.Warn("leaving a streamed file alone whose journal file was never there", "file", path)
		return nil
	}
	l.opts.Logger.Info("removing a streamed file that was never adopted", "file", path)
	if err := l.fs().Remove(path); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	return nil
}

// removeStreams removes what a journal file adopted, after that was removed durably:
// a crash in between leaves files of a journal file that is not there, which Open removes.
func (l *Log) removeStreams(jf *journalFile) error {
	for _, s := range jf.streams {
		path := l.path("journal/" + streamName(jf.number, s.number))
		if err := l.fs().Remove(path); err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// chunkFile reads the chunks of an adopted file.
type chunkFile struct {
	a      *adoption
	f      vfs.File
	path   string
	seed   uint32
	pos    int64 // of the next chunk
	at     int64 // of the one read last
	heads  uint32
	chunks uint64
	err    error // met before: it stays
}

// openStream opens the file that an entry adopted. An error that matches
// fs.ErrNotExist is for streamGone.
func (l *Log) openStream(a *adoption) (*chunkFile, error) {
	path := l.streamPath(a)
	f, err := l.fs().Open(path)
	if err != nil {
		return nil, &ioError{err}
	}
	c := &chunkFile{a: a, f: f, path: path, seed: seedOf(a.number), pos: fileHeaderSize}
	head, err := c.readAt(nil, 0, fileHeaderSize)
	if err == nil {
		if herr := checkStreamHeader(head, a.number); herr != nil {
			err = &CorruptError{Path: path, Reason: herr.Error()}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// streamGone follows a streamed file's disappearance: nil means that its
// transaction was sealed, and the reader looks again.
func (l *Log) streamGone(a *adoption) error {
	if err := l.vanished(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if a.ordinal >= l.files[0].ordinal {
		return missingStream(l.streamPath(a), a)
	}
	return nil
}

// readAt reads n bytes at pos into buf, or into a larger one.
func (c *chunkFile) readAt(buf []byte, pos, n int64) ([]byte, error) {
	if pos+n > c.a.length {
		return nil, c.corrupt(fmt.Sprintf("chunk of %d bytes with %d left", n, c.a.length-pos))
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if k, err := c.f.ReadAt(buf, pos); err != nil && !(errors.Is(err, io.EOF) && int64(k) == n) {
		if errors.Is(err, io.EOF) {
			return nil, &CorruptError{Path: c.path, Pos: pos + int64(k), Reason: fmt.Sprintf("file ends, it had %d bytes", c.a.length)}
		}
		return nil, &ioError{fmt.Errorf("read %s: %w", c.path, err)}
	}
	return buf, nil
}

func (c *chunkFile) corrupt(reason string) error {
	return &CorruptError{Path: c.path, Pos: c.pos, Reason: reason}
}

// next reads the next chunk into buf, or into a larger one, which it returns; a
// nil chunk is the end, verified to be that of the file which was adopted.
func (c *chunkFile) next(buf []byte) (k *chunk, b []byte, err error) {
	if c.err != nil {
		return nil, buf, c.err
	}
	k, b, c.err = c.read(buf)
	return k, b, c.err
}

func (c *chunkFile) read(buf []byte) (*chunk, []byte, error) {
	if c.pos == c.a.length {
		if c.chunks != c.a.chunks || c.heads != c.a.heads {
			return nil, buf, c.corrupt(fmt.Sprintf("file of %d chunks with checksum %08x; adopted was one of %d with %08x",
				c.chunks, c.heads, c.a.chunks, c.a.heads))
		}
		return nil, buf, nil
	}
	head, err := c.readAt(buf, c.pos, entryHeaderSize)
	if err != nil {
		return nil, buf, err
	}
	heads := crc32.Update(c.heads, castagnoli, head)
	b, err := c.readAt(head, c.pos, entryHeaderSize+int64(decodeEntryHead(head).n))
	if err != nil {
		return nil, buf, err
	}
	kind, payload, err := decodeEntry(b, c.seed)
	if err == nil && kind != kindChunk {
		err = fmt.Errorf("entry of kind %d in a streamed file", kind)
	}
	if err != nil {
		return nil, b, c.corrupt(err.Error())
	}
	k, err := decodeChunk(payload)
	if err != nil {
		return nil, b, c.corrupt(err.Error())
	}
	c.at = c.pos
	c.pos += int64(len(b))
	c.heads, c.chunks = heads, c.chunks+1
	return k, b, nil
}

// records calls fn for the records shown of a chunk that next returned.
func (c *chunkFile) records(k *chunk, wanted func(partKey) bool, fn func(r *eventlog.Record, every bool) error) error {
	if err := k.each(c.a, wanted, fn); err != nil {
		c.err = located(c.path, c.at, err)
	}
	return c.err
}

func (c *chunkFile) close() { c.f.Close() }
