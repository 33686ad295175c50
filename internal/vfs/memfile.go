package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// memInode is a file of a Mem. Copies of the file system share its bytes until one of them writes.
type memInode struct {
	data   []byte // what readers see
	shared bool   // data belongs to a copy too
	// disk is what was durable before the changes; its own, or shared likewise.
	disk       []byte
	diskShared bool
	changes    []fileChange
}

// fileChange is a write, or with a nil data a truncation.
type fileChange struct {
	at   int64
	data []byte
	fate changeFate
}

type changeFate uint8

const (
	unsynced changeFate = iota // a power loss may take it
	durable                    // synced, behind a change that is lost
	// lost: its sync failed. Readers see it, the system holds it for written, no
	// later sync writes it; it may or may not be on the disk.
	lost
)

func (c fileChange) apply(data []byte) []byte {
	if c.data == nil {
		return applyTruncate(data, c.at)
	}
	return applyWrite(data, c.data, c.at)
}

func applyWrite(data, p []byte, off int64) []byte {
	if end := off + int64(len(p)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[off:], p)
	return data
}

func applyTruncate(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// change makes a change for readers and remembers it for the next sync.
func (i *memInode) change(c fileChange) {
	if i.shared {
		i.data, i.shared = slices.Clone(i.data), false
	}
	i.data = c.apply(i.data)
	i.changes = append(i.changes, c)
}

func (i *memInode) truncate(size int64) { i.change(fileChange{at: size}) }

// sync makes what is not lost durable.
func (i *memInode) sync() {
	if i.hasLost() {
		i.settle(durable)
		return
	}
	if i.diskShared && len(i.changes) > 0 {
		i.disk, i.diskShared = slices.Clone(i.disk), false
	}
	for _, c := range i.changes {
		i.disk = c.apply(i.disk)
	}
	i.changes = nil
}

func (i *memInode) hasLost() bool {
	return slices.ContainsFunc(i.changes, func(c fileChange) bool { return c.fate == lost })
}

// settle gives all unsynced changes a fate.
func (i *memInode) settle(fate changeFate) {
	for k := range i.changes {
		if i.changes[k].fate == unsynced {
			i.changes[k].fate = fate
		}
	}
}

// clone returns a copy that shares the bytes for now.
func (i *memInode) clone() *memInode {
	i.shared, i.diskShared = true, true
	c := *i
	c.changes = slices.Clone(i.changes)
	return &c
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
	n = min(n, len(p))
	if fits := max(0, int64(len(f.i.data))-off) + f.m.free(); fits < int64(n) {
		n, err = int(fits), syscall.ENOSPC
	}
	if n > 0 {
		f.i.change(fileChange{at: off, data: slices.Clone(p[:n])})
	}
	if err != nil {
		return n, &fs.PathError{Op: "write", Path: f.name, Err: err}
	}
	return n, nil
}

// Sync makes the file durable. One that fails loses what was written since the
// last: the next one succeeds and means nothing for it, as on Linux.
func (f *memFile) Sync() error {
	_, err := f.m.ask("sync", f.name, 0)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err != nil {
		f.i.settle(lost)
		return &fs.PathError{Op: "sync", Path: f.name, Err: err}
	}
	f.i.sync()
	return nil
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
