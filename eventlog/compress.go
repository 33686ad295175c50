package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression is how the records of a batch are compressed; its numbers are Kafka's.
type Compression uint8

// The compressions that batches may have. Kafka's 1, gzip, is not written and not read.
const (
	CompressionNone   Compression = 0
	CompressionSnappy Compression = 2
	CompressionLZ4    Compression = 3
	CompressionZstd   Compression = 4
)

// ParseCompression reads a compression's name.
func ParseCompression(name string) (Compression, error) {
	for _, c := range []Compression{CompressionNone, CompressionSnappy, CompressionLZ4, CompressionZstd} {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("compression %q; it is none, snappy, lz4 or zstd", name)
}

// String returns the compression's name.
func (c Compression) String() string {
	switch c {
	case CompressionNone:
		return "none"
	case CompressionSnappy:
		return "snappy"
	case CompressionLZ4:
		return "lz4"
	case CompressionZstd:
		return "zstd"
	}
	return fmt.Sprintf("compression?%d", uint8(c))
}

// maxInflated bounds what one batch may hold uncompressed.
const maxInflated = 1 << 30

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false)) // the batch has its own checksum
	if err != nil {
		panic(err) // only for options that contradict each other
	}
	return e
})

var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxInflated))
	if err != nil {
		panic(err)
	}
	return d
})

// compress appends src, compressed as Kafka's clients do, to dst.
func compress(dst, src []byte, c Compression) []byte {
	switch c {
	case CompressionSnappy:
		return compressSnappy(dst, src)
	case CompressionLZ4:
		return compressLZ4(dst, src)
	case CompressionZstd:
		return zstdEncoder().EncodeAll(src, dst)
	}
	return append(dst, src...)
}

// snappyBlock is how much xerial's framing, which Kafka's clients use, puts into a block.
const snappyBlock = 32 << 10

func compressSnappy(dst, src []byte) []byte {
	most := snappyHeader + (len(src)/snappyBlock+1)*(4+s2.MaxEncodedLen(snappyBlock))
	dst = slices.Grow(dst, most) // so that it is written in place
	return dst[:len(dst)+len(xerial.Encode(dst[len(dst):], src))]
}

// lz4Writers and lz4Readers keep the coders, whose buffers are as large as the
// frame's blocks. Blocks of 64 KiB are what Kafka's clients write; the package's
// own default would take 4 MiB for each batch, however small.
var (
	lz4Writers = sync.Pool{New: func() any {
		w := lz4.NewWriter(nil)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb)); err != nil {
			panic(err) // only after a first write
		}
		return w
	}}
	lz4Readers = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
)

func compressLZ4(dst, src []byte) []byte {
	buf := bytes.NewBuffer(dst)
	w := lz4Writers.Get().(*lz4.Writer)
	w.Reset(buf)
	_, err := w.Write(src)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer in memory takes every write
	}
	w.Reset(nil)
	lz4Writers.Put(w)
	return buf.Bytes()
}

// decompress appends what src holds to dst and returns it; with none it returns src.
func decompress(dst, src []byte, c Compression) ([]byte, error) {
	switch c {
	case CompressionNone:
		return src, nil
	case CompressionSnappy:
		return decompressSnappy(dst, src)
	case CompressionLZ4:
		return decompressLZ4(dst, src)
	case CompressionZstd:
		return zstdDecoder().DecodeAll(src, dst)
	}
	return nil, fmt.Errorf("%v is not read", c)
}

func decompressLZ4(dst, src []byte) ([]byte, error) {
	r := lz4Readers.Get().(*lz4.Reader)
	defer func() { // Reset makes it good again also after an error
		r.Reset(nil)
		lz4Readers.Put(r)
	}()
	r.Reset(bytes.NewReader(src))
	buf := bytes.NewBuffer(dst)
	n, err := io.Copy(buf, io.LimitReader(r, maxInflated+1))
	if err == nil && n > maxInflated {
		err = fmt.Errorf("more than %d bytes", maxInflated)
	}
	return buf.Bytes(), err
}

// xerial's framing: 8 bytes of magic, two versions of 4 bytes, and blocks, each a
// big-endian u32 length and a block of snappy. Without the magic it is one block.
const (
	snappyHeader = 16
	snappyMagic  = "\x82SNAPPY\x00"
)

func decompressSnappy(dst, src []byte) ([]byte, error) {
	if len(src) < snappyHeader || string(src[:len(snappyMagic)]) != snappyMagic {
		return appendSnappyBlock(dst, src)
	}
	var err error
	for rest := src[snappyHeader:]; len(rest) > 0; {
		if len(rest) < 4 {
			return dst, io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(rest))
		if rest = rest[4:]; n > int64(len(rest)) {
			return dst, io.ErrUnexpectedEOF
		}
		if dst, err = appendSnappyBlock(dst, rest[:n]); err != nil {
			return dst, err
		}
		rest = rest[n:]
	}
	return dst, nil
}

// appendSnappyBlock bounds its memory by the input: three bytes of snappy give at most 64.
func appendSnappyBlock(dst, block []byte) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return dst, err
	}
	if n > 22*len(block)+64 {
		return dst, fmt.Errorf("block of %d bytes claims to hold %d", len(block), n)
	}
	dst = slices.Grow(dst, n)
	_, err = s2.Decode(dst[len(dst):len(dst)+n], block)
	return dst[:len(dst)+n], err
}
