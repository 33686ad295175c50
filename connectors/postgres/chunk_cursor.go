package postgres

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tailwater/tailwater/snapshot"
)

// chunkMode is how a run reads its table.
type chunkMode uint8

const (
	// planAll: nothing was planned yet, the whole table is to be read. Storage
	// that is listed is what the table had when it was known to be right.
	planAll chunkMode = 0
	// planAdded: nothing was planned yet, storage that the cursor does not list is to be read.
	planAdded chunkMode = 1
	// byPlace reads each storage in the order of its pages.
	byPlace chunkMode = 2
	// byKeyOrder reads the table, with its partitions, in the order of its key:
	// PostgreSQL 13 cannot start a scan at a place, and a role may be allowed to
	// read a partitioned table and not its partitions.
	byKeyOrder chunkMode = 3
)

// storage is one heap of a table: its own, or one of its partitions'.
type storage struct {
	oid      uint32
	filenode uint32
	done     bool
	// page and item of the last row read, if started.
	started bool
	page    uint32
	item    uint16

	// Of the catalogue, not kept in the cursor.
	changedBy string // transaction that last changed its row of pg_class, "" unknown
	rows      int64  // estimate
	name      string // quoted
	readable  bool   // our role may read it
}

// chunkCursor is the state of a run, kept in the marks of the log: which
// storage the table had when the run was planned, which tells later whether it
// is still the same, and how far it was read.
//
//	version u8 = 1, mode u8
//	key     uvarint count, then each: uvarint length, text (by key: of the last row)
//	storage uvarint count, then each: uvarint oid, uvarint filenode, flags u8
//	        (1 done, 2 started), if started: uvarint page, uvarint item
//	then, if known: uvarint length, how the table was published when the run began
//	then, if it has any: uvarint length, the shape of its types when the run began
//
// No bytes are a run that was not planned (planAll).
type chunkCursor struct {
	mode    chunkMode
	key     []string
	storage []storage
	// published is what readPublished said when the run began, "" unknown.
	published string
	// shape is the encoding of the shape that the table's types had then, see shape.go.
	shape string
}

const chunkCursorVersion = 1

var errChunkCursor = errors.New("damaged snapshot cursor")

func (c *chunkCursor) encode() []byte {
	b := []byte{chunkCursorVersion, byte(c.mode)}
	b = binary.AppendUvarint(b, uint64(len(c.key)))
	for _, k := range c.key {
		b = append(binary.AppendUvarint(b, uint64(len(k))), k...)
	}
	b = binary.AppendUvarint(b, uint64(len(c.storage)))
	for _, s := range c.storage {
		b = binary.AppendUvarint(b, uint64(s.oid))
		b = binary.AppendUvarint(b, uint64(s.filenode))
		switch {
		case s.done:
			b = append(b, 1)
		case s.started:
			b = append(b, 2)
			b = binary.AppendUvarint(b, uint64(s.page))
			b = binary.AppendUvarint(b, uint64(s.item))
		default:
			b = append(b, 0)
		}
	}
	if c.published != "" || c.shape != "" {
		b = append(binary.AppendUvarint(b, uint64(len(c.published))), c.published...)
	}
	if c.shape != "" {
		b = append(binary.AppendUvarint(b, uint64(len(c.shape))), c.shape...)
	}
	return b
}

func decodeChunkCursor(b []byte) (*chunkCursor, error) {
	c := &chunkCursor{}
	if len(b) == 0 {
		return c, nil
	}
	if len(b) < 2 || b[0] != chunkCursorVersion || b[1] > byte(byKeyOrder) {
		return nil, errChunkCursor
	}
	c.mode = chunkMode(b[1])
	r := cursorReader{b: b[2:]}
	for range r.count() {
		n := r.count()
		if r.failed {
			break
		}
		c.key = append(c.key, string(r.b[:n]))
		r.b = r.b[n:]
	}
	for range r.count() {
		s := storage{oid: uint32(r.number()), filenode: uint32(r.number())}
		switch r.number() {
		case 0:
		case 1:
			s.done = true
		case 2:
			s.started, s.page, s.item = true, uint32(r.number()), uint16(r.number())
		default:
			r.failed = true
		}
		if r.failed {
			break
		}
		c.storage = append(c.storage, s)
	}
	if !r.failed && len(r.b) > 0 {
		c.published = r.text()
		more := len(r.b) > 0
		c.shape = r.text()
		r.failed = r.failed || (c.shape == "") == (more || c.published == "")
	}
	if r.failed || len(r.b) > 0 {
		return nil, errChunkCursor
	}
	return c, nil
}

// cursorReader reads numbers; failed sticks.
type cursorReader struct {
	b      []byte
	failed bool
}

func (r *cursorReader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// text reads a uvarint length and bytes; nothing at the end is "".
func (r *cursorReader) text() string {
	if len(r.b) == 0 {
		return ""
	}
	n := r.count()
	if r.failed {
		return ""
	}
	text := string(r.b[:n])
	r.b = r.b[n:]
	return text
}

// count reads a count of things that take at least one byte each.
func (r *cursorReader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.failed, r.b = true, nil
		return 0
	}
	return int(n)
}

func (c *chunkCursor) planned() bool { return c.mode == byPlace || c.mode == byKeyOrder }

// next returns the storage that is read next, nil if there is none.
func (c *chunkCursor) next() *storage {
	for i := range c.storage {
		if !c.storage[i].done {
			return &c.storage[i]
		}
	}
	return nil
}

func (c *chunkCursor) find(oid uint32) *storage {
	if i := slices.IndexFunc(c.storage, func(s storage) bool { return s.oid == oid }); i >= 0 {
		return &c.storage[i]
	}
	return nil
}

// compare tells what became of the storage since the cursor was planned: the
// transactions that exchanged or took away some ("" is one not known), and
// what was added.
func (c *chunkCursor) compare(now []storage) (movedBy []string, added []storage) {
	if len(c.storage) == 0 && !c.planned() {
		return nil, nil
	}
	seen := 0
	for _, s := range now {
		old := c.find(s.oid)
		switch {
		case old == nil:
			added = append(added, s)
			continue
		case old.filenode != s.filenode:
			movedBy = append(movedBy, s.changedBy)
		}
		seen++
	}
	if seen < len(c.storage) {
		movedBy = append(movedBy, "")
	}
	return movedBy, added
}

// moved tells the machine that the storage is another now: a truncate explains
// it, or the table is to be read again.
func (c *chunkCursor) moved(by []string, now []storage) snapshot.Moved {
	return snapshot.Moved{Txs: by, Explained: c.ended(now).encode(), Total: totalRows(now), Cursor: (&chunkCursor{published: c.published, shape: c.shape}).encode()}
}

// plan makes the cursor of a run that was not planned, over the storage as it is now.
func (c *chunkCursor) plan(now []storage, keyOrder bool) *chunkCursor {
	p := &chunkCursor{mode: byPlace, published: c.published, shape: c.shape}
	if keyOrder && c.mode == planAll {
		p.mode = byKeyOrder
	}
	for _, s := range now {
		old := c.find(s.oid)
		p.storage = append(p.storage, storage{oid: s.oid, filenode: s.filenode, done: c.mode == planAdded && old != nil && old.filenode == s.filenode})
	}
	return p
}

// ended returns the cursor of the run over this storage that has nothing left to read.
func (c *chunkCursor) ended(now []storage) *chunkCursor {
	p := &chunkCursor{mode: byPlace, published: c.published, shape: c.shape}
	for _, s := range now {
		p.storage = append(p.storage, storage{oid: s.oid, filenode: s.filenode, done: true})
	}
	return p
}
