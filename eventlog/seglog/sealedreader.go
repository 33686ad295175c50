package seglog

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tailwater/tailwater/eventlog"
)

// txRowVersion is the first byte of a record's value in the topic _tx: u8
// version, the row of the transaction as in a group, and uvarint runs, each
// uvarint topic, partition, first offset and count.
const txRowVersion = 1

// sealedRun names a transaction's records in a partition: count from first on.
type sealedRun struct {
	key   partKey
	first eventlog.Offset
	count uint32
}

func appendTxRow(dst []byte, tx *eventlog.Tx, runs []sealedRun) []byte {
	dst = appendTxHead(append(dst, txRowVersion), tx)
	dst = binary.AppendUvarint(dst, uint64(len(runs)))
	for _, r := range runs {
		dst = binary.AppendUvarint(dst, uint64(r.key.topic))
		dst = binary.AppendUvarint(dst, uint64(r.key.partition))
		dst = binary.AppendUvarint(dst, uint64(r.first))
		dst = binary.AppendUvarint(dst, uint64(r.count))
	}
	return dst
}

func decodeTxRow(value []byte, tx *eventlog.Tx, runs []sealedRun) ([]sealedRun, error) {
	c := &cursor{b: value}
	if v := c.byte(); v != txRowVersion {
		return nil, fmt.Errorf("row of %s of version %d; this program reads %d", txTopicName, v, txRowVersion)
	}
	c.txHead(tx, tx.Source, tx.ID)
	for range c.count(4) {
		k := partKey{eventlog.TopicID(c.uint32()), int32(c.uint32())}
		runs = append(runs, sealedRun{k, c.offset(), c.uint32()})
	}
	if c.bad || len(c.b) != 0 {
		return nil, fmt.Errorf("row of %s: %w", txTopicName, errShort)
	}
	return runs, nil
}

// maxSealedCursors bounds the files and batches that one reader keeps open.
const maxSealedCursors = 256

// sealedReader reads sealed transactions: the rows of _tx name the records.
type sealedReader struct {
	l     *Log
	rows  *segCursor
	parts map[partKey]*segCursor
	taken []*segCursor // of the transaction returned last
	runs  []sealedRun
	row   []byte
}

func newSealedReader(l *Log, ordinal uint64) *sealedReader {
	return &sealedReader{l: l, rows: newSegCursor(l, partKey{txTopic, 0}, eventlog.Offset(ordinal)), parts: map[partKey]*segCursor{}}
}

// next reads the next transaction before end into r; false if there is none.
func (s *sealedReader) next(r *reader, end uint64) (bool, error) {
	for _, c := range s.taken {
		c.recycle()
	}
	s.taken = s.taken[:0]
	var rec eventlog.Record
	ok, err := s.rows.nextBelow(eventlog.Offset(end), &rec)
	if err != nil || !ok {
		return false, err
	}
	s.row = append(s.row[:0], rec.Value...)
	if s.runs, err = decodeTxRow(s.row, &r.tx, s.runs[:0]); err != nil {
		return false, s.rows.seg.corrupt(s.rows.at, "%v", err)
	}
	r.records = r.records[:0]
	left := math.MaxInt
	if r.spec.Pieces {
		left = r.l.opts.StreamChunk
	}
	for _, run := range s.runs {
		if !r.shows(run.key.topic) {
			continue
		}
		if left, err = s.take(r, run, left); err != nil {
			return false, err
		}
		if left <= 0 { // what was read of it is read again
			return r.beginMerge(s, uint64(rec.Offset))
		}
	}
	r.ordinal = uint64(rec.Offset) + 1
	return true, nil
}

// take adds a run's records until they have left bytes. It returns how many are
// left then; 0 or less if it stopped.
func (s *sealedReader) take(r *reader, run sealedRun, left int) (int, error) {
	c := s.cursor(run.key, run.first)
	s.taken = append(s.taken, c)
	end := run.first + eventlog.Offset(run.count)
	for left > 0 {
		var rec eventlog.Record
		ok, err := c.nextBelow(end, &rec)
		if err != nil || !ok {
			return left, err
		}
		if c.every && run.key.partition != 0 || r.skips(&rec) {
			continue
		}
		r.records = append(r.records, rec)
		left -= len(rec.Key) + len(rec.Value) + recordOverhead
	}
	return left, nil
}

func (s *sealedReader) cursor(k partKey, at eventlog.Offset) *segCursor {
	c := s.parts[k]
	if c == nil {
		if len(s.parts) >= maxSealedCursors {
			s.closeParts()
		}
		c = newSegCursor(s.l, k, at)
		c.keep = true // a transaction's records are all valid at once
		s.parts[k] = c
	}
	c.seek(at)
	return c
}

func (s *sealedReader) close() {
	s.rows.close()
	s.closeParts()
}

func (s *sealedReader) closeParts() {
	for _, c := range s.parts {
		c.close()
	}
	clear(s.parts)
}
