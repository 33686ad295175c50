package seglog

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// adoptVersion is the first byte of the payload that adopts a streamed file:
//
//	version u8 = 1, uvarint ordinal, the transaction's row as in a group
//	uvarint number of this journal file, uvarint number of the streamed file
//	uvarint length of that file, u32 CRC-32C of its chunks' entry headers,
//	uvarint chunks
//	uvarint aborted sub-transactions, each the difference to the one before
//	uvarint partitions in order, each uvarint topic, partition, first offset, and
//	  count: the offsets that the transaction takes, used or not
const adoptVersion = 1

// adoption is a decoded adopting entry. Its bytes are shared with the payload.
type adoption struct {
	ordinal uint64
	tx      eventlog.Tx // its row
	journal uint64      // number of the journal file that holds the entry
	number  uint64      // of the streamed file
	length  int64
	heads   uint32 // CRC-32C of the headers of its chunks
	chunks  uint64
	aborted []uint32      // in order
	parts   []adoptedPart // in the order of their keys
}

// adoptedPart is what a transaction takes of a partition.
type adoptedPart struct {
	key   partKey
	first eventlog.Offset
	count eventlog.Offset
}

// maxAdopted bounds the offsets that a streamed transaction takes of one partition: a run of _tx.
const maxAdopted = 1<<31 - 1

func (a *adoption) isAborted(sub uint32) bool {
	_, found := slices.BinarySearch(a.aborted, sub)
	return found
}

func (k partKey) compare(o partKey) int {
	if k.topic != o.topic {
		return cmp.Compare(k.topic, o.topic)
	}
	return cmp.Compare(k.partition, o.partition)
}

// part returns what the transaction takes of a partition, nil for none.
func (a *adoption) part(k partKey) *adoptedPart {
	i, found := slices.BinarySearchFunc(a.parts, k, func(p adoptedPart, k partKey) int { return p.key.compare(k) })
	if !found {
		return nil
	}
	return &a.parts[i]
}

// append appends the payload.
func (a *adoption) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, adoptVersion), a.ordinal)
	dst = appendTxHead(dst, &a.tx)
	dst = binary.AppendUvarint(dst, a.journal)
	dst = binary.AppendUvarint(dst, a.number)
	dst = binary.AppendUvarint(dst, uint64(a.length))
	dst = binary.LittleEndian.AppendUint32(dst, a.heads)
	dst = binary.AppendUvarint(dst, a.chunks)
	dst = binary.AppendUvarint(dst, uint64(len(a.aborted)))
	last := uint32(0)
	for _, sub := range a.aborted {
		dst = binary.AppendUvarint(dst, uint64(sub-last))
		last = sub
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.parts)))
	for _, p := range a.parts {
		dst = binary.AppendUvarint(dst, uint64(p.key.topic))
		dst = binary.AppendUvarint(dst, uint64(p.key.partition))
		dst = binary.AppendUvarint(dst, uint64(p.first))
		dst = binary.AppendUvarint(dst, uint64(p.count))
	}
	return dst
}

func decodeAdoption(payload []byte) (*adoption, error) {
	c := &cursor{b: payload}
	if v := c.byte(); v != adoptVersion {
		return nil, fmt.Errorf("adopting entry of version %d; this program reads %d", v, adoptVersion)
	}
	a := &adoption{ordinal: c.uvarint()}
	c.txHead(&a.tx, "", "")
	a.journal, a.number, a.length = c.uvarint(), c.uvarint(), int64(c.offset())
	if b := c.take(4); len(b) == 4 {
		a.heads = binary.LittleEndian.Uint32(b)
	}
	a.chunks = c.uvarint()
	a.aborted = make([]uint32, c.count(1))
	last := uint64(0)
	for i := range a.aborted {
		step := c.uvarint()
		if last += step; step > 1<<32-1 || last > 1<<32-1 || i > 0 && step == 0 {
			c.fail()
		}
		a.aborted[i] = uint32(last)
	}
	a.parts = make([]adoptedPart, c.count(4))
	for i := range a.parts {
		k := partKey{eventlog.TopicID(c.uint32()), int32(c.uint32())}
		a.parts[i] = adoptedPart{k, c.offset(), eventlog.Offset(c.uint32())}
		if i > 0 && a.parts[i-1].key.compare(k) >= 0 {
			c.fail()
		}
	}
	if c.bad || len(c.b) != 0 || a.ordinal > 1<<62 {
		return nil, fmt.Errorf("adopting entry: %w", errShort)
	}
	return a, nil
}

// decodeTransactions reads the payload of an entry that holds transactions: a
// group, or an adopting entry as a group of one.
func decodeTransactions(kind byte, payload []byte) (*group, error) {
	if kind != kindAdopt {
		return decodeGroup(payload)
	}
	a, err := decodeAdoption(payload)
	if err != nil {
		return nil, err
	}
	return &group{first: a.ordinal, rows: []txRow{{tx: a.tx}}, stream: a}, nil
}

// txRecord is the record that the transaction has in the topic _tx.
func (a *adoption) txRecord() eventlog.Record {
	runs := make([]sealedRun, 0, len(a.parts))
	for _, p := range a.parts {
		runs = append(runs, sealedRun{p.key, p.first, uint32(p.count)})
	}
	return eventlog.Record{
		Topic: txTopic, Offset: eventlog.Offset(a.ordinal), CSN: a.tx.CSN,
		Time: a.tx.CommitTime, Value: appendTxRow(nil, &a.tx, runs),
	}
}

// applyAdoption takes the offsets of a streamed transaction.
func (s *state) applyAdoption(a *adoption) error {
	for _, p := range a.parts {
		t := s.topic(p.key.topic)
		if t == nil || p.key.topic == txTopic || p.key.partition < 0 || int(p.key.partition) >= len(t.next) {
			return fmt.Errorf("streamed transaction in unknown topic %d partition %d", p.key.topic, p.key.partition)
		}
		if next := t.next[p.key.partition]; p.first != next {
			return fmt.Errorf("topic %d partition %d: streamed transaction at offset %d where %d was due", p.key.topic, p.key.partition, p.first, next)
		}
		t.next[p.key.partition] += p.count
	}
	return nil
}

// adopt makes a stream's file part of the log by an entry in the newest journal
// file. The caller holds the token and has made the log ready. The file's
// contents are durable before it gets its name, its name before the entry is
// written: a crash leaves the transaction whole, or a file that Open deletes.
func (l *Log) adopt(s *stream, tx *eventlog.Tx) error {
	if err := s.place(l.w.file.number); err != nil {
		return err
	}
	st := l.st // only the token's holder, which we are, changes it
	if st.nextCSN > eventlog.MaxCSN {
		return fmt.Errorf("append: CSN %d is beyond %d", st.nextCSN, eventlog.MaxCSN)
	}
	tx.IngestTime = max(st.lastIngest, l.opts.Clock().UnixMicro())
	if tx.Kind != eventlog.TxOutput {
		tx.CSN = st.nextCSN
	}
	a := s.adoption(st, tx, l.w.file.number)
	entry := a.append(beginEntry(nil))
	if len(entry) > maxEntry {
		return fmt.Errorf("%w: it aborted %d sub-transactions", eventlog.ErrTooLarge, len(a.aborted))
	}
	finishEntry(entry, 0, seedOf(l.w.file.number), kindAdopt)
	s.doubtful = true // until it is known that the entry is not there
	if err := l.writeEntry(entry); err != nil {
		return err
	}
	s.doubtful = false
	l.publishAdoption(a, tx, entry)
	return nil
}

// publishAdoption makes a durable streamed transaction visible.
func (l *Log) publishAdoption(a *adoption, tx *eventlog.Tx, entry []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	csn := l.st.nextCSN
	l.w.file.note(l.w.end-int64(len(entry)), l.st.ordinal, csn)
	l.st.applyTx(tx)
	if err := l.st.applyAdoption(a); err != nil {
		panic(err) // it was made from this state
	}
	l.w.file.size = l.w.end
	l.w.file.streams = append(l.w.file.streams, streamFile{a.number, a.length})
	l.counts.appends++
	l.counts.bytes += int64(len(entry)) + a.length
	l.w.file.saw(&a.tx)
	payload, mem := l.mem.copy(entry[entryHeaderSize:])
	l.tail.add(tailGroup{kind: kindAdopt, first: a.ordinal, end: l.st.ordinal, csn: csn, payload: payload, mem: mem})
	close(l.changed)
	l.changed = make(chan struct{})
}
