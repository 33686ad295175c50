package change

import (
	"bytes"
	"testing"
)

func TestRereadKey(t *testing.T) {
	key := AppendKeyPart(AppendKeyPart(nil, Text("a\x00b"), false), Int(-7), false)
	c := RereadRequest("src", "src.public.t", key)
	if c.Topic != "_snapshots.src" || string(c.Value) != "\x01" {
		t.Errorf("a request is %+v", c)
	}
	topic, got, ok := DecodeRereadKey(c.Key)
	if !ok || topic != "src.public.t" || !bytes.Equal(got, key) {
		t.Errorf("DecodeRereadKey = %q, %v, %v", topic, got, ok)
	}
	if IsSnapshotMark(c.Key) {
		t.Error("a request's key passes for a mark's")
	}
	m := SnapshotMark{Topic: "src.public.t", Run: 1}
	if _, _, ok := DecodeRereadKey(m.Key()); ok {
		t.Error("a mark's key passes for a request's")
	}
	if a := RereadAnswered("src", "src.public.t", key); a.Value != nil || a.Key.Compare(c.Key) != 0 {
		t.Errorf("an answer is %+v", a)
	}
	const golden = "207372632e7075626c69632e7400012072657265616400012120" // topic, word, tag of bytes; then the key escaped
	if hex := c.Key.String(); hex[:len(golden)] != golden {
		t.Errorf("the key is %s, wanted %s…", hex, golden)
	}
}

func FuzzDecodeRereadKey(f *testing.F) {
	f.Add([]byte(RereadKey("t", Key("k"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		if topic, key, ok := DecodeRereadKey(b); ok && !bytes.Equal(RereadKey(topic, key), b) {
			t.Errorf("%x decodes to another request", b)
		}
	})
}
