package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// maxBackward is how many partitions are read backward at once; the tail of
// more is found by reading the newest transactions, ever more of them.
const maxBackward = 64

// tail shows the newest records and leaves in r.from where to go on.
func (r *recordRun) tail(ctx context.Context) error {
	ends := map[part]eventlog.Offset{}
	for _, k := range r.parts {
		ends[k] = r.log.EndOffsets(k.topic)[k.partition]
	}
	var err error
	if len(r.parts) <= maxBackward {
		err = r.tailBackward(ctx, ends)
	} else {
		err = r.tailWindow(ctx, ends)
	}
	r.from = ends
	return err
}

// backPart is a partition that is read backward.
type backPart struct {
	rd   eventlog.PartitionReader
	low  eventlog.Offset // the first that may be shown
	head eventlog.Record // the newest not yet taken
	ok   bool
}

// next goes on to the next older record that is asked for.
func (b *backPart) next(ctx context.Context, r *recordRun) error {
	for ctx.Err() == nil {
		var err error
		if b.head, b.ok, err = b.rd.Next(); err != nil || !b.ok {
			return err
		}
		if b.head.Offset < b.low {
			b.ok = false
			return nil
		}
		if r.takes(&b.head) && !r.isCopy(&b.head) {
			return nil
		}
	}
	return ctx.Err()
}

// tailBackward merges the partitions from their ends.
func (r *recordRun) tailBackward(ctx context.Context, ends map[part]eventlog.Offset) error {
	var heads []*backPart
	defer func() {
		for _, b := range heads {
			b.rd.Close()
		}
	}()
	for _, k := range r.parts {
		b, err := r.backPart(ctx, k, ends[k])
		if err != nil {
			return fmt.Errorf("read the end of %s partition %d: %w", r.p.topicName(k.topic), k.partition, err)
		}
		heads = append(heads, b)
	}
	var newest []eventlog.Record
	for {
		var top *backPart
		for _, b := range heads {
			if b.ok && (top == nil || byCommit(&b.head, &top.head) > 0) {
				top = b
			}
		}
		if top == nil || len(newest) == r.q.Last {
			break
		}
		newest = append(newest, clone(&top.head))
		if err := top.next(ctx, r); err != nil {
			return err
		}
	}
	return r.showNewest(newest)
}

func clone(rec *eventlog.Record) eventlog.Record {
	c := *rec
	c.Key, c.Value = slices.Clone(rec.Key), slices.Clone(rec.Value)
	return c
}

// isCopy reports a record that is in every partition, and shown as of partition 0 where several are read.
func (r *recordRun) isCopy(rec *eventlog.Record) bool {
	_, control := change.Key(rec.Key).Control()
	return control && rec.Partition != 0 && len(r.parts) > 1
}

func (r *recordRun) backPart(ctx context.Context, k part, end eventlog.Offset) (*backPart, error) {
	low, err := r.lower(k)
	if err != nil {
		return nil, err
	}
	if r.q.ToOffset >= 0 {
		end = min(end, eventlog.Offset(r.q.ToOffset))
	}
	rd, err := r.log.ReadBackward(k.topic, k.partition, end)
	if err != nil {
		return nil, err
	}
	b := &backPart{rd: rd, low: low}
	if r.q.Last == 0 {
		return b, nil
	}
	if err := b.next(ctx, r); err != nil {
		rd.Close()
		return nil, err
	}
	return b, nil
}

// showNewest shows records that were found newest first, in their order.
func (r *recordRun) showNewest(newest []eventlog.Record) error {
	finder := r.log.TxFinder()
	defer finder.Close()
	slices.Reverse(newest)
	for i := range newest {
		if r.full() {
			return nil
		}
		if err := r.found(finder, &newest[i]); err != nil {
			return err
		}
	}
	return nil
}

// tailWindow reads the newest transactions, ever more of them until there are
// enough records in them.
func (r *recordRun) tailWindow(ctx context.Context, ends map[part]eventlog.Offset) error {
	if r.q.Last == 0 {
		return nil
	}
	tx, ok := r.log.Topic(change.TopicTx)
	if !ok {
		return fmt.Errorf("the log has no topic %s", change.TopicTx)
	}
	for rows := 4 * r.q.Last; ; rows *= 8 {
		csn, all, err := r.csnFromEnd(tx.ID, rows)
		if err != nil {
			return err
		}
		lines, err := r.window(ctx, max(csn, r.q.FromCSN), ends)
		if err != nil || !all && len(lines) < r.q.Last {
			if err != nil {
				return err
			}
			continue
		}
		for _, line := range lines {
			if r.full() {
				break
			}
			r.n++
			if err := r.fn(line); err != nil {
				return err
			}
		}
		return nil
	}
}

// csnFromEnd returns the CSN of the transaction so many before the end; all
// says that there are not so many, and then it is 0.
func (r *recordRun) csnFromEnd(tx eventlog.TopicID, rows int) (csn uint64, all bool, err error) {
	rd, err := r.log.ReadBackward(tx, 0, 1<<62)
	if err != nil {
		return 0, false, err
	}
	defer rd.Close()
	for range rows {
		rec, ok, err := rd.Next()
		if err != nil || !ok {
			return 0, true, err
		}
		csn = uint64(rec.CSN)
	}
	return csn, false, nil
}

// window returns the last lines from a CSN on, of records below the ends.
func (r *recordRun) window(ctx context.Context, csn uint64, ends map[part]eventlog.Offset) ([][]byte, error) {
	var ring [][]byte
	w := &recordRun{p: r.p, log: r.log, q: r.q, topics: r.topics, parts: slices.Clone(r.parts)}
	w.q.FromCSN, w.q.Follow, w.q.Limit, w.until = csn, false, 0, ends
	w.fn = func(line []byte) error {
		if len(ring) == r.q.Last {
			ring = ring[1:]
		}
		ring = append(ring, slices.Clone(line))
		return nil
	}
	err := w.transactions(ctx)
	return ring, err
}
