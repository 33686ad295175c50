package crashlab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

// operation is something that a log's user or its daemon does. Its error ends
// the session if it is the log's end, and is the fault's else.
type operation struct {
	name   string
	weight int // how often it is chosen in a random life
	run    func(l *life) error
	writes bool // it surely writes an entry, before which what was refused is cut off durably
}

// operations is all that a life does. One added here must have a place in the
// mixed workload of the sweep too.
var operations []operation

func init() { // not a literal: look's opening refers to it
	operations = []operation{
		{"append", 30, (*life).append, true},
		{"stream", 12, (*life).stream, false},
		{"topic", 2, (*life).ensureTopic, false},
		{"mark", 4, (*life).saveMark, true},
		{"roll", 1, func(l *life) error { return l.log.Roll(context.Background()) }, false},
		{"seal", 2, func(l *life) error { return l.log.Seal(context.Background(), int64(l.rng.IntN(8000))) }, false},
		{"seal all", 2, func(l *life) error { return l.log.SealAll(context.Background()) }, false},
		{"compact", 3, (*life).compact, false},
		{"expire", 1, (*life).expire, false},
		{"cursor", 2, (*life).moveCursor, true},
		{"pin", 2, (*life).movePin, false},
		{"skip", 1, (*life).skip, true},
		{"check", 1, (*life).check, false},
		{"look", 1, (*life).look, false},
	}
}

func operationNamed(name string) operation {
	for _, op := range operations {
		if op.name == name {
			return op
		}
	}
	panic("crashlab: no operation " + name)
}

// work does random things until the fault has ended the session, or long enough.
func (l *life) work() {
	total := 0
	for _, op := range operations {
		total += op.weight
	}
	for range 5 + l.rng.IntN(60) {
		op := operationNamed("topic")
		if len(l.model.topic) > 0 {
			n, i := l.rng.IntN(total), 0
			for ; n >= operations[i].weight; i++ {
				n -= operations[i].weight
			}
			op = operations[i]
		}
		if !l.do(op) {
			return
		}
	}
	if l.rng.IntN(2) == 0 {
		l.log.Close() // its error is the fault's
	}
}

// do does one operation; false if the session is over.
func (l *life) do(op operation) bool {
	err := op.run(l)
	if err == nil && op.writes {
		l.doubtful = nil
	}
	switch {
	case l.strike.crashed != nil:
		return false
	case errors.Is(err, seglog.ErrSync):
		l.staysDead(err)
		return false
	case errors.Is(err, eventlog.ErrCorrupt):
		l.wrong("%s: damage in a healthy log: %v", op.name, err)
	case err != nil && !l.strike.explains(err):
		l.wrong("%s: %v", op.name, err)
	}
	return !l.faults.Any()
}

// staysDead checks that after a failed sync a log only answers that.
func (l *life) staysDead(first error) {
	ctx := context.Background()
	_, topicErr := l.log.EnsureTopic(eventlog.TopicSpec{Name: "never"})
	for what, err := range map[string]error{
		"Append":         l.log.Append(ctx, []*eventlog.Tx{{Kind: eventlog.TxTick, ID: "never"}}),
		"EnsureTopic":    topicErr,
		"SaveCheckpoint": l.log.SaveCheckpoint("never", []byte("x")),
		"Skip":           l.log.Skip(ctx, 1),
		"Roll":           l.log.Roll(ctx),
		"Seal":           l.log.Seal(ctx, 0),
		"Expire":         l.log.Expire(),
		"SetCursor":      l.log.SetCursor(cursorName, nil),
	} {
		if !errors.Is(err, seglog.ErrSync) {
			l.wrong("%s = %v after %v", what, err, first)
		}
	}
}

// topicKinds are made one after the other.
var topicKinds = []eventlog.TopicSpec{
	{Name: "s.p.rows", Cleanup: eventlog.CleanupCompact, TombstoneRetention: time.Minute},
	{Name: "s.p.all", Cleanup: eventlog.CleanupNone},
	{Name: viewPrefix, Cleanup: eventlog.CleanupCompact, TombstoneRetention: time.Minute}, // only for outputs
	{Name: "s.p.recent", Cleanup: eventlog.CleanupDelete, Retention: 3 * time.Minute, RetentionBytes: 3000},
}

const viewPrefix = "view."

func isView(t eventlog.Topic) bool { return strings.HasPrefix(t.Spec.Name, viewPrefix) }

func (l *life) ensureTopic() error {
	n := len(l.model.topic)
	spec := topicKinds[n%len(topicKinds)]
	spec.Name = fmt.Sprint(spec.Name, n)
	spec.Partitions, spec.Compression = 1+l.rng.IntN(3), []string{"none", "snappy", "lz4", "zstd"}[l.rng.IntN(4)]
	t, err := l.log.EnsureTopic(spec)
	if made, ok := l.log.Topic(spec.Name); ok && errors.Is(err, eventlog.ErrPartitionCount) {
		t, err = made, nil // made in a session that ended before its answer
	}
	if err == nil {
		l.model.topic = append(l.model.topic, t)
	}
	return err
}

func (l *life) saveMark() error {
	l.model.next++
	consumer, v := fmt.Sprint("c", l.rng.IntN(3)), fmt.Append(nil, l.model.next)
	err := l.log.SaveCheckpoint(consumer, v)
	switch {
	case err == nil:
		l.model.marks[consumer] = [][]byte{v}
	case l.dead(err):
		if len(l.model.marks[consumer]) == 0 {
			l.model.marks[consumer] = [][]byte{nil}
		}
		l.model.marks[consumer] = append(l.model.marks[consumer], v)
	}
	return err
}

// skip moves the next CSN ahead.
func (l *life) skip() error {
	to := l.log.Frontier() + eventlog.CSN(l.rng.IntN(1000))
	err := l.log.Skip(context.Background(), to)
	if err == nil {
		l.model.skipped = max(l.model.skipped, to)
	}
	return err
}

// look opens the log beside itself, for reading only, and compares what that shows.
func (l *life) look() error {
	opts := l.opts
	opts.FS = l.fs
	ro, err := seglog.OpenReadOnly("log", opts)
	if err != nil {
		return err
	}
	var lines []string
	f, err := l.model.compare(ro, collect(&lines))
	if err != nil {
		return err
	}
	for _, line := range lines {
		l.report("read-only: %s", line)
	}
	l.faults.add(f)
	return nil
}

// append appends a group and notes its fate.
func (l *life) append() error {
	group := make([]*eventlog.Tx, 1+l.rng.IntN(3))
	for i := range group {
		group[i] = l.transaction()
	}
	err := l.log.Append(context.Background(), group)
	f := acknowledged
	if err != nil {
		f = refused
		if l.dead(err) {
			f = unknown
		}
	}
	for _, tx := range group {
		l.model.add(tx, f)
		if f == refused {
			l.doubtful = append(l.doubtful, tx.ID)
		}
	}
	if err != nil {
		clear(l.tables) // the source made none of it
	}
	return err
}

func (l *life) transaction() *eventlog.Tx {
	l.model.next++
	id := fmt.Sprint("t", l.model.next)
	tx := &eventlog.Tx{
		ID: id, Kind: eventlog.TxKind(l.rng.IntN(4)), CommitTime: l.now.UnixMicro() + int64(l.rng.IntN(1000)),
		Note: make([]byte, l.rng.IntN(3)),
	}
	switch tx.Kind {
	case eventlog.TxSource, eventlog.TxTick:
		tx.Source, tx.Position = fmt.Sprint("s", l.rng.IntN(2)), []byte(id)
	case eventlog.TxOutput:
		if tx.CSN = l.log.Frontier(); tx.CSN == 0 {
			tx.Kind = eventlog.TxChunk // nothing to derive from yet
		}
	}
	if tx.Kind == eventlog.TxTick || len(l.model.topic) == 0 {
		return tx
	}
	tx.Records = l.records(id, l.rng.IntN(6), 0, tx.Kind == eventlog.TxOutput, false)
	return tx
}

// records makes about n records of a transaction, from seq on.
func (l *life) records(id string, n int, seq uint32, output, streamed bool) (out []eventlog.Record) {
	var topics []eventlog.Topic
	for _, t := range l.model.topic {
		if isView(t) == output {
			topics = append(topics, t)
		}
	}
	for at := seq; len(out) < n && len(topics) > 0; at = seq + uint32(len(out)) {
		switch t := topics[l.rng.IntN(len(topics))]; {
		case !isCompacted(t):
			out = append(out, l.record(t.ID, id, at))
		case output || streamed:
			out = append(out, l.whole(t.ID, id, at, !output))
		default:
			out = append(out, l.change(t.ID, id, at)...)
		}
	}
	return out
}

func (l *life) record(topic eventlog.TopicID, id string, i uint32) eventlog.Record {
	r := eventlog.Record{
		Topic: topic, Seq: i, Op: 1,
		Key: []byte(l.key()), Value: fmt.Appendf(nil, "%s/%d/%*d", id, i, 1+l.rng.IntN(l.values), i),
	}
	switch l.rng.IntN(12) {
	case 0:
		r.Value = nil
	case 1:
		r.Op, r.Partition, r.Key = opEvery, eventlog.EveryPartition, []byte(eventlog.TruncateKey)
	}
	return r
}

// opEvery is the op of the records that the lab puts into every partition.
const opEvery = 4
