package vfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

const sector = 512

// Crash returns what the disk may hold after a power loss now; m itself goes on
// unharmed. With a nil rng nothing unsynced survives; with one, a random part.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMem()
	inodes := map[*memInode]*memInode{}
	for _, name := range slices.Sorted(maps.Keys(m.dirs)) {
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

// crash returns the entries that survive: the synced ones with, in order, the
// first few changes since, as a file system that journals its metadata leaves them.
func (d *memDir) crash(rng *rand.Rand) map[string]*memInode {
	out := maps.Clone(d.synced)
	n := 0
	if rng != nil {
		n = rng.IntN(len(d.pending) + 1)
	}
	for k, c := range d.pending {
		switch {
		case c.dir:
			out[c.name] = nil
		case k >= n:
		case c.gone:
			delete(out, c.name)
		default:
			out[c.name] = c.inode
		}
	}
	return out
}

func (i *memInode) crash(rng *rand.Rand) *memInode {
	data := slices.Clone(i.synced)
	if rng != nil {
		for _, c := range i.pending {
			data = c.tear(data, rng)
		}
	}
	return &memInode{data: data, synced: bytes.Clone(data)}
}

// tear applies a random part of the change: all, nothing, a prefix, or some of its sectors.
func (c fileChange) tear(data []byte, rng *rand.Rand) []byte {
	switch rng.IntN(4) {
	case 0:
		return c.apply(data)
	case 1:
		return data
	case 2:
		if c.data == nil {
			return data
		}
		return applyWrite(data, c.data[:rng.IntN(len(c.data)+1)], c.at)
	}
	if c.data == nil {
		return data
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
	dir, base := split(name)
	if d := m.dirs[dir]; d != nil && d.now[base] != nil && bit/8 < int64(len(d.now[base].data)) {
		d.now[base].data[bit/8] ^= 1 << (bit % 8)
		d.now[base].synced = slices.Clone(d.now[base].data)
	}
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

// Clone returns a copy that shares nothing with m, hook left out; what was not synced counts as synced in it.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	inodes := map[*memInode]*memInode{}
	for name, d := range m.dirs {
		nd := newMemDir()
		for base, i := range d.now {
			if i != nil && inodes[i] == nil {
				inodes[i] = &memInode{data: slices.Clone(i.data), synced: slices.Clone(i.data)}
			}
			nd.now[base] = inodes[i]
		}
		nd.synced = maps.Clone(nd.now)
		c.dirs[name] = nd
	}
	return c
}
