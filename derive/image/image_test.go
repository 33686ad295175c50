package image

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func column(number uint32, name string, kind change.Kind) change.Column {
	return change.Column{Number: number, Name: name, Kind: kind, Nullable: true}
}

func schemaOf(id uint32, columns ...change.Column) *change.Schema {
	return &change.Schema{Topic: "t", ID: id, Columns: columns, Key: []int{0}}
}

func record(s *change.Schema, flags change.Flags, seq uint32, values ...change.Value) *eventlog.Record {
	return &eventlog.Record{CSN: 9, Seq: seq, Schema: s.ID, Flags: uint8(flags), Key: change.AppendKeyPart(nil, values[0], false),
		Value: change.AppendRecordValue(nil, nil, change.AppendRow(nil, values))}
}

// A batch sees its own writes, a frozen reader those before it.
func TestBatchAndFrozenReader(t *testing.T) {
	s := open(t)
	b := s.Batch()
	for _, k := range []string{"a", "b", "c"} {
		if err := b.Set([]byte(k), []byte(k+k)); err != nil {
			t.Fatal(err)
		}
	}
	f := b.Frozen()
	if v, ok, err := f.Get(nil, []byte("b")); string(v) != "bb" || !ok || err != nil {
		t.Errorf("frozen get %q %v %v", v, ok, err)
	}
	if err := b.Delete([]byte("b")); err != nil {
		t.Fatal(err)
	}
	scan := func(r Reader, lower, upper string) (keys string) {
		err := r.Scan([]byte(lower), []byte(upper), func(k, _ []byte) (bool, error) { keys += string(k); return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	for range 3 { // iterators are reused
		if got := scan(b, "a", "d") + scan(b, "b", "d") + scan(b, "a", "c"); got != "acca" {
			t.Errorf("batch scans %q", got)
		}
	}
	if _, ok, _ := f.Get(nil, []byte("b")); !ok {
		t.Error("a frozen reader sees a later delete")
	}
	if _, ok, _ := b.Get(nil, []byte("b")); ok {
		t.Error("a batch does not see its delete")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(true); err != nil {
		t.Fatal(err)
	}
	snap := s.Snapshot()
	defer snap.Close()
	if got := scan(snap, "", "z"); got != "ac" {
		t.Errorf("snapshot %q", got)
	}
}

func TestSuccessor(t *testing.T) {
	for _, tt := range []struct{ prefix, want string }{{"a", "b"}, {"a\xff", "b"}, {"T\x00\xff\xff", "T\x01"}} {
		if got := Successor(nil, []byte(tt.prefix)); string(got) != tt.want {
			t.Errorf("Successor(%q) = %q", tt.prefix, got)
		}
	}
}

// Rows of every layout end in the image's own: defaults of columns added later,
// nulls, unchanged columns of the row before and of a moved one.
func TestApplierFillsColumns(t *testing.T) {
	old := schemaOf(1, column(1, "id", change.KindInt), column(2, "body", change.KindText))
	added := column(3, "n", change.KindInt)
	added.HasDefault, added.Default = true, change.AppendValue(nil, change.Int(7))
	strict := column(4, "strict", change.KindInt)
	strict.Nullable = false
	newest := schemaOf(2, append(append([]change.Column{}, old.Columns...), added, strict)...)
	schemas := map[uint32]*change.Schema{1: old, 2: newest}
	table := NewTable(5, "t", []Need{{Schema: newest, Columns: []uint32{1, 2, 3, 4}, Indexes: []IndexNeed{{Columns: []uint32{3}, Fold: []bool{false}}}}})
	s := open(t)
	b := s.Batch()
	defer b.Close()
	a := NewApplier(table, func(_ string, id uint32) (*change.Schema, bool) { s, ok := schemas[id]; return s, ok })
	apply := func(rec *eventlog.Record) Delta {
		t.Helper()
		d, err := a.Prepare(b, rec)
		if err == nil {
			err = a.Write(b, &d, rec.CSN)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := apply(record(old, 0, 0, change.Int(1), change.Text("LARGE")))
	if !d.New[3].IsUnchanged() || d.New[2].Int64() != 7 || d.Old != nil {
		t.Errorf("row of the old layout: %+v", d.New)
	}
	d = apply(record(newest, change.FlagPartial, 1, change.Int(1), change.UnchangedValue, change.Int(8), change.Int(0)))
	if d.New[1].TextValue() != "LARGE" || d.Same || d.Old == nil {
		t.Errorf("partial row: %+v", d)
	}
	if d = apply(record(newest, 0, 2, change.Int(1), change.Text("LARGE"), change.Int(8), change.Int(0))); !d.Same {
		t.Error("an equal row counts as a change")
	}
	key := change.AppendKeyPart(nil, change.Int(1), false)
	apply(&eventlog.Record{CSN: 9, Seq: 3, Flags: uint8(change.FlagMoved), Key: key})
	d = apply(record(newest, change.FlagMoved|change.FlagPartial, 4, change.Int(2), change.UnchangedValue, change.Null, change.Int(0)))
	if d.New[1].TextValue() != "LARGE" {
		t.Errorf("moved row: %+v", d.New)
	}
	d = apply(record(newest, change.FlagMoved|change.FlagPartial, 9, change.Int(3), change.UnchangedValue, change.Int(1), change.Int(0)))
	if !d.New[1].IsUnchanged() {
		t.Errorf("a move without its delete half: %+v", d.New)
	}
	var entries int
	bounds := Prefixed(table.IndexPrefix(nil, &table.Indexes[0]))
	if err := b.Scan(bounds[0], bounds[1], func(_, _ []byte) (bool, error) { entries++; return true, nil }); err != nil {
		t.Fatal(err)
	}
	if entries != 1 { // row 1 is gone, row 2 has null, row 3 has 1
		t.Errorf("%d index entries", entries)
	}
}

func TestTableIsKept(t *testing.T) {
	s := schemaOf(4, column(1, "id", change.KindInt), column(9, "x", change.KindText))
	table := NewTable(3, "t", []Need{{Schema: s, Columns: []uint32{1, 9}, Indexes: []IndexNeed{{Columns: []uint32{9}, Fold: []bool{true}}}}})
	text, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	var back Table
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil || !bytes.Equal(text, again) || back.Layout.ID != 4 || len(back.Indexes) != 1 || back.Indexes[0].Columns[0] != 1 {
		t.Errorf("%s became %s, %v", text, again, err)
	}
	if !back.Serves(Need{Schema: s, Columns: []uint32{9}}) || back.Serves(Need{Schema: s, Columns: []uint32{2}}) {
		t.Error("Serves")
	}
}
