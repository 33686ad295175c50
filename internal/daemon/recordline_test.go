package daemon

import (
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// TestCurrentSchema: a row in the table's newest layout. Columns are followed by
// number; one whose type changed, which begins a new generation, keeps its value.
func TestCurrentSchema(t *testing.T) {
	const next = 1 << change.GenerationBits
	written := &change.Schema{Topic: "s.p.t", ID: 1, Columns: []change.Column{
		{Number: 1, Name: "id", Kind: change.KindInt}, {Number: 2, Name: "n", Kind: change.KindInt}, {Number: 3, Name: "gone", Kind: change.KindInt}, {Number: 4, Name: "old", Kind: change.KindInt},
	}}
	newest := &change.Schema{Topic: "s.p.t", ID: 2, Columns: []change.Column{
		{Number: 1, Name: "id", Kind: change.KindInt}, {Number: 2 + next, Name: "n", Kind: change.KindText}, {Number: 4, Name: "new", Kind: change.KindInt},
		{Number: 5, Name: "added", Kind: change.KindInt}, {Number: 6, Name: "filled", Kind: change.KindInt, HasDefault: true, Default: change.AppendValue(nil, change.Int(7))},
	}}
	third := &change.Schema{Topic: "s.p.t", ID: 3, Columns: []change.Column{{Number: 2 + 2*next, Name: "n", Kind: change.KindDecimal}}}
	for _, tt := range []struct {
		newest *change.Schema
		want   string
	}{
		{written, `{"id":1,"n":2,"gone":3,"old":4}`},
		{newest, `{"id":1,"n":2,"new":4,"added":null,"filled":7}`},
		{third, `{"n":2}`},
	} {
		p := newRecordPrinter(logtest.Mem(), nil)
		p.newest = map[string]*change.Schema{"s.p.t": tt.newest}
		row := change.Row{Schema: written, Data: change.AppendRow(nil, []change.Value{change.Int(1), change.Int(2), change.Int(3), change.Int(4)})}
		got, _, err := p.appendObject(nil, row, true)
		if err != nil || string(got) != tt.want {
			t.Errorf("in layout %d: %s, %v; want %s", tt.newest.ID, got, err, tt.want)
		}
	}
}
