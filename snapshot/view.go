package snapshot

// View is what a chunk saw, in the source's own terms.
type View interface {
	// Contains reports whether the effects of the transaction (change.Batch.Tx)
	// are certainly in the rows read. Once true for a transaction it is true in
	// every later view of the source.
	Contains(tx string) bool
}

// Place is a place in the source's log that orders as the log does: an LSN, or
// file number and byte.
type Place uint64
