package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// BatchError reports bytes that are no record batch of ours. It matches ErrCorrupt.
type BatchError struct{ Reason string }

func (e *BatchError) Error() string        { return "record batch: " + e.Reason }
func (e *BatchError) Is(target error) bool { return target == ErrCorrupt }

func badBatch(format string, args ...any) error { return &BatchError{fmt.Sprintf(format, args...)} }

// Batch is a record batch whose header was read. Its bytes are shared with what it was decoded from.
type Batch struct {
	Base        Offset
	Last        Offset
	BaseTime    int64 // ms since 1970
	MaxTime     int64 // ms since 1970
	Producer    int64 // base of the CSNs where >= 0
	Count       int
	Compression Compression
	Size        int // of the whole batch, as encoded
	payload     []byte
}

// DecodeBatch reads the batch at the start of b and verifies its checksum. What follows it begins at Size.
func DecodeBatch(b []byte) (Batch, error) { return decodeBatch(b, true) }

// DecodeBatchHeader is DecodeBatch without the checksum, for bytes that were already verified.
func DecodeBatchHeader(b []byte) (Batch, error) { return decodeBatch(b, false) }

func decodeBatch(b []byte, verify bool) (Batch, error) {
	if len(b) < batchHeader {
		return Batch{}, badBatch("%d bytes are less than a header", len(b))
	}
	be := binary.BigEndian
	length := int64(int32(be.Uint32(b[8:])))
	size := length + batchLengthEnd
	if size < batchHeader || size > int64(len(b)) {
		return Batch{}, badBatch("length %d of %d bytes", length, len(b))
	}
	b = b[:size]
	if b[16] != batchMagic {
		return Batch{}, badBatch("magic %d, not 2", b[16])
	}
	if verify {
		if want, got := be.Uint32(b[17:]), crc32.Checksum(b[batchCRCStart:], castagnoli); want != got {
			return Batch{}, badBatch("checksum %08x, written was %08x", got, want)
		}
	}
	attributes := be.Uint16(b[21:])
	base := Offset(be.Uint64(b[0:]))
	h := Batch{
		Base: base, Last: base + Offset(int32(be.Uint32(b[23:]))),
		BaseTime: int64(be.Uint64(b[27:])), MaxTime: int64(be.Uint64(b[35:])), Producer: int64(be.Uint64(b[43:])),
		Count: int(int32(be.Uint32(b[57:]))), Compression: Compression(attributes & 7), Size: int(size), payload: b[batchHeader:],
	}
	if base < 0 || h.Last < base || h.Count < 0 {
		return Batch{}, badBatch("offsets %d to %d, %d records", h.Base, h.Last, h.Count)
	}
	return h, nil
}

// RecordIter walks over the records of a batch in offset order. It keeps the
// memory into which it decompresses for its next batch.
type RecordIter struct {
	b     Batch
	rest  []byte
	left  int
	last  Offset // of the record before; base - 1 at first
	Every bool   // the record that Next returned has a copy in each partition

	inflated []byte
}

// Records starts at the batch's first record, decompressing it if needed. The
// records share the batch's bytes, or those decompressed, until the iterator's next Reset.
func (b *Batch) Records() (*RecordIter, error) {
	it := &RecordIter{}
	return it, it.Reset(*b)
}

// Reset starts over with another batch. Records read before are no longer valid
// if they were compressed.
func (it *RecordIter) Reset(b Batch) error {
	rest, err := decompress(it.inflated[:0], b.payload, b.Compression)
	if b.Compression != CompressionNone {
		it.inflated = rest
	}
	if err != nil {
		it.left, it.rest = 0, nil
		return badBatch("decompress %v: %v", b.Compression, err)
	}
	if b.Count > len(rest)/7 { // the shortest record
		it.left, it.rest = 0, nil
		return badBatch("%d records in %d bytes", b.Count, len(rest))
	}
	it.b, it.rest, it.left, it.last, it.Every = b, rest, b.Count, b.Base-1, false
	return nil
}

// Swap gives the iterator other memory to decompress its next batch into, and
// returns what it had: with it the records read so far stay valid.
func (it *RecordIter) Swap(mem []byte) []byte {
	mem, it.inflated = it.inflated, mem
	return mem
}

// Next fills in r but for Topic and Partition; false is the end of the batch.
func (it *RecordIter) Next(r *Record) (bool, error) {
	if it.left > 0 && it.usual(r) {
		return true, nil
	}
	return it.any(r)
}

// Skip passes over records below an offset, of which it reads length and offset
// only. It may stop before: Next tells what is there.
func (it *RecordIter) Skip(below Offset) {
	for it.left > 0 && len(it.rest) >= usualSlack {
		b := it.rest
		size, n0, _ := shortUvarint(binary.LittleEndian.Uint64(b))
		_, n1, x := shortUvarint(binary.LittleEndian.Uint64(b[n0+1 : n0+9])) // the time, behind the attributes
		delta, n2, _ := shortUvarint(x)
		offset, end := it.b.Base+Offset(unzigzag(delta)), n0+int(size>>1)
		if n0|n1|n2 >= tooLong || size&1 != 0 || end > len(b) || offset <= it.last || offset >= below {
			return
		}
		it.rest, it.left, it.last = b[end:], it.left-1, offset
	}
}

// any reads a record of any shape, or says what is wrong with it.
func (it *RecordIter) any(r *Record) (bool, error) {
	if it.left == 0 {
		if len(it.rest) != 0 {
			return false, badBatch("%d bytes behind the last record", len(it.rest))
		}
		return false, nil
	}
	n, w := binary.Varint(it.rest)
	if w <= 0 || n < 0 || n > int64(len(it.rest)-w) {
		return false, badBatch("record of %d bytes with %d left", n, len(it.rest))
	}
	d := recordDecoder{b: it.rest[w : w+int(n)]}
	it.rest = it.rest[w+int(n):]
	it.left--
	if err := it.decode(&d, r); err != nil {
		return false, err
	}
	it.last = r.Offset
	return true, nil
}

// usualSlack is how many bytes must follow a record that usual reads, so that
// reading 8 bytes at any place it may come to stays inside the batch.
const usualSlack = 64

// usual reads a record whose numbers are short, as nearly all are, without
// looking at each byte. False: the record is another, or not a good one, and
// any has to tell; nothing was read then.
func (it *RecordIter) usual(r *Record) bool {
	b := it.rest
	if len(b) < usualSlack {
		return false
	}
	size, n0, _ := shortUvarint(binary.LittleEndian.Uint64(b))
	i, end := n0, n0+int(size>>1)
	if size&1 != 0 || end > len(b)-usualSlack {
		return false
	}
	delta, n1, x := shortUvarint(binary.LittleEndian.Uint64(b[i+1 : i+9])) // behind the attributes
	off, n2, x := shortUvarint(x)
	klen, n3, _ := shortUvarint(x)
	i += 1 + n1 + n2 + n3
	var key, value []byte
	switch k := int(klen >> 1); {
	case klen&1 == 0 && k <= end-i:
		key = b[i : i+k : i+k]
		i += k
	case klen != 1:
		return false
	}
	vlen, n4, _ := shortUvarint(binary.LittleEndian.Uint64(b[i : i+8]))
	i += n4
	switch v := int(vlen >> 1); {
	case vlen&1 == 0 && v <= end-i:
		value = b[i : i+v : i+v]
		i += v
	case vlen != 1:
		return false
	}
	head := binary.LittleEndian.Uint32(b[i : i+4])
	csn, n5, x := shortUvarint(binary.LittleEndian.Uint64(b[i+4 : i+12]))
	seq, n6, x := shortUvarint(x)
	op, flags := byte(x), byte(x>>8)
	i += 4 + n5 + n6 + 2
	schema, n7, x := shortUvarint(binary.LittleEndian.Uint64(b[i : i+8]))
	micros, n8, _ := shortUvarint(x)
	i += n7 + n8
	meta := n5 + n6 + 2 + n7 + n8
	if i != end || n0|n1|n2|n3|n4|n5|n6|n7|n8 >= tooLong || n1+n2+n3 > 8 || head != uint32(2|2<<8|'t'<<16|meta<<25) || micros > 999 {
		return false
	}
	if it.b.Producer >= 0 {
		csn += uint64(it.b.Producer)
	}
	offset := it.b.Base + Offset(unzigzag(off))
	if offset <= it.last || offset > it.b.Last || csn > uint64(MaxCSN) {
		return false
	}
	it.rest, it.left, it.last = b[end:], it.left-1, offset
	it.Every = flags&flagEveryPartition != 0
	r.Offset, r.CSN, r.Seq, r.Op, r.Flags, r.Schema = offset, CSN(csn), uint32(seq), op, flags&^flagEveryPartition, uint32(schema)
	r.Time = (it.b.BaseTime+unzigzag(delta))*1000 + int64(micros)
	r.Key, r.Value = key, value
	return true
}

// tooLong is the length of an uvarint that shortUvarint does not read. No other length
// has its bit, and a record with nothing but such ones ends inside usualSlack.
const tooLong = 8

// shortUvarint reads an uvarint of one to three bytes from the lowest bytes of
// x, and returns what is behind it; its length is tooLong if it is longer.
func shortUvarint(x uint64) (v uint64, n int, rest uint64) {
	switch {
	case x&0x80 == 0:
		return x & 0x7f, 1, x >> 8
	case x&0x8000 == 0:
		return x&0x7f | x>>1&0x3f80, 2, x >> 16
	case x&0x800000 == 0:
		return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000, 3, x >> 24
	}
	return 0, tooLong, 0
}

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func (it *RecordIter) decode(d *recordDecoder, r *Record) error {
	d.byte() // attributes
	ms := it.b.BaseTime + d.varint()
	r.Offset = it.b.Base + Offset(d.varint())
	r.Key, r.Value = d.field(), d.field()
	if headers, length := d.varint(), d.varint(); headers != 1 || length != 1 || d.byte() != 't' {
		return badBatch("record at offset %d does not have the one header t", r.Offset)
	}
	meta := recordDecoder{b: d.field()}
	csn := meta.uvarint()
	if it.b.Producer >= 0 {
		csn += uint64(it.b.Producer)
	}
	seq, op, flags, schema, micros := meta.uvarint(), meta.byte(), meta.byte(), meta.uvarint(), meta.uvarint()
	switch {
	case d.bad || meta.bad || len(d.b) != 0 || len(meta.b) != 0:
		return badBatch("record at offset %d is cut short or too long", r.Offset)
	case r.Offset <= it.last || r.Offset > it.b.Last:
		return badBatch("offset %d behind %d in a batch of %d to %d", r.Offset, it.last, it.b.Base, it.b.Last)
	case csn > uint64(MaxCSN) || seq > 1<<32-1 || schema > 1<<32-1 || micros > 999:
		return badBatch("record at offset %d: header t out of range", r.Offset)
	}
	r.CSN, r.Seq, r.Op, r.Schema, r.Time = CSN(csn), uint32(seq), op, uint32(schema), ms*1000+int64(micros)
	r.Flags = flags &^ flagEveryPartition
	it.Every = flags&flagEveryPartition != 0
	return nil
}

// recordDecoder reads fields until one is bad; all reads after it give zero.
type recordDecoder struct {
	b   []byte
	bad bool
}

func (d *recordDecoder) fail() { d.bad, d.b = true, nil }

func (d *recordDecoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *recordDecoder) varint() int64 {
	if len(d.b) > 0 && d.b[0] < 0x80 { // most are one byte
		v := int64(d.b[0]>>1) ^ -int64(d.b[0]&1)
		d.b = d.b[1:]
		return v
	}
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *recordDecoder) uvarint() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 {
		v := uint64(d.b[0])
		d.b = d.b[1:]
		return v
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// field reads a length and as many bytes; a length of -1 is nil.
func (d *recordDecoder) field() []byte {
	n := d.varint()
	if n == -1 && !d.bad {
		return nil
	}
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return nil
	}
	f := d.b[:n:n]
	d.b = d.b[n:]
	return f
}
