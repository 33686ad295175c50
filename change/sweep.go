package change

import (
	"encoding/binary"
	"errors"
)

// SweepKey is the key of a sweep record: one in every partition of a topic, like
// a truncate. A run that read a damaged table anew ends with it, since nobody knows
// the keys whose records were lost: a reader deletes each row that no record with
// at least the CSN of SweepValue wrote.
var SweepKey = Key{ControlKey, ControlSweep}

// SweepValue encodes the CSN of a sweep record as a uvarint.
func SweepValue(since uint64) []byte { return binary.AppendUvarint(nil, since) }

// DecodeSweep is the inverse of SweepValue.
func DecodeSweep(value []byte) (since uint64, err error) {
	since, n := binary.Uvarint(value)
	if n <= 0 || n != len(value) {
		return 0, errors.New("value of a sweep record is no number")
	}
	return since, nil
}
