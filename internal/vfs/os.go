package vfs

import (
	"errors"
	"os"
	"slices"
	"syscall"
)

// OS is the operating system's file system. Directories are made with mode 0700, files with 0600.
var OS FS = osFS{}

type osFS struct{}

func (osFS) open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (o osFS) Create(name string) (File, error) {
	return o.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}
func (o osFS) Open(name string) (File, error)      { return o.open(name, os.O_RDONLY) }
func (o osFS) OpenWrite(name string) (File, error) { return o.open(name, os.O_RDWR) }
func (osFS) MkdirAll(name string) error            { return os.MkdirAll(name, 0o700) }
func (osFS) Remove(name string) error              { return os.Remove(name) }
func (osFS) Rename(from, to string) error          { return os.Rename(from, to) }

func (osFS) ReadDir(name string) ([]string, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // a file system that keeps directories by itself
	}
	return errors.Join(err, d.Close())
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return datasync(f.File) }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
