package seglog

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// journalBytes returns a small journal file's bytes.
func journalBytes(t testing.TB) []byte {
	fs := vfs.NewMem()
	l, err := Open("log", memOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := appendN(l, top, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.SaveCheckpoint("c", []byte("m")); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(fs, "log/journal/"+journalName(1))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzJournal opens journals of arbitrary bytes, their checksums mended so that
// the decoders behind them are reached: an error or a log, never a panic.
func FuzzJournal(f *testing.F) {
	f.Add(journalBytes(f)[fileHeaderSize:])
	f.Fuzz(openMended)
}

func openMended(t *testing.T, body []byte) {
	seed := seedOf(1)
	file := appendFileHeader(nil, 1)
	for rest := body; len(rest) >= entryHeaderSize; {
		n := int(decodeEntryHead(rest).n)
		if n > len(rest)-entryHeaderSize {
			n = len(rest) - entryHeaderSize
		}
		start := len(file)
		file = append(file, rest[:entryHeaderSize+n]...)
		finishEntry(file, start, seed, rest[8])
		rest = rest[entryHeaderSize+n:]
	}
	fs := vfs.NewMem()
	for _, d := range []string{"log/journal", "log/topics"} {
		if err := fs.MkdirAll(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteFile(fs, "log/journal", journalName(1), file); err != nil {
		t.Fatal(err)
	}
	opts := memOptions(fs)
	opts.TrustClock = true
	l, err := Open("log", opts)
	if err != nil {
		return
	}
	defer l.Close()
	r, err := l.Read(eventlog.ReadSpec{Outputs: true})
	if err != nil {
		return
	}
	for {
		if tx, err := r.Next(); tx == nil || err != nil {
			break
		}
	}
}

// streamBytes returns a small log with a streamed transaction, and its file's bytes.
func streamBytes(t testing.TB) (*vfs.Mem, []byte) {
	fs := vfs.NewMem()
	l, err := Open("log", streamOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	top, err := l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := streamed(l, top, 0); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(fs, "log/journal/"+streamName(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	return fs, b
}

// FuzzStreamedFile reads streamed files of arbitrary chunks, their checksums
// mended: an error or the transaction, never a panic.
func FuzzStreamedFile(f *testing.F) {
	disk, b := streamBytes(f)
	f.Add(b[fileHeaderSize:])
	f.Fuzz(func(t *testing.T, body []byte) {
		file := appendStreamHeader(nil, 1)
		for rest := body; len(rest) >= entryHeaderSize && len(file) < len(b); {
			n := min(int(decodeEntryHead(rest).n), len(rest)-entryHeaderSize)
			start := len(file)
			file = append(file, rest[:entryHeaderSize+n]...)
			finishEntry(file, start, seedOf(1), rest[8])
			rest = rest[entryHeaderSize+n:]
		}
		fs := disk.Clone()
		writeFile(t, fs, "log/journal/"+streamName(1, 1), append(file, make([]byte, max(0, len(b)-len(file)))...))
		l := mustOpen(t, memOptions(fs))
		defer l.Close()
		for _, pieces := range []bool{false, true} {
			r, err := l.Read(eventlog.ReadSpec{Pieces: pieces})
			if err != nil {
				t.Fatal(err)
			}
			for {
				if tx, err := r.Next(); tx == nil || err != nil {
					break
				}
			}
			r.Close()
		}
		if err := l.SealAll(context.Background()); err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("SealAll = %v", err)
		}
	})
}

// differs reports whether again decodes to something else than a.
func differs(a *adoption, again []byte) bool {
	b, err := decodeAdoption(again)
	return err != nil || !reflect.DeepEqual(a, b)
}

// FuzzDecoders feeds every payload decoder; what a checkpoint decodes to encodes to the same.
func FuzzDecoders(f *testing.F) {
	b := journalBytes(f)
	for rest := b[fileHeaderSize:]; len(rest) > 0; {
		_, payload, err := decodeEntry(rest, seedOf(1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
		rest = rest[entryHeaderSize+len(payload):]
	}
	disk, streamed := streamBytes(f)
	_, payload, err := decodeEntry(streamed[fileHeaderSize:], seedOf(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	l, err := OpenReadOnly("log", memOptions(disk))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l.tail.groups[len(l.tail.groups)-1].payload)
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := decodeGroup(b); err == nil {
			if rows, err := appendTxRecords(nil, g); err == nil {
				for _, r := range rows {
					var tx eventlog.Tx
					if _, err := decodeTxRow(r.Value, &tx, nil); err != nil {
						t.Errorf("row of _tx does not decode: %v", err)
					}
				}
			}
		}
		if a, err := decodeAdoption(b); err == nil {
			if again := a.append(nil); differs(a, again) { // b may have longer integers than needed
				t.Errorf("adopting entry %x is encoded as %x", b, again)
			}
			var tx eventlog.Tx
			if _, err := decodeTxRow(a.txRecord().Value, &tx, nil); err != nil {
				t.Errorf("row of _tx does not decode: %v", err)
			}
		}
		decodeChunk(b)
		decodeIndex(b)
		decodeSegmentFooter(b)
		decodeEntry(b, 1)
		if s, prev, err := decodeCheckpoint(b); err == nil {
			again := s.appendCheckpoint(nil, prev)
			s2, prev2, err := decodeCheckpoint(again)
			if err != nil || prev2 != prev || !bytes.Equal(s2.appendCheckpoint(nil, prev2), again) {
				t.Errorf("checkpoint is not what it was encoded from: %v", err)
			}
		}
	})
}
