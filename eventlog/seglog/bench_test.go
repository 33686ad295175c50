package seglog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
)

func benchGroup(top eventlog.Topic, txs, records int) []*eventlog.Tx {
	value := make([]byte, 200)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	group := make([]*eventlog.Tx, txs)
	for i := range group {
		group[i] = &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", Position: []byte("0/16B3748"), ID: "731", CommitTime: testTime.UnixMicro()}
		for k := range records {
			group[i].Records = append(group[i].Records, eventlog.Record{
				Topic: top.ID, Seq: uint32(k), Op: 1, Schema: 4, Key: fmt.Appendf(nil, "key%08d", i*records+k), Value: value,
			})
		}
	}
	return group
}

func benchLogAt(b testing.TB, opts Options) (*Log, eventlog.Topic) {
	if _, ok := b.(*testing.B); ok { // spoiling takes longer than what is measured
		was := freed
		freed = nil
		b.Cleanup(func() { freed = was })
	}
	l, err := Open(b.TempDir()+"/log", opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t"})
	if err != nil {
		b.Fatal(err)
	}
	return l, top
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n, " transactions of 10"), func(b *testing.B) {
			l, top := benchLogAt(b, Options{})
			group := benchGroup(top, n, 10)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Append(context.Background(), group); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n*10)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	l, top := benchLogAt(b, Options{TailBytes: 1})
	group := benchGroup(top, 100, 10)
	for range 60 {
		if err := l.Append(context.Background(), group); err != nil {
			b.Fatal(err)
		}
	}
	for _, where := range []string{"journal", "segments"} {
		b.Run(where, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r, err := l.Read(eventlog.ReadSpec{})
				if err != nil {
					b.Fatal(err)
				}
				for {
					tx, err := r.Next()
					if err != nil {
						b.Fatal(err)
					}
					if tx == nil {
						break
					}
					n += len(tx.Records)
				}
				r.Close()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
		})
		if err := l.SealAll(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSeek opens a reader at a random offset of groups of 1 MiB and reads one record.
func BenchmarkSeek(b *testing.B) {
	l, top := benchLogAt(b, Options{TailBytes: 1})
	group := benchGroup(top, 8, 500)
	for range 40 {
		if err := l.Append(context.Background(), group); err != nil {
			b.Fatal(err)
		}
	}
	end := l.EndOffsets(top.ID)[0]
	rng := rand.New(rand.NewPCG(3, 3))
	for _, where := range []string{"journal", "segments"} {
		b.Run(where, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.ReadPartition(top.ID, 0, eventlog.Offset(rng.Int64N(int64(end))))
				if err != nil {
					b.Fatal(err)
				}
				if _, ok, err := r.Next(); !ok || err != nil {
					b.Fatal(ok, err)
				}
				r.Close()
			}
		})
		if err := l.SealAll(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
