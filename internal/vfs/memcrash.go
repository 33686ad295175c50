package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

const sector = 512

// Crash returns what the disk may hold after a power loss now; m itself goes on
// unharmed. With a nil rng nothing unsynced survives; with one, a random part,
// of each file and directory for itself: what was written later may be there
// without what was written before.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMem()
	after.space = m.space
	inodes := map[*memInode]*memInode{}
	for _, name := range slices.Sorted(maps.Keys(m.dirs)) { // a parent before what is in it
		if parent, base := split(name); parent != name && !after.has(parent, base) {
			continue // the directory itself is gone
		}
		d := m.dirs[name]
		entries := d.crash(rng)
		nd := newMemDir()
		for _, base := range slices.Sorted(maps.Keys(entries)) {
			i := entries[base]
			if i != nil && inodes[i] == nil {
				inodes[i] = i.crash(rng)
			}
			nd.now[base] = inodes[i]
		}
		nd.synced = maps.Clone(nd.now)
		after.dirs[name] = nd
	}
	return after
}

// has reports whether a directory has an entry.
func (m *Mem) has(dir, base string) bool {
	d := m.dirs[dir]
	if d == nil {
		return false
	}
	_, ok := d.now[base]
	return ok
}

// crash returns the entries that survive: the synced ones with, of the changes
// since, either the first few, as a file system that journals its metadata
// leaves them, or any.
func (d *memDir) crash(rng *rand.Rand) map[string]*memInode {
	out := maps.Clone(d.synced)
	if rng == nil || len(d.pending) == 0 {
		return out
	}
	inOrder, n := rng.IntN(2) == 0, rng.IntN(len(d.pending)+1)
	for k, c := range d.pending {
		if inOrder && k < n || !inOrder && rng.IntN(2) == 0 {
			c.apply(out)
		}
	}
	return out
}

func (i *memInode) crash(rng *rand.Rand) *memInode {
	data := slices.Clone(i.disk)
	for _, c := range i.changes {
		switch {
		case c.fate == durable:
			data = c.apply(data)
		case rng != nil:
			data = c.tear(data, rng)
		}
	}
	return &memInode{data: data, disk: data, shared: true, diskShared: true}
}

// tear applies a random part of the change: all, nothing, a prefix, some of its
// sectors, or only the size that it gave the file.
func (c fileChange) tear(data []byte, rng *rand.Rand) []byte {
	switch kind := rng.IntN(5); {
	case kind == 0:
		return c.apply(data)
	case kind == 1 || c.data == nil:
		return data
	case kind == 2:
		return applyWrite(data, c.data[:rng.IntN(len(c.data)+1)], c.at)
	case kind == 3:
		return applyTruncate(data, max(int64(len(data)), c.at+int64(len(c.data))))
	}
	for off := 0; off < len(c.data); {
		end := min(len(c.data), off+sector-int((c.at+int64(off))%sector))
		if rng.IntN(2) == 0 {
			data = applyWrite(data, c.data[off:end], c.at+int64(off))
		}
		off = end
	}
	return data
}

// Flip inverts one bit of a file, on the disk and for readers.
func (m *Mem) Flip(name string, bit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.inode(name)
	if i == nil || bit/8 >= int64(len(i.data)) {
		return
	}
	if i.shared || i.diskShared || len(i.changes) > 0 {
		i.data, i.disk = slices.Clone(i.data), slices.Clone(i.data)
		i.shared, i.diskShared, i.changes = false, false, nil
	}
	i.data[bit/8] ^= 1 << (bit % 8)
	i.disk[bit/8] = i.data[bit/8]
}

func (m *Mem) inode(name string) *memInode {
	dir, base := split(name)
	if d := m.dirs[dir]; d != nil {
		return d.now[base]
	}
	return nil
}

// Files returns the names of all files with their sizes.
func (m *Mem) Files() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]int64{}
	for name, d := range m.dirs {
		for base, i := range d.now {
			if i != nil {
				out[name+"/"+base] = int64(len(i.data))
			}
		}
	}
	return out
}

// Clone returns a copy of files, cache and disk, as after the death of the
// process: neither sees what happens to the other from now on. The hook is left out.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.space = m.space
	inodes := map[*memInode]*memInode{}
	clone := func(entries map[string]*memInode) map[string]*memInode {
		out := make(map[string]*memInode, len(entries))
		for base, i := range entries {
			out[base] = cloneOnce(inodes, i)
		}
		return out
	}
	for name, d := range m.dirs {
		nd := &memDir{now: clone(d.now), synced: clone(d.synced), pending: slices.Clone(d.pending)}
		for k, p := range nd.pending {
			nd.pending[k].inode = cloneOnce(inodes, p.inode)
		}
		c.dirs[name] = nd
	}
	return c
}

func cloneOnce(inodes map[*memInode]*memInode, i *memInode) *memInode {
	if i != nil && inodes[i] == nil {
		inodes[i] = i.clone()
	}
	return inodes[i]
}
