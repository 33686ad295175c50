package main

import (
	"sync/atomic"
	"time"

	"github.com/tailwater/tailwater/internal/vfs"
)

// busyFS counts the time that its files spend in writing and syncing: that of
// a journal's writer, who does one after the other, is when the disk has work.
type busyFS struct {
	vfs.FS
	spent *atomic.Int64 // ns
}

func (b busyFS) Create(name string) (vfs.File, error) { return b.timed(b.FS.Create(name)) }

func (b busyFS) OpenWrite(name string) (vfs.File, error) { return b.timed(b.FS.OpenWrite(name)) }

func (b busyFS) timed(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return busyFile{f, b.spent}, nil
}

type busyFile struct {
	vfs.File
	spent *atomic.Int64
}

func (f busyFile) WriteAt(p []byte, off int64) (int, error) {
	defer f.count(time.Now())
	return f.File.WriteAt(p, off)
}

func (f busyFile) Sync() error {
	defer f.count(time.Now())
	return f.File.Sync()
}

func (f busyFile) count(began time.Time) { f.spent.Add(int64(time.Since(began))) }
