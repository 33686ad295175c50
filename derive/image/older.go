package image

import (
	"bytes"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// Older returns the keys, n at most and behind after, of rows that were last
// written before csn. more tells that the table goes on behind the last key looked at.
func (t *Table) Older(r Reader, csn eventlog.CSN, after change.Key, n int) (keys []change.Key, more bool, err error) {
	bounds := Prefixed(t.Prefix(nil))
	lower := bounds[0]
	if after != nil {
		lower = append(append(bytes.Clone(lower), after...), 0)
	}
	err = r.Scan(lower, bounds[1], func(k, v []byte) (bool, error) {
		written, _, err := SplitRow(v)
		if err == nil && written < csn {
			keys = append(keys, bytes.Clone(t.RowKey(k)))
		}
		more = len(keys) == n
		return !more, err
	})
	return keys, more, err
}
