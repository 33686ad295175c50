package seglog

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

var errShort = errors.New("cut short or out of range")

// cursor reads a payload field by field; after a bad one all reads give zero.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) fail() { c.bad, c.b = true, nil }

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

// count reads a number of things that take at least size bytes each.
func (c *cursor) count(size int) int {
	n := c.uvarint()
	if n > uint64(len(c.b)/size) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) bytes() []byte { return c.take(c.uvarint()) }

func (c *cursor) string() string { return string(c.bytes()) }

// stringAs is string; the result is known if it is that.
func (c *cursor) stringAs(known string) string {
	if b := c.bytes(); string(b) != known {
		return string(b)
	}
	return known
}

func (c *cursor) offset() eventlog.Offset {
	v := c.uvarint()
	if v > 1<<62 {
		c.fail()
	}
	return eventlog.Offset(v)
}

func (c *cursor) csn() eventlog.CSN {
	v := c.uvarint()
	if v > uint64(eventlog.MaxCSN)+1 {
		c.fail()
	}
	return eventlog.CSN(v)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTopic(dst []byte, t eventlog.Topic) []byte {
	s := t.Spec
	dst = binary.AppendUvarint(dst, uint64(t.ID))
	dst = appendString(dst, s.Name)
	dst = binary.AppendUvarint(dst, uint64(s.Partitions))
	dst = appendString(dst, string(s.Cleanup))
	dst = binary.AppendVarint(dst, int64(s.Retention))
	dst = binary.AppendVarint(dst, s.RetentionBytes)
	dst = binary.AppendVarint(dst, int64(s.TombstoneRetention))
	return appendString(dst, s.Compression)
}

func (c *cursor) topic() eventlog.Topic {
	t := eventlog.Topic{ID: eventlog.TopicID(c.uvarint())}
	t.Spec.Name = c.string()
	partitions := c.uvarint()
	t.Spec.Cleanup = eventlog.Cleanup(c.string())
	t.Spec.Retention = time.Duration(c.varint())
	t.Spec.RetentionBytes = c.varint()
	t.Spec.TombstoneRetention = time.Duration(c.varint())
	t.Spec.Compression = c.string()
	if t.ID == 0 || partitions == 0 || partitions > eventlog.MaxPartitions {
		c.fail()
	}
	t.Spec.Partitions = int(partitions)
	return t
}
