package postgres

import (
	"testing"

	"github.com/tailwater/tailwater/change"
)

// TestV12SameValues: which changes of a type leave stored values as they are;
// every other one makes a new column.
func TestV12SameValues(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		same     bool
	}{
		{"integer", "integer", true},
		{"integer", "bigint", false},
		{"character varying(10)", "character varying(20)", true},
		{"character varying(20)", "character varying(10)", false},
		{"character varying(20)", "text", true},
		{"text", "character varying(20)", false},
		{"character(3)", "character(5)", false},
		{"numeric(10,2)", "numeric(12,2)", true},
		{"numeric(10,2)", "numeric(10,3)", false},
		{"numeric(10,2)", "numeric", true},
		{"numeric", "numeric(10,2)", false},
		{"timestamp(3) without time zone", "timestamp without time zone", false},
		{"bit varying(5)", "bit varying(9)", true},
		{"text", "public.mood", false},
		{"integer[]", "text[]", false},
	} {
		old := change.Column{Kind: change.KindText, SourceType: tt.from}
		now := change.Column{Kind: change.KindText, SourceType: tt.to}
		if got := sameValues(&old, &now); got != tt.same {
			t.Errorf("from %s to %s: same = %v", tt.from, tt.to, got)
		}
	}
	if sameValues(&change.Column{Kind: change.KindInt, SourceType: "domain"}, &change.Column{Kind: change.KindText, SourceType: "domain2"}) {
		t.Error("values of another kind are the same")
	}
	if sameValues(&change.Column{Kind: change.KindText, SourceType: "geometry"}, &change.Column{Kind: change.KindJSON, SourceType: "geometry"}) {
		t.Error("values of a type that is read as another kind now are the same")
	}
}

// TestV12Generation: a retyped column has another number, also after a restart
// that knows only the layout in the log; its default does not cross.
func TestV12Generation(t *testing.T) {
	r := &relation{oid: 7, schema: "public", name: "t", identity: 'd', primary: []int16{1}, columns: []attr{
		{num: 1, name: "id", typ: 23, typmod: -1, typeText: "integer", notNull: true},
		{num: 2, name: "n", typ: 23, typmod: -1, typeText: "integer", hasMissing: true, missing: []byte("{9}")}}}
	make1 := func(last *change.Schema) *change.Schema {
		l := newLayouts("s", map[string]*change.Schema{"s.public.t": last})
		if last == nil {
			l = newLayouts("s", nil)
		}
		l.types = testTypes4()
		tab, err := l.table(r, r.live())
		if err != nil {
			t.Fatal(err)
		}
		return tab.layout
	}
	first := make1(nil)
	r.columns[1].hasMissing, r.columns[1].missing, r.columns[1].hasDefault = false, nil, true // VACUUM FULL
	second := make1(first)
	if c := second.Columns[1]; c.Number != 2 || !c.HasDefault || string(c.Default) != string(first.Columns[1].Default) {
		t.Errorf("the default is lost: %+v", c)
	}
	r.columns[1].typ, r.columns[1].typeText = 25, "text"
	third := make1(second)
	if c := third.Columns[1]; c.Number != 2|1<<16 || c.HasDefault {
		t.Errorf("the retyped column is %+v", c)
	}
	if c := make1(third).Columns[1]; c.Number != 2|1<<16 {
		t.Errorf("and after a restart %+v", c)
	}
}

// TestKeysAgree: equal keys have equal bytes, whatever their text.
func TestKeysAgree(t *testing.T) {
	all := allTypes()
	citext := &typeInfo{kind: change.KindText, append: appendText, plain: true, fold: true}
	key := func(typ *typeInfo, text string) string {
		v, err := typ.value([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(change.AppendKeyPart(nil, v, typ.fold))
	}
	if key(all["numeric_out"], "1.0") != key(all["numeric_out"], "1.00") || key(all["numeric_out"], "1") != key(all["int4out"], "1") {
		t.Error("numbers differ by their zeros")
	}
	if key(all["float8out"], "-0") != key(all["float8out"], "0") {
		t.Error("-0 is another key than 0")
	}
	if key(citext, "Hello") != key(citext, "hELLO") {
		t.Error("citext keys differ by case")
	}
	if key(all["text"], "Hello") == key(all["text"], "hello") {
		t.Error("text keys are folded")
	}
}
