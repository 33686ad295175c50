package connectors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// LogHistory answers a source's questions from the log.
type LogHistory struct {
	Log    eventlog.Log
	Source string
}

var _ History = (*LogHistory)(nil)

func (h *LogHistory) LogID() [16]byte { return h.Log.ID() }

// Last returns the last durable position of the source; none after Forget.
func (h *LogHistory) Last() (change.Position, bool) {
	st, ok := h.Log.SourceState(h.Source)
	if forgotten, err := h.forgotten(); !ok || err != nil || st.CSN <= forgotten {
		return change.Position{}, false
	}
	pos, err := change.DecodePosition(st.Position)
	return pos, err == nil && !pos.IsZero()
}

// Forget makes the source start anew: what the log has of it stays, but its
// position counts no more and every table is read again, with a sweep at the end.
func (h *LogHistory) Forget() error {
	if err := errors.Join(h.SetIntent(nil), h.SetPaused(nil)); err != nil {
		return err
	}
	return h.Log.SaveCheckpoint("forgotten/"+h.Source, binary.AppendUvarint(nil, uint64(h.Log.Frontier())))
}

// forgotten returns the CSN up to which the source's past was given up; 0 if it was not.
func (h *LogHistory) forgotten() (eventlog.CSN, error) {
	c, err := h.Log.Checkpoint("forgotten/" + h.Source)
	if err != nil || c == nil {
		return 0, err
	}
	csn, n := binary.Uvarint(c)
	if n != len(c) {
		return 0, fmt.Errorf("the checkpoint forgotten/%s is no number", h.Source)
	}
	return eventlog.CSN(csn), nil
}

// Marks returns the newest marks of each run, in log order. Runs from before
// Forget come as stopped.
func (h *LogHistory) Marks() ([]*change.SnapshotMark, error) {
	marks, err := h.marks()
	list := make([]*change.SnapshotMark, len(marks))
	for i := range marks {
		list[i] = marks[i].mark
	}
	return list, err
}

type markAt struct {
	mark *change.SnapshotMark
	csn  eventlog.CSN
}

func (h *LogHistory) marks() ([]markAt, error) {
	var list []markAt
	at := map[string]int{}
	forgotten, err := h.forgotten()
	if err != nil {
		return nil, err
	}
	err = readControl(h.Log, change.TopicSnapshots+h.Source, func(r eventlog.Record) error {
		if !change.IsSnapshotMark(r.Key) {
			return nil
		}
		if i, ok := at[string(r.Key)]; ok {
			list[i].mark = nil
			delete(at, string(r.Key))
		}
		if r.Value == nil {
			return nil
		}
		m, err := change.DecodeSnapshotMark(append([]byte(nil), r.Key...), append([]byte(nil), r.Value...))
		if err != nil {
			return fmt.Errorf("offset %d of %s%s: %w", r.Offset, change.TopicSnapshots, h.Source, err)
		}
		if r.CSN <= forgotten && m.State != change.SnapshotBegun {
			m.State = change.SnapshotStopped
		}
		at[string(r.Key)] = len(list)
		list = append(list, markAt{m, r.CSN})
		return nil
	})
	kept := list[:0]
	for _, m := range list {
		if m.mark != nil {
			kept = append(kept, m)
		}
	}
	return stopForgotten(kept, forgotten), err
}

// stopForgotten ends the runs that began before the source was forgotten.
func stopForgotten(marks []markAt, forgotten eventlog.CSN) []markAt {
	for _, m := range marks {
		if m.csn <= forgotten && m.mark.State == change.SnapshotBegun {
			stopped := *m.mark
			stopped.State = change.SnapshotStopped
			marks = append(marks, markAt{&stopped, m.csn})
		}
	}
	return marks
}

// Recent calls fn for the source's transactions since the beginning of the
// oldest unfinished snapshot run; all that the journal still has if there is none.
// A large one comes in several pieces.
func (h *LogHistory) Recent(fn func(r RecentTx) error) error {
	marks, err := h.marks()
	if err != nil {
		return err
	}
	after := h.Log.Stats().OldestCSN
	if begun := oldestUnfinished(marks); begun != 0 {
		after = begun
	}
	if after > 0 {
		after--
	}
	names := map[eventlog.TopicID]string{}
	for _, t := range h.Log.Topics() {
		names[t.ID] = t.Spec.Name
	}
	rd, err := h.Log.Read(eventlog.ReadSpec{After: after, Pieces: true})
	if errors.Is(err, eventlog.ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrBeyondRefill, err)
	}
	if err != nil {
		return fmt.Errorf("read the recent transactions of source %q: %w", h.Source, err)
	}
	defer rd.Close()
	for {
		tx, err := rd.Next()
		if errors.Is(err, eventlog.ErrCorrupt) {
			return fmt.Errorf("%w: %w", ErrBeyondRefill, err)
		}
		if err != nil || tx == nil {
			return err
		}
		if tx.Source != h.Source {
			continue
		}
		r, err := recentTx(tx, names)
		if err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
	}
}

func oldestUnfinished(marks []markAt) eventlog.CSN {
	type run struct {
		topic string
		run   uint64
	}
	ended := map[run]bool{}
	for _, m := range marks {
		if m.mark.State == change.SnapshotDone || m.mark.State == change.SnapshotStopped {
			ended[run{m.mark.Topic, m.mark.Run}] = true
		}
	}
	var oldest eventlog.CSN
	for _, m := range marks {
		if m.mark.State == change.SnapshotBegun && !ended[run{m.mark.Topic, m.mark.Run}] && (oldest == 0 || m.csn < oldest) {
			oldest = m.csn
		}
	}
	return oldest
}

func recentTx(tx *eventlog.Tx, names map[eventlog.TopicID]string) (RecentTx, error) {
	pos, err := change.DecodePosition(tx.Position)
	if err != nil {
		return RecentTx{}, fmt.Errorf("transaction %d: %w", tx.CSN, err)
	}
	r := RecentTx{Tx: tx.ID, Pos: pos, CSN: uint64(tx.CSN)}
	switch tx.Kind {
	case eventlog.TxChunk:
		r.Kind = change.Chunk
	case eventlog.TxTick:
		r.Kind = change.Tick
	}
	for i := range tx.Records {
		rec := &tx.Records[i]
		name := names[rec.Topic]
		if name == "" || name[0] == '_' {
			continue
		}
		r.Events = append(r.Events, RecentEvent{Topic: name, Op: change.Op(rec.Op), Flags: change.Flags(rec.Flags), Key: append([]byte(nil), rec.Key...)})
	}
	return r, nil
}

// Intent returns the note of SetIntent; nil if there is none.
func (h *LogHistory) Intent() ([]byte, error) { return h.Log.Checkpoint("intent/" + h.Source) }

// SetIntent durably keeps a note.
func (h *LogHistory) SetIntent(note []byte) error {
	return h.Log.SaveCheckpoint("intent/"+h.Source, note)
}

// Schemas returns the newest schema of each topic of the source.
func (h *LogHistory) Schemas() (map[string]*change.Schema, error) {
	newest := map[string]*change.Schema{}
	prefix := change.EscapeName(h.Source) + "."
	err := readSchemas(h.Log, func(s *change.Schema, _ []byte) {
		if len(s.Topic) > len(prefix) && s.Topic[:len(prefix)] == prefix {
			newest[s.Topic] = s
		}
	})
	return newest, err
}

// ReadNewest calls fn for each key of the topic with its newest row, unchanged
// columns filled from older records.
func (h *LogHistory) ReadNewest(topic string, fn func(key change.Key, row change.Row, partial bool) error) error {
	t, ok := h.Log.Topic(topic)
	if !ok {
		return nil
	}
	schemas := map[uint32]*change.Schema{}
	err := readSchemas(h.Log, func(s *change.Schema, _ []byte) {
		if s.Topic == topic {
			schemas[s.ID] = s
		}
	})
	if err != nil {
		return err
	}
	for p := range int32(t.Spec.Partitions) {
		rows, err := newestRows(h.Log, t, p, schemas)
		if err != nil {
			return fmt.Errorf("read %s partition %d: %w", topic, p, err)
		}
		for key, row := range rows {
			if err := fn(change.Key(key), row, row.Partial()); err != nil {
				return err
			}
		}
	}
	return nil
}

func newestRows(log eventlog.Log, t eventlog.Topic, partition int32, schemas map[uint32]*change.Schema) (map[string]change.Row, error) {
	rd, err := log.ReadPartition(t.ID, partition, log.StartOffsets(t.ID)[partition])
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	rows, written := map[string]change.Row{}, map[string]eventlog.CSN{}
	for {
		r, ok, err := rd.Next()
		if err != nil || !ok {
			return rows, err
		}
		if kind, control := change.Key(r.Key).Control(); control {
			switch kind {
			case change.ControlTruncate:
				clear(rows)
			case change.ControlSweep:
				since, err := change.DecodeSweep(r.Value)
				if err != nil {
					return nil, fmt.Errorf("offset %d: %w", r.Offset, err)
				}
				maps.DeleteFunc(rows, func(key string, _ change.Row) bool { return written[key] < eventlog.CSN(since) })
			}
			continue
		}
		if r.Value == nil {
			delete(rows, string(r.Key))
			continue
		}
		written[string(r.Key)] = r.CSN
		_, after, err := change.DecodeRecordValue(r.Value)
		if err != nil {
			return nil, fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		s := schemas[r.Schema]
		if s == nil {
			return nil, fmt.Errorf("offset %d: schema %d of %s is not in %s", r.Offset, r.Schema, t.Spec.Name, change.TopicSchemas)
		}
		row := change.Row{Schema: s, Data: append([]byte(nil), after...)}
		if old, ok := rows[string(r.Key)]; ok && change.Flags(r.Flags)&change.FlagPartial != 0 {
			if row.Data, err = change.Merge(row, old); err != nil {
				return nil, fmt.Errorf("offset %d: %w", r.Offset, err)
			}
		}
		rows[string(r.Key)] = row
	}
}
