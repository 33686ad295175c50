package seglog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	fileHeaderSize  = 16
	entryHeaderSize = 9
	journalVersion  = 1

	kindGroup      = 1
	kindAdopt      = 2
	kindCheckpoint = 3
	kindIndex      = 4
	kindChunk      = 5 // in streamed files only
)

// maxEntry bounds a payload: its length has 32 bits.
const maxEntry = math.MaxUint32

var (
	journalMagic = [4]byte{'T', 'W', 'J', 'L'}
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// seedOf returns the checksum seed of a file's entries.
func seedOf(number uint64) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], number)
	return crc32.Checksum(b[:], castagnoli)
}

func appendFileHeader(dst []byte, number uint64) []byte {
	dst = append(dst, journalMagic[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, journalVersion)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	return binary.LittleEndian.AppendUint64(dst, number)
}

// checkFileHeader reports what is wrong with the header of file number.
func checkFileHeader(b []byte, number uint64) error {
	switch {
	case len(b) < fileHeaderSize:
		return fmt.Errorf("header of %d bytes", len(b))
	case [4]byte(b[:4]) != journalMagic:
		return fmt.Errorf("magic %q is not a journal's", b[:4])
	case binary.LittleEndian.Uint16(b[4:]) != journalVersion:
		return fmt.Errorf("journal version %d; this program reads %d", binary.LittleEndian.Uint16(b[4:]), journalVersion)
	case binary.LittleEndian.Uint16(b[6:]) != 0:
		return fmt.Errorf("header with unknown flags %#x", binary.LittleEndian.Uint16(b[6:]))
	case binary.LittleEndian.Uint64(b[8:]) != number:
		return fmt.Errorf("header names file %d", binary.LittleEndian.Uint64(b[8:]))
	}
	return nil
}

// beginEntry reserves an entry's header at the end of dst; finishEntry fills it in.
func beginEntry(dst []byte) []byte { return append(dst, make([]byte, entryHeaderSize)...) }

// finishEntry completes the entry whose header begins at start.
func finishEntry(b []byte, start int, seed uint32, kind byte) {
	e := b[start:]
	binary.LittleEndian.PutUint32(e[4:], uint32(len(e)-entryHeaderSize))
	e[8] = kind
	binary.LittleEndian.PutUint32(e, crc32.Update(seed, castagnoli, e[4:]))
}

// entryHead is the fixed part of an entry.
type entryHead struct {
	crc  uint32
	n    uint32
	kind byte
}

func decodeEntryHead(b []byte) entryHead {
	return entryHead{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), b[8]}
}

func knownKind(kind byte) bool { return kind >= kindGroup && kind <= kindChunk }

// decodeEntry reads the entry at the start of b.
func decodeEntry(b []byte, seed uint32) (kind byte, payload []byte, err error) {
	if len(b) < entryHeaderSize {
		return 0, nil, fmt.Errorf("entry header of %d bytes", len(b))
	}
	h := decodeEntryHead(b)
	if int64(h.n) > int64(len(b)-entryHeaderSize) {
		return 0, nil, fmt.Errorf("entry of %d bytes with %d left", h.n, len(b)-entryHeaderSize)
	}
	end := entryHeaderSize + int(h.n)
	if got := crc32.Update(seed, castagnoli, b[4:end]); got != h.crc {
		return 0, nil, fmt.Errorf("entry checksum %08x, written was %08x", got, h.crc)
	}
	if !knownKind(h.kind) {
		return 0, nil, fmt.Errorf("entry of unknown kind %d", h.kind)
	}
	return h.kind, b[entryHeaderSize:end:end], nil
}
