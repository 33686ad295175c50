package eventlog

import (
	"bytes"
	"runtime"
	"testing"
)

// TestSmallBatchesTakeLittleMemory codes small batches: none may cost the
// megabytes that a coder made for the largest one would.
func TestSmallBatchesTakeLittleMemory(t *testing.T) {
	src := bytes.Repeat([]byte("shop"), 100)
	for _, c := range []Compression{CompressionNone, CompressionSnappy, CompressionLZ4, CompressionZstd} {
		small := compress(nil, src, c) // the coders that all share are made here
		if _, err := decompress(nil, small, c); err != nil {
			t.Fatal(err)
		}
		const n = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			out, err := decompress(nil, compress(nil, src, c), c)
			if err != nil || !bytes.Equal(out, src) {
				t.Fatalf("%v: %q, %v", c, out, err)
			}
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / n; got > 512<<10 {
			t.Errorf("%v: %d bytes allocated for a batch of %d", c, got, len(src))
		}
	}
}

// TestBombs decompresses what says that it holds gigabytes, or holds a lot: no
// more memory is taken than the bytes can be worth.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 8<<20)
	big := compress(nil, zeros, CompressionZstd)
	for _, tt := range []struct {
		name string
		c    Compression
		src  []byte
		most uint64 // bytes allocated
		ok   bool
	}{
		{"zstd that says 900 MiB", CompressionZstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x40, 0x38, 1, 0, 0}, 1 << 20, false},
		{"zstd that says 16 EiB", CompressionZstd, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, bytes.Repeat([]byte{0xff}, 12)...), 1 << 20, false},
		{"zstd cut short", CompressionZstd, big[:len(big)/2], 32 << 20, false},
		{"zstd of zeros", CompressionZstd, big, 32 << 20, true},
		{"two frames of zstd", CompressionZstd, append(bytes.Clone(big), big...), 160 << 20, true},
		{"lz4 of zeros", CompressionLZ4, compress(nil, zeros, CompressionLZ4), 80 << 20, true},
		{"snappy that says 4 GiB", CompressionSnappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}, 1 << 20, false},
		{"snappy of zeros", CompressionSnappy, compress(nil, zeros, CompressionSnappy), 80 << 20, true},
		{"another codec", Compression(1), []byte{0x1f, 0x8b, 8}, 1 << 20, false},
		{"zstd called lz4", CompressionLZ4, big, 1 << 20, false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := decompress(nil, tt.src, tt.c)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > tt.most {
			t.Errorf("%s: %d bytes allocated", tt.name, got)
		}
		if tt.ok != (err == nil) || tt.ok && len(out)%len(zeros) != 0 {
			t.Errorf("%s: %d bytes, %v", tt.name, len(out), err)
		}
	}
}
