package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
)

// Mem is a file system in memory. Its zero value is not usable: see NewMem.
type Mem struct {
	// hook, if set, is asked before each operation; an error fails it. For a
	// write, short says how many bytes are written nevertheless.
	hook func(op Op) (short int, err error)

	mu   sync.Mutex
	dirs map[string]*memDir
	// Open handles stay usable over Remove and Rename, as on POSIX.
}

// Op is an operation that a hook sees.
type Op struct {
	Kind string // create, open, openwrite, mkdir, remove, rename, readdir, syncdir, write, read, sync, truncate
	Name string
	N    int // bytes of a write
}

// Changes reports whether the operation is one that changes the disk or makes changes durable.
func (o Op) Changes() bool {
	switch o.Kind {
	case "open", "readdir", "read":
		return false
	}
	return true
}

type memDir struct {
	now     map[string]*memInode // nil inode: a directory
	synced  map[string]*memInode
	pending []dirChange
}

type dirChange struct {
	name  string
	inode *memInode
	dir   bool // a directory entry; never lost: MkdirAll is taken as durable with its parent's sync
	gone  bool
}

type memInode struct {
	data    []byte
	synced  []byte
	pending []fileChange
}

// fileChange is a write, or with a nil data a truncation, since the last sync.
type fileChange struct {
	at   int64
	data []byte
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{dirs: map[string]*memDir{".": newMemDir(), "/": newMemDir()}}
}

func newMemDir() *memDir {
	return &memDir{now: map[string]*memInode{}, synced: map[string]*memInode{}}
}

// SetHook sets the function that is asked before each operation.
func (m *Mem) SetHook(hook func(op Op) (short int, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

func (m *Mem) ask(kind, name string, n int) (int, error) {
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	if hook == nil {
		return n, nil
	}
	return hook(Op{Kind: kind, Name: name, N: n})
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
	d.pending = append(d.pending, dirChange{name: base, dir: true})
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
	m.dirs[td].set(tb, i)
	m.dirs[fd].drop(fb)
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

// memFile is an open file of a Mem.
type memFile struct {
	m     *Mem
	i     *memInode
	name  string
	write bool
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if _, err := f.m.ask("read", f.name, len(p)); err != nil {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: err}
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off >= int64(len(f.i.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.i.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.write {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: errors.New("opened for reading")}
	}
	n, err := f.m.ask("write", f.name, len(p))
	if err == nil {
		n = len(p)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if n = min(n, len(p)); n > 0 {
		f.i.writeAt(p[:n], off)
	}
	if err != nil {
		return n, &fs.PathError{Op: "write", Path: f.name, Err: err}
	}
	return n, nil
}

func (i *memInode) writeAt(p []byte, off int64) {
	i.data = applyWrite(i.data, p, off)
	i.pending = append(i.pending, fileChange{at: off, data: slices.Clone(p)})
}

func applyWrite(data, p []byte, off int64) []byte {
	if end := off + int64(len(p)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[off:], p)
	return data
}

func (i *memInode) truncate(size int64) {
	i.data = applyTruncate(i.data, size)
	i.pending = append(i.pending, fileChange{at: size})
}

func applyTruncate(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

func (f *memFile) Sync() error {
	if _, err := f.m.ask("sync", f.name, 0); err != nil {
		return &fs.PathError{Op: "sync", Path: f.name, Err: err}
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	for _, c := range f.i.pending {
		f.i.synced = c.apply(f.i.synced)
	}
	f.i.pending = nil
	return nil
}

func (c fileChange) apply(data []byte) []byte {
	if c.data == nil {
		return applyTruncate(data, c.at)
	}
	return applyWrite(data, c.data, c.at)
}

func (f *memFile) Truncate(size int64) error {
	if _, err := f.m.ask("truncate", f.name, 0); err != nil {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: err}
	}
	if size < 0 {
		return fmt.Errorf("truncate %s to %d bytes", f.name, size)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.i.truncate(size)
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return int64(len(f.i.data)), nil
}

func (f *memFile) Close() error { return nil }

var _ FS = (*Mem)(nil)
