package derive

import (
	"encoding/binary"
	"fmt"

	"github.com/tailwater/tailwater/change"
)

func errDamaged(what string) error { return fmt.Errorf("state: %s: %w", what, change.ErrDecode) }

func appendUvarint(dst []byte, n uint64) []byte { return binary.AppendUvarint(dst, n) }

func uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, errDamaged("number")
	}
	return v, b[n:], nil
}
