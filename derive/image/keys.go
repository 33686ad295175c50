package image

import "encoding/binary"

// Letters of the key space; see doc.go.
const (
	spaceTable  = 'T'
	spaceIndex  = 'X'
	spaceHash   = 'D'
	spaceQueue  = 'Q'
	spaceReady  = 'R'
	spaceMemory = 'M'
)

func appendSpace(dst []byte, space byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, space), id)
}

const spaceLen = 5 // a letter and a number

// HashKey is the key of what a view last output for a root.
func HashKey(dst []byte, view uint32, root []byte) []byte {
	return append(appendSpace(dst, spaceHash, view), root...)
}

// QueueKey is the key of a root in a view's queue.
func QueueKey(dst []byte, view uint32, root []byte) []byte {
	return append(appendSpace(dst, spaceQueue, view), root...)
}

// ReadyPrefix starts the queue's order by cause; class splits it.
func ReadyPrefix(dst []byte, view uint32, class byte) []byte {
	return append(appendSpace(dst, spaceReady, view), class)
}

// ReadyKey is a root's place in the queue's order.
func ReadyKey(dst []byte, view uint32, class byte, cause uint64, root []byte) []byte {
	dst = binary.BigEndian.AppendUint64(ReadyPrefix(dst, view, class), cause)
	return append(dst, root...)
}

// ReadyCause splits a key of ReadyKey.
func ReadyCause(key []byte) (cause uint64, root []byte) {
	return binary.BigEndian.Uint64(key[spaceLen+1:]), key[spaceLen+9:]
}

// RootOf returns the root key inside a key of HashKey or QueueKey.
func RootOf(key []byte) []byte { return key[spaceLen:] }

// ViewRanges returns the ranges of all keys of a view, lower and upper bounds in turn.
func ViewRanges(view uint32) [][2][]byte {
	var ranges [][2][]byte
	for _, s := range []byte{spaceHash, spaceQueue, spaceReady} {
		ranges = append(ranges, Prefixed(appendSpace(nil, s, view)))
	}
	return ranges
}

// MemoryKey is the key of a named piece of state.
func MemoryKey(name string) []byte { return append([]byte{spaceMemory}, name...) }

// Prefixed returns the bounds of the keys with this prefix.
func Prefixed(prefix []byte) [2][]byte {
	return [2][]byte{prefix, Successor(nil, prefix)}
}

// Successor appends the least key behind all keys with this prefix to dst.
// The prefixes of this package start with a letter, so there is one.
func Successor(dst, prefix []byte) []byte {
	dst = append(dst, prefix...)
	for i := len(dst) - 1; i >= 0; i-- {
		if dst[i] != 0xFF {
			dst[i]++
			return dst[:i+1]
		}
		dst = dst[:i]
	}
	return dst
}
