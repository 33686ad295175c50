package seglog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestReadErrorIsNotDamage fails each operation that reads while a log opens: the
// answer is that error, never damage and never a cut, and the next Open finds all.
func TestReadErrorIsNotDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	// A checkpoint that takes more than one read.
	if err := l.SaveCheckpoint("large", make([]byte, 2*scanChunk)); err != nil {
		t.Fatal(err)
	}
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 3, 6)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files := fs.Files()
	for n := 0; ; n++ {
		struck := false
		fs.SetHook(vfs.AtNth(n, func(op vfs.Op) bool { return !op.Changes() }, func(vfs.Op) (int, error) {
			struck = true
			return 0, syscall.EIO
		}))
		_, err := Open("log", memOptions(fs))
		fs.SetHook(nil)
		if !struck {
			if n < 8 {
				t.Errorf("only %d operations read", n)
			}
			break
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("read %d fails: Open = %v, want EIO and no damage", n, err)
		}
		if now := fs.Files(); len(now) != len(files) {
			t.Fatalf("read %d fails: Open leaves files %v, there were %v", n, now, files)
		}
	}
	if got := ids(t, mustOpen(t, memOptions(fs))); !slices.Equal(got, numbers(0, 6)) {
		t.Errorf("afterwards %v", got)
	}
}

// TestEntryOfAnotherFileIsNone puts a good entry of one file behind the end of
// another: its checksum was begun with the other file's number.
func TestEntryOfAnotherFileIsNone(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 1)
	begin := l.w.end
	mustAppend(t, l, top, 1, 2)
	first, err := vfs.ReadFile(fs, l.w.file.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Roll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 2, 4)
	f, err := fs.OpenWrite(l.w.file.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(first[begin:], l.w.end); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, memOptions(fs))
	if got := ids(t, again); !slices.Equal(got, numbers(0, 4)) {
		t.Errorf("with an entry of another file at the end: %v", got)
	}
	if again.w.file.number != l.w.file.number+1 {
		t.Errorf("the entry of another file was not cut: file %d", again.w.file.number)
	}
}

// TestMisplacedSegmentsAreDamage gives a segment another's name or range.
func TestMisplacedSegmentsAreDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 20)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 20, 25)
	p := eventlog.PartitionOf([]byte("k"), 2)
	seg := l.segs[partKey{top.ID, p}][0]
	dir := seg.path[:strings.LastIndexByte(seg.path, '/')+1]
	other := l.segs[partKey{top.ID, 1 - p}][0]

	for what, name := range map[string]string{
		"a copy that overlaps":      segmentName(p, seg.base+1, seg.next+1, 0),
		"beyond the journal's end":  segmentName(p, seg.base, seg.next+100, 0),
		"of a partition not known":  segmentName(7, 0, 1, 0),
		"behind the journal's ends": segmentName(1-p, other.next+50, other.next+51, 0),
	} {
		disk := fs.Clone()
		copyFile(t, disk, seg.path, dir+name)
		if what == "beyond the journal's end" {
			if err := disk.Remove(seg.path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open("log", memOptions(disk)); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("a segment %s: Open = %v", what, err)
		}
	}

	disk := fs.Clone() // one partition's records under the other's name
	copyFile(t, disk, seg.path, other.path)
	again := mustOpen(t, memOptions(disk))
	r, err := again.ReadPartition(top.ID, 1-p, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if rec, _, err := r.Next(); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("a segment of another partition gives %+v, %v", rec, err)
	}
}

func copyFile(t *testing.T, fs vfs.FS, from, to string) {
	t.Helper()
	b, err := vfs.ReadFile(fs, from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, to, b)
}

// TestDamageIsNamed flips a bit in each kind of file and asks Check: file and byte are said.
func TestDamageIsNamed(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 20)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 20, 25)
	if err := l.Roll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 25, 26)
	for name, size := range fs.Files() {
		if strings.HasSuffix(name, "/meta") || name == l.w.file.path {
			continue
		}
		disk := fs.Clone()
		o := opts
		o.FS = disk
		again := mustOpen(t, o)
		disk.Flip(name, size/2*8)
		var found []error
		if _, err := again.Check(context.Background(), func(err error) { found = append(found, err) }); err != nil {
			t.Errorf("%s: Check = %v", name, err)
		}
		var bad *CorruptError
		if len(found) != 1 || !errors.As(found[0], &bad) || bad.Path != name || bad.Pos > size/2 || bad.Reason == "" {
			t.Errorf("byte %d of %s flipped: Check finds %v", size/2, name, found)
		}
	}
}

// TestPartitionCountIsFrozen: the suite has more of this; here also after a restart and a seal.
func TestPartitionCountIsFrozen(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 3)
	for _, when := range []string{"at once", "sealed", "after a restart"} {
		_, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 3})
		if !errors.Is(err, eventlog.ErrPartitionCount) || !strings.Contains(fmt.Sprint(err), "set partitions: 2") {
			t.Errorf("%s: EnsureTopic with another count = %v", when, err)
		}
		if got, _ := l.Topic("s.p.t"); got.Spec.Partitions != 2 || len(l.EndOffsets(top.ID)) != 2 {
			t.Errorf("%s: topic has %d partitions", when, got.Spec.Partitions)
		}
		if err := l.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
		if when == "sealed" {
			l = mustOpen(t, memOptions(fs.Crash(nil)))
		}
	}
}

// TestFooterDamage flips every bit of a segment's header, footer and trailer:
// nothing of the segment is shown.
func TestFooterDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 20)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	good := l.segs[partKey{top.ID, 0}][0]
	idx, err := good.index(fs)
	if err != nil {
		t.Fatal(err)
	}
	for bit := int64(0); bit < good.size*8; bit++ {
		if bit == segmentHeaderSize*8 {
			bit = idx.end * 8
		}
		fs.Flip(good.path, bit)
		anew := segment{key: good.key, base: good.base, next: good.next, path: good.path, size: good.size}
		if _, err := anew.index(fs); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("bit %d of %d flipped: %v", bit, good.size*8, err)
		}
		fs.Flip(good.path, bit)
	}
}

// TestGroupsOutOfOrder swaps two groups of a closed file: reading, sealing and
// Check find it, each for itself.
func TestGroupsOutOfOrder(t *testing.T) {
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.TailBytes = 1
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	begin := l.w.end
	mustAppend(t, l, top, 0, 1)
	second := l.w.end
	mustAppend(t, l, top, 1, 2)
	path, end := l.w.file.path, l.w.end
	if err := l.Roll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 2, 3)
	b, err := vfs.ReadFile(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, path, slices.Concat(b[:begin], b[second:end], b[begin:second], b[end:]))

	again := mustOpen(t, opts)
	r, err := again.Read(eventlog.ReadSpec{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if tx, err := r.Next(); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("a reader shows %+v, %v", tx, err)
	}
	if err := again.SealAll(context.Background()); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("SealAll = %v", err)
	}
	found := 0
	if _, err := again.Check(context.Background(), func(error) { found++ }); err != nil || found != 1 {
		t.Errorf("Check finds %d, %v", found, err)
	}
}

// TestFileOfAnotherLog puts a file of a log in the place of the same of another
// one with transactions of the same sizes.
func TestFileOfAnotherLog(t *testing.T) {
	disks := [2]*vfs.Mem{vfs.NewMem(), vfs.NewMem()}
	for i, fs := range disks {
		l := mustOpen(t, memOptions(fs))
		top := mustTopic(t, l, "s.p.t")
		for n := range 3 {
			mustAppend(t, l, top, 10+2*n+i, 10+2*n+i+1)
			if err := l.Roll(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, number := range []uint64{1, 2, 3} {
		disk := disks[0].Clone()
		b, err := vfs.ReadFile(disks[1], "log/journal/"+journalName(number))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, disk, "log/journal/"+journalName(number), b)
		if _, err := Open("log", memOptions(disk)); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("file %d of another log: Open = %v", number, err)
		}
	}
}

// TestLengthsAreBounded gives every length of the formats values out of range: an
// error, before memory is taken for it.
func TestLengthsAreBounded(t *testing.T) {
	b := journalBytes(t)
	var heads []int
	for pos := fileHeaderSize; pos < len(b); pos += entryHeaderSize + int(decodeEntryHead(b[pos:]).n) {
		heads = append(heads, pos)
	}
	lengths := []uint64{0, 1, math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 62, 1 << 63, math.MaxUint64}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, pos := range heads {
		kind, payload, err := decodeEntry(b[pos:], seedOf(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range lengths {
			bad := slices.Clone(b[pos:])
			binary.LittleEndian.PutUint32(bad[4:], uint32(n))
			if _, _, err := decodeEntry(bad, seedOf(1)); err == nil {
				t.Errorf("entry with length %d is taken", n)
			}
			for at := range payload { // every field that may be a length becomes this one
				bad := slices.Concat(payload[:at], binary.AppendUvarint(nil, n), payload[at+1:])
				switch kind {
				case kindGroup:
					if g, err := decodeGroup(bad); err == nil {
						appendTxRecords(nil, g)
					}
				case kindCheckpoint:
					decodeCheckpoint(bad)
				}
			}
		}
	}
	idx := segmentIndex{batches: []segmentBatch{{base: 1, pos: 16}, {base: 9, pos: 900, before: 7}}, records: 2, maxCSN: 9}
	footer := idx.append(nil)
	footer = footer[:len(footer)-segmentTrailerSize]
	for _, n := range lengths {
		for at := range footer {
			decodeSegmentFooter(slices.Concat(footer[:at], binary.AppendUvarint(nil, n), footer[at+1:]))
			decodeIndex(slices.Concat(footer[:at], binary.AppendUvarint(nil, n), footer[at+1:]))
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 256<<20 {
		t.Errorf("%d bytes allocated for some thousand small inputs", got)
	}
}
