package postgres

import (
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/change"
)

// BenchmarkInsert decodes transactions of 100 rows of (text, int, text) with a key of two columns.
func BenchmarkInsert(b *testing.B) {
	x := newBench(b)
	var batch *change.Batch
	x.emit = func(c *change.Batch, _ LSN, _ []signalMessage) error { batch = c; return nil }
	_ = x.message(relationMsg())
	var rows []msg
	bytes := 0
	for i := range 100 {
		m := msg{'I'}.u32(7).with('N').tuple(fmt.Sprintf("=key%d", i), fmt.Sprint("=", i*1000), "=some text of a common length, sixty bytes or so long in all")
		rows = append(rows, m)
		bytes += len(m)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		_ = x.message(begin(0x100, 5))
		for _, m := range rows {
			if err := x.message(m); err != nil {
				b.Fatal(err)
			}
		}
		_ = x.message(commit(0x100, 0x140))
	}
	if len(batch.Events) != 100 {
		b.Fatal("rows are missing")
	}
}
