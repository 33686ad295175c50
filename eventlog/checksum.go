package eventlog

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// castagnoliPoly is the polynomial of CRC-32C, lowest power in the highest bit.
const castagnoliPoly = 0x82f63b78

// combineFrom is the length from which JoinChecksums is cheaper than reading the bytes.
const combineFrom = 16 << 10

// JoinChecksums returns the CRC-32C of two byte strings one behind the other,
// from the CRC-32C of each and the length of the second. A checksum is the
// remainder of the bytes as a polynomial: what stands n bytes further left
// counts x^8n times.
func JoinChecksums(first, second uint32, n int64) uint32 {
	return mulMod(powMod(uint64(n)<<3), first) ^ second
}

// squares are x^1, x^2, x^4, x^8 ... modulo the polynomial.
var squares = func() (s [64]uint32) {
	s[0] = 1 << 30
	for i := 1; i < len(s); i++ {
		s[i] = mulMod(s[i-1], s[i-1])
	}
	return s
}()

// powMod returns x^n modulo the polynomial.
func powMod(n uint64) uint32 {
	p := uint32(1) << 31
	for ; n != 0; n &= n - 1 {
		p = mulMod(squares[bits.TrailingZeros64(n)], p)
	}
	return p
}

// mulMod multiplies two polynomials modulo the polynomial.
func mulMod(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		p ^= b & -(a >> 31)
		b = b>>1 ^ castagnoliPoly&-(b&1)
	}
	return p
}

// Draft is a batch in memory whose offsets and CSNs count from a beginning not
// yet known. Place makes it a batch, at the cost of its header alone.
type Draft struct {
	Size int    // of the batch, in bytes
	Tail int    // its last bytes, which Place does not change
	sum  uint32 // CRC-32C of them
}

// batchTail is where what Place leaves alone begins.
const batchTail = 51

// AppendDraft appends a batch that Place finishes.
func (b *BatchBuilder) AppendDraft(dst []byte) ([]byte, Draft) {
	start := len(dst)
	dst = b.appendUnsummed(dst, CompressionNone)
	tail := dst[start+batchTail:]
	return dst, Draft{Size: len(dst) - start, Tail: len(tail), sum: crc32.Checksum(tail, castagnoli)}
}

// Place moves a draft, whose bytes are raw, to its places in the log: offset
// and csn are added to what it was built with.
func (d Draft) Place(raw []byte, offset Offset, csn CSN) {
	be := binary.BigEndian
	be.PutUint64(raw[0:], be.Uint64(raw[0:])+uint64(offset))
	be.PutUint64(raw[43:], be.Uint64(raw[43:])+uint64(csn))
	be.PutUint32(raw[17:], d.Checksum(crc32.Checksum(raw[batchCRCStart:batchTail], castagnoli), raw[batchTail:]))
}

// Checksum continues the CRC-32C of what comes before a draft's tail over the tail.
func (d Draft) Checksum(before uint32, tail []byte) uint32 {
	if d.Tail < combineFrom {
		return crc32.Update(before, castagnoli, tail)
	}
	return JoinChecksums(before, d.sum, int64(d.Tail))
}
