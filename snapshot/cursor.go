package snapshot

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tailwater/tailwater/change"
)

const cursorVersion = 1

// Flags of a cursor.
const (
	cursorComplete = 1 << iota // every chunk was appended
	cursorSweep                // the run ends with a sweep
	cursorAll      = 1<<iota - 1
)

var errCursor = errors.New("snapshot: damaged cursor in a snapshot mark")

// cursor is the Cursor of a mark; see doc.go for its bytes.
type cursor struct {
	complete bool
	sweep    bool
	pending  []string
	inner    []byte
}

func (c *cursor) append(dst []byte) []byte {
	var flags byte
	if c.complete {
		flags |= cursorComplete
	}
	if c.sweep {
		flags |= cursorSweep
	}
	dst = append(dst, cursorVersion, flags)
	slices.Sort(c.pending)
	dst = binary.AppendUvarint(dst, uint64(len(c.pending)))
	for _, tx := range c.pending {
		dst = binary.AppendUvarint(dst, uint64(len(tx)))
		dst = append(dst, tx...)
	}
	return append(dst, c.inner...)
}

func decodeCursor(b []byte) (cursor, error) {
	var c cursor
	if len(b) < 2 || b[0] != cursorVersion || b[1] > cursorAll {
		return c, errCursor
	}
	c.complete, c.sweep = b[1]&cursorComplete != 0, b[1]&cursorSweep != 0
	b = b[2:]
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)) {
		return c, errCursor
	}
	b = b[used:]
	for range n {
		size, used := binary.Uvarint(b)
		if used <= 0 || size > uint64(len(b)-used) {
			return c, errCursor
		}
		c.pending = append(c.pending, string(b[used:used+int(size)]))
		b = b[used+int(size):]
	}
	c.inner = b
	return c, nil
}

// Cursor returns the connector's own cursor in a mark that a Machine wrote.
func Cursor(m *change.SnapshotMark) ([]byte, error) {
	c, err := decodeCursor(m.Cursor)
	return c.inner, err
}
