package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// part is a partition of a topic.
type part struct {
	topic     eventlog.TopicID
	partition int32
}

// recordRun is one reading of records with its filters.
type recordRun struct {
	p      *recordPrinter
	log    *seglog.Log
	wait   func(ctx context.Context, changed <-chan struct{}) error // until there may be more
	q      server.RecordQuery
	topics []eventlog.Topic
	parts  []part // that may hold what is asked for
	fn     func([]byte) error
	n      int
	line   []byte
	from   map[part]eventlog.Offset // shown from there on; missing: from the start
	until  map[part]eventlog.Offset // shown below it; nil: to the end
}

// Records calls fn with the JSON line of each record that q asks for.
func (l *LogReader) Records(ctx context.Context, q server.RecordQuery, fn func(line []byte) error) error {
	err := l.readRecords(ctx, q, fn)
	if errors.Is(err, eventlog.ErrOutOfRange) {
		return fmt.Errorf("%w: %w", server.ErrGone, err)
	}
	return dirError(err)
}

// readRecords calls fn with the line of each record that q asks for: in offset
// order of one partition, in the order of commits of several.
func (l *LogReader) readRecords(ctx context.Context, q server.RecordQuery, fn func(line []byte) error) error {
	r := &recordRun{p: newRecordPrinter(l.log, l.kinds), log: l.log, wait: l.wait, q: q, fn: fn, from: map[part]eventlog.Offset{}}
	var err error
	if r.topics, err = matching(l.log, q.Topic); err != nil {
		return err
	}
	if len(r.topics) > 1 { // _tx is what the other records' lines say of their transactions
		r.topics = slices.DeleteFunc(r.topics, func(t eventlog.Topic) bool { return t.Spec.Name == change.TopicTx })
	}
	if r.parts, err = r.partitions(); err != nil {
		return err
	}
	if q.Begun != nil {
		q.Begun()
	}
	if len(r.parts) == 0 {
		return nil // the key is in another partition than the one asked for
	}
	if q.Tail {
		if err := r.tail(ctx); err != nil || !q.Follow || r.full() {
			return err
		}
	}
	if len(r.parts) == 1 {
		return r.onePartition(ctx, r.parts[0])
	}
	return r.transactions(ctx)
}

// partitions returns the partitions that the query's partition and key leave.
func (r *recordRun) partitions() ([]part, error) {
	var parts []part
	for _, t := range r.topics {
		allowed, err := r.keyPartitions(t)
		if err != nil {
			return nil, err
		}
		for p := range int32(t.Spec.Partitions) {
			if (r.q.Partition < 0 || r.q.Partition == int(p)) && (allowed == nil || slices.Contains(allowed, p)) {
				parts = append(parts, part{t.ID, p})
			}
		}
	}
	if r.q.Partition >= 0 && !slices.ContainsFunc(r.topics, func(t eventlog.Topic) bool { return r.q.Partition < t.Spec.Partitions }) {
		return nil, fmt.Errorf("%w: partition %d: topic %q has %d, counted from 0", server.ErrBadRequest, r.q.Partition, r.topics[0].Spec.Name, r.topics[0].Spec.Partitions)
	}
	return parts, nil
}

func (r *recordRun) full() bool { return r.q.Limit > 0 && r.n >= r.q.Limit }

// lower returns the first offset of a partition that may be shown; what it
// stands for is found by seeking.
func (r *recordRun) lower(k part) (eventlog.Offset, error) {
	off, ok := r.from[k]
	if !ok {
		off = r.log.StartOffsets(k.topic)[k.partition]
	}
	if r.q.FromOffset >= 0 {
		off = max(off, eventlog.Offset(r.q.FromOffset))
		if !ok {
			off = eventlog.Offset(r.q.FromOffset) // below the start is the reader's to judge
		}
	}
	if r.q.FromCSN > 0 {
		at, err := r.log.SeekCSN(k.topic, k.partition, eventlog.CSN(r.q.FromCSN))
		if err != nil {
			return 0, err
		}
		off = max(off, at)
	}
	if !r.q.FromTime.IsZero() {
		at, err := r.log.SeekTime(k.topic, k.partition, r.q.FromTime.UnixMicro())
		if err != nil {
			return 0, err
		}
		off = max(off, at)
	}
	return off, nil
}

// onePartition reads one partition in offset order.
func (r *recordRun) onePartition(ctx context.Context, k part) error {
	from, err := r.lower(k)
	if err != nil {
		return err
	}
	rd, err := r.log.ReadPartition(k.topic, k.partition, from)
	if err != nil {
		return err
	}
	defer rd.Close()
	finder := r.log.TxFinder()
	defer finder.Close()
	for ctx.Err() == nil && !r.full() {
		changed := r.log.Changed()
		rec, ok, err := rd.Next()
		switch {
		case err != nil:
			return fmt.Errorf("read %s partition %d: %w", r.p.topicName(k.topic), k.partition, err)
		case ok && r.q.ToOffset >= 0 && int64(rec.Offset) >= r.q.ToOffset:
			return nil
		case ok:
			err = r.found(finder, &rec)
		case r.q.Follow:
			err = r.wait(ctx, changed)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// found shows a record that was read without its transaction.
func (r *recordRun) found(finder eventlog.TxFinder, rec *eventlog.Record) error {
	if !r.takes(rec) {
		return nil
	}
	if r.p.topicName(rec.Topic) != change.TopicTx {
		if tx, ok, err := finder.Find(rec); err != nil || ok {
			if err != nil {
				return err
			}
			return r.show(&tx, rec)
		}
	}
	return r.show(&eventlog.Tx{CSN: rec.CSN, CommitTime: rec.Time}, rec)
}

// transactions reads several partitions, transaction by transaction, a large one in pieces.
func (r *recordRun) transactions(ctx context.Context) error {
	spec := eventlog.ReadSpec{Outputs: true, Pieces: true, Topics: []eventlog.TopicID{}}
	for _, t := range r.topics {
		spec.Topics = append(spec.Topics, t.ID)
	}
	if r.q.FromCSN > 0 {
		spec.After = eventlog.CSN(r.q.FromCSN) - 1
	}
	if !r.q.FromTime.IsZero() {
		spec.FromTime = r.q.FromTime.UnixMicro()
	}
	spec.From = r.offsets()
	rd, err := r.log.Read(spec)
	if err != nil {
		return err
	}
	defer rd.Close()
	for ctx.Err() == nil && !r.full() && !r.passed() {
		changed := r.log.Changed()
		tx, err := rd.Next()
		switch {
		case err != nil:
			return fmt.Errorf("read %s: %w", r.q.Topic, err)
		case tx != nil:
			err = r.tx(tx)
		case r.q.Follow:
			err = r.wait(ctx, changed)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// offsets are those to start from, where the query names some and they are not
// reached quicker by a CSN.
func (r *recordRun) offsets() map[eventlog.TopicID][]eventlog.Offset {
	if len(r.from) == 0 && (r.q.FromOffset < 0 || r.q.FromCSN > 0) {
		return nil
	}
	m := map[eventlog.TopicID][]eventlog.Offset{}
	for _, t := range r.topics {
		from := make([]eventlog.Offset, t.Spec.Partitions)
		for p := range from {
			from[p] = max(eventlog.Offset(r.q.FromOffset), r.from[part{t.ID, int32(p)}], 0)
		}
		m[t.ID] = from
	}
	return m
}

// passed reports that no partition has records below ToOffset any more.
func (r *recordRun) passed() bool { return r.q.ToOffset >= 0 && len(r.parts) == 0 }

func (r *recordRun) tx(tx *eventlog.Tx) error {
	for i := range tx.Records {
		rec := &tx.Records[i]
		if r.q.ToOffset >= 0 && int64(rec.Offset) >= r.q.ToOffset-1 {
			k := part{rec.Topic, rec.Partition}
			r.parts = slices.DeleteFunc(r.parts, func(o part) bool { return o == k })
		}
		if !r.takes(rec) || r.full() {
			continue
		}
		if err := r.show(tx, rec); err != nil {
			return err
		}
	}
	return nil
}

func (r *recordRun) show(tx *eventlog.Tx, rec *eventlog.Record) error {
	var err error
	if r.line, err = r.p.appendLine(r.line[:0], tx, rec, r.q.CurrentSchema); err != nil {
		return err
	}
	r.n++
	return r.fn(r.line)
}

func (r *recordRun) takes(rec *eventlog.Record) bool {
	q := &r.q
	if q.Partition >= 0 && int(rec.Partition) != q.Partition || uint64(rec.CSN) < q.FromCSN ||
		q.FromOffset >= 0 && int64(rec.Offset) < q.FromOffset || q.ToOffset >= 0 && int64(rec.Offset) >= q.ToOffset ||
		rec.Offset < r.from[part{rec.Topic, rec.Partition}] || !q.FromTime.IsZero() && rec.Time < q.FromTime.UnixMicro() {
		return false
	}
	if r.until != nil && rec.Offset >= r.until[part{rec.Topic, rec.Partition}] {
		return false
	}
	if q.Key == "" {
		return true
	}
	id, err := change.DocumentID(rec.Key)
	return err == nil && id == q.Key
}

// byCommit orders records as their transactions.
func byCommit(a, b *eventlog.Record) int {
	return cmp.Or(cmp.Compare(a.CSN, b.CSN), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
