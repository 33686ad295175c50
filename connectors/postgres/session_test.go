package postgres

import (
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/internal/testkit"
)

// TestSessionTimeouts: what a database or role says about timeouts does not
// hold for the sessions of either kind.
func TestSessionTimeouts(t *testing.T) {
	for _, major := range testkit.PostgresVersions(t) {
		t.Run(fmt.Sprintf("pg%d", major), func(t *testing.T) {
			dsn := testkit.PostgresVersion(t, major)
			names := []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}
			both := []string{}
			if major >= 14 {
				both = append(both, "idle_session_timeout")
			}
			if major >= 17 {
				both = append(both, "transaction_timeout")
			}
			for _, n := range append(names, both...) {
				testkit.Exec(t, dsn, fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = 60000', current_database()); END $$", n))
			}
			for _, replication := range []bool{false, true} {
				if replication {
					names = nil // these concern SQL alone
				}
				o := Options{Source: "s", DSN: dsn}.withDefaults()
				s, err := connect(t.Context(), &o, replication)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range append(names, both...) {
					rows, err := s.simple(t.Context(), "SELECT pg_catalog.current_setting('"+n+"')")
					if err != nil || string(rows[0][0]) != "0" {
						t.Errorf("replication %v: %s is %s, %v", replication, n, rows[0][0], err)
					}
				}
				s.close()
			}
		})
	}
}
