package change

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func num(s string) Value { return Decimal([]byte(s)) }

// TestKeyOrder lists values in their order: keys must compare so, and equal values be equal bytes.
func TestKeyOrder(t *testing.T) {
	groups := [][]Value{
		{Null}, {Bool(false)}, {Bool(true)},
		{num("-Infinity"), Float64(math.Inf(-1)), Float32(float32(math.Inf(-1)))},
		{num("-1e200"), num("-1" + strings.Repeat("0", 200))},
		{num("-100"), Int(-100), num("-100.00")}, {num("-99.99")}, {num("-10")}, {num("-1.5"), Float64(-1.5)}, {Int(-1)}, {num("-0.001")},
		{Int(0), Uint(0), num("0.00"), num("-0"), Float64(math.Copysign(0, -1)), num("0e5")},
		{num("1e-120"), num("0." + strings.Repeat("0", 119) + "1")}, {num("0.001"), Float64(0.001)}, {num("0.01")}, {num("0.1"), Float32(0.1), Float64(0.1)},
		{Int(1), Uint(1), num("1.0"), num("1.00"), Float64(1), num("+1")}, {num("1.01")}, {num("1.1"), num("1.10")}, {Int(9)}, {Int(10), num("1e1")}, {Int(11)}, {Int(99)}, {Int(100)}, {Int(101)}, {Int(1000)},
		{Int(math.MaxInt64), Uint(math.MaxInt64)}, {Uint(math.MaxInt64 + 1), num("9223372036854775808")}, {Uint(math.MaxUint64)},
		{num("1e205")}, {num("1e131071")},
		{num("Infinity")}, {num("NaN"), Float64(math.NaN())},
		{Text("")}, {Text("\x00")}, {Text("\x00a")}, {Text("a")}, {Text("a\x00")}, {Text("a\x00b")}, {Text("a\x01")}, {Text("aa")}, {Text("é")},
		{Bytes(nil)}, {Bytes([]byte{0})}, {Bytes([]byte{0xFF})},
		{UUID([16]byte{1})}, {UUID([16]byte{2})},
		{Date(DateNegInfinity)}, {Date(-5)}, {Date(0)}, {Date(DateInfinity)},
		{Timestamp(TimestampNegInfinity)}, {Timestamp(-1)}, {Timestamp(1)}, {Timestamp(TimestampInfinity)},
		{TimestampTZ(0)}, {Time(-1)}, {Time(0)}, {TimeTZ(0, 3600)}, {TimeTZ(0, 0)},
		{Interval(0, -1, 0)}, {Interval(0, 0, -1)}, {Interval(0, 0, 0)}, {Interval(0, 1, 0)}, {Interval(1, 0, 0)},
	}
	var last Key
	for i, g := range groups {
		first := AppendKeyPart(nil, g[0], false)
		for _, v := range g[1:] {
			if k := AppendKeyPart(nil, v, false); !bytes.Equal(k, first) {
				t.Errorf("group %d: %s %q has key %s, %q has %s", i, v.Kind(), AppendText(nil, v), k, AppendText(nil, g[0]), first)
			}
		}
		if bytes.Compare(last, first) >= 0 {
			t.Errorf("group %d (%s): key %s is not above %s", i, AppendText(nil, g[0]), first, last)
		}
		last = first
	}
}

func TestKeyGolden(t *testing.T) {
	for _, tt := range []struct {
		key  Key
		want string
	}{
		{AppendKeyPart(nil, Int(42), false), "138154"},
		{AppendKeyPart(nil, Int(-42), false), "117eab"},
		{AppendKeyPart(nil, num("1234.50"), false), "1382194564"},
		{AppendKeyPart(nil, Text("a\x00b"), false), "206100ff620001"},
		{AppendKeyPart(nil, Text("Ab"), true), "2061620001"},
		{AppendKeyPart(AppendKeyPart(nil, Int(1), false), Bool(true), false), "13810203"},
		{AppendKeyPart(nil, Date(1), false), "308000000000000001"},
		{SchemaKey("s.p.t", 3), "20732e702e740001138106"},
		{(&SnapshotMark{Topic: "t", Run: 2, State: SnapshotDone}).Key(), "20740001138104138104"},
	} {
		if got := hex.EncodeToString(tt.key); got != tt.want {
			t.Errorf("key %s, want %s", got, tt.want)
		}
	}
}

func TestKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mantissa := rapid.StringMatching(`-?[0-9]{1,30}(\.[0-9]{1,30})?`).Draw(t, "number")
		k := AppendKeyPart(nil, num(mantissa), false)
		k = AppendKeyPart(k, Text(rapid.String().Draw(t, "text")), false)
		parts, err := DecodeKey(k)
		if err != nil {
			t.Fatal(err)
		}
		again := Key(nil)
		for _, p := range parts {
			again = AppendKeyPart(again, p, false)
		}
		if !bytes.Equal(again, k) {
			t.Fatalf("%s decodes and encodes to %s", k, again)
		}
	})
}

func TestKeyNumberOrderMatchesInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		got := AppendKeyPart(nil, Int(a), false).Compare(AppendKeyPart(nil, Int(b), false))
		want := 0
		if a < b {
			want = -1
		} else if a > b {
			want = 1
		}
		if got != want {
			t.Fatalf("%d and %d compare as %d", a, b, got)
		}
	})
}

var jsonCases = []struct {
	v    Value
	want string
}{
	{Null, "null"}, {Bool(true), "true"}, {Int(math.MinInt64), "-9223372036854775808"}, {Uint(math.MaxUint64), "18446744073709551615"},
	{num("1.10"), "1.10"}, {num("NaN"), `"NaN"`}, {num("-Infinity"), `"-Infinity"`},
	{Float32(0.1), "0.1"}, {Float32(16777217), "16777216"}, {Float32(123456789), "123456790"}, {Float64(5e-324), "5e-324"},
	{Float64(math.MaxFloat64), "1.7976931348623157e+308"}, {Float64(1e21), "1e+21"}, {Float64(1e20), "100000000000000000000"}, {Float64(1e-7), "1e-7"}, {Float64(0.000001), "0.000001"},
	{Float32(1e21), "1e+21"}, {Float32(1e20), "100000000000000000000"}, {Float32(1e-6), "0.000001"}, {Float32(1e-7), "1e-7"}, {Float32(-1.5e-5), "-0.000015"}, {Float64(9.999999e-7), "9.999999e-7"},
	{Float64(1.2345e300), "1.2345e+300"}, {Float64(999999999999999900000), "999999999999999900000"}, {Float32(math.SmallestNonzeroFloat32), "1e-45"},
	{Float64(math.Copysign(0, -1)), "-0"}, {Float64(math.NaN()), `"NaN"`}, {Float64(math.Inf(1)), `"Infinity"`},
	{Text("a\"\\\n\x01<>&\u2028é"), "\"a\\\"\\\\\\n\\u0001<>&\u2028é\""}, {Bytes([]byte{0, 0xFF, 0x10}), `"AP8Q"`},
	{Date(DaysFromCivil(2020, 2, 29)), `"2020-02-29"`}, {Date(DaysFromCivil(-43, 3, 15)), `"-0043-03-15"`}, {Date(DaysFromCivil(5874897, 12, 31)), `"+5874897-12-31"`},
	{Date(DaysFromCivil(0, 1, 1)), `"0000-01-01"`}, {Date(DateInfinity), `"infinity"`}, {Date(DatePartial), `"0000-00-00"`}, {Date(DatePartial + 20200015), `"2020-00-15"`},
	{Time(24 * 3600 * 1000000), `"24:00:00"`}, {Time(-3661000001), `"-01:01:01.000001"`}, {Time(49890100000), `"13:51:30.1"`},
	{TimeTZ(0, 57599), `"00:00:00+15:59:59"`}, {TimeTZ(86400000000, -57540), `"24:00:00-15:59"`},
	{TimestampTZ(0), `"2000-01-01T00:00:00Z"`}, {Timestamp(-1), `"1999-12-31T23:59:59.999999"`}, {Timestamp(TimestampInfinity), `"infinity"`},
	{Timestamp(TimestampPartial), `"0000-00-00 00:00:00"`},
	{Timestamp(9223371331199999999), `"+294276-12-31T23:59:59.999999"`},
	{Interval(14, 3, 14706780000), `"P1Y2M3DT4H5M6.78S"`}, {Interval(0, 0, -1), `"PT-0.000001S"`}, {Interval(0, 0, 0), `"PT0S"`}, {Interval(1, -1, 0), `"P1M-1D"`},
	{Interval(math.MaxInt32, math.MaxInt32, math.MaxInt64), `"infinity"`}, {Interval(math.MinInt32, math.MinInt32, math.MinInt64), `"-infinity"`},
	{Interval(0, 0, 86400000000), `"PT24H"`}, {UUID([16]byte{0x65, 0x1a, 15: 1}), `"651a0000-0000-0000-0000-000000000001"`},
	{JSON([]byte(`{"n":1.10}`)), `{"n":1.10}`},
}

func TestJSON(t *testing.T) {
	for _, tt := range jsonCases {
		if got := string(AppendJSON(nil, tt.v)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.v.Kind(), got, tt.want)
		}
	}
}

// TestJSONDigits pushes numbers that no float64 holds through the only outlet.
func TestJSONDigits(t *testing.T) {
	long := "1" + strings.Repeat("0", 131071)
	if got := string(AppendJSON(nil, num(long))); got != long {
		t.Error("131,072 digits changed")
	}
	key := AppendKeyPart(nil, num(long), false)
	parts, err := DecodeKey(key)
	if err != nil || string(AppendText(nil, parts[0])) != long {
		t.Errorf("131,072 digits changed in a key: %v", err)
	}
}

func testSchema() *Schema {
	s := &Schema{Topic: "shop.public.all", Key: []int{1}, ForeignKeys: []ForeignKey{{[]string{"c2"}, "shop.public.x", []string{"id"}}}}
	for k := KindBool; k <= KindJSON; k++ {
		s.Columns = append(s.Columns, Column{Number: uint32(k), Name: "c" + k.String(), Kind: k, SourceType: "t", Nullable: k%2 == 0})
	}
	s.Columns[3].HasDefault, s.Columns[3].Default = true, AppendValue(nil, num("9.50"))
	return s
}

func testValues() []Value {
	return []Value{Bool(true), Int(-5), Uint(7), num("1.10"), Float32(0.5), Float64(-0.25), Text("tëxt"), Bytes([]byte{0, 1}), Date(18321), Time(1), TimeTZ(5, -3600),
		Timestamp(-7), TimestampTZ(8), Interval(-1, 2, -3), UUID([16]byte{9}), JSON([]byte(`[1]`))}
}

const rowGolden = "00000000" + "01" + "09" + "07" + "04312e3130" + "0000003f" + "000000000000d0bf" + "0574c3ab7874" + "020001" + "a29e02" + "02" + "0a9f38" + "0d" + "10" + "010405" +
	"09000000000000000000000000000000" + "035b315d"

func TestRowGolden(t *testing.T) {
	row := AppendRow(nil, testValues())
	if got := hex.EncodeToString(row); got != rowGolden {
		t.Errorf("row\n%s, want\n%s", got, rowGolden)
	}
	got, err := Row{testSchema(), row}.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range testValues() {
		if string(AppendJSON(nil, got[i])) != string(AppendJSON(nil, v)) {
			t.Errorf("column %d: %s", i, AppendJSON(nil, got[i]))
		}
		one, err := Row{testSchema(), row}.Value(i)
		if err != nil || string(AppendJSON(nil, one)) != string(AppendJSON(nil, v)) {
			t.Errorf("column %d alone: %s, %v", i, AppendJSON(nil, one), err)
		}
	}
}

func TestRowStates(t *testing.T) {
	vals := testValues()
	vals[0], vals[4], vals[15] = Null, UnchangedValue, UnchangedValue
	r := Row{testSchema(), AppendRow(nil, vals)}
	if v, err := r.Value(0); err != nil || !v.IsNull() {
		t.Errorf("null column: %v, %v", v, err)
	}
	if _, err := r.Value(4); !errors.Is(err, ErrUnchanged) {
		t.Errorf("unchanged column: %v", err)
	}
	if !r.Partial() {
		t.Error("row is not partial")
	}
}

func TestMerge(t *testing.T) {
	s := testSchema()
	older := Row{s, AppendRow(nil, testValues())}
	vals := testValues()
	vals[1], vals[6], vals[15] = Int(6), UnchangedValue, Null
	merged, err := Merge(Row{s, AppendRow(nil, vals)}, older)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := Row{s, merged}.Values(nil)
	if got[1].Int64() != 6 || got[6].TextValue() != "tëxt" || !got[15].IsNull() {
		t.Errorf("merged to %d %q null=%v", got[1].Int64(), got[6].TextValue(), got[15].IsNull())
	}
}

// TestV12MergeAcrossRetype: a column retyped by a rewrite has another number; unchanged does not cross it.
func TestV12MergeAcrossRetype(t *testing.T) {
	old := &Schema{Topic: "t", Columns: []Column{{Number: 1, Name: "id", Kind: KindInt}, {Number: 2, Name: "v", Kind: KindInt}}}
	now := &Schema{Topic: "t", Columns: []Column{{Number: 1, Name: "id", Kind: KindInt}, {Number: 1<<16 | 2, Name: "v", Kind: KindText}}}
	merged, err := Merge(Row{now, AppendRow(nil, []Value{Int(1), UnchangedValue})}, Row{old, AppendRow(nil, []Value{Int(1), Int(7)})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Row{now, merged}).Value(1); !errors.Is(err, ErrUnchanged) {
		t.Errorf("the int crossed the rewrite: %v", err)
	}
}

func TestSchemaRoundTrip(t *testing.T) {
	s := testSchema()
	layout := s.AppendLayout(nil)
	got, err := DecodeSchema(SchemaKey(s.Topic, 5), layout)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != 5 || got.Topic != s.Topic || !bytes.Equal(got.AppendLayout(nil), layout) {
		t.Errorf("%+v", got)
	}
	small := &Schema{Columns: []Column{{Number: 1, Name: "id", Kind: KindInt, SourceType: "integer"}}, Key: []int{0}}
	if got := hex.EncodeToString(small.AppendLayout(nil)); got != "0101010269640207696e746567657200010000" {
		t.Errorf("layout %s", got)
	}
}

func TestSnapshotMarkRoundTrip(t *testing.T) {
	m := &SnapshotMark{Topic: "s.p.t", Run: 3, State: SnapshotProgress, Floor: true, Where: "a > 1", Rows: 5, Bytes: 6, Total: 7, Cursor: []byte{1, 2}}
	got, err := DecodeSnapshotMark(m.Key(), m.Append(nil))
	if err != nil || got.Topic != m.Topic || got.Run != 3 || got.State != SnapshotProgress || !got.Floor || got.Where != m.Where || got.Rows != 5 || string(got.Cursor) != "\x01\x02" {
		t.Errorf("%+v, %v", got, err)
	}
	if got := hex.EncodeToString(m.Append(nil)); got != "0101"+"0561203e2031"+"0a0c0e"+"020102" {
		t.Errorf("value %s", got)
	}
	if got := m.Key().String(); got != "20732e702e740001138106138102" {
		t.Errorf("key %s", got)
	}
}

func TestBatch(t *testing.T) {
	s := testSchema()
	var b Batch
	b.Add(s, OpInsert, 0, Key{1}, nil, []byte{2, 3})
	b.Add(s, OpDelete, FlagMoved, Key{4}, []byte{5}, nil)
	b.Add(s, OpTruncate, 0, nil, nil, nil)
	after, ok := b.After(&b.Events[0])
	if !ok || string(after.Data) != "\x02\x03" || string(b.Key(&b.Events[0])) != "\x01" {
		t.Errorf("first event: %v %v", after.Data, ok)
	}
	if _, ok := b.Before(&b.Events[0]); ok {
		t.Error("the insert has a before")
	}
	if before, ok := b.Before(&b.Events[1]); !ok || string(before.Data) != "\x05" {
		t.Errorf("second event: %v", before.Data)
	}
	if _, ok := b.After(&b.Events[2]); ok {
		t.Error("the truncate has a row")
	}
}

func TestDocumentID(t *testing.T) {
	key := func(vs ...Value) Key {
		var k Key
		for _, v := range vs {
			k = AppendKeyPart(k, v, false)
		}
		return k
	}
	for _, tt := range []struct {
		key  Key
		want string
	}{
		{key(Int(1)), "1"}, {key(num("1.50")), "1.5"}, {key(Text("a|b\\c"), Text("")), `a\|b\\c|\e`}, {key(Text("libc6")), "libc6"},
		{key(Bool(true), Date(0)), "true|1970-01-01"},
	} {
		if got, err := DocumentID(tt.key); err != nil || got != tt.want {
			t.Errorf("%q, %v; want %q", got, err, tt.want)
		}
	}
	long, err := DocumentID(key(Text(strings.Repeat("é", 300))))
	if err != nil || len(long) != 400+1+64 || !strings.HasPrefix(long, strings.Repeat("é", 200)+"~") {
		t.Errorf("long id of %d bytes: %q, %v", len(long), long, err)
	}
}

func TestTopicNames(t *testing.T) {
	if got := TableTopic("shop", "public", "Order Lines.x"); got != "shop.public.Order-20Lines-2ex" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		if got, err := UnescapeName(EscapeName(name)); err != nil || got != name {
			t.Fatalf("%q came back as %q, %v", name, got, err)
		}
	})
}

func TestPosition(t *testing.T) {
	p := Position{Name: "0/16B3748", Resume: "7301/1/0/16B3790"}
	if got, err := DecodePosition(p.Append(nil)); err != nil || got != p {
		t.Errorf("%+v, %v", got, err)
	}
	if got := hex.EncodeToString((Position{Name: "0/1", Resume: "7/1"}).Append(nil)); got != "03302f3103372f31" {
		t.Errorf("bytes %s", got)
	}
	if got, err := DecodePosition(nil); err != nil || !got.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	s := testSchema()
	f.Add(AppendRow(nil, testValues()))
	f.Add(s.AppendLayout(nil))
	f.Add([]byte(SchemaKey("t", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if vs, err := (Row{s, b}).Values(nil); err == nil {
			if again, err := (Row{s, AppendRow(nil, vs)}).Values(nil); err != nil || len(again) != len(vs) {
				t.Fatalf("a decoded row does not encode: %v", err)
			}
		}
		DecodeSchema(SchemaKey("t", 1), b)
		DecodeSnapshotMark((&SnapshotMark{Topic: "t"}).Key(), b)
		DecodePosition(b)
		DecodeRecordValue(b)
		if parts, err := DecodeKey(b); err == nil {
			for _, p := range parts {
				AppendJSON(nil, p)
			}
		}
	})
}
