package seglog

import (
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
	at   eventlog.CSN // of tx
	runs []sealedRun
}

// TxFinder finds the transactions of records that were read by partition.
func (l *Log) TxFinder() eventlog.TxFinder { return &txFinder{l: l} }

// Find returns the transaction of a record; false where _tx no longer has it.
func (f *txFinder) Find(r *eventlog.Record) (eventlog.Tx, bool, error) {
	if f.rows != nil && f.at == r.CSN && f.tx.Kind != eventlog.TxOutput {
		return f.tx, true, nil
	}
	if f.rows != nil && f.at < r.CSN {
		found, err := f.read(r.CSN, finderReach)
		if found || err != nil {
			return f.tx, found, err
		}
	}
	if err := f.seek(r.CSN); err != nil {
		return eventlog.Tx{}, false, err
	}
	found, err := f.read(r.CSN, 1<<62)
	return f.tx, found, err
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

// read goes on to the transaction with a CSN; false if it was not among the
// next rows, or is passed.
func (f *txFinder) read(csn eventlog.CSN, rows int) (bool, error) {
	for range rows {
		r, ok, err := f.rows.Next()
		if err != nil || !ok {
			return false, err
		}
		f.row = append(f.row[:0], r.Value...)
		if f.runs, err = decodeTxRow(f.row, &f.tx, f.runs[:0]); err != nil {
			return false, err
		}
		if f.tx.Kind == eventlog.TxOutput {
			continue
		}
		f.at = f.tx.CSN
		if f.at >= csn {
			return f.at == csn, nil
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
