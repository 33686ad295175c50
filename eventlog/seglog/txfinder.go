package seglog

import (
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// finderReach is how many rows of _tx a finder reads on before it seeks.
const finderReach = 256

// txFinder looks transactions up in the topic _tx.
type txFinder struct {
	l    *Log
	rows eventlog.PartitionReader // nil: nowhere
	tx   eventlog.Tx              // of the row read last
	row  []byte
	at   eventlog.CSN // largest read
	runs []sealedRun
}

// TxFinder finds the transactions of records that were read by partition.
func (l *Log) TxFinder() eventlog.TxFinder { return &txFinder{l: l} }

// Find returns the transaction of a record; false where _tx no longer has it.
func (f *txFinder) Find(r *eventlog.Record) (eventlog.Tx, bool, error) {
	if f.rows != nil && f.at <= r.CSN {
		if f.holds(r) {
			return f.tx, true, nil
		}
		if found, err := f.read(r, finderReach); found || err != nil {
			return f.tx, found, err
		}
	}
	if err := f.seek(r.CSN); err != nil {
		return eventlog.Tx{}, false, err
	}
	found, err := f.read(r, finderReach)
	return f.tx, found, err
}

// holds reports whether the row at hand is that of a record's transaction.
func (f *txFinder) holds(r *eventlog.Record) bool {
	if f.tx.CSN != r.CSN {
		return false
	}
	return slices.ContainsFunc(f.runs, func(run sealedRun) bool {
		return run.key == partKey{r.Topic, r.Partition} && run.first <= r.Offset && r.Offset < run.first+eventlog.Offset(run.count)
	})
}

func (f *txFinder) seek(csn eventlog.CSN) error {
	if err := f.Close(); err != nil {
		return err
	}
	at, err := f.l.SeekCSN(txTopic, 0, csn)
	if err == nil {
		f.rows, err = f.l.ReadPartition(txTopic, 0, at)
	}
	return err
}

// read goes on to the row of a record's transaction; false if it is not among
// the next rows. Outputs share their CSN with a transaction before them.
func (f *txFinder) read(rec *eventlog.Record, rows int) (bool, error) {
	for range rows {
		r, ok, err := f.rows.Next()
		if err != nil || !ok {
			return false, err
		}
		f.row = append(f.row[:0], r.Value...)
		if f.runs, err = decodeTxRow(f.row, &f.tx, f.runs[:0]); err != nil {
			return false, err
		}
		f.at = max(f.at, f.tx.CSN)
		if f.holds(rec) {
			return true, nil
		}
	}
	return false, nil
}

// Close ends the finder.
func (f *txFinder) Close() error {
	if f.rows == nil {
		return nil
	}
	err := f.rows.Close()
	f.rows, f.at = nil, 0
	return err
}
