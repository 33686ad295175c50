package eventlog

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
)

// The layout of a Kafka record batch, version 2 (kafka.apache.org/documentation,
// "Record Batch"). Integers of the header are big-endian.
//
//	 0 i64 base offset          23 i32 last offset delta   51 i16 producer epoch
//	 8 i32 length behind it     27 i64 base timestamp      53 i32 base sequence
//	12 i32 leader epoch         35 i64 max timestamp       57 i32 records
//	16 i8  magic = 2            43 i64 producer id         61 records
//	17 u32 CRC-32C from 21 on
//	21 i16 attributes: bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control
const (
	batchHeader    = 61
	batchLengthEnd = 12 // the length counts from here
	batchCRCStart  = 21
	batchMagic     = 2
)

// maxBatchSpan bounds the distance of offsets inside one batch, far below the int32 that the format allows.
const maxBatchSpan = 1 << 30

// What a record takes beside key and value, without its length: at least, and at most.
const (
	leastRest = 15
	mostRest  = 11 * binary.MaxVarintLen64
)

// flagEveryPartition marks, in the log, the copies of a record that is in every
// partition. It is the log's own: records read do not show it.
const flagEveryPartition = 0x80

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BatchBuilder writes one record batch: Reset, Add for each record in offset
// order, AppendTo. It is reused; it is not for concurrent use.
type BatchBuilder struct {
	records []byte
	packed  []byte // the records compressed, where codec says so
	codec   Compression
	first   Offset
	last    Offset
	base    CSN
	hasBase bool
	baseMs  int64
	maxMs   int64
	count   int
}

// Reset begins a batch. base is the CSN from which its records' CSNs count, at
// most the least of them; withBase false (Kafka, whose producer id means
// something else) writes them whole.
func (b *BatchBuilder) Reset(base CSN, withBase bool) {
	*b = BatchBuilder{records: b.records[:0], packed: b.packed[:0], base: base, hasBase: withBase, maxMs: math.MinInt64}
	if !withBase {
		b.base = 0
	}
}

// Len returns the number of records added, Size their bytes.
func (b *BatchBuilder) Len() int  { return b.count }
func (b *BatchBuilder) Size() int { return len(b.records) }

// EncodedSize returns the size of the batch: as compressed by Compress, or not at all.
func (b *BatchBuilder) EncodedSize() int { return batchHeader + len(b.payload()) }

func (b *BatchBuilder) payload() []byte {
	if b.codec != CompressionNone {
		return b.packed
	}
	return b.records
}

// Memory returns the bytes that the builder holds for its next batch.
func (b *BatchBuilder) Memory() int { return cap(b.records) + cap(b.packed) }

// Shrink empties the builder and gives its memory back if it is more than limit bytes.
func (b *BatchBuilder) Shrink(limit int) {
	if b.Memory() > limit {
		b.records, b.packed = nil, nil
	}
	b.Reset(0, true)
}

// Fits reports whether a record may be added: its CSN is not below the base and its offset near enough.
func (b *BatchBuilder) Fits(r *Record) bool {
	return r.CSN >= b.base && (b.count == 0 || r.Offset > b.last && r.Offset-b.first < maxBatchSpan)
}

// Compress compresses the records now; AppendTo then writes them so, whatever
// it is told. Nothing may be added any more.
func (b *BatchBuilder) Compress(c Compression) {
	if c != CompressionNone && b.codec == CompressionNone {
		b.packed, b.codec = compress(b.packed[:0], b.records, c), c
	}
}

// Add appends a record that Fits, with its Offset, CSN and Time set. every says
// that the record has a copy in each partition.
func (b *BatchBuilder) Add(r *Record, every bool) {
	ms := floorDiv(r.Time, 1000)
	if b.count == 0 {
		b.first, b.baseMs = r.Offset, ms
	}
	b.last = r.Offset
	b.maxMs = max(b.maxMs, ms)
	b.count++

	flags := r.Flags &^ flagEveryPartition
	if every {
		flags |= flagEveryPartition
	}
	csn, micros := uint64(r.CSN-b.base), uint64(r.Time-ms*1000)
	delta, offDelta := zigzag(ms-b.baseMs), zigzag(int64(r.Offset-b.first))

	// The length comes first: room for the least that it can be is enough for nearly all,
	// else the rest moves.
	least := len(r.Key) + len(r.Value) + leastRest
	room := uvarintLen(uint64(least) << 1)
	out := slices.Grow(b.records, least+mostRest)
	w := out[len(out):cap(out)]
	w[room] = 0 // attributes: unused
	i := putUvarint(w, room+1, delta)
	i = putUvarint(w, i, offDelta)
	i = putField(w, i, r.Key)
	i = putField(w, i, r.Value)
	header := i
	w[i], w[i+1], w[i+2] = 2, 2, 't' // one header (zigzag), its key of one byte
	i = putUvarint(w, i+4, csn)
	i = putUvarint(w, i, uint64(r.Seq))
	w[i], w[i+1] = r.Op, flags
	i = putUvarint(w, i+2, uint64(r.Schema))
	i = putUvarint(w, i, micros)
	w[header+3] = byte(i-header-4) << 1 // below 64
	n := i - room
	if used := uvarintLen(uint64(n) << 1); used > room {
		copy(w[used:], w[room:i])
		i += used - room
	}
	putUvarint(w, 0, uint64(n)<<1)
	b.records = out[:len(out)+i]
}

// AppendTo appends the finished batch, compressed with c unless Compress did it before.
func (b *BatchBuilder) AppendTo(dst []byte, c Compression) []byte {
	start := len(dst)
	dst = b.appendUnsummed(dst, c)
	out := dst[start:]
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[batchCRCStart:], castagnoli))
	return dst
}

// appendUnsummed is AppendTo but for the checksum.
func (b *BatchBuilder) appendUnsummed(dst []byte, c Compression) []byte {
	start := len(dst)
	var h [batchHeader]byte
	be := binary.BigEndian
	be.PutUint64(h[0:], uint64(b.first))
	h[16] = batchMagic
	if b.codec != CompressionNone {
		c = b.codec
	}
	be.PutUint16(h[21:], uint16(c))
	be.PutUint32(h[23:], uint32(b.last-b.first))
	be.PutUint64(h[27:], uint64(b.baseMs))
	be.PutUint64(h[35:], uint64(b.maxMs))
	producer := int64(-1)
	if b.hasBase {
		producer = int64(b.base)
	}
	be.PutUint64(h[43:], uint64(producer))
	be.PutUint16(h[51:], 0xffff)     // producer epoch -1
	be.PutUint32(h[53:], 0xffffffff) // base sequence -1
	be.PutUint32(h[57:], uint32(b.count))
	dst = append(dst, h[:]...)
	if c == b.codec {
		dst = append(dst, b.payload()...)
	} else {
		dst = compress(dst, b.records, c)
	}

	out := dst[start:]
	be.PutUint32(out[8:], uint32(len(out)-batchLengthEnd))
	return dst
}

// putField writes a field's length and bytes at w[i]; nil has the length -1.
func putField(w []byte, i int, b []byte) int {
	if b == nil {
		w[i] = 1
		return i + 1
	}
	i = putUvarint(w, i, uint64(len(b))<<1)
	return i + copy(w[i:], b)
}

// putUvarint writes v at w[i] and returns where it ends.
func putUvarint(w []byte, i int, v uint64) int {
	for v >= 0x80 {
		w[i] = byte(v) | 0x80
		v >>= 7
		i++
	}
	w[i] = byte(v)
	return i + 1
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
