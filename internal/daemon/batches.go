package daemon

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

var errEnough = errors.New("enough")

// Batches calls fn with the JSON line of each record batch that q asks for.
func (l *LogReader) Batches(ctx context.Context, q server.BatchQuery, fn func(line []byte) error) error {
	topics, err := matching(l.log, q.Topic)
	if err != nil {
		return err
	}
	n, dumped := 0, false
	for _, t := range topics {
		if q.Partition >= t.Spec.Partitions {
			continue
		}
		dumped = true
		err := l.log.Batches(ctx, t.ID, int32(max(q.Partition, -1)), func(b *seglog.RawBatch) error {
			if !wantsBatch(&q, b) {
				return nil
			}
			line, err := json.Marshal(newBatchLine(t.Spec.Name, b, q.Records))
			if err == nil {
				err = fn(line)
			}
			if n++; err == nil && q.Limit > 0 && n >= q.Limit {
				return errEnough
			}
			return err
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("dump %s: %w", t.Spec.Name, err)
		}
	}
	if !dumped {
		return fmt.Errorf("%w: partition %d: topic %q has %d, counted from 0", server.ErrBadRequest, q.Partition, topics[0].Spec.Name, topics[0].Spec.Partitions)
	}
	return nil
}

// wantsBatch reports whether a batch has a record that q asks for; one that is damaged may have any.
func wantsBatch(q *server.BatchQuery, b *seglog.RawBatch) bool {
	if b.Bad != nil {
		return true
	}
	for i := range b.Records {
		r := &b.Records[i]
		if (q.FromOffset < 0 || int64(r.Offset) >= q.FromOffset) && (q.ToOffset < 0 || int64(r.Offset) < q.ToOffset) &&
			uint64(r.CSN) >= q.FromCSN && (q.FromTime.IsZero() || r.Time >= q.FromTime.UnixMicro()) {
			return true
		}
	}
	return len(b.Records) == 0 && q.FromOffset < 0 && q.ToOffset < 0 && q.FromCSN == 0 && q.FromTime.IsZero()
}

func newBatchLine(topic string, b *seglog.RawBatch, records bool) server.BatchLine {
	h := &b.Batch
	line := server.BatchLine{
		Topic: topic, Partition: b.Partition, File: b.Path, Byte: b.Pos, BaseOffset: int64(h.Base), LastOffset: int64(h.Last),
		Count: h.Count, Compression: h.Compression.String(), Size: h.Size, CRCOK: b.Bad == nil,
	}
	var bad *seglog.CorruptError
	if errors.As(b.Bad, &bad) {
		line.Damage = bad.Reason
	}
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range b.Records {
		r := &b.Records[i]
		if i == 0 {
			line.MinCSN = uint64(r.CSN)
		}
		line.MinCSN, line.MaxCSN = min(line.MinCSN, uint64(r.CSN)), max(line.MaxCSN, uint64(r.CSN))
		lowest, highest = min(lowest, r.Time), max(highest, r.Time)
		if records {
			line.Records = append(line.Records, newRecordDetail(r))
		}
	}
	if len(b.Records) > 0 {
		line.MinTime, line.MaxTime = timeText(lowest), timeText(highest)
	}
	return line
}

func newRecordDetail(r *eventlog.Record) server.BatchRecord {
	return server.BatchRecord{
		Offset: int64(r.Offset), CSN: uint64(r.CSN), Seq: r.Seq, Op: change.Op(r.Op).String(), Flags: r.Flags, Schema: r.Schema,
		Time: timeText(r.Time), Key: hexOrNull(r.Key), Value: hexOrNull(r.Value),
	}
}

func hexOrNull(b []byte) *string {
	if b == nil {
		return nil
	}
	text := hex.EncodeToString(b)
	return &text
}
