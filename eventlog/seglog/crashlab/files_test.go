package crashlab

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// damage is something that happens to a file; nil bytes: it is gone.
type damage struct {
	name string
	to   func(b []byte, rng *rand.Rand) []byte
}

func overwrite(b []byte, at int, with []byte) []byte {
	b = bytes.Clone(b)
	copy(b[min(at, len(b)):], with)
	return b
}

var damages = []damage{
	{"gone", func([]byte, *rand.Rand) []byte { return nil }},
	{"empty", func([]byte, *rand.Rand) []byte { return []byte{} }},
	{"one byte", func(b []byte, _ *rand.Rand) []byte { return b[:1] }},
	{"half a header", func(b []byte, _ *rand.Rand) []byte { return b[:8] }},
	{"a header alone", func(b []byte, _ *rand.Rand) []byte { return b[:16] }},
	{"another magic", func(b []byte, _ *rand.Rand) []byte { return overwrite(b, 0, []byte("ELF?")) }},
	{"a future version", func(b []byte, _ *rand.Rand) []byte { return overwrite(b, 4, []byte{2, 0}) }},
	{"a past version", func(b []byte, _ *rand.Rand) []byte { return overwrite(b, 4, []byte{0, 0}) }},
	{"the other byte order", func(b []byte, _ *rand.Rand) []byte { return overwrite(b, 4, []byte{0, 1}) }},
	{"4 KiB of zeros", func(b []byte, rng *rand.Rand) []byte { return overwrite(b, rng.IntN(len(b)), make([]byte, 4096)) }},
	{"4 KiB of ones", func(b []byte, rng *rand.Rand) []byte {
		return overwrite(b, rng.IntN(len(b)), bytes.Repeat([]byte{0xff}, 4096))
	}},
	{"4 KiB of text", func(b []byte, rng *rand.Rand) []byte {
		return overwrite(b, rng.IntN(len(b)), bytes.Repeat([]byte("text"), 1024))
	}},
	{"zeros behind it", func(b []byte, _ *rand.Rand) []byte { return append(bytes.Clone(b), make([]byte, 5000)...) }},
	{"itself behind it", func(b []byte, _ *rand.Rand) []byte { return append(bytes.Clone(b), b...) }},
	{"noise behind it", func(b []byte, rng *rand.Rand) []byte {
		b = bytes.Clone(b)
		for range 5000 {
			b = append(b, byte(rng.Uint32()))
		}
		return b
	}},
	{"two entries swapped", swapEntries},
	{"an entry replayed", func(b []byte, _ *rand.Rand) []byte {
		if !bytes.HasPrefix(b, []byte("TWJL")) {
			return b
		}
		first := 16 + entrySize(b[16:])
		if first >= int64(len(b)) {
			return b
		}
		return append(bytes.Clone(b), b[first:first+entrySize(b[first:])]...)
	}},
}

// swapEntries swaps the first two groups of a journal file, or batches of a segment.
func swapEntries(b []byte, _ *rand.Rand) []byte {
	begin, size := int64(16), entrySize
	if bytes.HasPrefix(b, []byte("TWSG")) {
		size = func(b []byte) int64 {
			h, err := eventlog.DecodeBatch(b)
			if err != nil {
				return int64(len(b)) + 1
			}
			return int64(h.Size)
		}
	} else if bytes.HasPrefix(b, []byte("TWJL")) {
		begin += entrySize(b[16:])
	} else {
		return b
	}
	if begin >= int64(len(b)) {
		return b
	}
	second := begin + size(b[begin:])
	if second >= int64(len(b)) {
		return b
	}
	end := second + size(b[second:])
	if end > int64(len(b)) {
		return b
	}
	return slices.Concat(b[:begin], b[second:end], b[begin:second], b[end:])
}

// smallLog is a log with all kinds of files, several of each.
func smallLog(t *testing.T, seed uint64) *healthy {
	l := newLife(rand.New(rand.NewPCG(seed, 1<<47)), t.Logf)
	l.opts.FileBytes, l.opts.SealBatch, l.values = 1<<20, 300, 40
	l.session(strike{}, func() {
		for _, c := range []string{"none", "zstd"} {
			l.topicWith(c)
		}
		for _, name := range strings.Split("append append mark append append seal_all append append seal_all compact append append roll append append append roll append append append", " ") {
			l.do(operationNamed(strings.ReplaceAll(name, "_", " ")))
		}
		l.strike.crashed = l.fs.Clone()
	})
	h := healthyLog(l)
	if l.faults.Any() {
		t.Fatal("the log is not healthy")
	}
	return h
}

// shown tells what is wrong with what a damaged copy of the log shows. Only the
// newest file of the journal may lose its end, and only whole transactions of it.
func (h *healthy) shown(disk *vfs.Mem, newest bool) string {
	got, err := contentsOf(disk, h.opts)
	switch {
	case errors.Is(err, eventlog.ErrCorrupt):
		return ""
	case err != nil:
		return fmt.Sprintf("%v; not called damage", err)
	case slices.Equal(got.txs, h.want.txs) && slices.Equal(got.rest, h.want.rest):
		return ""
	case newest && len(got.txs) <= len(h.want.txs) && slices.Equal(got.txs, h.want.txs[:len(got.txs)]):
		return ""
	}
	return fmt.Sprintf("%d transactions of %d, other contents, without an error", len(got.txs), len(h.want.txs))
}

// TestFileFaults does every damage to every file: it is detected, or all is there.
func TestFileFaults(t *testing.T) {
	h := smallLog(t, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	cases := 0
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		for _, d := range damages {
			for range 3 {
				cases++
				disk := h.fs.Clone()
				replaceFile(t, disk, name, d.to(h.bytes(name), rng))
				if isSegment(name) && d.name == "gone" {
					continue // no name, no file: see TestMissingSegment
				}
				if what := h.shown(disk, name == h.newest); what != "" {
					t.Errorf("%s: %s: %s", name, d.name, what)
				}
			}
		}
	}
	if cases < 300 {
		t.Errorf("only %d cases", cases)
	}
}

// TestFileCutAnywhere ends every file at every byte.
func TestFileCutAnywhere(t *testing.T) {
	h := smallLog(t, 2)
	for name, size := range h.files {
		for at := int64(0); at < size; at += 3 {
			disk := h.fs.Clone()
			replaceFile(t, disk, name, h.bytes(name)[:at])
			if what := h.shown(disk, name == h.newest); what != "" {
				t.Errorf("%s cut at byte %d of %d: %s", name, at, size, what)
			}
		}
	}
}

// TestFileInPlaceOfAnother puts files where others belong: of the same log, and of another one.
func TestFileInPlaceOfAnother(t *testing.T) {
	h, other := smallLog(t, 1), smallLog(t, 3)
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		for _, from := range slices.Sorted(maps.Keys(h.files)) {
			if from == name || strings.HasSuffix(name, "/meta") {
				continue
			}
			disk := h.fs.Clone()
			replaceFile(t, disk, name, h.bytes(from))
			if what := h.shown(disk, name == h.newest); what != "" {
				t.Errorf("%s in place of %s: %s", from, name, what)
			}
		}
		if _, ok := other.files[name]; ok && isJournal(name) {
			disk := h.fs.Clone()
			replaceFile(t, disk, name, other.bytes(name))
			if what := h.shown(disk, false); what != "" {
				t.Errorf("%s of another log: %s", name, what)
			}
		}
	}
}

// TestForeignNames: what is not the log's is left alone and does no harm.
func TestForeignNames(t *testing.T) {
	h := smallLog(t, 1)
	names := []string{
		"log/notes.txt", "log/journal/notes.txt", "log/journal/1.journal", "log/journal/000000000001.journal.bak", "log/journal/000000000000.journal",
		"log/topics/lost+found/x", "log/topics/notes/00000-00000000000000000000-00000000000000000009.seg",
	}
	for name := range h.files {
		if isSegment(name) {
			names = append(names, name+".bak", name[:strings.LastIndexByte(name, '/')]+"/.nfs0001")
			break
		}
	}
	for i := range 1000 {
		names = append(names, fmt.Sprintf("log/journal/other-%d", i))
	}
	for _, name := range names {
		if err := h.fs.MkdirAll(name[:strings.LastIndexByte(name, '/')]); err != nil {
			t.Fatal(err)
		}
		replaceFile(t, h.fs, name, []byte("not ours"))
	}
	disk := h.fs.Clone()
	if what := h.shown(disk, false); what != "" {
		t.Error(what)
	}
	for _, name := range names {
		if b, err := vfs.ReadFile(disk, name); string(b) != "not ours" || err != nil {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
}

func replaceFile(t *testing.T, disk *vfs.Mem, name string, b []byte) {
	t.Helper()
	if b == nil {
		if err := disk.Remove(name); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := disk.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}
