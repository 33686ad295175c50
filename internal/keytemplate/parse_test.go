package keytemplate

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []Part
	}{
		{"p:{id}", []Part{{Text: "p:"}, {Field: "id"}}},
		{"{a}{b}", []Part{{Field: "a"}, {Field: "b"}}},
		{"{{x}}:{id}}}", []Part{{Text: "{x}:"}, {Field: "id"}, {Text: "}"}}},
		{`{"odd ""name"""}:`, []Part{{Field: `odd "name"`}, {Text: ":"}}},
		{"{{{id}", []Part{{Text: "{"}, {Field: "id"}}},
		{"", nil}, {"{", nil}, {"}", nil}, {"o:{id", nil}, {"o:id}", nil}, {"{}", nil},
	} {
		got, err := Parse(tt.in, func(text string) (string, bool) { return Unquote(text), text != "" })
		if !slices.Equal(got, tt.want) || (err != nil) != (tt.want == nil && tt.in != "") {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", tt.in, got, err, tt.want)
		}
	}
}
