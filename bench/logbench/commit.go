package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/bench"
	"github.com/tailwater/tailwater/eventlog"
)

// commitRecords make an entry of about 4 KiB.
const commitRecords = 29

// commitBatches is how many batches each appender commits.
const commitBatches = 2000

// commitGroups lets each appender append small batches to a partition of its
// own and wait for each. Rate is durable batches a second of all together.
func commitGroups(ctx context.Context, p params) (bench.Sample, error) {
	if err := os.RemoveAll(p.dir); err != nil {
		return bench.Sample{}, err
	}
	l, top, err := open(p)
	if err != nil {
		return bench.Sample{}, err
	}
	defer l.Close()
	syncs, n := l.Stats().Syncs, max(commitBatches/p.appenders, 200)
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i := range p.appenders {
		g.Go(func() error {
			group, err := commitGroup(top, int32(i))
			for k := 0; k < n && err == nil; k++ {
				err = l.Append(gctx, group)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return bench.Sample{}, err
	}
	took := time.Since(began).Seconds()
	batches := float64(p.appenders * n)
	return bench.Sample{Rate: batches / took, Extra: map[string]float64{
		"syncs/s": float64(l.Stats().Syncs-syncs) / took, "ms": took * 1e3 * float64(p.appenders) / batches,
	}}, nil
}

// commitGroup is one transaction with records that all go to one partition.
func commitGroup(top eventlog.Topic, partition int32) ([]*eventlog.Tx, error) {
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: fmt.Sprint("shop", partition), Position: []byte("0/16B3748"), ID: "731", CommitTime: commitTime}
	vals := sampleValues()
	for n := 0; len(tx.Records) < commitRecords; n++ {
		if n > 1e6 {
			return nil, fmt.Errorf("no keys for partition %d of %d", partition, top.Spec.Partitions)
		}
		key := fmt.Appendf(nil, "k%08d", n)
		if eventlog.PartitionOf(key, top.Spec.Partitions) == partition {
			tx.Records = append(tx.Records, eventlog.Record{Topic: top.ID, Seq: uint32(len(tx.Records)), Op: 2, Schema: 4, Key: key, Value: vals[n%values]})
		}
	}
	return []*eventlog.Tx{tx}, nil
}
