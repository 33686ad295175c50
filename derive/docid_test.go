package derive

import (
	"testing"

	"github.com/tailwater/tailwater/change"
)

func TestKeyOfID(t *testing.T) {
	for _, tt := range []struct {
		kinds  []change.Kind
		values []change.Value
	}{
		{[]change.Kind{change.KindInt}, []change.Value{change.Int(-17)}},
		{[]change.Kind{change.KindUint}, []change.Value{change.Uint(1<<63 + 1)}},
		{[]change.Kind{change.KindDecimal}, []change.Value{change.Decimal([]byte("0.5"))}},
		{[]change.Kind{change.KindText, change.KindText}, []change.Value{change.Text(`a|b\`), change.Text("")}},
		{[]change.Kind{change.KindUUID}, []change.Value{change.UUID([16]byte{1, 2, 255})}},
		{[]change.Kind{change.KindBool, change.KindBytes}, []change.Value{change.Bool(true), change.Bytes([]byte{0, 1})}},
	} {
		var key change.Key
		var columns []KeyColumn
		for i, v := range tt.values {
			key = change.AppendKeyPart(key, v, false)
			columns = append(columns, KeyColumn{Kind: tt.kinds[i]})
		}
		id, err := change.DocumentID(key)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := keyOfID(id, columns); !ok || string(got) != string(key) {
			t.Errorf("keyOfID(%q) = %x, %v; want %x", id, []byte(got), ok, []byte(key))
		}
	}
	for _, id := range []string{"", "x", "1|2", "1e5", "--1", "1."} {
		if _, ok := keyOfID(id, []KeyColumn{{Kind: change.KindInt}}); ok {
			t.Errorf("keyOfID(%q) is a number", id)
		}
	}
}
