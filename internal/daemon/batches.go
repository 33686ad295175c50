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

// batchLine is a line of `log dump --json`.
type batchLine struct {
	Topic       string         `json:"topic"`
	Partition   int32          `json:"partition"` // -1: not known
	File        string         `json:"file"`
	Byte        int64          `json:"byte"`
	BaseOffset  int64          `json:"base_offset"`
	LastOffset  int64          `json:"last_offset"`
	Count       int            `json:"count"`
	MinCSN      uint64         `json:"min_csn"`
	MaxCSN      uint64         `json:"max_csn"`
	MinTime     string         `json:"min_time,omitempty"`
	MaxTime     string         `json:"max_time,omitempty"`
	Compression string         `json:"compression"`
	Size        int            `json:"size"`
	CRCOK       bool           `json:"crc_ok"`
	Damage      string         `json:"damage,omitempty"`
	Records     []recordDetail `json:"records,omitempty"`
}

// recordDetail is what a batch says of a record; key and value are in hexadecimal, null where there is none.
type recordDetail struct {
	Offset int64   `json:"offset"`
	CSN    uint64  `json:"csn"`
	Seq    uint32  `json:"seq"`
	Op     string  `json:"op"`
	Flags  uint8   `json:"flags"`
	Schema uint32  `json:"schema"`
	Time   string  `json:"time"`
	Key    *string `json:"key"`
	Value  *string `json:"value"`
}

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

func newBatchLine(topic string, b *seglog.RawBatch, records bool) batchLine {
	h := &b.Batch
	line := batchLine{
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

func newRecordDetail(r *eventlog.Record) recordDetail {
	return recordDetail{
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
