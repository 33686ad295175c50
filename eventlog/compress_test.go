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
		if _, err := decompress(small, c); err != nil {
			t.Fatal(err)
		}
		const n = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			out, err := decompress(compress(nil, src, c), c)
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
