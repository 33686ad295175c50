package seglog

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestCompactionUnderReaders reads a log from its beginning, again and again,
// while it grows, is sealed and compacted: what a reader has, once it is past the
// horizon, must be the table as of the last transaction that it read.
func TestCompactionUnderReaders(t *testing.T) {
	m := &compactModel{t: t, rng: rand.New(rand.NewPCG(3, 5)), fs: vfs.NewMem(), table: table{}, pending: map[string]string{}, now: testTime}
	m.opts = Options{
		Clock: func() time.Time { return testTime }, FileBytes: 900, SealBatch: 300, TailBytes: 2000, Merge: mergeTest,
		SegmentBytes: 3000, JournalBytes: 1500,
	}
	m.open()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var mu sync.Mutex
	tables := map[eventlog.CSN]table{} // as of each transaction
	var readers sync.WaitGroup
	var checked atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			if err := m.log.Seal(ctx, m.opts.JournalBytes); err != nil && ctx.Err() == nil {
				t.Errorf("Seal = %v", err)
			}
			if _, err := m.log.Compact(ctx, m.top.ID); err != nil && ctx.Err() == nil {
				t.Errorf("Compact = %v", err)
			}
		}
	})
	read := func() {
		r, err := m.log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{m.top.ID}})
		if err != nil {
			t.Errorf("Read = %v", err)
			return
		}
		defer r.Close()
		got, moved := table{}, map[eventlog.CSN]string{}
		for {
			changed := m.log.Changed()
			tx, err := r.Next()
			if err != nil {
				t.Errorf("Next = %v", err)
				return
			}
			if tx == nil {
				select {
				case <-changed:
					continue
				case <-ctx.Done():
					return
				}
			}
			for i := range tx.Records {
				got.apply(&tx.Records[i], moved)
			}
			if tx.CSN < m.log.Horizon(m.top.ID) {
				continue
			}
			mu.Lock()
			want, ok := tables[tx.CSN]
			mu.Unlock()
			if !ok {
				continue // its appender has not noted it yet
			}
			if m.log.Horizon(m.top.ID) > 0 {
				checked.Add(1)
			}
			if !maps.Equal(got, want) {
				t.Errorf("as of CSN %d: %s", tx.CSN, difference(got, want))
			}
			return
		}
	}
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				read()
			}
		})
	}
	folded, moved := table{}, map[eventlog.CSN]string{}
	const enough = 200 // comparisons behind a horizon
	for i := 0; checked.Load() < enough && !t.Failed(); i++ {
		for before := checked.Load(); i%100 == 99 && checked.Load() == before && !t.Failed(); {
			runtime.Gosched() // the readers are to keep up
		}
		n := len(m.records)
		m.append()
		for i := n; i < len(m.records); i++ {
			folded.apply(&m.records[i], moved)
		}
		if len(m.records) > n {
			mu.Lock()
			tables[m.records[n].CSN] = maps.Clone(folded)
			mu.Unlock()
		}
	}
	stop()
	readers.Wait()
	work.Wait()
}
