package snapshot

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/tailwater/tailwater/change"
)

func TestCursor(t *testing.T) {
	for _, c := range []cursor{
		{},
		{complete: true, inner: []byte("inner")},
		{sweep: true, pending: []string{"100", "99"}, inner: []byte{0}},
	} {
		b := c.append(nil)
		got, err := decodeCursor(b)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if got.complete != c.complete || got.sweep != c.sweep || !bytes.Equal(got.inner, c.inner) || !reflect.DeepEqual(got.pending, c.pending) {
			t.Errorf("%+v came back as %+v", c, got)
		}
	}
	want := []byte{1, 2, 1, 3, '1', '0', '0', 'x'}
	if got := (&cursor{sweep: true, pending: []string{"100"}, inner: []byte("x")}).append(nil); !bytes.Equal(got, want) {
		t.Errorf("bytes %v, wanted %v", got, want)
	}
	for _, bad := range [][]byte{nil, {1}, {2, 0, 0}, {1, 4, 0}, {1, 0}, {1, 0, 9}, {1, 0, 1, 200, 1}} {
		if _, err := decodeCursor(bad); err == nil {
			t.Errorf("%v decodes", bad)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add((&cursor{pending: []string{"7"}, inner: []byte("x")}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := decodeCursor(b); err == nil {
			if again, err := decodeCursor(c.append(nil)); err != nil || !reflect.DeepEqual(c.inner, again.inner) {
				t.Errorf("%v: %+v, %v", b, again, err)
			}
		}
	})
}

// TestForget: a table that is captured no more is read anew when it comes back.
func TestForget(t *testing.T) {
	log := &simLog{}
	take := func(m *Machine) {
		for {
			a, err := m.Next()
			if err != nil {
				t.Fatal(err)
			}
			if a.Kind != ActionAppend {
				return
			}
			log.append(a.Batch, 0)
		}
	}
	m := New("src")
	m.Begin(Start{Topic: simTopic})
	take(m)
	m.Deliver(&Chunk{View: allSeen{}, Rows: &change.Batch{}, Schema: simSchema, Cursor: []byte("end"), Last: true})
	take(m)
	if s := m.Table(simTopic); s.Running || s.Mark.Run != 1 || string(s.Cursor) != "end" {
		t.Fatalf("after the run: %+v", s)
	}
	m.Forget(simTopic)
	m.Forget(simTopic)
	take(m)
	marks, _ := log.marks()
	again := New("src")
	if err := again.Restore(marks, 0); err != nil {
		t.Fatal(err)
	}
	if s := again.Table(simTopic); s.Running || s.Run != 1 || s.Mark.Run != 0 {
		t.Errorf("after it was forgotten: %+v", s)
	}
	if len(log.entries) != 3 {
		t.Errorf("%d batches, wanted begun, done, stopped", len(log.entries))
	}
}

// TestUnsettled: transactions are forgotten once a view contains them.
func TestUnsettled(t *testing.T) {
	m := New("src")
	for _, tx := range []string{"5", "6", "9"} {
		m.Observe(&change.Batch{Tx: tx})
	}
	m.Observe(&change.Batch{Tx: "10", More: true})
	if n := m.Unsettled(); n != 3 {
		t.Errorf("%d kept, wanted 3: one has not ended", n)
	}
	m.Settle(&simView{xmin: 6, xmax: 9, active: map[uint64]bool{6: true}})
	if n := m.Unsettled(); n != 2 {
		t.Errorf("%d kept, wanted 6 and 9", n)
	}
}

// TestNothingInside: between the parts of a transaction nothing is appended.
func TestNothingInside(t *testing.T) {
	m := New("src")
	m.Observe(&change.Batch{Tx: "5", More: true})
	m.Begin(Start{Topic: simTopic})
	if a, err := m.Next(); err != nil || a.Kind != ActionWait {
		t.Fatalf("inside a transaction: %+v, %v", a, err)
	}
	m.Observe(&change.Batch{Tx: "5"})
	if a, err := m.Next(); err != nil || a.Kind != ActionAppend {
		t.Fatalf("behind it: %+v, %v", a, err)
	}
}

// TestCollectionBound: a collection that grows too large is given up, and the chunk read again.
func TestCollectionBound(t *testing.T) {
	m := New("src")
	m.Begin(Start{Topic: simTopic})
	for range 2 {
		if _, err := m.Next(); err != nil {
			t.Fatal(err)
		}
	}
	m.current.window.bytes = collectBytes
	b := &change.Batch{Tx: "5"}
	b.Add(simSchema, change.OpDelete, 0, simKey(1), nil, nil)
	m.Observe(b)
	m.Deliver(&Chunk{View: allSeen{}, Rows: &change.Batch{}, Schema: simSchema})
	if a, err := m.Next(); err != nil || a.Kind != ActionRead || a.Attempt != 1 {
		t.Errorf("then: %+v, %v", a, err)
	}
}
