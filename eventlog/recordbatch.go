package eventlog

import (
	"encoding/binary"
	"hash/crc32"
	"math"
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

// flagEveryPartition marks, in the log, the copies of a record that is in every
// partition. It is the log's own: records read do not show it.
const flagEveryPartition = 0x80

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BatchBuilder writes one record batch: Reset, Add for each record in offset
// order, AppendTo. It is reused; it is not for concurrent use.
type BatchBuilder struct {
	records []byte
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
	*b = BatchBuilder{records: b.records[:0], base: base, hasBase: withBase, maxMs: math.MinInt64}
	if !withBase {
		b.base = 0
	}
}

// Len returns the number of records added, Size their bytes.
func (b *BatchBuilder) Len() int  { return b.count }
func (b *BatchBuilder) Size() int { return len(b.records) }

// EncodedSize returns the size of the batch if it is not compressed.
func (b *BatchBuilder) EncodedSize() int { return batchHeader + len(b.records) }

// Shrink empties the builder and gives its memory back if it is more than limit bytes.
func (b *BatchBuilder) Shrink(limit int) {
	if cap(b.records) > limit {
		b.records = nil
	}
	b.Reset(0, true)
}

// Fits reports whether a record may be added: its CSN is not below the base and its offset near enough.
func (b *BatchBuilder) Fits(r *Record) bool {
	return r.CSN >= b.base && (b.count == 0 || r.Offset > b.last && r.Offset-b.first < maxBatchSpan)
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
	var scratch [40]byte
	meta := binary.AppendUvarint(scratch[:0], uint64(r.CSN-b.base))
	meta = binary.AppendUvarint(meta, uint64(r.Seq))
	meta = append(meta, r.Op, flags)
	meta = binary.AppendUvarint(meta, uint64(r.Schema))
	meta = binary.AppendUvarint(meta, uint64(r.Time-ms*1000))

	delta, offDelta := ms-b.baseMs, int64(r.Offset-b.first)
	n := 1 + varintLen(delta) + varintLen(offDelta) + fieldLen(r.Key) + fieldLen(r.Value) +
		1 + 2 + varintLen(int64(len(meta))) + len(meta)
	out := binary.AppendVarint(b.records, int64(n))
	out = append(out, 0) // attributes: unused
	out = binary.AppendVarint(out, delta)
	out = binary.AppendVarint(out, offDelta)
	out = appendField(out, r.Key)
	out = appendField(out, r.Value)
	out = append(out, 2, 2, 't') // one header (zigzag), its key of one byte
	out = binary.AppendVarint(out, int64(len(meta)))
	b.records = append(out, meta...)
}

// AppendTo appends the finished batch.
func (b *BatchBuilder) AppendTo(dst []byte, c Compression) []byte {
	start := len(dst)
	var h [batchHeader]byte
	be := binary.BigEndian
	be.PutUint64(h[0:], uint64(b.first))
	h[16] = batchMagic
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
	dst = compress(dst, b.records, c)

	out := dst[start:]
	be.PutUint32(out[8:], uint32(len(out)-batchLengthEnd))
	be.PutUint32(out[17:], crc32.Checksum(out[batchCRCStart:], castagnoli))
	return dst
}

func appendField(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 1) // -1, zigzag
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

func fieldLen(b []byte) int {
	if b == nil {
		return 1
	}
	return varintLen(int64(len(b))) + len(b)
}

func varintLen(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for u >= 0x80 {
		u >>= 7
		n++
	}
	return n
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
