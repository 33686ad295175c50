package sink

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
)

func TestCursorGolden(t *testing.T) {
	c := cursor{
		fingerprint: "f1", phase: phaseBuild, offsets: []eventlog.Offset{1, 300}, after: 5, part: 1, next: 7,
		stamp: Stamp{Log: [16]byte{1, 2}, CSN: 1 << 40, Seq: 3, Time: -1, Fingerprint: "f1", Complete: true},
	}
	b := c.append(nil)
	const want = "0102026631010200000000000000000000000000008080808080200301026631010201ac020501079f2c3d8c"
	if got := hex.EncodeToString(b); got[:len(got)-8] != want[:len(want)-8] {
		t.Errorf("cursor is %s; want %s", got, want)
	}
	got, err := decodeCursor(b)
	if err != nil || !reflect.DeepEqual(*got, c) {
		t.Errorf("decodeCursor = %+v, %v; want %+v", got, err, c)
	}
	for i := range b {
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x10
		if _, err := decodeCursor(bad); err == nil {
			t.Errorf("a flipped bit in byte %d was not noticed", i)
		}
	}
}

func FuzzDecodeCursor(f *testing.F) {
	f.Add((&cursor{offsets: []eventlog.Offset{1}}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCursor(b)
		if err != nil {
			return
		}
		if again, err := decodeCursor(c.append(nil)); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%+v does not survive: %+v, %v", c, again, err)
		}
	})
}

func FuzzDecodeStamp(f *testing.F) {
	f.Add(EncodeStamp(Stamp{CSN: 1, Fingerprint: "x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeStamp(b)
		if err != nil {
			return
		}
		if again, err := DecodeStamp(EncodeStamp(s)); err != nil || again != s {
			t.Fatalf("%+v does not survive", s)
		}
	})
}
