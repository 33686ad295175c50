//go:build unix && !linux

package testkit

import (
	"errors"
	"os"
	"syscall"
)

func childAttr(asServer bool) (*syscall.SysProcAttr, error) {
	if asServer && os.Getuid() == 0 {
		return nil, errors.New("PostgreSQL refuses to run as root: run the tests as another user")
	}
	return &syscall.SysProcAttr{Setpgid: true}, nil
}

func nobody() (uid, gid int, err error) { return os.Getuid(), os.Getgid(), nil }

func children(int) []int { return nil }
