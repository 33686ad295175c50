package seglog

import (
	"encoding/binary"
	"fmt"

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
	runs []run
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

func (c *cursor) txHead(tx *eventlog.Tx) {
	kind := c.byte()
	if kind > byte(eventlog.TxOutput) {
		c.fail()
	}
	*tx = eventlog.Tx{
		Kind: eventlog.TxKind(kind), CSN: c.csn(), Since: c.csn(), CommitTime: c.varint(), IngestTime: c.varint(),
		Source: c.string(), Position: c.bytes(), ID: c.string(), Note: c.bytes(),
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
	c := &cursor{b: payload}
	if v := c.byte(); v != groupVersion {
		return nil, fmt.Errorf("group of version %d; this program reads %d", v, groupVersion)
	}
	g := &group{}
	for range c.count(8) {
		g.topics = append(g.topics, c.topic())
	}
	for range c.count(3) {
		g.marks = append(g.marks, c.mark())
	}
	g.first = c.uvarint()
	g.rows = make([]txRow, c.count(10))
	runs := 0
	for i := range g.rows {
		r := &g.rows[i]
		c.txHead(&r.tx)
		r.runs = make([]run, c.count(2))
		for j := range r.runs {
			r.runs[j] = run{c.uint32(), c.uint32()}
		}
		runs += len(r.runs)
	}
	g.batches = make([]batchRef, c.count(3))
	for i := range g.batches {
		g.batches[i] = batchRef{eventlog.TopicID(c.uint32()), int32(c.uint32()), c.bytes()}
	}
	if c.bad || len(c.b) != 0 || g.first > 1<<62 {
		return nil, fmt.Errorf("group: %w", errShort)
	}
	return g, g.checkRuns(runs)
}

func (g *group) checkRuns(runs int) error {
	if runs == 0 && len(g.batches) > 0 {
		return fmt.Errorf("group: %d batches of no transaction", len(g.batches))
	}
	for i := range g.rows {
		for _, r := range g.rows[i].runs {
			if int(r.batch) >= len(g.batches) {
				return fmt.Errorf("group: transaction %d names batch %d of %d", i, r.batch, len(g.batches))
			}
		}
	}
	return nil
}

func (c *cursor) uint32() uint32 {
	v := c.uvarint()
	if v > 1<<31-1 {
		c.fail()
	}
	return uint32(v)
}
