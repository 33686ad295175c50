package sink

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// letter is a dead letter to keep, or with version 0 one to clear.
type letter struct {
	id      string
	reason  string
	version uint64
}

func (w *Worker) dlqName() string {
	return change.TopicDeadLetters + change.EscapeName(w.opts.SinkName)
}

// DeadLetterKey is the key of a document's record in the topic _dlq.SINK.
func DeadLetterKey(view, id string) change.Key {
	return change.AppendKeyPart(change.AppendKeyPart(nil, change.Text(view), false), change.Text(id), false)
}

// loadDead reads once which documents of the view are in the dead letters.
func (w *Worker) loadDead() error {
	if w.dead != nil {
		return nil
	}
	w.dead = map[string]uint64{}
	topic, ok := w.opts.Log.Topic(w.dlqName())
	if !ok {
		return nil
	}
	if err := w.readDead(topic.ID); err != nil {
		w.dead = nil
		return logFault("read the dead letters", err)
	}
	w.count(func(s *SinkStats) { s.DeadLetters = int64(len(w.dead)) })
	return nil
}

// readDead reads the topic of dead letters; the last record of a document counts.
func (w *Worker) readDead(topic eventlog.TopicID) error {
	r, err := w.opts.Log.ReadPartition(topic, 0, w.opts.Log.StartOffsets(topic)[0])
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		parts, err := change.DecodeKey(rec.Key)
		if err != nil || len(parts) != 2 || parts[0].TextValue() != w.opts.View.Name {
			continue
		}
		id := parts[1].TextValue()
		var value struct {
			Version uint64 `json:"version"`
		}
		switch {
		case rec.Value == nil:
			delete(w.dead, id)
		case json.Unmarshal(rec.Value, &value) == nil:
			w.dead[id] = value.Version
		}
	}
}

// bury appends dead letters, durably, before the cursor may pass them.
func (s *session) bury(ctx context.Context, letters []letter) error {
	if len(letters) == 0 {
		return nil
	}
	var topic eventlog.Topic
	err := s.retrying(ctx, func() (err error) {
		topic, err = s.opts.Log.EnsureTopic(eventlog.TopicSpec{Name: s.dlqName(), Partitions: 1, Cleanup: eventlog.CleanupCompact})
		if err != nil && !errors.Is(err, eventlog.ErrFull) {
			return logFault("make the topic of dead letters", err)
		}
		return err
	})
	if err != nil {
		return err
	}
	tx := &eventlog.Tx{Kind: eventlog.TxChunk, CommitTime: time.Now().UnixMicro()}
	for i, l := range letters {
		r := eventlog.Record{Topic: topic.ID, Seq: uint32(i), Op: uint8(change.OpInsert), Key: DeadLetterKey(s.opts.View.Name, l.id)}
		if l.version == 0 {
			r.Op = uint8(change.OpDelete)
		} else {
			r.Value = appendLetter(nil, l)
		}
		tx.Records = append(tx.Records, r)
	}
	err = s.retrying(ctx, func() error {
		err := s.opts.Log.Append(ctx, []*eventlog.Tx{tx})
		if err != nil && !errors.Is(err, eventlog.ErrFull) && ctx.Err() == nil {
			return logFault("append dead letters", err)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, l := range letters {
		if l.version == 0 {
			delete(s.dead, l.id)
			continue
		}
		if _, known := s.dead[l.id]; !known {
			s.log.Warn("the target rejected a document; it is in the dead letters", "reason", l.reason)
		}
		s.dead[l.id] = l.version
	}
	s.count(func(st *SinkStats) { st.DeadLetters = int64(len(s.dead)) })
	return nil
}

// appendLetter writes {"reason":…,"version":…}.
func appendLetter(b []byte, l letter) []byte {
	b = append(b, `{"reason":`...)
	b = change.AppendJSONString(b, l.reason)
	b = append(b, `,"version":`...)
	b = strconv.AppendUint(b, l.version, 10)
	return append(b, '}')
}
