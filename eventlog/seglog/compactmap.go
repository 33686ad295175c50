package seglog

import (
	"hash/maphash"
	"math/bits"
	"sort"

	"github.com/tailwater/tailwater/eventlog"
)

// maxSpan bounds the places that a map can tell apart, which are offsets with wide
// gaps left out: a bit of memory each.
const maxSpan = 64 << 20

// wideGap is the distance of offsets from which a gap costs no places: those
// behind a torn tail are 2^32 wide (V20).
const wideGap = 1 << 16

// newestMap remembers the newest offset of each key in a range of offsets: 16
// bytes a slot, at most 7 of 8 slots used, so under 19 bytes a key. Keys are
// told apart by 96 bits of two hashes whose seeds are drawn at each Open: with
// the million keys of a full map two differ in none of them once in 10^17 maps.
type newestMap struct {
	seeds [2]maphash.Seed
	slots []newestSlot
	used  int
	// stretches turn offsets into places and back; the last one grows.
	stretches []stretch
	last      eventlog.Offset // put last
	at        int             // stretch that was looked at last
	// superseded has a bit for each place: a newer record of its key was put. So
	// the records put need not be looked up once more.
	superseded []uint64
}

// stretch is a range of offsets without a wide gap: from is at place at.
type stretch struct {
	from eventlog.Offset
	at   uint32
}

type newestSlot struct {
	hash  uint64
	check uint32 // 32 bits of the second hash
	// at is the place of the newest record + 1, shifted by one; 0: the slot is
	// free. The lowest bit says that the record is partial.
	at uint32
}

// newNewestMap returns a map for as many keys, at most maxBytes large.
func newNewestMap(seeds [2]maphash.Seed, base eventlog.Offset, keys, maxBytes int64) *newestMap {
	n := min(keys*8/7+16, max(maxBytes/16, 16))
	return &newestMap{seeds: seeds, slots: make([]newestSlot, n), stretches: []stretch{{from: base}}, last: base}
}

// reach makes a place for an offset, at or above those before; false if there is none left.
func (m *newestMap) reach(off eventlog.Offset) (at uint32, ok bool) {
	s := &m.stretches[len(m.stretches)-1]
	if off-m.last >= wideGap {
		m.stretches = append(m.stretches, stretch{off, s.at + uint32(m.last-s.from) + 1})
		s = &m.stretches[len(m.stretches)-1]
	}
	place := int64(s.at) + int64(off-s.from)
	if place >= maxSpan-1 {
		return 0, false
	}
	m.last = off
	for int(place/64) >= len(m.superseded) {
		m.superseded = append(m.superseded, 0)
	}
	return uint32(place), true
}

// isSuperseded reports whether a newer record of its key was put than the one
// put with this offset.
func (m *newestMap) isSuperseded(off eventlog.Offset) bool {
	s := m.stretches[m.at]
	if last := m.at == len(m.stretches)-1; off < s.from || !last && off >= m.stretches[m.at+1].from {
		m.at = sort.Search(len(m.stretches), func(i int) bool { return m.stretches[i].from > off }) - 1
		s = m.stretches[m.at]
	}
	place := uint64(s.at) + uint64(off-s.from)
	return m.superseded[place/64]>>(place%64)&1 == 1
}

// offset is the inverse of reach.
func (m *newestMap) offset(at uint32) eventlog.Offset {
	i := sort.Search(len(m.stretches), func(i int) bool { return m.stretches[i].at > at }) - 1
	s := m.stretches[i]
	return s.from + eventlog.Offset(at-s.at)
}

// keyHash is what the map knows of a key.
type keyHash struct {
	hash  uint64
	check uint32
}

func (m *newestMap) hash(key []byte) keyHash {
	return keyHash{maphash.Bytes(m.seeds[0], key), uint32(maphash.Bytes(m.seeds[1], key))}
}

// touch brings the slots of keys that are looked up next into the cache, all at once.
func (m *newestMap) touch(keys []keyHash) (sum uint32) {
	for i := range keys {
		at, _ := bits.Mul64(keys[i].hash, uint64(len(m.slots)))
		sum += m.slots[at].at
	}
	return sum
}

// slot returns the slot of a key: its own, or the free one for it.
func (m *newestMap) slot(k keyHash) *newestSlot {
	i, _ := bits.Mul64(k.hash, uint64(len(m.slots)))
	for {
		s := &m.slots[i]
		if s.at == 0 || s.hash == k.hash && s.check == k.check {
			return s
		}
		if i++; i == uint64(len(m.slots)) {
			i = 0
		}
	}
}

// put notes a key's newest record; false if the map is full and does not have the key.
func (m *newestMap) put(k keyHash, off eventlog.Offset, partial bool) bool {
	at, ok := m.reach(off)
	if !ok {
		return false
	}
	s := m.slot(k)
	if s.at == 0 {
		if m.used >= len(m.slots)*7/8 {
			return false
		}
		m.used++
		s.hash, s.check = k.hash, k.check
	} else {
		old := s.at>>1 - 1
		m.superseded[old/64] |= 1 << (old % 64)
	}
	s.at = (at + 1) << 1
	if partial {
		s.at |= 1
	}
	return true
}

// get returns a key's newest offset.
func (m *newestMap) get(key []byte) (off eventlog.Offset, partial, ok bool) {
	s := m.slot(m.hash(key))
	if s.at == 0 {
		return 0, false, false
	}
	return m.offset(s.at>>1 - 1), s.at&1 == 1, true
}

// partials calls fn for the newest record of each key of which that is partial.
func (m *newestMap) partials(fn func(off eventlog.Offset)) {
	for i := range m.slots {
		if s := &m.slots[i]; s.at&1 == 1 {
			fn(m.offset(s.at>>1 - 1))
		}
	}
}
