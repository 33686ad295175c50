package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// A segment file, version 1, is a 16-byte header ("TWSG", u16 version, u16 zero,
// u32 topic, u32 partition), record batches, a footer and a 16-byte trailer
// (u32 length of the footer, u32 CRC-32C of it, "TWSEGEND"). The footer:
//
//	version u8 = 1
//	uvarint batches, each uvarint base offset and file position as the
//	  difference to the one before, uvarint largest CSN before it in the
//	  segment, varint largest timestamp (ms)
//	uvarint records, uvarint largest CSN
//
// The name is PPPPP-BASE-NEXT.seg, from compaction PPPPP-BASE-NEXT-GENERATION.seg:
// the segment holds the records of a partition with offsets in [BASE, NEXT) that
// are kept; after compaction there may be none. Of two segments of which one
// covers the other, or with the same range, the wider or the one of the higher
// generation counts: the other was compacted into it.
const (
	segmentHeaderSize  = 16
	segmentTrailerSize = 16
	segmentVersion     = 1
	segmentSuffix      = ".seg"
)

var (
	segmentMagic = [4]byte{'T', 'W', 'S', 'G'}
	segmentEnd   = [8]byte{'T', 'W', 'S', 'E', 'G', 'E', 'N', 'D'}
)

// segment is an immutable file of one partition.
type segment struct {
	key  partKey
	base eventlog.Offset
	next eventlog.Offset
	gen  uint64 // of the name: 0 as sealed, counted up by compaction
	path string
	size int64

	mu  sync.Mutex
	idx *segmentIndex // read at first use
}

type segmentIndex struct {
	batches []segmentBatch
	end     int64 // of the batches: the footer begins here
	records int64
	maxCSN  eventlog.CSN
}

type segmentBatch struct {
	base    eventlog.Offset
	pos     int64
	before  eventlog.CSN // largest CSN in the segment before this batch
	maxTime int64        // ms
}

func segmentName(partition int32, base, next eventlog.Offset, gen uint64) string {
	if gen == 0 {
		return fmt.Sprintf("%05d-%020d-%020d%s", partition, base, next, segmentSuffix)
	}
	return fmt.Sprintf("%05d-%020d-%020d-%010d%s", partition, base, next, gen, segmentSuffix)
}

// parseSegmentName is the inverse of segmentName: partition, base, next and gen.
func parseSegmentName(name string) (s *segment, ok bool) {
	s = &segment{}
	parts := strings.Split(strings.TrimSuffix(name, segmentSuffix), "-")
	if len(parts) < 3 || len(parts) > 4 || !strings.HasSuffix(name, segmentSuffix) {
		return s, false
	}
	p, err1 := strconv.ParseUint(parts[0], 10, 31)
	b, err2 := strconv.ParseUint(parts[1], 10, 63)
	n, err3 := strconv.ParseUint(parts[2], 10, 63)
	if err1 != nil || err2 != nil || err3 != nil || n <= b {
		return s, false
	}
	s.key.partition, s.base, s.next = int32(p), eventlog.Offset(b), eventlog.Offset(n)
	if len(parts) == 4 {
		gen, err := strconv.ParseUint(parts[3], 10, 63)
		if err != nil || gen == 0 {
			return s, false
		}
		s.gen = gen
	}
	return s, name == segmentName(s.key.partition, s.base, s.next, s.gen)
}

func appendSegmentHeader(dst []byte, key partKey) []byte {
	dst = append(dst, segmentMagic[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, segmentVersion)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(key.topic))
	return binary.LittleEndian.AppendUint32(dst, uint32(key.partition))
}

func (x *segmentIndex) append(dst []byte) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(append(dst, segmentVersion), uint64(len(x.batches)))
	var last segmentBatch
	for _, b := range x.batches {
		dst = binary.AppendUvarint(dst, uint64(b.base-last.base))
		dst = binary.AppendUvarint(dst, uint64(b.pos-last.pos))
		dst = binary.AppendUvarint(dst, uint64(b.before))
		dst = binary.AppendVarint(dst, b.maxTime)
		last = b
	}
	dst = binary.AppendUvarint(dst, uint64(x.records))
	dst = binary.AppendUvarint(dst, uint64(x.maxCSN))
	footer := dst[start:]
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(footer)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(footer, castagnoli))
	return append(dst, segmentEnd[:]...)
}

func decodeSegmentFooter(b []byte) (*segmentIndex, error) {
	c := &cursor{b: b}
	if v := c.byte(); v != segmentVersion {
		return nil, fmt.Errorf("segment of version %d; this program reads %d", v, segmentVersion)
	}
	x := &segmentIndex{batches: make([]segmentBatch, c.count(4))}
	var last segmentBatch
	for i := range x.batches {
		last = segmentBatch{last.base + c.offset(), last.pos + int64(c.offset()), c.csn(), c.varint()}
		x.batches[i] = last
	}
	x.records, x.maxCSN = int64(c.offset()), c.csn()
	if c.bad || len(c.b) != 0 {
		return nil, fmt.Errorf("segment footer: %w", errShort)
	}
	return x, nil
}

func (s *segment) corrupt(pos int64, format string, args ...any) error {
	return &CorruptError{Path: s.path, Pos: pos, Reason: fmt.Sprintf(format, args...)}
}

// missing is the damage that the file is not there.
func (s *segment) missing() error { return s.corrupt(0, "the file is missing") }

// index returns the segment's index, reading it at first use.
func (s *segment) index(fsys vfs.FS) (*segmentIndex, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idx != nil {
		return s.idx, nil
	}
	f, err := fsys.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s.idx, err = s.readIndex(f)
	return s.idx, err
}

func (s *segment) readIndex(f vfs.File) (*segmentIndex, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size < segmentHeaderSize+segmentTrailerSize {
		return nil, s.corrupt(0, "%d bytes are no segment", size)
	}
	head, err := s.readAt(f, 0, segmentHeaderSize)
	if err != nil {
		return nil, err
	}
	if string(head) != string(appendSegmentHeader(nil, s.key)) {
		return nil, s.corrupt(0, "header is not that of topic %d partition %d", s.key.topic, s.key.partition)
	}
	trailer, err := s.readAt(f, size-segmentTrailerSize, segmentTrailerSize)
	if err != nil {
		return nil, err
	}
	n, end := int64(binary.LittleEndian.Uint32(trailer)), size-segmentTrailerSize
	if [8]byte(trailer[8:]) != segmentEnd || n > end-segmentHeaderSize {
		return nil, s.corrupt(end, "trailer is not a segment's")
	}
	footer, err := s.readAt(f, end-n, n)
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(footer, castagnoli) != binary.LittleEndian.Uint32(trailer[4:]) {
		return nil, s.corrupt(end-n, "checksum of the footer does not match")
	}
	x, err := decodeSegmentFooter(footer)
	if err != nil {
		return nil, s.corrupt(end-n, "%v", err)
	}
	x.end = end - n
	if !x.fits() {
		return nil, s.corrupt(end-n, "footer's batches do not lie in the file")
	}
	if k := len(x.batches); k > 0 {
		if first, last := x.batches[0].base, x.batches[k-1].base; first < s.base || last >= s.next {
			return nil, s.corrupt(end-n, "batches at offsets %d to %d; the name says %d to %d", first, last, s.base, s.next)
		}
	}
	return x, nil
}

// fits reports whether the batches lie one behind the other in the file.
func (x *segmentIndex) fits() bool {
	n := len(x.batches)
	if n == 0 {
		return x.end == segmentHeaderSize && x.records == 0
	}
	return x.batches[0].pos == segmentHeaderSize && x.batches[n-1].pos < x.end
}

func (s *segment) readAt(f vfs.File, pos, n int64) ([]byte, error) {
	b := make([]byte, n)
	return b, s.readInto(f, pos, b)
}

// readInto fills b from pos on.
func (s *segment) readInto(f vfs.File, pos int64, b []byte) error {
	if k, err := f.ReadAt(b, pos); err != nil && !(errors.Is(err, io.EOF) && k == len(b)) {
		if errors.Is(err, io.EOF) {
			return s.corrupt(pos+int64(k), "file ends inside %d bytes", len(b))
		}
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	return nil
}

// find returns the batch in which an offset is or the next one kept lies.
func (x *segmentIndex) find(off eventlog.Offset) int {
	return max(0, sort.Search(len(x.batches), func(i int) bool { return x.batches[i].base > off })-1)
}

// findCSN returns the last batch before which all CSNs of the segment are below csn.
func (x *segmentIndex) findCSN(csn eventlog.CSN) int {
	return max(0, sort.Search(len(x.batches), func(i int) bool { return i > 0 && x.batches[i].before >= csn })-1)
}

// span returns where a batch begins and ends in the file.
func (x *segmentIndex) span(i int) (pos, end int64) {
	if i+1 < len(x.batches) {
		return x.batches[i].pos, x.batches[i+1].pos
	}
	return x.batches[i].pos, x.end
}

// batch reads and verifies one batch.
func (s *segment) batch(f vfs.File, x *segmentIndex, i int) (eventlog.Batch, error) {
	h, _, err := s.rawBatch(f, x, i, nil)
	return h, err
}

// rawBatch is batch that also returns the bytes, in buf's memory if that is enough.
func (s *segment) rawBatch(f vfs.File, x *segmentIndex, i int, buf []byte) (eventlog.Batch, []byte, error) {
	pos, end := x.span(i)
	b := grown(buf, end-pos)
	if err := s.readInto(f, pos, b); err != nil {
		return eventlog.Batch{}, nil, err
	}
	h, err := s.verify(x, i, b)
	return h, b, err
}

// verify decodes the bytes of a batch and reports what is not as it was written.
func (s *segment) verify(x *segmentIndex, i int, b []byte) (eventlog.Batch, error) {
	pos := x.batches[i].pos
	h, err := eventlog.DecodeBatch(b)
	if err != nil {
		return h, s.corrupt(pos, "%v", err)
	}
	if epoch := binary.BigEndian.Uint32(b[12:]); epoch != 0 { // its checksum does not cover it
		return h, s.corrupt(pos, "leader epoch %d, it is 0 here", epoch)
	}
	if h.Base != x.batches[i].base || h.Size != len(b) || h.Last >= s.next {
		return h, s.corrupt(pos, "batch of offsets %d to %d where %d was due", h.Base, h.Last, x.batches[i].base)
	}
	return h, nil
}
