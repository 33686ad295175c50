package eventlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"runtime/metrics"
	"strings"
	"testing"

	kprotocol "github.com/segmentio/kafka-go/protocol"
)

var compressions = []Compression{CompressionNone, CompressionSnappy, CompressionLZ4, CompressionZstd}

func sampleRecords() []Record {
	return []Record{
		{Offset: 17, CSN: 914793674309633, Seq: 0, Op: 1, Flags: 0, Schema: 4, Time: 1767323045678901, Key: []byte("k1"), Value: []byte("value")},
		{Offset: 18, CSN: 914793674309633, Seq: 1, Op: 3, Flags: 2, Schema: 4, Time: 1767323045678901, Key: []byte("k2")},
		{Offset: 20, CSN: 914793674309700, Seq: 300, Op: 2, Flags: 5, Schema: 70000, Time: 1767323045600000, Key: nil, Value: []byte{}},
	}
}

func build(records []Record, base CSN, withBase bool, c Compression) []byte {
	var b BatchBuilder
	b.Reset(base, withBase)
	for i := range records {
		b.Add(&records[i], i == 1)
	}
	return b.AppendTo(nil, c)
}

// TestBatchGolden pins the bytes: they are on disks and on brokers.
func TestBatchGolden(t *testing.T) {
	for _, tt := range []struct {
		name     string
		withBase bool
		want     string
	}{
		{"local, base in the producer id", true, goldenLocal},
		{"kafka, CSN whole", false, goldenKafka},
	} {
		got := hex.EncodeToString(build(sampleRecords(), 914793674309633, tt.withBase, CompressionNone))
		if want := strings.Join(strings.Fields(tt.want), ""); got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, want)
		}
	}
}

func TestBatchRoundTrip(t *testing.T) {
	for _, c := range compressions {
		for _, withBase := range []bool{true, false} {
			records := sampleRecords()
			raw := build(records, records[0].CSN, withBase, c)
			b, err := DecodeBatch(append(bytes.Clone(raw), "what follows"...))
			if err != nil {
				t.Fatalf("%v: DecodeBatch = %v", c, err)
			}
			if b.Base != 17 || b.Last != 20 || b.Count != 3 || b.Compression != c || b.Size != len(raw) || b.MaxTime != 1767323045678 {
				t.Errorf("%v: header is %+v", c, b)
			}
			it, err := b.Records()
			if err != nil {
				t.Fatalf("%v: Records = %v", c, err)
			}
			for i, want := range records {
				var got Record
				if ok, err := it.Next(&got); !ok || err != nil || !reflect.DeepEqual(got, want) || it.Every != (i == 1) {
					t.Errorf("%v: record %d = %+v, %v, %v, every %v; want %+v", c, i, got, ok, err, it.Every, want)
				}
			}
			if ok, err := it.Next(new(Record)); ok || err != nil {
				t.Errorf("%v: Next behind the last = %v, %v", c, ok, err)
			}
		}
	}
}

// TestBatchReadByKafkaGo lets another implementation of the protocol read our batches.
func TestBatchReadByKafkaGo(t *testing.T) {
	for _, c := range compressions {
		records := sampleRecords()
		for i := range 200 {
			records = append(records, Record{
				Offset: Offset(21 + i), CSN: records[0].CSN + CSN(i), Seq: uint32(i), Op: 2, Schema: 1,
				Time: 1767323045000000 + int64(i)*1500, Key: fmt.Append(nil, "key", i), Value: bytes.Repeat([]byte("v"), i*37),
			})
		}
		raw := build(records, records[0].CSN, true, c)
		set := append([]byte{byte(len(raw) >> 24), byte(len(raw) >> 16), byte(len(raw) >> 8), byte(len(raw))}, raw...)
		var rs kprotocol.RecordSet
		if _, err := rs.ReadFrom(bytes.NewReader(set)); err != nil {
			t.Fatalf("%v: kafka-go reads our batch: %v", c, err)
		}
		if rs.Version != 2 || rs.Attributes.Transactional() || rs.Attributes.Control() {
			t.Errorf("%v: version %d, attributes %v", c, rs.Version, rs.Attributes)
		}
		for i, want := range records {
			got, err := rs.Records.ReadRecord()
			if err != nil {
				t.Fatalf("%v: record %d: %v", c, i, err)
			}
			checkKafkaRecord(t, c, got, want)
		}
	}
}

func checkKafkaRecord(t *testing.T, c Compression, got *kprotocol.Record, want Record) {
	t.Helper()
	key, err1 := kprotocol.ReadAll(got.Key)
	value, err2 := kprotocol.ReadAll(got.Value)
	if err1 != nil || err2 != nil || !bytes.Equal(key, want.Key) || !bytes.Equal(value, want.Value) ||
		(got.Value == nil) != (want.Value == nil) || (got.Key == nil) != (want.Key == nil) {
		t.Errorf("%v: offset %d: key %q, value %q, %v, %v", c, want.Offset, key, value, err1, err2)
	}
	if got.Offset != int64(want.Offset) || got.Time.UnixMilli() != want.Time/1000 {
		t.Errorf("%v: offset %d at %v, want %d at %d", c, got.Offset, got.Time, want.Offset, want.Time)
	}
	if len(got.Headers) != 1 || got.Headers[0].Key != "t" {
		t.Errorf("%v: offset %d: headers %v", c, want.Offset, got.Headers)
	}
}

// TestBatchDamage flips every bit of a batch: each is found.
func TestBatchDamage(t *testing.T) {
	for _, c := range compressions {
		raw := build(sampleRecords(), 914793674309633, true, c)
		for bit := range len(raw) * 8 {
			if bit/8 < 8 || bit/8 >= 12 && bit/8 < 16 {
				continue // base offset and leader epoch, which a broker may change, are not covered
			}
			bad := bytes.Clone(raw)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, err := DecodeBatch(bad); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v: bit %d flipped: %v", c, bit, err)
			}
		}
		for n := range raw {
			if _, err := DecodeBatch(raw[:n]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v: cut to %d bytes: %v", c, n, err)
			}
		}
	}
}

func TestBatchFits(t *testing.T) {
	var b BatchBuilder
	b.Reset(100, true)
	first := Record{Offset: 5, CSN: 100}
	if !b.Fits(&first) {
		t.Error("the first record does not fit")
	}
	b.Add(&first, false)
	for name, r := range map[string]Record{
		"CSN below the base": {Offset: 6, CSN: 99},
		"offset not ahead":   {Offset: 5, CSN: 100},
		"offset far away":    {Offset: 5 + maxBatchSpan, CSN: 100},
		"offset of a skip":   {Offset: 6 + ForeignSkip, CSN: 100 + ForeignSkip},
	} {
		if b.Fits(&r) {
			t.Errorf("record with %s fits", name)
		}
	}
}

// TestRecordLengths writes records whose lengths take one byte more or less: each
// length is the shortest form of what follows, and they are read as they were written.
func TestRecordLengths(t *testing.T) {
	for _, around := range []int{64, 8192, 1 << 20} { // from there on a length takes one byte more
		for n := around - 40; n < around+10; n++ {
			in := []Record{{CSN: 7, Value: make([]byte, n)}, {Offset: 1 << 20, CSN: 1 << 40, Seq: 1 << 20, Schema: 1 << 20, Time: 999, Key: []byte("k"), Value: make([]byte, n)}}
			raw := build(in, 7, true, CompressionNone)
			length, w := binary.Varint(raw[batchHeader:])
			if w != len(binary.AppendVarint(nil, length)) {
				t.Errorf("value of %d bytes: a length of %d in %d bytes", n, length, w)
			}
			b, err := DecodeBatch(raw)
			if err != nil {
				t.Fatal(err)
			}
			it, err := b.Records()
			if err != nil {
				t.Fatal(err)
			}
			for i := range in {
				var r Record
				if ok, err := it.Next(&r); !ok || err != nil || !reflect.DeepEqual(r, in[i]) {
					t.Fatalf("value of %d bytes: record %d is read %v, %v, as %+.100v", n, i, ok, err, r)
				}
			}
		}
	}
}

func FuzzBatch(f *testing.F) {
	for _, c := range compressions {
		f.Add(build(sampleRecords(), 914793674309633, true, c))
		f.Add(build(usualRecords(5), 1000, true, c))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := DecodeBatchHeader(raw) // without the checksum, to reach what is behind it
		if err != nil {
			return
		}
		var it RecordIter
		// Compressed, it may hold what its bytes can be worth: in zstd 128 KiB for a
		// block of 4 bytes; lz4 has buffers of at most 4 MiB, which are kept.
		most := 10*uint64(len(raw)) + 256<<10
		switch {
		case b.Compression == CompressionZstd:
			most += 3 * uint64(len(raw)/4+1) * 128 << 10
		case b.Compression != CompressionNone:
			most += 1200*uint64(len(raw)) + 24<<20
		}
		took := allocated(func() { err = it.Reset(b) })
		for try := 0; try < 5 && took > most; try++ { // others allocate too
			took = min(took, allocated(func() { err = it.Reset(b) }))
		}
		if took > most {
			t.Errorf("%d bytes allocated for a batch of %d, %v", took, len(raw), b.Compression)
		}
		if err != nil {
			return
		}
		slow, _ := b.Records()
		var records []Record
		for {
			var r, want Record
			ok, err := it.Next(&r)
			wantOK, wantErr := slow.any(&want)
			if ok != wantOK || fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && (!reflect.DeepEqual(r, want) || it.Every != slow.Every) {
				t.Fatalf("Next = %+v, %v, %v; read the long way it is %+v, %v, %v", r, ok, err, want, wantOK, wantErr)
			}
			if err != nil || !ok {
				break
			}
			records = append(records, r)
		}
		reencode(t, records)
	})
}

// allocated returns the bytes that do allocates, to some 100 KiB.
func allocated(do func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	do()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}

// reencode checks that what was decoded is encoded and decoded to the same.
func reencode(t *testing.T, records []Record) {
	var bb BatchBuilder
	bb.Reset(0, true)
	var kept []Record
	for i := range records {
		if bb.Fits(&records[i]) && records[i].Time > -1<<60 && records[i].Time < 1<<60 {
			bb.Add(&records[i], false)
			kept = append(kept, records[i])
		}
	}
	if len(kept) == 0 {
		return
	}
	b, err := DecodeBatch(bb.AppendTo(nil, CompressionNone))
	if err != nil {
		t.Fatalf("decode of what was encoded: %v", err)
	}
	it, err := b.Records()
	if err != nil {
		t.Fatal(err)
	}
	for i := range kept {
		var r Record
		if ok, err := it.Next(&r); !ok || err != nil || !reflect.DeepEqual(r, kept[i]) {
			t.Fatalf("record %d = %+v, %v, %v; want %+v", i, r, ok, err, kept[i])
		}
	}
}
