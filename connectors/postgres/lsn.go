package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// LSN is a byte position in the server's write-ahead log.
type LSN uint64

// String returns the form that PostgreSQL prints, "16/B374D848".
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// Compare orders LSNs of one timeline.
func (l LSN) Compare(o LSN) int { return cmp.Compare(l, o) }

// ParseLSN reads what String returns.
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	h, err1 := strconv.ParseUint(hi, 16, 32)
	l, err2 := strconv.ParseUint(lo, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%q is no LSN", s)
	}
	return LSN(h<<32 | l), nil
}

// place is the meaning of a change.Position of this package.
type place struct {
	system   string // system identifier
	timeline uint32
	commit   LSN // beginning of the commit record; a tick's LSN
	end      LSN // behind the commit record
}

func (p place) position() change.Position {
	return change.Position{Name: p.commit.String(), Resume: p.resume()}
}

func (p place) resume() string {
	return p.system + "/" + strconv.FormatUint(uint64(p.timeline), 10) + "/" + p.end.String()
}

var errPosition = errors.New("not a PostgreSQL position")

func parsePosition(pos change.Position) (place, error) {
	var p place
	parts := strings.SplitN(pos.Resume, "/", 3)
	if len(parts) != 3 || parts[0] == "" {
		return p, fmt.Errorf("%w: %q", errPosition, pos.Resume)
	}
	timeline, err := strconv.ParseUint(parts[1], 10, 32)
	if err != nil {
		return p, fmt.Errorf("%w: timeline in %q", errPosition, pos.Resume)
	}
	p.system, p.timeline = parts[0], uint32(timeline)
	if p.end, err = ParseLSN(parts[2]); err != nil {
		return p, fmt.Errorf("%w: %v", errPosition, err)
	}
	if p.commit, err = ParseLSN(pos.Name); err != nil {
		return p, fmt.Errorf("%w: %v", errPosition, err)
	}
	return p, nil
}

// Sizes of the page headers of the write-ahead log (xlog_internal.h).
const (
	walShortHeader = 24
	walLongHeader  = 40
)

// floorInsert returns where the last record ended when insert is what
// pg_current_wal_insert_lsn() said: a position just past a page header means
// the page's beginning, which is all that a reader of the log ever reports (V16).
func floorInsert(insert LSN, pageSize, segmentSize uint64) LSN {
	if pageSize == 0 || segmentSize == 0 {
		return insert
	}
	if uint64(insert)%segmentSize == walLongHeader {
		return insert - walLongHeader
	}
	if uint64(insert)%pageSize == walShortHeader {
		return insert - walShortHeader
	}
	return insert
}

// widenXID returns the 64-bit transaction id of a 32-bit one that lies within
// 2^31 of the reference, as every id that the server still has does.
func widenXID(xid uint32, reference uint64) uint64 {
	full := reference&^0xFFFFFFFF | uint64(xid)
	switch {
	case full > reference+1<<31 && full >= 1<<32:
		return full - 1<<32
	case full+1<<31 < reference:
		return full + 1<<32
	}
	return full
}
