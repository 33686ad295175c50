package postgres

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/tailwater/tailwater/change"
)

// allTypes are one type of each decoder.
func allTypes() map[string]*typeInfo {
	all := map[string]*typeInfo{}
	oid := uint32(1000)
	for name, b := range builtin {
		oid++
		all[name] = &typeInfo{oid: oid, name: name, kind: b.kind, append: b.append, known: true}
	}
	text := &typeInfo{oid: 25, name: "text", kind: change.KindText, append: appendText, known: true, plain: true}
	all["text"] = text
	for name, b := range extension {
		all[name] = &typeInfo{oid: 1, name: name, kind: b.kind, append: b.append}
		all["lenient "+name] = &typeInfo{oid: 1, name: name, kind: b.kind, append: lenient(b.append)}
	}
	pair := []attribute{{"a", all["int4out"]}, {"b\"", text}}
	all["record"] = &typeInfo{oid: 2, kind: change.KindJSON, append: recordDecoder(pair), attrs: pair}
	for _, elem := range []string{"int4out", "text", "record", "jsonb_out", "float8out", "byteaout", "timestamp_out"} {
		all[elem+"[]"] = &typeInfo{oid: 3, kind: change.KindJSON, append: arrayDecoder(all[elem], ','), elem: all[elem]}
	}
	return all
}

// FuzzDecode gives arbitrary text to every decoder: no panic; what is taken is
// a value of the type's kind, its JSON is valid, and appending leaves what was there alone.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "t", "-1", "9223372036854775808", "1.5", "NaN", "$1,234.50", `\x00ff`, "2020-02-29", "0044-03-15 BC", "infinity",
		"24:00:00-15:59:59", "2020-01-01 00:00:00.5+00", "P1Y2M3DT4H5M6.78S", "PT-0.000001S", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		`{"a":1,"a":[2,{"b":"\u00e9\ud83d"}],"c":-0.0e+1}`, `{1,NULL,"x\"y",{2}}`, `[0:1]={{1},{2}}`, `(1,"a ""q"" \\")`, `"a"=>"1", "b"=>NULL`, `{[1,3),("a,b",)}`, "\xff",
		"0101000020E6100000000000000000F03F0000000000000040", "0107000080020000000101000000000000000000000000000000000000000102000000" + "00000000", "[1,2.5]", "{1:1.5,3:2}/5", "1 2 3"} {
		f.Add(s)
	}
	all := allTypes()
	f.Fuzz(func(t *testing.T, text string) {
		for name, typ := range all {
			out, err := typ.append([]byte("head"), []byte(text))
			if err != nil {
				continue
			}
			if string(out[:4]) != "head" {
				t.Fatalf("%s overwrites what was there", name)
			}
			v, rest, err := change.DecodeValue(typ.kind, out[4:])
			if err != nil || len(rest) != 0 {
				t.Fatalf("%s of %q is no value: %v, %d bytes left", name, text, err, len(rest))
			}
			enc := change.AppendJSON(nil, v)
			if !json.Valid(enc) || !utf8.Valid(enc) {
				t.Fatalf("%s of %q is no JSON: %q", name, text, enc)
			}
			if again, err := typ.value([]byte(text)); err != nil || string(change.AppendJSON(nil, again)) != string(enc) {
				t.Fatalf("%s of %q: value and append differ", name, text)
			}
			change.AppendKeyPart(nil, v, false)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	all := allTypes()
	for name, texts := range map[string][]string{
		"boolout":       {"", "true", "x"},
		"int4out":       {"", "-", "1.0", "+1", "99999999999999999999", "9223372036854775808", "1 "},
		"numeric_out":   {"", "-", ".", "1.", ".5", "1e5", "1.2.3", "nan", "00", "-01"},
		"float8out":     {"", "x", "1e999"},
		"byteaout":      {"", `\x0`, `\xzz`, "abc"},
		"date_out":      {"", "2020-1-1", "2020-13-01", "2020-00-10", "0000-01-01", "2020-01-01x", "20200101", "123-01-01"},
		"time_out":      {"", "1:2:3", "25:00:00", "12:60:00", "12:00:00.", "12:00:00.1234567"},
		"timetz_out":    {"12:00:00", "12:00:00+", "12:00:00+1", "12:00:00+01:", "12:00:00+01:02:03:04"},
		"timestamp_out": {"2020-01-01", "2020-01-01T00:00:00", "2020-01-01 00:00:00+"},
		"interval_out":  {"", "P", "PT", "P1", "P1H", "PT1Y", "P1.5D", "P99999999999Y", "1 day", "PTT1S"},
		"uuid_out":      {"", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc999c0b-4ef8-bb6d-6bb9bd380a111", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		"json_out":      {"", "{", `{"a"}`, "01", "1.", "[1,]", `"\x"`, `"\u12"`, "nul", "1 2", "\"\n\"", "\"\xff\""},
		"text":          {"\xff", "a\xc3"},
		"int4out[]":     {"", "{", "{1", "{1,}", "{,}", "{1}x", "[0:1]", "{a}", "{\"1}", `{\1}`, "{{{{{{{{{1}}}}}}}}}"},
		"record":        {"", "(", "()", "(1)", "(1,2,3)", "(1,2", "(1,\"2)", "1,2", "(x,2)"},
		"hstore_out":    {`"a"`, `"a"=>`, `"a"=>1`, `"a"=>"1","b"=>"2"`, `a=>1`},
		"geometry_out": {"", "x", "01", "0101000000", "0101000000000000000000F03F", "010100000000000000000000000000000000000000FF", "0108000000", "010200000001000000", "0102000000FFFFFFFF",
			"0104000000010000000102000000" + "00000000", "0107000000010000000108000000" + "00000000", "0100000000"},
		"vector_out":     {"", "1,2", "[1,]", "[,1]", "[x]", "[1"},
		"sparsevec_out":  {"", "{1:2}", "{1:2}/", "{1:2}/0", "{1:2}/x", "{1}/2", "{:1}/2", "{1:2,}/3", "{-1:2}/3"},
		"int2vectorout":  {" ", "1  2", "1,2", "x"},
		"multirange_out": {"", "{", "{1}", "{[1,2}", "{[1,2),}", "{[1,2)[3,4)}"},
	} {
		for _, text := range texts {
			if out, err := all[name].append(nil, []byte(text)); err == nil {
				t.Errorf("%s takes %q as %q", name, text, out)
			}
		}
	}
}

func TestJSONDepth(t *testing.T) {
	deep := make([]byte, 0, 2*maxJSONDepth+4)
	for range maxJSONDepth + 2 {
		deep = append(deep, '[')
	}
	if _, err := appendJSONText(nil, deep); err == nil {
		t.Error("JSON of any depth is taken")
	}
}

func TestJSONDoubles(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"a":2}`: `{"a":2}`,
		`{"a":1,"b":2,"a":3,"c":{"x":1,"x":2},"a":4}`:                   `{"b":2,"c":{"x":2},"a":4}`,
		`{"\u0061":1, "a" : 2}`:                                         `{"a":2}`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"a":2}`: `{"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"a":2}`,
		`[{"a":{"a":1,"a":2},"a":[]},{"a":1}]`:                          `[{"a":[]},{"a":1}]`,
		`"\ud800x\uDC00"`:                                               `"\ud800x\udc00"`,
		"\" <>&\u2028\"":                                                "\" <>&\u2028\"",
	} {
		out, err := appendJSONText(nil, []byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		v, _, err := change.DecodeValue(change.KindJSON, out)
		if err != nil || string(v.Raw()) != want {
			t.Errorf("%s = %s, %v; want %s", in, v.Raw(), err, want)
		}
	}
}
