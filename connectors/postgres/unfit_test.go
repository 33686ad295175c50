package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/internal/testkit"
)

// TestIdentityTaken: a table whose rows are not told apart any more stops the
// source, and the error says the statement that mends it; then it goes on.
func TestIdentityTaken(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), "CREATE TABLE a (id int PRIMARY KEY)")
	r.open()
	r.exec("INSERT INTO a VALUES (0)")
	r.next()
	r.exec("ALTER TABLE a REPLICA IDENTITY NOTHING", "INSERT INTO a VALUES (1)")
	var err error
	for err == nil {
		_, err = r.src.Next(t.Context())
	}
	const mend = `ALTER TABLE "public"."a" REPLICA IDENTITY DEFAULT;`
	if !errors.Is(err, connectors.ErrPrerequisite) || !strings.Contains(err.Error(), mend) || strings.Contains(err.Error(), "at 0/0") {
		t.Errorf("%v, wanted %s", err, mend)
	}
	r.close()
	r.exec(mend)
	r.open()
	if got := render(t, r.next()); got != "insert a key=1 after={id:1}\n" {
		t.Errorf("came %s", got)
	}
}
