package seglog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

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

// FuzzDecoders feeds every decoder of payloads: group, adoption, chunk, row of
// _tx, checkpoint, index, footer of a segment, entry. None takes memory that its input is not
// worth, and what decodes encodes to the same again.
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
	idx := segmentIndex{batches: []segmentBatch{{base: 1, pos: 16}, {base: 9, pos: 900, before: 7, maxTime: 5}}, records: 2, maxCSN: 9}
	footer := idx.append(nil)
	f.Add(footer[:len(footer)-segmentTrailerSize])
	points := appendIndexEntry(nil, &journalFile{number: 1, index: []indexPoint{{16, 1, 2, noTime}, {1 << 20, 900, 901, 77}}})
	f.Add(points[entryHeaderSize:])
	f.Add(appendTxRow(nil, &eventlog.Tx{Source: "s", Position: []byte("p"), ID: "i", CSN: 7}, []sealedRun{{partKey{2, 1}, 8, 3}}))
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
	f.Fuzz(fuzzDecoders)
}

func fuzzDecoders(t *testing.T, b []byte) {
	bounded := func(what string, do func()) {
		took := uint64(math.MaxUint64)
		for try := 0; try < 5 && took > 10*uint64(len(b))+256<<10; try++ { // others allocate too
			took = min(took, allocated(do))
		}
		if took > 10*uint64(len(b))+256<<10 {
			t.Errorf("%s: %d bytes allocated for %d", what, took, len(b))
		}
	}
	var g *group
	var s *state
	var prev int64
	var err error
	bounded("group", func() { g, err = decodeGroup(b) })
	if err == nil {
		fuzzGroup(t, g)
	}
	bounded("checkpoint", func() { s, prev, err = decodeCheckpoint(b) })
	if err == nil {
		again := s.appendCheckpoint(nil, prev)
		s2, prev2, err := decodeCheckpoint(again)
		if err != nil || prev2 != prev || !bytes.Equal(s2.appendCheckpoint(nil, prev2), again) {
			t.Errorf("checkpoint is not what it was encoded from: %v", err)
		}
	}
	var a *adoption
	bounded("adoption", func() { a, err = decodeAdoption(b) })
	if err == nil {
		if again := a.append(nil); differs(a, again) { // b may have longer integers than needed
			t.Errorf("adopting entry %x is encoded as %x", b, again)
		}
		var tx eventlog.Tx
		if _, err := decodeTxRow(a.txRecord().Value, &tx, nil); err != nil {
			t.Errorf("row of _tx does not decode: %v", err)
		}
	}
	bounded("chunk", func() { decodeChunk(b) })
	bounded("index", func() { decodeIndex(b) })
	bounded("footer", func() { decodeSegmentFooter(b) })
	bounded("entry", func() { decodeEntry(b, 1) })
	var tx, again eventlog.Tx
	var runs []sealedRun
	bounded("row", func() { runs, err = decodeTxRow(b, &tx, nil) })
	if err == nil {
		if _, err := decodeTxRow(appendTxRow(nil, &tx, runs), &again, nil); err != nil || !reflect.DeepEqual(tx, again) {
			t.Errorf("row of _tx is %+v, %v; it was %+v", again, err, tx)
		}
	}
}

// allocated returns the bytes that are allocated while do runs, to some 100 KiB.
func allocated(do func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	do()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}

// fuzzGroup seals the rows of a group, if its offsets are such as a log gives.
func fuzzGroup(t *testing.T, g *group) {
	for _, b := range g.batches {
		if h, err := eventlog.DecodeBatchHeader(b.data); err != nil || h.Last > 1<<61 {
			return
		}
	}
	rows, err := appendTxRecords(nil, g)
	if err != nil {
		return
	}
	for _, r := range rows {
		var tx eventlog.Tx
		if _, err := decodeTxRow(r.Value, &tx, nil); err != nil {
			t.Errorf("row of _tx does not decode: %v", err)
		}
	}
}

// TestDecodersTakeLittleMemory decodes large payloads as a log has them: the
// memory is at most ten times the input.
func TestDecodersTakeLittleMemory(t *testing.T) {
	now := testTime.UnixMicro()
	st := newState()
	payload := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint([]byte{groupVersion}, 0), 0), 1)
	const n = 20_000
	payload = binary.AppendUvarint(payload, n)
	for i := range n {
		tx := &eventlog.Tx{Kind: eventlog.TxTick, CSN: eventlog.ClockCSN(testTime) + eventlog.CSN(i), Source: "shop", CommitTime: now, IngestTime: now, Position: []byte("0/16B3748 7/1/0/16B3800"), ID: fmt.Sprint(i)}
		payload = append(appendTxHead(payload, tx), 0)
		name := fmt.Sprint("shop.public.table", i)
		if err := st.setTopic(eventlog.Topic{ID: eventlog.TopicID(i + 1), Spec: eventlog.TopicSpec{Name: name, Partitions: 4, Cleanup: "compact", Compression: "zstd", TombstoneRetention: 24 * time.Hour}}); err != nil {
			t.Fatal(err)
		}
		st.sources[name] = eventlog.SourceState{Position: tx.Position, CSN: tx.CSN, CommitTime: now}
		st.setMark(mark{"sink." + name, make([]byte, 40)})
	}
	payload = append(payload, 0)
	checkpoint := st.appendCheckpoint(nil, 0)
	for what, c := range map[string]struct {
		b      []byte
		decode func([]byte) error
	}{
		"group":      {payload, func(b []byte) error { _, err := decodeGroup(b); return err }},
		"checkpoint": {checkpoint, func(b []byte) error { _, _, err := decodeCheckpoint(b); return err }},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.decode(c.b)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 10*uint64(len(c.b)) {
			t.Errorf("%s: %d bytes allocated for %d, %v", what, took, len(c.b), err)
		}
	}
}
