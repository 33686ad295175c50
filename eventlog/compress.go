package eventlog

import (
	"bytes"
	"fmt"
	"io"
	"sync"

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
		return append(dst, xerial.Encode(nil, src)...)
	case CompressionLZ4:
		return compressLZ4(dst, src)
	case CompressionZstd:
		return zstdEncoder().EncodeAll(src, dst)
	}
	return append(dst, src...)
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

func decompressLZ4(src []byte) ([]byte, error) {
	r := lz4Readers.Get().(*lz4.Reader)
	r.Reset(bytes.NewReader(src))
	out, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	if err == nil && len(out) > maxInflated {
		err = fmt.Errorf("more than %d bytes", maxInflated)
	}
	r.Reset(nil)
	lz4Readers.Put(r)
	return out, err
}

// decompress returns what src holds, in memory of its own unless c is none.
func decompress(src []byte, c Compression) ([]byte, error) {
	switch c {
	case CompressionNone:
		return src, nil
	case CompressionSnappy:
		return decompressSnappy(src)
	case CompressionLZ4:
		return decompressLZ4(src)
	case CompressionZstd:
		return zstdDecoder().DecodeAll(src, nil)
	}
	return nil, fmt.Errorf("%v is not read", c)
}

// decompressSnappy bounds its memory by the input: three bytes of snappy give at most 64.
func decompressSnappy(src []byte) ([]byte, error) {
	out, err := xerial.DecodeCapped(make([]byte, 0, 4*len(src)), src)
	if err != nil {
		out, err = xerial.DecodeCapped(make([]byte, 0, 22*len(src)+64), src)
	}
	return out, err
}
