package postgres

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// Vectors of numbers: those of the extension pgvector (TYPES.md K15) and the
// catalogue's own.

var errVector = errors.New("not a vector of numbers")

// appendVector takes [1,2.5,3], vector and halfvec.
func appendVector(dst, text []byte) ([]byte, error) {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return nil, errVector
	}
	start := len(dst)
	dst, gap := openSized(dst, len(text))
	dst = append(dst, '[')
	for rest, more := text[1:len(text)-1], len(text) > 2; more; {
		var item []byte
		item, rest, more = bytes.Cut(rest, []byte{','})
		var err error
		if dst, err = appendFloat32JSON(dst, item); err != nil {
			return nil, err
		}
		if more {
			dst = append(dst, ',')
		}
	}
	return closeSized(append(dst, ']'), start, gap), nil
}

func appendFloat32JSON(dst, text []byte) ([]byte, error) {
	f, err := parseFloat(text, 32)
	if err != nil {
		return nil, err
	}
	return change.AppendJSON(dst, change.Float32(float32(f))), nil
}

// appendSparseVector takes {1:1.5,3:2}/5, sparsevec; its indexes count from 1.
func appendSparseVector(dst, text []byte) ([]byte, error) {
	items, dim, ok := bytes.Cut(text, []byte("}/"))
	if n, digits := readDigits(dim); !ok || len(items) == 0 || items[0] != '{' || digits == 0 || digits != len(dim) || n == 0 {
		return nil, errVector
	}
	start := len(dst)
	dst, gap := openSized(dst, len(text)+20)
	dst = append(append(append(dst, `{"dim":`...), dim...), `,"values":{`...)
	for rest, more := items[1:], len(items) > 1; more; {
		var item []byte
		item, rest, more = bytes.Cut(rest, []byte{','})
		index, value, _ := bytes.Cut(item, []byte{':'})
		n, digits := readDigits(index)
		if digits == 0 || digits != len(index) {
			return nil, errVector
		}
		dst = append(strconv.AppendInt(append(dst, '"'), n, 10), '"', ':')
		var err error
		if dst, err = appendFloat32JSON(dst, value); err != nil {
			return nil, err
		}
		if more {
			dst = append(dst, ',')
		}
	}
	return closeSized(append(dst, '}', '}'), start, gap), nil
}

// appendIntVector takes the int2vector and oidvector of the catalogue, 1 2 3, which are arrays.
func appendIntVector(dst, text []byte) ([]byte, error) {
	start := len(dst)
	dst, gap := openSized(dst, len(text)+2)
	dst = append(dst, '[')
	for rest, more := text, len(text) > 0; more; {
		var item []byte
		item, rest, more = bytes.Cut(rest, []byte{' '})
		n, err := parseInt(item)
		if err != nil {
			return nil, errVector
		}
		dst = strconv.AppendInt(dst, n, 10)
		if more {
			dst = append(dst, ',')
		}
	}
	return closeSized(append(dst, ']'), start, gap), nil
}
