package daemon

import (
	"strings"
	"testing"

	"github.com/tailwater/tailwater/internal/testkit"
)

// TestRenamedColumn: a renamed column is followed, also over a restart, as long
// as the view's text stays the same; with another text it must fit the table.
func TestRenamedColumn(t *testing.T) {
	dsn, f, d := library(t)
	d.Start()
	equal(t, d, dsn)
	renamed := strings.ReplaceAll(expectedSQL, "b.title", "b.heading")
	if renamed == expectedSQL {
		t.Fatalf("the query does not read title:\n%s", expectedSQL)
	}
	testkit.Exec(t, dsn, "ALTER TABLE books RENAME COLUMN title TO heading", "UPDATE books SET heading = 'renamed' WHERE id = 2")
	for range 2 {
		d.Wait("--timeout", "120s")
		testkit.CompareView(t, d.ViewDocs("shelf"), dsn, renamed)
		d.Kill()
		testkit.Exec(t, dsn, "UPDATE books SET heading = heading || '!' WHERE id < 5")
		d.Start()
	}
	d.Wait("--timeout", "120s")
	testkit.CompareView(t, d.ViewDocs("shelf"), dsn, renamed)

	f.views = strings.Replace(shelf, "fields: [id, title, body]", "fields: [title, id, body]", 1)
	d.SetConfig(f.String())
	if code := d.Stop(); code != 0 {
		t.Errorf("stop: %d", code)
	}
	if r := d.Run("run"); r.Code != 2 || !strings.Contains(r.Stderr, `no column "title"`) {
		t.Errorf("an edited view with the old name: exit code %d: %s", r.Code, r.Stderr)
	}
}
