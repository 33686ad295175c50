package vfs

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"syscall"
)

// Mem is a file system in memory. Its zero value is not usable: see NewMem.
type Mem struct {
	mu    sync.Mutex
	hook  Hook
	space int64 // bytes that files may have in all; < 0: no limit
	dirs  map[string]*memDir
	// Open handles stay usable over Remove and Rename, as on POSIX.
}

type memDir struct {
	now     map[string]*memInode // nil inode: a directory
	synced  map[string]*memInode
	pending []dirChange
}

// dirChange is a change of a directory since its last sync. A rename inside a
// directory is one change: file systems keep it whole.
type dirChange struct {
	name  string
	inode *memInode // nil: a directory
	gone  bool      // the name was removed
	from  string    // renamed from; "": made
}

func (c dirChange) apply(entries map[string]*memInode) {
	if c.from != "" {
		delete(entries, c.from)
	}
	if c.gone {
		delete(entries, c.name)
	} else {
		entries[c.name] = c.inode
	}
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{space: -1, dirs: map[string]*memDir{".": newMemDir(), "/": newMemDir()}}
}

func newMemDir() *memDir {
	return &memDir{now: map[string]*memInode{}, synced: map[string]*memInode{}}
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

func split(name string) (dir, base string) { return path.Dir(path.Clean(name)), path.Base(name) }

// Create makes a file.
func (m *Mem) Create(name string) (File, error) {
	if _, err := m.ask("create", name, 0); err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base := split(name)
	d := m.dirs[dir]
	if d == nil {
		return nil, notExist("create", name)
	}
	if i := d.now[base]; i != nil {
		i.truncate(0)
		return &memFile{m: m, i: i, name: name, write: true}, nil
	}
	if m.free() == 0 {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	i := &memInode{}
	d.set(base, i)
	return &memFile{m: m, i: i, name: name, write: true}, nil
}

func (d *memDir) set(base string, i *memInode) {
	d.now[base] = i
	d.pending = append(d.pending, dirChange{name: base, inode: i})
}

func (d *memDir) drop(base string) {
	delete(d.now, base)
	d.pending = append(d.pending, dirChange{name: base, gone: true})
}

// Open opens a file for reading.
func (m *Mem) Open(name string) (File, error) { return m.openFile("open", name, false) }

// OpenWrite opens a file for reading and writing.
func (m *Mem) OpenWrite(name string) (File, error) { return m.openFile("openwrite", name, true) }

func (m *Mem) openFile(kind, name string, write bool) (File, error) {
	if _, err := m.ask(kind, name, 0); err != nil {
		return nil, &fs.PathError{Op: kind, Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base := split(name)
	if d := m.dirs[dir]; d != nil && d.now[base] != nil {
		return &memFile{m: m, i: d.now[base], name: name, write: write}, nil
	}
	return nil, notExist(kind, name)
}

// MkdirAll makes a directory and its parents.
func (m *Mem) MkdirAll(name string) error {
	if _, err := m.ask("mkdir", name, 0); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirs[path.Clean(name)] == nil && m.free() == 0 {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOSPC}
	}
	for name = path.Clean(name); m.dirs[name] == nil; name = path.Dir(name) {
		m.dirs[name] = newMemDir()
		parent, base := split(name)
		if m.dirs[parent] != nil {
			m.dirs[parent].mkdir(base)
		} else {
			d := newMemDir()
			d.mkdir(base)
			defer func() { m.dirs[parent].merge(d) }()
		}
	}
	return nil
}

func (d *memDir) mkdir(base string) {
	d.now[base] = nil
	d.pending = append(d.pending, dirChange{name: base})
}

func (d *memDir) merge(o *memDir) {
	maps.Copy(d.now, o.now)
	d.pending = append(d.pending, o.pending...)
}

// Remove removes a file.
func (m *Mem) Remove(name string) error {
	if _, err := m.ask("remove", name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base := split(name)
	d := m.dirs[dir]
	if d == nil || d.now[base] == nil {
		return notExist("remove", name)
	}
	d.drop(base)
	return nil
}

// Rename gives a file another name, in place of what had it.
func (m *Mem) Rename(from, to string) error {
	if _, err := m.ask("rename", to, 0); err != nil {
		return &fs.PathError{Op: "rename", Path: from, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fd, fb := split(from)
	td, tb := split(to)
	if m.dirs[fd] == nil || m.dirs[td] == nil || m.dirs[fd].now[fb] == nil {
		return notExist("rename", from)
	}
	i := m.dirs[fd].now[fb]
	if fd != td {
		m.dirs[td].set(tb, i)
		m.dirs[fd].drop(fb)
		return nil
	}
	c := dirChange{name: tb, inode: i, from: fb}
	c.apply(m.dirs[td].now)
	m.dirs[td].pending = append(m.dirs[td].pending, c)
	return nil
}

// ReadDir returns the names in a directory.
func (m *Mem) ReadDir(name string) ([]string, error) {
	if _, err := m.ask("readdir", name, 0); err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[path.Clean(name)]
	if d == nil {
		return nil, notExist("readdir", name)
	}
	return slices.Sorted(maps.Keys(d.now)), nil
}

// SyncDir makes the entries of a directory durable.
func (m *Mem) SyncDir(name string) error {
	if _, err := m.ask("syncdir", name, 0); err != nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[path.Clean(name)]
	if d == nil {
		return notExist("syncdir", name)
	}
	d.synced = maps.Clone(d.now)
	d.pending = nil
	return nil
}

var _ FS = (*Mem)(nil)
