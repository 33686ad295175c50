package testkit

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// childAttr puts a child into a process group of its own, so that a Ctrl-C at
// the terminal is ours to pass on, and ends it when this process dies. With
// asServer and as root the child runs as nobody.
func childAttr(asServer bool) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !asServer || os.Getuid() != 0 {
		return attr, nil
	}
	uid, gid, err := nobody()
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, nil
}

func nobody() (uid, gid int, err error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// children returns the pids of a process's direct children.
func children(pid int) []int {
	p := strconv.Itoa(pid)
	text, err := os.ReadFile("/proc/" + p + "/task/" + p + "/children")
	if err != nil {
		return nil
	}
	var out []int
	for _, f := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}
