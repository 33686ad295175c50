package seglog

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// reloads bounds how often a read-only log looks again when the files change under it.
const reloads = 10

// OpenReadOnly opens the log in a directory for reading, whether or not a
// daemon writes there at the same time. It takes no lock and writes nothing; a
// torn tail is left alone. It shows the log as it was found: see Refresh. Of a
// log being written to it may show an entry whose sync has not returned yet.
func OpenReadOnly(dir string, opts Options) (*Log, error) {
	l := newLog(dir, opts)
	l.readOnly = true
	if err := l.reload(); err != nil {
		return nil, fmt.Errorf("open log for reading: %w", err)
	}
	return l, nil
}

// ReadOnly reports whether the log was opened for reading only.
func (l *Log) ReadOnly() bool { return l.readOnly }

// reload reads the directory anew. A writer may seal, delete or write while it
// is read: what looks missing or torn is looked at again.
func (l *Log) reload() error {
	var err error
	for range reloads {
		n := newLog(l.dir, l.opts)
		n.readOnly = true
		var rec recovered
		rec, err = n.recover()
		if err == nil && rec.fresh {
			err = &fs.PathError{Op: "open", Path: n.path("journal"), Err: fs.ErrNotExist}
		}
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.st, l.files, l.tail, l.segs, l.segBytes = n.st, n.files, n.tail, n.segs, n.segBytes
			return nil
		}
		if !vfs.IsNotExist(err) && !errors.Is(err, eventlog.ErrCorrupt) {
			break
		}
	}
	return err
}

// Refresh makes a read-only log show what was appended since; it returns whether there was anything.
func (l *Log) Refresh() (bool, error) {
	if !l.readOnly {
		return false, nil
	}
	l.mu.RLock()
	newest, before := l.files[len(l.files)-1], l.st.ordinal
	l.mu.RUnlock()
	next, err := l.fs().Open(l.path("journal/" + journalName(newest.number+1)))
	if err == nil {
		if err := next.Close(); err != nil {
			return false, err
		}
		err = l.reload()
	} else if vfs.IsNotExist(err) {
		// What it names may have been sealed since: reload tells that from damage.
		if err = l.extend(newest); errors.Is(err, eventlog.ErrCorrupt) {
			err = l.reload()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	grown := l.st.ordinal > before
	if grown {
		close(l.changed)
		l.changed = make(chan struct{})
	}
	return grown, err
}

// extend reads what was appended to the newest file.
func (l *Log) extend(jf *journalFile) error {
	f, err := l.fs().Open(jf.path)
	if vfs.IsNotExist(err) {
		return l.reload()
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files[len(l.files)-1] != jf {
		return nil // reloaded meanwhile
	}
	s := newScanner(f, jf.path, jf.number, jf.size, size)
	for {
		pos := s.pos
		kind, payload, err := s.next()
		if err != nil {
			jf.size = s.pos // the rest is being written; the next call, or reload, tells
			return nil
		}
		if err := l.replay(jf, l.st, kind, payload, pos); err != nil {
			return located(jf.path, pos, err)
		}
	}
}
