package logtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailwater/tailwater/eventlog"
)

// Model does random operations on a log and on maps, restarts and power losses
// between them, and compares the two. The seed of a failure is printed.
func Model(t *testing.T, b Backend) {
	rapid.Check(t, func(r *rapid.T) {
		m := &modelLog{
			outer: t, b: b, log: b.Open(t), newest: map[eventlog.TopicID]map[string]*eventlog.Record{},
			marks: map[string]eventlog.Checkpoint{}, sources: map[string]*eventlog.Tx{},
		}
		defer func() { m.log.Close() }()
		m.topic(r)
		actions := map[string]func(*rapid.T){
			"append": m.append, "append more": m.append, "outputs": m.outputs, "tick": m.tick, "mark": m.mark, "topic": m.topic,
			"skip": m.skip, "follow": m.follow, "read after": m.readAfter, "read from": m.readFrom,
			"restart": func(r *rapid.T) { m.again(r, b.Reopen) },
			"":        m.states,
		}
		if b.Settle != nil {
			actions["settle"] = func(*rapid.T) { b.Settle(t, m.log) }
		}
		if b.Crash != nil {
			actions["power loss"] = func(r *rapid.T) { m.again(r, b.Crash) }
		}
		r.Repeat(actions)
		m.everything(r)
	})
}

// modelLog is a log beside what it must hold.
type modelLog struct {
	outer   *testing.T
	b       Backend
	log     eventlog.Log
	topics  []eventlog.Topic
	txs     []eventlog.Tx // as appended, and filled in by the log
	newest  map[eventlog.TopicID]map[string]*eventlog.Record
	marks   map[string]eventlog.Checkpoint
	sources map[string]*eventlog.Tx
	last    eventlog.CSN

	reader eventlog.Reader // of the follower
	at     int             // transactions that it has seen
}

func (m *modelLog) topic(r *rapid.T) {
	spec := eventlog.TopicSpec{
		Name: fmt.Sprint("s.p.t", rapid.IntRange(0, 4).Draw(r, "topic")), Partitions: 2, Cleanup: eventlog.CleanupNone,
		Compression: rapid.SampledFrom([]string{"none", "snappy", "lz4", "zstd"}).Draw(r, "compression"),
	}
	t, err := m.log.EnsureTopic(spec)
	if err != nil {
		r.Fatalf("EnsureTopic(%+v) = %v", spec, err)
	}
	if i := slices.IndexFunc(m.topics, func(o eventlog.Topic) bool { return o.Spec.Name == spec.Name }); i < 0 {
		m.topics = append(m.topics, t)
		m.newest[t.ID] = map[string]*eventlog.Record{}
	} else if m.topics[i].ID != t.ID {
		r.Fatalf("topic %s has ids %d and %d", spec.Name, m.topics[i].ID, t.ID)
	}
}

func (m *modelLog) records(r *rapid.T, least int) []eventlog.Record {
	n := rapid.IntRange(least, 6).Draw(r, "records")
	out := make([]eventlog.Record, n)
	for i := range out {
		out[i] = eventlog.Record{
			Topic: rapid.SampledFrom(m.topics).Draw(r, "topic").ID, Seq: uint32(i), Op: uint8(rapid.IntRange(0, 3).Draw(r, "op")),
			Key:   rapid.SliceOfN(rapid.ByteRange('a', 'c'), 1, 3).Draw(r, "key"),
			Value: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(r, "value"),
		}
		if out[i].Op == 3 {
			out[i].Value = nil
		}
	}
	return out
}

func (m *modelLog) append(r *rapid.T) {
	group := make([]*eventlog.Tx, rapid.IntRange(1, 3).Draw(r, "group"))
	for i := range group {
		n := len(m.txs) + i
		group[i] = &eventlog.Tx{Kind: eventlog.TxSource, Source: rapid.SampledFrom([]string{"x", "y"}).Draw(r, "source"), Position: fmt.Append(nil, n), ID: fmt.Sprint(n), CommitTime: int64(n), Records: m.records(r, 0)}
	}
	m.add(r, group)
}

func (m *modelLog) outputs(r *rapid.T) {
	if m.last == 0 {
		r.Skip("nothing to derive from")
	}
	m.add(r, []*eventlog.Tx{{Kind: eventlog.TxOutput, CSN: m.last, ID: fmt.Sprint(len(m.txs)), Records: m.records(r, 1)}})
}

func (m *modelLog) tick(r *rapid.T) {
	m.add(r, []*eventlog.Tx{{Kind: eventlog.TxTick, Source: "x", Position: []byte("tick"), ID: fmt.Sprint(len(m.txs))}})
}

// add appends a group and notes what it must be from now on.
func (m *modelLog) add(r *rapid.T, group []*eventlog.Tx) {
	ends := map[eventlog.TopicID][]eventlog.Offset{}
	for _, t := range m.topics {
		ends[t.ID] = m.log.EndOffsets(t.ID)
	}
	if err := m.log.Append(context.Background(), group); err != nil {
		r.Fatalf("Append = %v", err)
	}
	for _, tx := range group {
		if tx.Kind != eventlog.TxOutput {
			if tx.CSN <= m.last {
				r.Fatalf("CSN %d behind %d", tx.CSN, m.last)
			}
			m.last = tx.CSN
			m.sources[tx.Source] = tx
		}
		m.txs = append(m.txs, cloneTx(tx))
		records := m.txs[len(m.txs)-1].Records
		for i := range records {
			rec := &records[i]
			if next := &ends[rec.Topic][rec.Partition]; rec.Offset != *next {
				r.Fatalf("record has offset %d, %d was due", rec.Offset, *next)
			} else {
				*next++
			}
			m.newest[rec.Topic][string(rec.Key)] = rec
		}
	}
}

func (m *modelLog) mark(r *rapid.T) {
	consumer := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "consumer")
	value := eventlog.Checkpoint(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(r, "mark"))
	if rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
		value = nil
	}
	if err := m.log.SaveCheckpoint(consumer, value); err != nil {
		r.Fatalf("SaveCheckpoint = %v", err)
	}
	if delete(m.marks, consumer); value != nil {
		m.marks[consumer] = value
	}
}

func (m *modelLog) skip(r *rapid.T) {
	to := m.last + eventlog.CSN(rapid.IntRange(0, 1000).Draw(r, "skip"))
	if err := m.log.Skip(context.Background(), to); err != nil {
		r.Fatalf("Skip = %v", err)
	}
	if m.last = m.log.Frontier(); m.last < to {
		r.Fatalf("frontier %d after Skip to %d", m.last, to)
	}
}

// again opens the log anew; the follower goes on where it was.
func (m *modelLog) again(r *rapid.T, open func(*testing.T, eventlog.Log) eventlog.Log) {
	m.log = open(m.outer, m.log)
	m.states(r)
	if m.reader == nil {
		return
	}
	m.reader.Close()
	m.reader = nil
	seen := m.at
	m.at = 0
	m.followTo(r, seen)
}

func (m *modelLog) follow(r *rapid.T) {
	m.followTo(r, rapid.IntRange(m.at, len(m.txs)).Draw(r, "follow to"))
}

// followTo lets the follower see the transactions up to the nth.
func (m *modelLog) followTo(r *rapid.T, n int) {
	if m.reader == nil {
		var err error
		if m.reader, err = m.log.Read(eventlog.ReadSpec{Outputs: true}); err != nil {
			r.Fatalf("Read = %v", err)
		}
	}
	for m.at < n {
		tx, err := m.reader.Next()
		if err != nil || tx == nil {
			r.Fatalf("Next = %+v, %v where transaction %d was due", tx, err, m.at)
		}
		if tx.ID == "" {
			continue // a tick of Skip
		}
		m.same(r, tx, m.at)
		m.at++
	}
}

func (m *modelLog) same(r *rapid.T, got *eventlog.Tx, i int) {
	if g, w := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", m.txs[i]); g != w {
		r.Fatalf("transaction %d is\n%s, want\n%s", i, g, w)
	}
}

// readAfter reads from the middle on.
func (m *modelLog) readAfter(r *rapid.T) {
	if len(m.txs) == 0 {
		r.Skip("nothing to read")
	}
	after := rapid.SampledFrom(m.txs).Draw(r, "after").CSN
	got := m.read(r, eventlog.ReadSpec{After: after, Outputs: true})
	for i, tx := range m.txs {
		if tx.CSN <= after {
			continue
		}
		if len(got) == 0 {
			r.Fatalf("after CSN %d transaction %d is missing", after, i)
		}
		m.same(r, &got[0], i)
		got = got[1:]
	}
	if len(got) > 0 {
		r.Fatalf("after CSN %d there are %d transactions too many", after, len(got))
	}
}

// readFrom reads one partition from an offset on.
func (m *modelLog) readFrom(r *rapid.T) {
	t := rapid.SampledFrom(m.topics).Draw(r, "topic")
	p := int32(rapid.IntRange(0, t.Spec.Partitions-1).Draw(r, "partition"))
	m.partition(r, t, p, eventlog.Offset(rapid.IntRange(0, int(m.log.EndOffsets(t.ID)[p])).Draw(r, "from")))
}

func (m *modelLog) partition(r *rapid.T, t eventlog.Topic, p int32, from eventlog.Offset) {
	pr, err := m.log.ReadPartition(t.ID, p, from)
	if err != nil {
		r.Fatalf("ReadPartition = %v", err)
	}
	defer pr.Close()
	for _, tx := range m.txs {
		for _, want := range tx.Records {
			if want.Topic != t.ID || want.Partition != p || want.Offset < from {
				continue
			}
			got, ok, err := pr.Next()
			if err != nil || !ok || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				r.Fatalf("%s/%d from %d: %+v, %v, %v; want %+v", t.Spec.Name, p, from, got, ok, err, want)
			}
		}
	}
	if got, ok, err := pr.Next(); ok || err != nil {
		r.Fatalf("%s/%d behind the end: %+v, %v", t.Spec.Name, p, got, err)
	}
}

func (m *modelLog) read(r *rapid.T, spec eventlog.ReadSpec) (out []eventlog.Tx) {
	rd, err := m.log.Read(spec)
	if err != nil {
		r.Fatalf("Read(%+v) = %v", spec, err)
	}
	defer rd.Close()
	for {
		tx, err := rd.Next()
		if err != nil {
			r.Fatalf("Next = %v", err)
		}
		if tx == nil {
			return out
		}
		if tx.ID != "" {
			out = append(out, cloneTx(tx))
		}
	}
}

// states compares what costs little.
func (m *modelLog) states(r *rapid.T) {
	if f := m.log.Frontier(); f != m.last {
		r.Fatalf("frontier %d, want %d", f, m.last)
	}
	for source, tx := range m.sources {
		if s, ok := m.log.SourceState(source); !ok || !bytes.Equal(s.Position, tx.Position) || s.CSN != tx.CSN {
			r.Fatalf("source %s is at %+v, want %q with CSN %d", source, s, tx.Position, tx.CSN)
		}
	}
	marks, err := m.log.Checkpoints()
	if err != nil || !maps.EqualFunc(marks, m.marks, func(a, b eventlog.Checkpoint) bool { return bytes.Equal(a, b) }) {
		r.Fatalf("marks %q, %v; want %q", marks, err, m.marks)
	}
}

// everything compares all that the log shows.
func (m *modelLog) everything(r *rapid.T) {
	m.followTo(r, len(m.txs))
	for _, t := range m.topics {
		for p := range int32(t.Spec.Partitions) {
			m.partition(r, t, p, 0)
		}
		got := map[string]eventlog.CSN{}
		err := m.log.NewestByKey(t.ID, func(key []byte, csn eventlog.CSN, tombstone bool) error {
			if want := m.newest[t.ID][string(key)]; want == nil || want.CSN != csn || tombstone != (want.Value == nil) {
				r.Fatalf("%s: key %q has CSN %d, tombstone %v; want %+v", t.Spec.Name, key, csn, tombstone, want)
			}
			got[string(key)] = csn
			return nil
		})
		if err != nil || len(got) != len(m.newest[t.ID]) {
			r.Fatalf("%s: %d keys, want %d; %v", t.Spec.Name, len(got), len(m.newest[t.ID]), err)
		}
	}
}
