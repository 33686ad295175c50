package eventlog

// Seeker finds places in partitions, and what stands around them. It is part of Log.
type Seeker interface {
	// SeekCSN returns the first offset of a kept record with a CSN at or above
	// csn, the partition's end if there is none.
	SeekCSN(topic TopicID, partition int32, csn CSN) (Offset, error)

	// SeekTime returns the first offset of a kept record that was committed at
	// or after a time (µs since 1970), the partition's end if there is none.
	// Commit times need not grow with the offsets: what follows may be older.
	SeekTime(topic TopicID, partition int32, micros int64) (Offset, error)

	// ReadBackward reads the records below an offset, the newest first, in
	// memory bounded by a batch or group. What is appended meanwhile is not shown.
	ReadBackward(topic TopicID, partition int32, before Offset) (PartitionReader, error)

	// TxFinder finds the transactions of records that were read by partition. Close it.
	TxFinder() TxFinder
}

// TxFinder looks up transactions. One goroutine; it is quickest in ascending order of CSNs.
type TxFinder interface {
	// Find returns the transaction of a record, without its records and in
	// memory that is valid until the next call; false where the log no longer
	// knows it. Outputs are found if they were appended soon behind what caused them.
	Find(r *Record) (tx Tx, ok bool, err error)
	Close() error
}
