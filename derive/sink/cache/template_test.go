package cache

import (
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

func columns(names ...string) []sink.KeyColumn {
	var key []sink.KeyColumn
	for _, n := range names {
		key = append(key, sink.KeyColumn{Name: n, Kind: change.KindText})
	}
	return key
}

func update(t testing.TB, parts ...string) sink.Update {
	t.Helper()
	var u sink.Update
	for _, p := range parts {
		u.Key = change.AppendKeyPart(u.Key, change.Text(p), false)
	}
	var err error
	if u.ID, err = change.DocumentID(u.Key); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestTemplate(t *testing.T) {
	for _, tt := range []struct {
		text string
		cols []sink.KeyColumn
		key  []string
		want string
		glob string
	}{
		{"product:{id}", columns("id"), []string{"7"}, "product:7", "product:*"},
		{"product:{id}", columns("sku"), []string{"a|b"}, `product:a\|b`, "product:*"},
		{"p:{sku}", columns("sku"), []string{"a|b:c"}, "p:a|b:c", "p:*"},
		{"p:{sku}:v2", columns("sku"), []string{""}, "p::v2", "p:*:v2"},
		{"{{x}}:{id}*", columns("id"), []string{"1"}, "{x}:1*", `{x}:*\*`},
		{"o:{region}:{id}", columns("region", "id"), []string{`e:u\`, "a:b"}, `o:e\:u\\:a:b`, "o:*:*"},
		{"o:{id}/{region}", columns("region", "id"), []string{"eu", "5/6"}, `o:5\/6/eu`, "o:*/*"},
		{`p:{"stock keeping"}`, columns("stock keeping"), []string{"a"}, "p:a", "p:*"},
		{"v:{id}", columns("a", "b"), []string{"x", "y"}, "v:x|y", "v:*"},
		{"v:{id}", columns("region", "id"), []string{"x", "y"}, "v:x|y", "v:*"},
		{DefaultTemplate("my{view}"), columns("id"), []string{"1"}, "my{view}:1", "my{view}:*"},
	} {
		tmpl, err := parseTemplate(tt.text, tt.cols)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		u := update(t, tt.key...)
		key, err := tmpl.key(&u)
		if err != nil || key != tt.want || tmpl.glob() != tt.glob {
			t.Errorf("%s of %q = %q, %v, glob %q; want %q, %q", tt.text, tt.key, key, err, tmpl.glob(), tt.want, tt.glob)
		}
		if id, ok := tmpl.parse(key); !ok || id != u.ID {
			t.Errorf("%s: %q parses to %q, %v; want %q", tt.text, key, id, ok, u.ID)
		}
	}
}

func TestTemplateOfAHashedID(t *testing.T) {
	u := update(t, strings.Repeat("x", 1000))
	tmpl, err := parseTemplate("p:{sku}", columns("sku"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := tmpl.key(&u)
	if err != nil || len(key) != 1002 {
		t.Fatalf("key of %d bytes, %v", len(key), err)
	}
	if id, ok := tmpl.parse(key); !ok || id != u.ID {
		t.Errorf("parses to %q; want %q", id, u.ID)
	}
}

func TestTemplateErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"fixed", "names no column"},
		{"{region}{id}", "without a text between"},
		{"{region}:{region}", "twice"},
		{"o:{region}", "{id}"},
		{"o:{name}", "{name} is no column"},
		{`o:{region}\{id}`, "backslash"},
		{"o:{id", "a { without its }"},
		{"o:id}", "a } without its {"},
	} {
		if _, err := parseTemplate(tt.text, columns("region", "id")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q in it", tt.text, err, tt.want)
		}
	}
}

// Two documents never share a key, and a key gives its document back.
func FuzzTemplate(f *testing.F) {
	f.Add("a:", ":b", `\`, "x|y")
	f.Add("", "", ":", "::")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, text := range []string{"o:{region}:{id}", "{id}::{region}x", "{id}", `\{region}a\{id}`} {
			tmpl, err := parseTemplate(text, columns("region", "id"))
			if err != nil {
				t.Fatal(err)
			}
			u, v := update(t, a, b), update(t, c, d)
			ku, err := tmpl.key(&u)
			if err != nil {
				t.Fatal(err)
			}
			kv, err := tmpl.key(&v)
			if err != nil {
				t.Fatal(err)
			}
			if (ku == kv) != (u.ID == v.ID) {
				t.Errorf("%s: %q and %q have the keys %q and %q", text, u.ID, v.ID, ku, kv)
			}
			if id, ok := tmpl.parse(ku); !ok || id != u.ID {
				t.Errorf("%s: %q parses to %q, %v; want %q", text, ku, id, ok, u.ID)
			}
		}
	})
}
