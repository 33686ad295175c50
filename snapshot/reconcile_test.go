package snapshot

import (
	"testing"

	"github.com/tailwater/tailwater/change"
)

// retyped is the table with its last column under another number, as after a rewrite of its type.
var retyped = &change.Schema{Topic: simTopic, Columns: []change.Column{simSchema.Columns[0], simSchema.Columns[1],
	{Number: 3 | 1<<16, Name: "big", Kind: change.KindText, Nullable: true}}, Key: []int{0}}

// TestV12Layouts: a partial row and a chunk row of other layouts are not merged:
// the chunk's row is left out, and its key read again once both are the same.
func TestV12Layouts(t *testing.T) {
	for name, streamed := range map[string]*change.Schema{"same": simSchema, "retyped": retyped} {
		t.Run(name, func(t *testing.T) {
			m := New("src")
			m.Begin(Start{Topic: simTopic})
			next := func(kind ActionKind) Action {
				a, err := m.Next()
				if err != nil || a.Kind != kind {
					t.Fatalf("Next = %+v, %v", a, err)
				}
				return a
			}
			next(ActionAppend)
			next(ActionRead)
			b := &change.Batch{Tx: "5"}
			b.Add(streamed, change.OpUpdate, change.FlagPartial, simKey(1), nil,
				change.AppendRow(nil, []change.Value{change.Int(1), change.Int(77), change.UnchangedValue}))
			m.Observe(b)
			rows := &change.Batch{Kind: change.Chunk}
			rows.Add(simSchema, change.OpRead, change.FlagSnapshot, simKey(1), nil, simRow{1, 10, 100}.encode(true))
			rows.Add(simSchema, change.OpRead, change.FlagSnapshot, simKey(2), nil, simRow{2, 20, 200}.encode(true))
			m.Deliver(&Chunk{View: allSeen{}, Rows: rows, Schema: simSchema, Last: true})
			got := next(ActionAppend).Batch
			if streamed == simSchema {
				after, _ := got.After(&got.Events[0])
				if row := decodeSimRow(after); len(got.Events) != 2 || row != (simRow{1, 77, 100}) {
					t.Errorf("the merged row is %v of %d", row, len(got.Events))
				}
				return
			}
			if len(got.Events) != 1 {
				t.Errorf("%d rows are appended, wanted the one without a change", len(got.Events))
			}
			if a := next(ActionRead); len(a.Keys) != 1 || a.Keys[0].Compare(simKey(1)) != 0 {
				t.Errorf("then: %+v", a)
			}
		})
	}
}

// TestV8Keyless: what a keyless chunk does not contain is applied to it as a multiset.
func TestV8Keyless(t *testing.T) {
	w := newWindow(simTopic, nil)
	row := func(a int) []byte { return simRow{1, a, 0}.encode(true) }
	b := &change.Batch{Tx: "50"} // in the view
	b.Add(simKeyless, change.OpInsert, 0, nil, nil, row(1))
	w.observe(b, &b.Events[0])
	b = &change.Batch{Tx: "60"} // not in it
	b.Add(simKeyless, change.OpInsert, 0, nil, nil, row(1))
	b.Add(simKeyless, change.OpDelete, 0, nil, row(2), nil)
	for i := range b.Events {
		w.observe(b, &b.Events[i])
	}
	rows := &change.Batch{Kind: change.Chunk}
	for _, a := range []int{1, 2, 2} {
		rows.Add(simKeyless, change.OpRead, change.FlagSnapshot, nil, nil, row(a))
	}
	c := &Chunk{View: &simView{xmin: 55, xmax: 55}, Rows: rows, Schema: simKeyless}
	r, ok, err := w.join(c)
	if !ok || err != nil || r.rows != 3 || r.batch.Events[0].Op != change.OpTruncate {
		t.Fatalf("join = %+v, %v, %v", r, ok, err)
	}
	log := &simLog{}
	log.append(r.batch, 0)
	want := []string{simRow{1, 1, 0}.String(), simRow{1, 1, 0}.String(), simRow{1, 2, 0}.String()}
	if got := log.bag(); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("the table is %v, wanted %v", got, want)
	}
}
