package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

// Decoders of the text of single values; each appends what change.AppendValue
// would. Their errors say what was expected and never quote the text, which is
// the user's.

var (
	errBool    = errors.New("not a boolean")
	errInt     = errors.New("not an integer of 64 bits")
	errFloat   = errors.New("not a floating-point number")
	errDecimal = errors.New("not a decimal number")
	errBytea   = errors.New("not bytes in hexadecimal")
	errUUID    = errors.New("not a UUID")
	errText    = errors.New("text is not valid UTF-8: the database's encoding does not say what its bytes mean")
)

func appendBool(dst, text []byte) ([]byte, error) {
	if len(text) != 1 || text[0] != 't' && text[0] != 'f' {
		return nil, errBool
	}
	if text[0] == 't' {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

// parseInt reads a decimal integer of at most 64 bits.
func parseInt(text []byte) (int64, error) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, errInt
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, errInt
		}
		n = n*10 + uint64(c-'0')
	}
	if negative {
		if n > 1<<63 {
			return 0, errInt
		}
		return -int64(n), nil
	}
	if n > math.MaxInt64 {
		return 0, errInt
	}
	return int64(n), nil
}

func appendInt(dst, text []byte) ([]byte, error) {
	n, err := parseInt(text)
	if err != nil {
		return nil, err
	}
	return binary.AppendVarint(dst, n), nil
}

func appendFloat32(dst, text []byte) ([]byte, error) {
	f, err := parseFloat(text, 32)
	if err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), nil
}

func appendFloat64(dst, text []byte) ([]byte, error) {
	f, err := parseFloat(text, 64)
	if err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), nil
}

func parseFloat(text []byte, bits int) (float64, error) {
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return 0, errFloat
	}
	return f, nil
}

func appendSized(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendDecimal(dst, text []byte) ([]byte, error) {
	if !isDecimal(text) {
		return nil, errDecimal
	}
	return appendSized(dst, text), nil
}

// isDecimal accepts what numeric_out writes: [-]digits[.digits], NaN, Infinity, -Infinity.
func isDecimal(text []byte) bool {
	switch string(text) {
	case "NaN", "Infinity", "-Infinity":
		return true
	}
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	if len(text) > 1 && text[0] == '0' && text[1] != '.' {
		return false
	}
	digits, point := 0, false
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && !point && i > 0 && i < len(text)-1:
			point = true
		default:
			return false
		}
	}
	return digits > 0
}

// appendMoney takes what cash_out writes with lc_monetary C: -$1,234.56.
func appendMoney(dst, text []byte) ([]byte, error) {
	var scratch [40]byte
	plain := scratch[:0]
	for _, c := range text {
		if c != '$' && c != ',' {
			plain = append(plain, c)
		}
	}
	return appendDecimal(dst, plain)
}

func checkText(text []byte) error {
	if !utf8.Valid(text) {
		return errText
	}
	return nil
}

func appendText(dst, text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errText
	}
	return appendSized(dst, text), nil
}

// appendChar takes the type "char": a byte above 0x7F is written \ooo, as
// PostgreSQL 16 and later do; earlier ones send the byte itself.
func appendChar(dst, text []byte) ([]byte, error) {
	if len(text) == 1 && text[0] >= 0x80 {
		c := text[0]
		return appendSized(dst, []byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7}), nil
	}
	return appendText(dst, text)
}

func appendBytea(dst, text []byte) ([]byte, error) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'x' || len(text)%2 != 0 {
		return nil, errBytea
	}
	text = text[2:]
	dst = binary.AppendUvarint(dst, uint64(len(text)/2))
	dst, err := hex.AppendDecode(dst, text)
	if err != nil {
		return nil, errBytea
	}
	return dst, nil
}

func appendUUID(dst, text []byte) ([]byte, error) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return nil, errUUID
	}
	var err error
	for _, span := range [...][2]int{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}} {
		if dst, err = hex.AppendDecode(dst, text[span[0]:span[1]]); err != nil {
			return nil, errUUID
		}
	}
	return dst, nil
}
