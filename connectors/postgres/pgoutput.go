package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Messages of pgoutput, protocol versions 1 and 2 (PostgreSQL's documentation, chapter
// "Logical Replication Message Formats"). Integers are big-endian, strings end
// with a zero byte.

var errMessage = errors.New("damaged replication message")

// wireReader reads one message; its first error sticks and everything after is zero.
type wireReader struct {
	b   []byte
	err error
}

func (r *wireReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", errMessage, what)
	}
	r.b = nil
}

func (r *wireReader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail("shorter than it says")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *wireReader) u8() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *wireReader) u16() int {
	if b := r.bytes(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *wireReader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *wireReader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *wireReader) string() string {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.fail("text without an end")
		return ""
	}
	s := string(r.b[:i])
	r.b = r.b[i+1:]
	return s
}

// end returns the message's error; bytes behind it are one.
func (r *wireReader) end() error {
	if r.err == nil && len(r.b) != 0 {
		r.fail("longer than it says")
	}
	return r.err
}

// beginMessage is B.
type beginMessage struct {
	commit LSN   // of the commit record
	time   int64 // µs since 2000
	xid    uint32
}

func (r *wireReader) begin() beginMessage {
	return beginMessage{LSN(r.u64()), int64(r.u64()), r.u32()}
}

// commitMessage is C.
type commitMessage struct {
	commit, end LSN
	time        int64
}

func (r *wireReader) commit() commitMessage {
	r.u8() // flags, unused
	return commitMessage{LSN(r.u64()), LSN(r.u64()), int64(r.u64())}
}

// relationMessage is R.
type relationMessage struct {
	oid          uint32
	schema, name string
	identity     byte
	columns      []wireColumn
}

func (r *wireReader) relation() relationMessage {
	m := relationMessage{oid: r.u32(), schema: r.string(), name: r.string(), identity: r.u8()}
	if m.schema == "" {
		m.schema = "pg_catalog"
	}
	n := r.u16()
	for i := 0; i < n && r.err == nil; i++ {
		flags := r.u8()
		m.columns = append(m.columns, wireColumn{name: r.string(), typ: r.u32(), typmod: int32(r.u32()), key: flags&1 != 0})
	}
	return m
}

// field is a column of a tuple: its kind as on the wire, and the text of kind t.
type field struct {
	kind byte // n null, u unchanged, t text
	text []byte
}

// tuple appends the columns of a tuple to dst, which is reused.
func (r *wireReader) tuple(dst []field) []field {
	n := r.u16()
	dst = dst[:0]
	for i := 0; i < n && r.err == nil; i++ {
		f := field{kind: r.u8()}
		switch f.kind {
		case 'n', 'u':
		case 't':
			f.text = r.bytes(int(int32(r.u32())))
		default:
			r.fail("a column that is neither null, unchanged nor text")
		}
		dst = append(dst, f)
	}
	return dst
}

// truncateMessage is T.
type truncateMessage struct {
	oids []uint32
}

func (r *wireReader) truncate() truncateMessage {
	n := r.u32()
	r.u8() // CASCADE, RESTART IDENTITY
	if n > uint32(len(r.b)/4) {
		r.fail("shorter than it says")
		return truncateMessage{}
	}
	var m truncateMessage
	for range n {
		m.oids = append(m.oids, r.u32())
	}
	return m
}

// logicalMessage is M, what pg_logical_emit_message wrote.
type logicalMessage struct {
	transactional bool
	lsn           LSN // the end of its record
	prefix        string
	content       []byte // shares the message's memory
}

func (r *wireReader) message() logicalMessage {
	m := logicalMessage{transactional: r.u8()&1 != 0, lsn: LSN(r.u64()), prefix: r.string()}
	m.content = r.bytes(int(int32(r.u32())))
	return m
}
