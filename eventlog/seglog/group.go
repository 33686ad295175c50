package seglog

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// groupVersion is the first byte of a group's payload:
//
//	version u8 = 1
//	uvarint topics, each a topic         made or changed by this entry
//	uvarint marks, each string consumer, u8 present, bytes
//	uvarint first ordinal
//	uvarint transactions, each a row
//	uvarint batches, each uvarint topic, partition, length, and the batch
//
// A row is u8 kind, uvarints CSN and since, varints commit and ingest time (µs),
// string source, bytes position, string id, bytes note, and uvarint runs, each
// uvarint index of a batch and uvarint count: the transaction's next records in it.
const groupVersion = 1

// run names a transaction's next count records of a batch.
type run struct{ batch, count uint32 }

// txRow is a transaction without its records.
type txRow struct {
	tx   eventlog.Tx
	runs int // where its runs begin in the group's
}

type batchRef struct {
	topic     eventlog.TopicID
	partition int32
	data      []byte
}

type mark struct {
	consumer string
	value    eventlog.Checkpoint // nil: removed
}

// group is a decoded group entry; its bytes are shared with the payload.
type group struct {
	topics  []eventlog.Topic
	marks   []mark
	first   uint64 // ordinal of the first transaction
	rows    []txRow
	runs    []run
	batches []batchRef
	stream  *adoption // not nil: the one transaction is in a streamed file
}

func (g *group) end() uint64 { return g.first + uint64(len(g.rows)) }

// appendTxHead appends a row up to its runs.
func appendTxHead(dst []byte, tx *eventlog.Tx) []byte {
	dst = append(dst, byte(tx.Kind))
	dst = binary.AppendUvarint(dst, uint64(tx.CSN))
	dst = binary.AppendUvarint(dst, uint64(tx.Since))
	dst = binary.AppendVarint(dst, tx.CommitTime)
	dst = binary.AppendVarint(dst, tx.IngestTime)
	dst = appendString(dst, tx.Source)
	dst = appendBytes(dst, tx.Position)
	dst = appendString(dst, tx.ID)
	return appendBytes(dst, tx.Note)
}

// txHead reads a row up to its runs. source and id are those of the row before,
// whose memory is shared where they are the same.
func (c *cursor) txHead(tx *eventlog.Tx, source, id string) {
	kind := c.byte()
	if kind > byte(eventlog.TxOutput) {
		c.fail()
	}
	*tx = eventlog.Tx{
		Kind: eventlog.TxKind(kind), CSN: c.csn(), Since: c.csn(), CommitTime: c.varint(), IngestTime: c.varint(),
		Source: c.stringAs(source), Position: c.bytes(), ID: c.stringAs(id), Note: c.bytes(),
	}
}

func appendMark(dst []byte, m mark) []byte {
	dst = appendString(dst, m.consumer)
	if m.value == nil {
		return appendBytes(append(dst, 0), nil)
	}
	return appendBytes(append(dst, 1), m.value)
}

func (c *cursor) mark() mark {
	m := mark{consumer: c.string()}
	present, value := c.byte(), c.bytes()
	if present > 1 {
		c.fail()
	}
	if present == 1 {
		m.value = append(eventlog.Checkpoint{}, value...)
	}
	return m
}

// decodeGroup reads a group's payload.
func decodeGroup(payload []byte) (*group, error) {
	g := &group{}
	if err := g.decode(payload); err != nil {
		return nil, err
	}
	return g, nil
}

// keepRows is how many rows a group keeps memory for.
const keepRows = 4096

// decode reads a payload into g, whose memory it uses again.
func (g *group) decode(payload []byte) error {
	c := &cursor{b: payload}
	if v := c.byte(); v != groupVersion {
		return fmt.Errorf("group of version %d; this program reads %d", v, groupVersion)
	}
	if cap(g.rows) > keepRows {
		*g = group{}
	}
	g.topics, g.marks, g.runs = g.topics[:0], g.marks[:0], g.runs[:0]
	for range c.count(8) {
		g.topics = append(g.topics, c.topic())
	}
	for range c.count(3) {
		g.marks = append(g.marks, c.mark())
	}
	g.first = c.uvarint()
	n := c.count(10)
	g.rows = slices.Grow(g.rows[:0], n)[:n]
	var source, id string
	for i := range g.rows {
		r := &g.rows[i]
		c.txHead(&r.tx, source, id)
		source, id = r.tx.Source, r.tx.ID
		r.runs = len(g.runs)
		for range c.count(2) {
			g.runs = append(g.runs, run{c.uint32(), c.uint32()})
		}
	}
	n = c.count(3)
	g.batches = slices.Grow(g.batches[:0], n)[:n]
	for i := range g.batches {
		g.batches[i] = batchRef{eventlog.TopicID(c.uint32()), int32(c.uint32()), c.bytes()}
	}
	if c.bad || len(c.b) != 0 || g.first > 1<<62 {
		return fmt.Errorf("group: %w", errShort)
	}
	return g.checkRuns()
}

func (g *group) checkRuns() error {
	if len(g.runs) == 0 && len(g.batches) > 0 {
		return fmt.Errorf("group: %d batches of no transaction", len(g.batches))
	}
	for i := range g.rows {
		for _, r := range g.runsOf(i) {
			if int(r.batch) >= len(g.batches) {
				return fmt.Errorf("group: transaction %d names batch %d of %d", i, r.batch, len(g.batches))
			}
		}
	}
	return nil
}

// runsOf returns the runs of the i-th row.
func (g *group) runsOf(i int) []run {
	end := len(g.runs)
	if i+1 < len(g.rows) {
		end = g.rows[i+1].runs
	}
	return g.runs[g.rows[i].runs:end]
}

func (c *cursor) uint32() uint32 {
	v := c.uvarint()
	if v > 1<<31-1 {
		c.fail()
	}
	return uint32(v)
}
