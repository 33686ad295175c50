package postgres

import (
	"strings"
	"testing"

	"github.com/tailwater/tailwater/internal/testkit"
)

// TestFoldWarning: where the server folds fewer letters than we do, that is said.
func TestFoldWarning(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE EXTENSION IF NOT EXISTS citext", "CREATE TABLE a (k citext PRIMARY KEY)", "CREATE TABLE b (k text PRIMARY KEY)")
	s, err := connect(t.Context(), &r.con.opts, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	lower, err := s.text(t.Context(), "SELECT lower('É')")
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.con.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range d.Problems {
		if strings.Contains(p.Message, "citext") {
			found = append(found, p.Table)
		}
	}
	if want := lower == "É"; (len(found) == 1 && found[0] == "public.a") != want || len(found) > 1 {
		t.Errorf("the server folds É to %q, warned of %q", lower, found)
	}
}
