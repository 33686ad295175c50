package jsoncmp

import (
	"slices"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"members are sorted", `{"b":1, "a":[true,null,"x"]}`, `{"a":[true,null,"x"],"b":1}`},
		{"the last of a name counts", `{"a":1,"a":2}`, `{"a":2}`},
		{"scale is kept", `[1.0,1.00,0.10]`, `[1.0,1.00,0.10]`},
		{"digits beyond float64 are kept", `9223372036854775809.000000000000000000001`, `9223372036854775809.000000000000000000001`},
		{"exponents are expanded", `[1e+21,1.5e3,-25e-4,1.20E+1,0e5,1e-7]`, `[1000000000000000000000,1500,-0.0025,12,0,0.0000001]`},
		{"escapes are one spelling", `"\u00e9\/<"`, `"é/\u003c"`},
		{"minus zero stays", `-0`, `-0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Canonical([]byte(tt.in))
			if err != nil || got != tt.want {
				t.Errorf("Canonical = %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, in := range []string{``, `{`, `1 2`, `nope`} {
		if got, err := Canonical([]byte(in)); err == nil {
			t.Errorf("Canonical(%q) = %s; want an error", in, got)
		}
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		name, want, got string
		diff            []string
	}{
		{"equal in another order", `{"a":1,"b":{"c":[1]}}`, `{"b":{"c":[1]},"a":1}`, nil},
		{"scale differs", `{"p":1.0}`, `{"p":1.00}`, []string{"p: want 1.0, found 1.00"}},
		{"deep, missing and extra", `{"a":{"b":[1,2]},"m":null}`, `{"a":{"b":[1,3,4]},"x":0}`, []string{
			"a.b[1]: want 2, found 3", "a.b: want 2 elements, found 3", "m: want null, found nothing", "x: want nothing, found 0",
		}},
		{"another kind", `{"a":[1]}`, `{"a":{"b":1}}`, []string{`a: want [1], found {"b":1}`}},
		{"null is not absent nor empty", `[null]`, `[""]`, []string{`[0]: want null, found ""`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Diff([]byte(tt.want), []byte(tt.got), 0)
			if err != nil || !slices.Equal(got, tt.diff) {
				t.Errorf("Diff = %q, %v; want %q", got, err, tt.diff)
			}
		})
	}
}

func TestDiffLimit(t *testing.T) {
	got, err := Diff([]byte(`[1,2,3,4]`), []byte(`[0,0,0,0]`), 2)
	if err != nil || len(got) != 2 {
		t.Errorf("Diff with limit 2 = %q, %v", got, err)
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		paths     []string
	}{
		{`{"a":{"b":[1,{"c":2}]}}`, `{"a":{"b":[1,{"c":3}]}}`, []string{"a.b[1].c"}},
		{`{"a":[1,2]}`, `{"a":[1]}`, []string{"a[1]"}},
		{`{"a":[1]}`, `{"a":{"b":1}}`, []string{"a"}},
		{`{"a":1}`, `{"a":"1"}`, []string{"a"}},
		{`{"a":1.0}`, `{"a":1.00}`, []string{"a"}},
		{`{"a":1e3}`, `{"a":1000}`, []string{"a"}},
		{`{"a":null,"b":false}`, `{"b":null}`, []string{"a", "b"}},
		{`[1]`, `{}`, []string{""}},
		{`[1]`, `no JSON`, []string{""}},
		{`[]`, `[1,2]`, []string{"[0]", "[1]"}},
		{`{".a":{"b":1}}`, `{".a":{"b":2}}`, []string{".a.b"}},
		{`{"a":"\u0041<"}`, `{"a":"A\u003c"}`, nil},
		{`{"a":"x"}`, `{"a":"x"}`, nil},
	} {
		got, err := Paths([]byte(tt.want), []byte(tt.got), 0)
		if err != nil || !slices.Equal(got, tt.paths) {
			t.Errorf("Paths(%s, %s) = %q, %v; want %q", tt.want, tt.got, got, err, tt.paths)
		}
	}
}

// FuzzExact: AppendExact and Paths agree on what is equal.
func FuzzExact(f *testing.F) {
	f.Add(`{"a":1,"b":"x"}`, `{"b":"\u0078","a":1}`)
	f.Add(`[1.0]`, `[1.00]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		ca, errA := AppendExact(nil, []byte(a))
		cb, errB := AppendExact(nil, []byte(b))
		if errA != nil || errB != nil {
			return
		}
		paths, err := Paths([]byte(a), []byte(b), 0)
		if err != nil || (len(paths) == 0) != (string(ca) == string(cb)) {
			t.Errorf("%q and %q: canonical %q and %q, paths %q, %v", a, b, ca, cb, paths, err)
		}
	})
}
