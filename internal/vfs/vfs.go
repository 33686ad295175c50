package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// FS is a file system. Names use slashes. All methods may be called from any goroutine.
type FS interface {
	// Create makes a file for reading and writing, empty if it was there.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	MkdirAll(name string) error
	Remove(name string) error
	Rename(from, to string) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync makes what was written durable, and the size.
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
	Close() error
}

// IsFull reports whether an error says that there is no space: ENOSPC or EDQUOT.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsNotExist reports whether an error says that a file is not there.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// ReadFile returns a file's bytes.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil, err
	}
	return b, nil
}

// WriteFile replaces a file durably: it writes and syncs name.tmp, renames it and syncs the directory.
func WriteFile(fsys FS, dir, name string, data []byte) error {
	tmp := dir + "/" + name + ".tmp"
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, dir+"/"+name)
	}
	if err != nil {
		return errors.Join(err, ignoreNotExist(fsys.Remove(tmp)))
	}
	return fsys.SyncDir(dir)
}

func ignoreNotExist(err error) error {
	if IsNotExist(err) {
		return nil
	}
	return err
}
