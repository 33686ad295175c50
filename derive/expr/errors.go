package expr

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unicode/utf8"
)

// ErrUnchanged means that a result hangs on a column that the source did not
// send (change.UnchangedValue). The row must be filled first; it is never null.
var ErrUnchanged = errors.New("expr: a column needed by the expression was not sent by the source")

// Error says why an expression was refused, and where.
type Error struct {
	Offset  int    // byte in the source
	Near    string // what stands there; empty at the end of the source
	Message string
	Hint    string // the way out; may be empty
}

// Error returns one line: message, place and hint.
func (e *Error) Error() string {
	text := e.Message
	if e.Near != "" {
		text += fmt.Sprintf(" (at byte %d, near %q)", e.Offset, e.Near)
	} else if e.Offset > 0 {
		text += fmt.Sprintf(" (at byte %d)", e.Offset)
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// near returns what the source has at an offset, shortened.
func near(src string, offset int) string {
	if offset < 0 || offset >= len(src) {
		return ""
	}
	const most = 40
	rest := src[offset:]
	if len(rest) <= most {
		return rest
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(rest[cut]) {
		cut--
	}
	return rest[:cut] + "…"
}

// faults counts operations that have no result for a row: the operation is null then.
type faults struct {
	count atomic.Uint64
	last  atomic.Pointer[Fault]
}

// Fault is an operation without a result, such as a division by zero.
type Fault struct {
	Offset  int    // of the operation in the source
	Message string // never holds a row's values
}

func (f *Fault) Error() string { return fmt.Sprintf("%s (at byte %d)", f.Message, f.Offset) }

func (f *faults) add(fault *Fault) {
	f.count.Add(1)
	f.last.Store(fault)
}
