package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync is fdatasync: data, and the metadata needed to read it again (size
// included), see fdatasync(2). It is repeated when a signal interrupts it.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			if err != nil {
				return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
			}
			return nil
		}
	}
}
