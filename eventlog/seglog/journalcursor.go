package seglog

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/tailwater/tailwater/internal/vfs"
)

// errSealed says that the journal no longer reaches back to an ordinal.
var errSealed = errors.New("sealed")

// journalCursor reads groups by ordinal: from the tail in memory when it can,
// else from the files. It pins nothing: a file deleted under it is looked up anew.
type journalCursor struct {
	l       *Log
	ordinal uint64 // of the next transaction

	file *journalFile // open file, nil: none
	f    vfs.File
	s    *entryScanner
	at   uint64 // ordinal of the next transaction at s.pos

	g    group
	held *slab // of the group returned last, if that is in the tail
}

// next returns the next group; nil at the end of what is durable. Its bytes are
// valid until the next call.
func (c *journalCursor) next() (*group, error) {
	c.letGo()
	for {
		live, file, end, err := c.locate()
		if err != nil {
			return nil, err
		}
		if live.payload != nil {
			return c.decode(live.kind, live.payload)
		}
		if file == nil {
			return nil, nil
		}
		g, err := c.fromDisk(file, end)
		if vfs.IsNotExist(err) {
			c.close() // sealed and deleted between locate and open
			if err := c.l.vanished(); err != nil {
				return nil, err
			}
			continue
		}
		if g != nil || err != nil {
			return g, err
		}
	}
}

// vanished follows a file's deletion: a writer knows of its own, a read-only log looks again.
func (l *Log) vanished() error {
	if l.readOnly {
		return l.reload()
	}
	return nil
}

// locate looks c.ordinal up: a group of the tail, or the file that holds it
// with its durable end, or neither when the reader has caught up.
func (c *journalCursor) locate() (live tailGroup, file *journalFile, end int64, err error) {
	l := c.l
	l.mu.RLock()
	defer l.mu.RUnlock()
	if c.ordinal >= l.st.ordinal {
		return tailGroup{}, nil, 0, nil
	}
	if c.ordinal < l.files[0].ordinal {
		return tailGroup{}, nil, 0, errSealed
	}
	if g := l.tail.find(c.ordinal); g != nil {
		c.ordinal = max(c.ordinal, g.first) // over a gap
		g.mem.hold()
		c.held = g.mem
		return *g, nil, 0, nil
	}
	i := sort.Search(len(l.files), func(i int) bool { return l.files[i].ordinal > c.ordinal }) - 1
	if i < 0 {
		return tailGroup{}, nil, 0, errSealed
	}
	file = l.files[i]
	if c.file == file && c.s.pos >= file.size && i+1 < len(l.files) {
		file = l.files[i+1]
		c.ordinal = max(c.ordinal, file.ordinal) // over a gap
	}
	return tailGroup{}, file, file.size, nil
}

// fromDisk returns the group of c.ordinal, or nil at the file's end.
func (c *journalCursor) fromDisk(file *journalFile, end int64) (*group, error) {
	if err := c.open(file, end); err != nil {
		return nil, err
	}
	for {
		pos := c.s.pos
		kind, payload, err := c.s.next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if kind != kindGroup && kind != kindAdopt {
			continue
		}
		g, err := c.decode(kind, payload)
		if err != nil {
			return nil, &CorruptError{Path: file.path, Pos: pos, Reason: err.Error()}
		}
		if len(g.rows) == 0 {
			continue
		}
		if g.first != c.at { // gaps are between files
			return nil, &CorruptError{Path: file.path, Pos: pos, Reason: fmt.Sprintf("transaction %d where %d was due", g.first, c.at)}
		}
		c.at = g.end()
		if c.at > c.ordinal {
			c.ordinal = max(c.ordinal, g.first)
			return g, nil
		}
	}
}

// open makes c read file, at or before c.ordinal.
func (c *journalCursor) open(file *journalFile, end int64) error {
	if c.file == file && c.at <= c.ordinal {
		c.s.end = end
		return nil
	}
	c.close()
	f, err := c.l.fs().Open(file.path)
	if err != nil {
		return err
	}
	c.l.indexOf(f, file)
	c.l.mu.RLock()
	pos, at := file.seek(c.ordinal)
	c.l.mu.RUnlock()
	c.f, c.file, c.at = f, file, at
	c.s = newScanner(f, file.path, file.number, pos, end)
	c.s.slabs = &c.l.mem.slabs
	return nil
}

// indexOf loads a closed file's index at its first use.
func (l *Log) indexOf(f vfs.File, file *journalFile) {
	l.mu.RLock()
	size := file.size
	needed := len(file.index) == 0 && len(l.files) > 0 && l.files[len(l.files)-1] != file
	l.mu.RUnlock()
	if !needed {
		return
	}
	points, maxTime := loadIndex(f, file, size)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(file.index) == 0 && len(points) > 0 {
		file.index, file.maxTime = points, maxTime
	}
}

// decode reads an entry's transactions, groups into memory used again.
func (c *journalCursor) decode(kind byte, payload []byte) (*group, error) {
	if kind == kindAdopt {
		return decodeTransactions(kind, payload)
	}
	return &c.g, c.g.decode(payload)
}

// letGo gives back the memory of the group returned last.
func (c *journalCursor) letGo() {
	if c.held != nil {
		c.held.release()
		c.held = nil
	}
}

func (c *journalCursor) close() {
	c.letGo()
	if c.f != nil {
		c.f.Close()
		c.s.release()
	}
	c.f, c.file, c.s = nil, nil, nil
}
