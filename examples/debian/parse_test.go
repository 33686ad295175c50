package debian

import (
	"slices"
	"strings"
	"testing"
)

const sample = `Package: b
Version: 1:2-3
Maintainer: Ann <ann@example.org>
Section: non-free/x
Pre-Depends: dpkg (>= 1.15.6~)
Depends: a (>= 1) | c:any, libc6
Description: short
 long text
Tag: role::program, use::x,
 use::y, use::x

Package: b
Version: older

Package: c
Maintainer: nobody
`

func TestParse(t *testing.T) {
	var got []*Package
	if err := Parse(strings.NewReader(sample), func(p *Package) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("%d packages", len(got))
	}
	b := got[0]
	if b.Version != "1:2-3" || b.Summary != "short" || b.MaintainerName != "Ann" || b.MaintainerEmail != "ann@example.org" || !slices.Equal(b.Tags, []string{"role::program", "use::x", "use::y"}) {
		t.Errorf("%+v", b)
	}
	want := []Dependency{{"pre-depends", 1, 1, "dpkg", ">= 1.15.6~"}, {"depends", 1, 1, "a", ">= 1"}, {"depends", 1, 2, "c", ""}, {"depends", 2, 1, "libc6", ""}}
	if !slices.Equal(b.Depends, want) {
		t.Errorf("dependencies %+v", b.Depends)
	}
	if got[1].MaintainerEmail != "nobody" {
		t.Errorf("%+v", got[1])
	}
	if err := Parse(strings.NewReader("no field\n"), nil); err == nil {
		t.Error("a line without a colon passes")
	}
}

func TestStatements(t *testing.T) {
	list := statements(MutateSQL)
	transactions := 0
	for _, s := range list {
		if strings.Contains(s, "BEGIN;") {
			transactions++
		}
	}
	if len(list) < 25 || transactions != 3 {
		t.Errorf("%d statements, %d of them begin a transaction", len(list), transactions)
	}
}
