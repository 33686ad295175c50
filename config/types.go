package config

import (
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Secret is a value that must not be printed: every verb, slog and JSON show
// ***. Reveal gives the text to the peer that needs it.
type Secret struct{ text string }

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal is the text itself.
func (s Secret) Reveal() string { return s.text }

// IsZero tells a secret that is not set.
func (s Secret) IsZero() bool { return s.text == "" }

func (s Secret) shown() string {
	if s.text == "" {
		return ""
	}
	return "***"
}

// String hides the text.
func (s Secret) String() string { return s.shown() }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return "config.Secret(" + s.shown() + ")" }

// Format hides the text from every verb.
func (s Secret) Format(f fmt.State, verb rune) { fmt.Fprint(f, s.shown()) }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }

// MarshalText hides the text from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// Size is a number of bytes.
type Size int64

// String is the size in the largest binary unit that divides it.
func (s Size) String() string {
	for _, u := range []struct {
		name string
		n    Size
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s >= u.n && s%u.n == 0 {
			return fmt.Sprintf("%d%s", s/u.n, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}

var sizeUnits = map[string]int64{
	"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseSize reads "200GiB", "1.5 MB", "512B". A unit is required.
func ParseSize(text string) (Size, error) {
	num, unit := splitUnit(text)
	mul, ok := sizeUnits[strings.ToLower(unit)]
	if num == "" || !ok {
		return 0, fmt.Errorf("%q is not a size; write a number with KiB, MiB, GiB or TiB (or kB, MB, GB, TB), as in 200GiB", text)
	}
	n, ok := scale(num, mul)
	if !ok {
		return 0, fmt.Errorf("%q is out of range for a size", text)
	}
	return Size(n), nil
}

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}

// ParseDuration reads "500ms", "24h", "7d", "1h30m". A unit is required and the
// result is never negative.
func ParseDuration(text string) (time.Duration, error) {
	rest, total := strings.TrimSpace(text), time.Duration(0)
	bad := fmt.Errorf("%q is not a duration; write a number with ms, s, m, h, d or w, as in 30s or 7d", text)
	if rest == "" {
		return 0, bad
	}
	for rest != "" {
		n := numberLen(rest)
		u := n
		for u < len(rest) && !isDigit(rest[u]) {
			u++
		}
		unit, ok := durationUnits[strings.TrimSpace(rest[n:u])]
		if n == 0 || !ok {
			return 0, bad
		}
		d, ok := scale(rest[:n], int64(unit))
		if !ok || total > math.MaxInt64-time.Duration(d) {
			return 0, fmt.Errorf("%q is out of range for a duration", text)
		}
		total, rest = total+time.Duration(d), rest[u:]
	}
	return total, nil
}

func splitUnit(text string) (num, unit string) {
	text = strings.TrimSpace(text)
	n := numberLen(text)
	return text[:n], strings.TrimSpace(text[n:])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// numberLen is the length of the digits, with at most one dot inside, at the
// start of text.
func numberLen(text string) int {
	n, dot := 0, false
	for n < len(text) && (isDigit(text[n]) || text[n] == '.' && !dot && n > 0) {
		dot = dot || text[n] == '.'
		n++
	}
	if n > 0 && text[n-1] == '.' {
		n--
	}
	return n
}

// scale multiplies a decimal number exactly and refuses what does not fit or
// leaves a fraction.
func scale(num string, mul int64) (int64, bool) {
	if len(num) > 40 {
		return 0, false
	}
	if n, err := strconv.ParseInt(num, 10, 64); err == nil && n <= math.MaxInt64/mul {
		return n * mul, true
	}
	r, ok := new(big.Rat).SetString(num)
	if !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(mul))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}
