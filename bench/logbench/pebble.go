package main

import (
	"context"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tailwater/tailwater/bench"
)

// pebbleBulk puts the same records into Pebble, in batches as large as the
// log's groups, each synced. Rate is as appendBulk's.
func pebbleBulk(ctx context.Context, p params) (bench.Sample, error) {
	if err := os.RemoveAll(p.dir); err != nil {
		return bench.Sample{}, err
	}
	db, err := pebble.Open(p.dir, &pebble.Options{Logger: quiet{}})
	if err != nil {
		return bench.Sample{}, err
	}
	defer db.Close()
	s := newSource(1, 2, p.group)
	records, n := p.bytes/recordSize, int64(0)
	began := time.Now()
	for n < records && ctx.Err() == nil {
		b := db.NewBatch()
		for _, tx := range s.next() {
			for i := range tx.Records {
				n++
				if err := b.Set(tx.Records[i].Key, tx.Records[i].Value, nil); err != nil {
					return bench.Sample{}, err
				}
			}
		}
		if err := b.Commit(pebble.Sync); err != nil {
			return bench.Sample{}, err
		}
	}
	took := time.Since(began).Seconds()
	return bench.Sample{Rate: float64(n*recordSize) / took, Extra: map[string]float64{"records/s": float64(n) / took}}, ctx.Err()
}

// quiet drops what Pebble has to say, but for its end.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(format)
}
