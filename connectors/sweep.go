package connectors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// sweep ends a run that read its table whole: it appends a tombstone for each
// key whose newest record is older than the run, decided here, at the append,
// against all that was appended before (V9). A damaged topic is mended by it.
func (in *Ingest) sweep(ctx context.Context, b *change.Batch) error {
	since, err := in.controlCSN(change.TopicSnapshots+in.opts.Source, b.Sweep.Since)
	if err != nil {
		return err
	}
	t, err := in.topic(b.Sweep.Topic)
	if err != nil {
		return err
	}
	p := in.chunkOf(b)
	err = in.collectOld(ctx, p, t, since)
	if errors.Is(err, eventlog.ErrCorrupt) {
		if err = in.refill(ctx, b, t, since, err); err == nil {
			p = in.chunkOf(b)
			err = in.collectOld(ctx, p, t, since)
		}
	}
	if errors.Is(err, eventlog.ErrCorrupt) {
		return fmt.Errorf("%w: %s: %w. Begin a new log: stop the daemon, tailwater drop --state --yes, tailwater run reads every table again",
			ErrBeyondRefill, b.Sweep.Topic, err)
	}
	if err != nil {
		return fmt.Errorf("sweep %s: %w", b.Sweep.Topic, err)
	}
	for i := range b.Controls {
		if err := in.addControl(p, &b.Controls[i]); err != nil {
			return err
		}
	}
	if p.stream != nil {
		return in.finish(ctx, p)
	}
	return in.append(ctx, []*eventlog.Tx{p.tx})
}

// chunkOf begins a transaction of our own. The source says no time of a sweep's
// deletes; the log keeps them for a time from now.
func (in *Ingest) chunkOf(b *change.Batch) *pendingTx {
	at := b.CommitTime
	if at == 0 {
		at = time.Now().UnixMicro()
	}
	return &pendingTx{tx: &eventlog.Tx{Kind: eventlog.TxChunk, Source: in.opts.Source, ID: b.Tx, CommitTime: at}}
}

// collectOld adds a tombstone for each key whose newest record is older than since.
func (in *Ingest) collectOld(ctx context.Context, p *pendingTx, t eventlog.Topic, since eventlog.CSN) error {
	schema := in.schemas.current[t.Spec.Name]
	return in.opts.Log.NewestByKey(t.ID, func(key []byte, csn eventlog.CSN, tombstone bool) error {
		if csn < since && !tombstone {
			p.add(eventlog.Record{Topic: t.ID, Op: uint8(change.OpDelete), Flags: uint8(change.FlagSnapshot), Schema: schema, Key: append([]byte(nil), key...)})
		}
		return in.spill(ctx, p)
	})
}

// refill mends a damaged topic when a run has read its table anew: every row has a
// record since the run's beginning, what is damaged from before is not needed any
// more. Which keys it held nobody knows, so a sweep record tells readers to drop
// all rows from before; it is durable before anything is removed, and a run that
// is cut short after it does all of this again.
func (in *Ingest) refill(ctx context.Context, b *change.Batch, t eventlog.Topic, since eventlog.CSN, found error) error {
	in.discardStream()
	below, err := in.offsetsAt(t, since)
	if err != nil {
		return err
	}
	p := in.chunkOf(b)
	p.add(eventlog.Record{Topic: t.ID, Op: uint8(change.OpSweep), Flags: uint8(change.FlagSnapshot), Partition: eventlog.EveryPartition,
		Key: change.SweepKey, Value: change.SweepValue(uint64(since))})
	if err := in.append(ctx, []*eventlog.Tx{p.tx}); err != nil {
		return err
	}
	var n int
	err = in.whileFull(ctx, p.tx.CommitTime, func() error {
		some, err := in.opts.Log.SetAside(ctx, t.ID, below)
		n += some
		return err
	})
	if err != nil {
		return err
	}
	in.opts.Logger.Warn("damaged records of a topic were set aside: its table was read anew", "source", in.opts.Source, "topic", t.Spec.Name, "batches", n, "damage", found)
	return nil
}

// offsetsAt returns where the records with a CSN at or above csn begin in each
// partition. It reads no others, which may be damaged.
func (in *Ingest) offsetsAt(t eventlog.Topic, csn eventlog.CSN) ([]eventlog.Offset, error) {
	offsets := in.opts.Log.EndOffsets(t.ID)
	left := map[int32]bool{}
	for p := range offsets {
		left[int32(p)] = true
	}
	rd, err := in.opts.Log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{t.ID}, After: csn - 1, Pieces: true})
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	for len(left) > 0 {
		tx, err := rd.Next()
		if err != nil {
			return nil, fmt.Errorf("read what the run appended: %w", err)
		}
		if tx == nil {
			return offsets, nil
		}
		for i := range tx.Records {
			if r := &tx.Records[i]; left[r.Partition] {
				offsets[r.Partition] = r.Offset
				delete(left, r.Partition)
			}
		}
	}
	return offsets, nil
}

// controlCSN returns the CSN of the newest record with that key in a control topic.
func (in *Ingest) controlCSN(topic string, key change.Key) (eventlog.CSN, error) {
	t, err := in.topic(topic)
	if err != nil {
		return 0, err
	}
	var found eventlog.CSN
	err = in.opts.Log.NewestByKey(t.ID, func(k []byte, csn eventlog.CSN, tombstone bool) error {
		if string(k) == string(key) && !tombstone {
			found = csn
		}
		return nil
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("no record marks the beginning of the snapshot run")
	}
	return found, err
}
