package vfs

import "math"

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

// Grows reports whether the operation may need space.
func (o Op) Grows() bool { return o.Kind == "write" || o.Kind == "create" || o.Kind == "mkdir" }

// Hook is asked before each operation; an error fails it. Of a failing write
// short bytes are written nevertheless. A hook may look at the file system but
// must not change it.
type Hook func(op Op) (short int, err error)

// SetHook sets the function that is asked before each operation; nil: none.
func (m *Mem) SetHook(hook Hook) {
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

// FailNth returns a hook that fails the nth operation, counted from 0, of those
// that match; of a write it lets half through. One operation fails and the next
// may succeed: EIO, then nothing, is what a system says whose sync has failed.
func FailNth(n int, match func(Op) bool, err error) Hook {
	return AtNth(n, match, func(op Op) (int, error) { return op.N / 2, err })
}

// AtNth returns a hook that calls strike at the nth operation, counted from 0, of those that match.
func AtNth(n int, match func(Op) bool, strike Hook) Hook {
	return func(op Op) (int, error) {
		if !match(op) {
			return 0, nil
		}
		if n--; n != -1 {
			return 0, nil
		}
		return strike(op)
	}
}

// SetSpace bounds the bytes that all files may have together: a write that
// would need more stops at that byte with ENOSPC, and nothing new can be made
// at the bound. Less than 0 is no bound. What is there already stays.
func (m *Mem) SetSpace(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space = bytes
}

// Used returns the bytes of all files.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used()
}

func (m *Mem) used() (n int64) {
	for _, d := range m.dirs {
		for _, i := range d.now {
			if i != nil {
				n += int64(len(i.data))
			}
		}
	}
	return n
}

// free returns how many bytes more files may have. The caller holds the lock.
func (m *Mem) free() int64 {
	if m.space < 0 {
		return math.MaxInt64 / 2
	}
	return max(0, m.space-m.used())
}
