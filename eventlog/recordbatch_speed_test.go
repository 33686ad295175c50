package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// usualRecords are like those of most tables: short keys, values of some hundred bytes.
func usualRecords(n int) []Record {
	rng := rand.New(rand.NewPCG(1, 2))
	records := make([]Record, n)
	for i := range records {
		v := make([]byte, 104)
		for j := range v {
			v[j] = byte('a' + rng.IntN(8))
		}
		records[i] = Record{
			Offset: Offset(i), CSN: CSN(1000 + i/10), Seq: uint32(i % 1000), Op: 2, Schema: 4, Time: 1767323045678901,
			Key: fmt.Appendf(nil, "k%08d", rng.IntN(500_000)), Value: v,
		}
	}
	return records
}

// TestUsualRecords reads records the short way and the long way: numbers of each
// length, nil and empty fields, and every byte of a record changed.
func TestUsualRecords(t *testing.T) {
	var records []Record
	for i, n := range []uint64{0, 1, 63, 64, 127, 128, 8191, 8192, 16383, 16384, 1 << 20, 1<<21 - 1, 1 << 21, 1 << 28, 1<<32 - 1} {
		for k, key := range [][]byte{nil, {}, []byte("k"), make([]byte, 100), make([]byte, 20000)} {
			records = append(records, Record{
				Offset: Offset(n)*2 + 1, CSN: 5 + CSN(n), Seq: uint32(n), Op: 3, Flags: 5, Schema: uint32(n), Time: 1767323045678901 + int64(n)*1000,
				Key: key, Value: [][]byte{nil, {}, []byte("v"), make([]byte, 70), make([]byte, 9000)}[(i+k)%5],
			})
		}
	}
	usual := 0
	for _, r := range records {
		for _, first := range []Offset{1, r.Offset} {
			if r.Offset-first >= maxBatchSpan {
				continue
			}
			usual += sameBothWays(t, []Record{{Offset: first - 1, CSN: 5, Time: 1767323045678901}, r, {Offset: r.Offset + 1, CSN: 9, Value: make([]byte, 80)}})
		}
	}
	if usual < 100 {
		t.Errorf("%d records were read the short way", usual)
	}
}

// sameBothWays returns how many records were read the short way.
func sameBothWays(t *testing.T, records []Record) (usual int) {
	raw := build(records, 5, true, CompressionNone)
	compare := func() int {
		b, err := DecodeBatchHeader(raw)
		if err != nil {
			t.Fatal(err)
		}
		return compareWays(t, b)
	}
	usual = compare()
	for at := batchHeader; at < min(len(raw), batchHeader+300); at++ {
		for _, flip := range []byte{1, 0x80, 0xff} {
			raw[at] ^= flip
			compare()
			raw[at] ^= flip
		}
	}
	return usual
}

func compareWays(t *testing.T, b Batch) (usual int) {
	it, err := b.Records()
	if err != nil {
		return 0
	}
	slow, _ := b.Records()
	for {
		var r, want Record
		if peek := *it; peek.left > 0 && peek.usual(new(Record)) {
			usual++
		}
		ok, err := it.Next(&r)
		wantOK, wantErr := slow.any(&want)
		if ok != wantOK || fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(r, want) || it.Every != slow.Every && err == nil {
			t.Fatalf("Next = %+v, %v, %v; the long way %+v, %v, %v", r, ok, err, want, wantOK, wantErr)
		}
		if !ok || err != nil {
			return usual
		}
	}
}

// TestSkip skips to offsets of a batch with gaps and with values of all lengths,
// whole and with each byte changed: where reading on finds a record at or above the
// offset, it is the same record. Bad lengths and offsets are told all the same.
func TestSkip(t *testing.T) {
	records := usualRecords(12)
	for i := range records {
		records[i].Offset = Offset(i*i*300 + 3)
		records[i].Value = append(records[i].Value, make([]byte, i%4*4000)...)
	}
	raw := build(records, 1000, true, CompressionNone)
	compare := func(below Offset) (left int) {
		want, _, wantErr := findFrom(raw, below, false)
		got, left, err := findFrom(raw, below, true)
		seen := wantErr == nil || strings.Contains(wantErr.Error(), " behind ") || strings.Contains(wantErr.Error(), " left") // a length, an offset
		if seen && (fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want)) {
			t.Fatalf("skipped to %d: %+v, %v, want %+v, %v", below, got, err, want, wantErr)
		}
		return left
	}
	for i := range records[:len(records)-1] {
		for passed := range Offset(2) {
			below := records[i].Offset + passed
			if left, want := compare(below), len(records)-i-int(passed); left != want {
				t.Errorf("skipped to %d: %d records left, want %d", below, left, want)
			}
		}
	}
	for at := batchHeader; at < batchHeader+600; at++ {
		for _, flip := range []byte{1, 2, 0x80, 0xff} {
			raw[at] ^= flip
			compare(records[2].Offset)
			compare(records[11].Offset)
			raw[at] ^= flip
		}
	}
}

// findFrom returns a batch's first record at or above an offset, and how many were left behind Skip.
func findFrom(raw []byte, from Offset, skip bool) (r Record, left int, err error) {
	b, err := DecodeBatchHeader(raw)
	if err != nil {
		return r, 0, err
	}
	it, err := b.Records()
	if err != nil {
		return r, 0, err
	}
	if skip {
		it.Skip(from)
	}
	left = it.left
	for ok := true; ok && err == nil; {
		if ok, err = it.Next(&r); ok && r.Offset >= from {
			return r, left, err
		}
	}
	return Record{}, left, err
}

// TestDraft builds a batch whose places are not yet known, compressed or not:
// placed, it is the batch that was built knowing them.
func TestDraft(t *testing.T) {
	for _, n := range []int{1, 10, 1000} { // with tails below and above combineFrom
		records := usualRecords(n)
		for _, c := range compressions {
			var early, late BatchBuilder
			early.Reset(0, true)
			late.Reset(70_000, true)
			for i := range records {
				r := records[i]
				r.CSN -= 1000
				early.Add(&r, false)
				r.Offset, r.CSN = r.Offset+500, r.CSN+70_000
				late.Add(&r, false)
			}
			early.Compress(c)
			raw, d := early.AppendDraft([]byte("what is before"))
			raw = raw[len("what is before"):]
			if d.Size != len(raw) || early.EncodedSize() != len(raw) {
				t.Errorf("%v: sizes %d and %d of %d bytes", c, d.Size, early.EncodedSize(), len(raw))
			}
			d.Place(raw, 500, 70_000)
			if want := late.AppendTo(nil, c); !reflect.DeepEqual(raw, want) {
				t.Errorf("%v: %d records placed differ from those built in place", c, n)
			}
		}
	}
}

func TestJoinChecksums(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := make([]byte, 200_000)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for _, n := range []int{0, 1, 2, 3, 7, 64, 1000, 65536, 100_001, len(b)} {
		for _, at := range []int{0, 1, n / 2, n} {
			first, second := crc32.Checksum(b[:min(at, n)], castagnoli), crc32.Checksum(b[min(at, n):n], castagnoli)
			if got, want := JoinChecksums(first, second, int64(n-min(at, n))), crc32.Checksum(b[:n], castagnoli); got != want {
				t.Errorf("%d bytes joined at %d: %08x, want %08x", n, at, got, want)
			}
		}
	}
}

// TestBatchAllocations: neither writing nor reading allocates once memory is there.
func TestBatchAllocations(t *testing.T) {
	records := usualRecords(1000)
	for _, c := range []Compression{CompressionNone, CompressionSnappy} {
		var b BatchBuilder
		var it RecordIter
		var raw []byte
		n := testing.AllocsPerRun(20, func() {
			b.Reset(1000, true)
			for i := range records {
				b.Add(&records[i], false)
			}
			raw = b.AppendTo(raw[:0], c)
			batch, err := DecodeBatch(raw)
			if err == nil {
				err = it.Reset(batch)
			}
			var r Record
			for ok := true; ok && err == nil; {
				ok, err = it.Next(&r)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if n > 2 { // under the race detector a pool of the compressor's forgets now and then
			t.Errorf("%v: %v allocations a batch", c, n)
		}
	}
}

// TestSnappyClaims: a block that claims to hold more than it can costs no memory.
func TestSnappyClaims(t *testing.T) {
	block := append(binary.AppendUvarint(nil, 1<<31), make([]byte, 100)...)
	framed := append([]byte(snappyMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	framed = append(binary.BigEndian.AppendUint32(framed, uint32(len(block))), block...)
	for name, raw := range map[string][]byte{"bare": block, "framed": framed, "cut": framed[:30]} {
		if out, err := decompress(nil, raw, CompressionSnappy); err == nil || cap(out) > 1<<16 {
			t.Errorf("%s: %d bytes, %v", name, cap(out), err)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	records := usualRecords(500)
	for _, c := range compressions {
		b.Run("write/"+c.String(), func(b *testing.B) {
			var bb BatchBuilder
			var raw []byte
			b.ReportAllocs()
			for b.Loop() {
				bb.Reset(1000, true)
				for i := range records {
					bb.Add(&records[i], false)
				}
				raw = bb.AppendTo(raw[:0], c)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
		})
		b.Run("read/"+c.String(), func(b *testing.B) {
			raw := build(records, 1000, true, c)
			var it RecordIter
			b.ReportAllocs()
			for b.Loop() {
				batch, err := DecodeBatch(raw)
				if err == nil {
					err = it.Reset(batch)
				}
				var r Record
				for ok := true; ok && err == nil; {
					ok, err = it.Next(&r)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
		})
	}
}

func BenchmarkJoinChecksums(b *testing.B) {
	for b.Loop() {
		JoinChecksums(1, 2, 1234567)
	}
}
