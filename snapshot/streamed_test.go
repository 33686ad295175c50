package snapshot

import (
	"slices"
	"testing"

	"github.com/tailwater/tailwater/change"
)

// TestStreamedMany: more partial updates than are kept of a transaction make the
// run of their table begin again, and none where no run counts them.
func TestStreamedMany(t *testing.T) {
	schema := &change.Schema{Topic: "src.public.t", Key: []int{0}, Columns: []change.Column{{Number: 1, Name: "id", Kind: change.KindInt}}}
	var s Streamed
	b := &change.Batch{Stage: change.InProgress, Sub: 1}
	for i := range int64(streamedKeys + 1) {
		b.Add(schema, change.OpUpdate, change.FlagPartial, change.AppendKeyPart(nil, change.Int(i), false), nil, nil)
	}
	s.Add("src", b)
	if len(s.events) != streamedKeys || s.Rows()[change.OpUpdate] != streamedKeys+1 {
		t.Errorf("%d events are kept of %d", len(s.events), s.Rows()[change.OpUpdate])
	}
	m := New("src")
	if again := m.ObserveStreamed(&change.Batch{Tx: "5", Stage: change.Adopted}, &s); again != nil {
		t.Errorf("without a run: %v", again)
	}
	m.Begin(Start{Topic: schema.Topic})
	for a, err := m.Next(); a.Kind != ActionRead; a, err = m.Next() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if again := m.ObserveStreamed(&change.Batch{Tx: "6", Stage: change.Adopted}, &s); !slices.Equal(again, []string{schema.Topic}) {
		t.Errorf("in a run: %v", again)
	}
}
