package sink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tailwater/tailwater/eventlog"
)

// Phases of a cursor.
const (
	phaseLive   = 0 // offsets are the next to send
	phaseResend = 1 // everything above CSN after is to be sent again; offsets as before that
	phaseBuild  = 2 // building: see cursor
)

const (
	checkpointVersion = 1
	maxPartitions     = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errCheckpoint = errors.New("sink: damaged cursor")

// cursor is how far a view is in a target; doc.go has its bytes.
type cursor struct {
	fingerprint string
	stamp       Stamp // last one that we know to be in the target
	phase       byte
	offsets     []eventlog.Offset // next of each partition; none: everything is to be sent
	after       eventlog.CSN      // what the topic has at or below it is answered for
	// phaseBuild: partitions below part are sent up to offsets, partition part
	// up to next. With part = len(offsets) the whole topic is sent and offsets
	// move on as in phaseLive until the build is finished.
	part int
	next eventlog.Offset
}

func (c *cursor) append(b []byte) []byte {
	start := len(b)
	b = append(b, checkpointVersion, c.phase)
	b = appendString(b, c.fingerprint)
	b = appendStamp(b, c.stamp)
	b = binary.AppendUvarint(b, uint64(len(c.offsets)))
	for _, o := range c.offsets {
		b = binary.AppendUvarint(b, uint64(o))
	}
	b = binary.AppendUvarint(b, uint64(c.after))
	b = binary.AppendUvarint(b, uint64(c.part))
	b = binary.AppendUvarint(b, uint64(c.next))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStamp(b []byte, s Stamp) []byte {
	b = append(b, s.Log[:]...)
	b = binary.AppendUvarint(b, s.CSN)
	b = binary.AppendUvarint(b, s.Seq)
	b = binary.AppendVarint(b, s.Time)
	b = appendString(b, s.Fingerprint)
	if s.Complete {
		return append(b, 1)
	}
	return append(b, 0)
}

// EncodeStamp returns a stamp's bytes, for targets that keep it as such.
func EncodeStamp(s Stamp) []byte {
	b := appendStamp([]byte{checkpointVersion}, s)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// DecodeStamp is the inverse of EncodeStamp.
func DecodeStamp(b []byte) (Stamp, error) {
	d, err := newDecoder(b)
	if err != nil {
		return Stamp{}, err
	}
	s := d.stamp()
	return s, d.end()
}

func decodeCursor(b []byte) (*cursor, error) {
	d, err := newDecoder(b)
	if err != nil {
		return nil, err
	}
	c := &cursor{phase: d.byte()}
	c.fingerprint = d.string()
	c.stamp = d.stamp()
	n := d.uvarint()
	if n > maxPartitions || n > uint64(len(d.b)) {
		return nil, fmt.Errorf("%w: %d partitions", errCheckpoint, n)
	}
	c.offsets = make([]eventlog.Offset, n)
	for i := range c.offsets {
		c.offsets[i] = eventlog.Offset(d.uvarint())
	}
	c.after = eventlog.CSN(d.uvarint())
	c.part = int(d.uvarint())
	c.next = eventlog.Offset(d.uvarint())
	if c.phase > phaseBuild || c.part < 0 || c.part > len(c.offsets) {
		return nil, fmt.Errorf("%w: phase %d", errCheckpoint, c.phase)
	}
	return c, d.end()
}

// decoder reads the fields of a checked encoding; its first error sticks.
type decoder struct {
	b   []byte
	bad bool
}

func newDecoder(b []byte) (*decoder, error) {
	if len(b) < 5 || crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, fmt.Errorf("%w: checksum", errCheckpoint)
	}
	if b[0] != checkpointVersion {
		return nil, fmt.Errorf("%w: version %d is not known to this program", errCheckpoint, b[0])
	}
	return &decoder{b: b[1 : len(b)-4]}, nil
}

func (d *decoder) end() error {
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("%w: length", errCheckpoint)
	}
	return nil
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.take(d.uvarint())) }

func (d *decoder) stamp() (s Stamp) {
	copy(s.Log[:], d.take(16))
	s.CSN, s.Seq, s.Time = d.uvarint(), d.uvarint(), d.varint()
	s.Fingerprint = d.string()
	s.Complete = d.byte() == 1
	return s
}
