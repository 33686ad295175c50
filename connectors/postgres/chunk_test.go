package postgres

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/tailwater/tailwater/change"
)

func TestVisibility(t *testing.T) {
	v, err := parseVisibility("4294967300:4294967310:4294967300,4294967305")
	if err != nil {
		t.Fatal(err)
	}
	for tx, want := range map[string]bool{"7": true, "4294967299": true, "4294967300": false, "4294967301": true, "4294967305": false,
		"4294967309": true, "4294967310": false, "9999999999": false, "": false, "x": false} {
		if got := v.Contains(tx); got != want {
			t.Errorf("Contains(%q) = %v", tx, got)
		}
	}
	for _, bad := range []string{"", "1:2", "2:1:", "1:2:x", "a:2:", "1:b:", "1:2:3:4"} {
		if _, err := parseVisibility(bad); err == nil {
			t.Errorf("%q is taken for a snapshot", bad)
		}
	}
}

func TestChunkCursor(t *testing.T) {
	for _, c := range []chunkCursor{
		{mode: planAll},
		{mode: planAdded, storage: []storage{{oid: 1, filenode: 2, done: true}}},
		{mode: byPlace, storage: []storage{{oid: 16384, filenode: 16390, done: true}, {oid: 4294967295, filenode: 7, started: true, page: 4294967294, item: 290}, {oid: 3, filenode: 4}}},
		{mode: byKeyOrder, key: []string{"a", "", "it's"}, storage: []storage{{oid: 1, filenode: 2}}},
		{mode: planAll, published: "16390:731 t16391"},
		{mode: byPlace, storage: []storage{{oid: 1, filenode: 2, done: true}}, published: "1:2"},
		{mode: byPlace, storage: []storage{{oid: 1, filenode: 2, done: true}}, published: "1:2", shape: shape{16400: {1, 2, 1 << 63}}.encode()},
		{mode: planAll, shape: "x"},
	} {
		got, err := decodeChunkCursor(c.encode())
		if err != nil || !reflect.DeepEqual(*got, c) {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
	}
	want := []byte{1, 2, 0, 1, 5, 6, 2, 7, 8}
	if got := (&chunkCursor{mode: byPlace, storage: []storage{{oid: 5, filenode: 6, started: true, page: 7, item: 8}}}).encode(); !bytes.Equal(got, want) {
		t.Errorf("bytes %v, wanted %v", got, want)
	}
	for _, bad := range [][]byte{{1}, {2, 0, 0, 0}, {1, 4, 0, 0}, {1, 2, 0, 1, 5, 6, 3}, {1, 2, 0, 0, 0}, {1, 2, 200}, {1, 2, 1, 9}, {1, 2, 0, 0, 1, 'p', 0}, {1, 2, 0, 0, 1, 'p', 2, 's'}, {1, 2, 0, 0, 1, 'p', 1, 's', 0}, {1, 2, 0, 0, 0, 0}} {
		if _, err := decodeChunkCursor(bad); err == nil {
			t.Errorf("%v decodes", bad)
		}
	}
}

func FuzzChunkCursor(f *testing.F) {
	f.Add((&chunkCursor{mode: byKeyOrder, key: []string{"k"}, storage: []storage{{oid: 1, filenode: 2}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeChunkCursor(b)
		if err != nil {
			return
		}
		if again, err := decodeChunkCursor(c.encode()); err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%v: %+v, %v", b, again, err)
		}
	})
}

func TestCompareStorage(t *testing.T) {
	c := &chunkCursor{mode: byPlace, storage: []storage{{oid: 1, filenode: 10}, {oid: 2, filenode: 20}}}
	for name, tt := range map[string]struct {
		now   []storage
		moved []string
		added int
	}{
		"same":      {[]storage{{oid: 1, filenode: 10}, {oid: 2, filenode: 20}}, nil, 0},
		"rewritten": {[]storage{{oid: 1, filenode: 11, changedBy: "700"}, {oid: 2, filenode: 20}}, []string{"700"}, 0},
		"added":     {[]storage{{oid: 1, filenode: 10}, {oid: 2, filenode: 20}, {oid: 3, filenode: 30}}, nil, 1},
		"removed":   {[]storage{{oid: 2, filenode: 20}}, []string{""}, 0},
		"exchanged": {[]storage{{oid: 1, filenode: 10}, {oid: 3, filenode: 30}}, []string{""}, 1},
	} {
		moved, added := c.compare(tt.now)
		if !reflect.DeepEqual(moved, tt.moved) || len(added) != tt.added {
			t.Errorf("%s: moved by %q, %d added", name, moved, len(added))
		}
	}
	if moved, added := (&chunkCursor{}).compare(c.storage); moved != nil || added != nil {
		t.Errorf("a run without a plan: %q, %v", moved, added)
	}
}

func TestCalendarText(t *testing.T) {
	for in, want := range map[string]string{"2026-01-02": "2026-01-02", "+12026-01-02": "12026-01-02", "0000-01-02": "0001-01-02 BC",
		"-0043-03-15T01:02:03Z": "0044-03-15T01:02:03Z BC", "infinity": "infinity", "-infinity": "-infinity"} {
		if got := calendarText([]byte(in)); got != want {
			t.Errorf("calendarText(%q) = %q, wanted %q", in, got, want)
		}
	}
}

func TestKeyCondition(t *testing.T) {
	known := &typeInfo{known: true}
	tb := newTable(table{schema: "public", name: "t", columns: []column{{typ: known}, {typ: known}}, layout: &change.Schema{
		Columns: []change.Column{{Name: "a", Kind: change.KindInt}, {Name: `b"c`, Kind: change.KindBytes}}, Key: []int{1, 0}}})
	key := change.AppendKeyPart(change.AppendKeyPart(nil, change.Bytes([]byte{0, 255}), false), change.Int(7), false)
	sql, args, ok := tb.keyCondition([]change.Key{key, change.AppendKeyPart(nil, change.Int(1), false), key})
	if want := `("b""c" = $1 AND "a" = $2) OR ("b""c" = $3 AND "a" = $4)`; !ok || sql != want || !reflect.DeepEqual(args, []string{`\x00ff`, "7", `\x00ff`, "7"}) {
		t.Errorf("condition %s %q %v", sql, args, ok)
	}
	if sql, _, ok := tb.keyCondition([]change.Key{change.AppendKeyPart(nil, change.Int(1), false)}); !ok || sql != "false" {
		t.Errorf("keys of another shape: %s, %v", sql, ok)
	}
	tb.columns[0].typ = &typeInfo{}
	if _, _, ok := tb.keyCondition([]change.Key{key}); ok {
		t.Error("a key of an unknown type is written as SQL")
	}
}
