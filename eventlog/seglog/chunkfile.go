package seglog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

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
