package elastic

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/derive/sink"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMappingGolden(t *testing.T) {
	overrides := []MappingField{
		{Field: "reviews", Type: "nested"}, {Field: "attrs", Type: "flattened"}, {Field: "brand.name", Type: "text", Keyword: true},
		{Field: "price", Type: "scaled_float", Params: map[string]any{"scaling_factor": 100}}, {Field: "name", Params: map[string]any{"analyzer": "english"}},
	}
	for name, info := range map[string]*serverInfo{"opensearch": {opensearch: true, major: 2, minor: 19}, "elasticsearch-oss": {oss: true, major: 7, minor: 10}} {
		m, err := buildMapping(testFields, overrides, info)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "mapping-"+name+".json")
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(bytes.TrimSpace(want), got) {
			t.Errorf("%s: mapping differs from %s (%v):\n%s", name, path, err, got)
		}
	}
}

func TestMappingErrors(t *testing.T) {
	for _, tt := range []struct {
		o    []MappingField
		want string
	}{
		{[]MappingField{{Field: "nome"}}, `"nome"`},
		{[]MappingField{{Field: "name"}, {Field: "name"}}, "twice"},
	} {
		if _, err := buildMapping(testFields, tt.o, &serverInfo{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.o, err)
		}
	}
	for _, bad := range []string{"", "Products", "a b", "_x", "-x", "a/b", "a:b", ".hidden"} {
		if checkAlias(bad) == nil {
			t.Errorf("the alias %q is taken", bad)
		}
	}
}

func TestStampInMeta(t *testing.T) {
	s := sink.Stamp{Log: [16]byte{0xab}, CSN: 1<<53 - 1, Seq: 7, Time: -5, Fingerprint: "f", Complete: true}
	b, err := json.Marshal(metaOf("v", s))
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Tailwater meta }
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Tailwater.stamp(); err != nil || got != s {
		t.Errorf("stamp %+v, %v; want %+v", got, err, s)
	}
	for _, bad := range []meta{{}, {Log: "zz", CSN: "1", Seq: "1", Time: "1"}, {Log: strings.Repeat("0", 32), CSN: "x", Seq: "1", Time: "1"}} {
		if _, err := bad.stamp(); err == nil {
			t.Errorf("%+v is taken for a stamp", bad)
		}
	}
}
