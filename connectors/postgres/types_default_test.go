package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

// TestT1Defaults adds a column of every type whose default is every value of the
// table of cases: rows that are older than the column have it, without an event.
func TestT1Defaults(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) { testDefaults(t, major) })
	}
}

func testDefaults(t *testing.T, major int) {
	dsn := testkit.PostgresVersion(t, major)
	ddl := []string{typesDDL, extensionDDL(), hostileSettings}
	cases := slices.Concat(typeCases, nestedCases, extensionCases)
	if hasExtensions(t, dsn, contrib...) {
		ddl, cases = append(ddl, contribDDL), append(cases, contribCases...)
	}
	// Refused by the server, and filled by a rewrite, which the filenode tells.
	cases = slices.DeleteFunc(cases, func(c typeCase) bool { return c.typ == "regrole" || c.typ == "dom_int" || c.typ == "dom_dom" })
	var tables [][]typeColumn
	for columns := range slices.Chunk(columnsOf(cases, major), columnsPerTable) {
		tables = append(tables, columns)
	}
	for i, columns := range tables {
		var add []string
		for j, c := range columns {
			add = append(add, fmt.Sprintf("ADD c%d %s DEFAULT %s", j, c.typ, c.expression()))
		}
		ddl = append(ddl, fmt.Sprintf("SET search_path = public, hs, ext; SET xmloption = content; CREATE TABLE t%d (id int PRIMARY KEY); ALTER TABLE t%[1]d %s", i, strings.Join(add, ", ")))
	}
	r := newRig(t, dsn, ddl...)
	s, err := connect(t.Context(), &r.con.opts, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for i, columns := range tables {
		oid, err := s.text(t.Context(), "SELECT $1::regclass::oid", fmt.Sprintf("public.t%d", i))
		if err != nil {
			t.Fatal(err)
		}
		tab, err := newCatalog(&r.con.opts, nil).current(t.Context(), s, toOID([]byte(oid)))
		if err != nil {
			t.Fatal(err)
		}
		for j, c := range columns {
			col := &tab.layout.Columns[j+1]
			v, err := col.DefaultValue()
			if got := string(change.AppendJSON(nil, v)); err != nil || got != c.json {
				t.Errorf("%s %s %.200s as a default = %.200s, %v; want %.200s", c.id, c.typ, c.sql, got, err, c.json)
			}
		}
	}
}
