package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailwater/tailwater/internal/testkit"
)

// TestRepublished: what is committed while a table is not published, or not
// wholly, is not in the stream; a publication that was altered and altered back
// looks the same as before. The tables are read again.
func TestRepublished(t *testing.T) {
	unseen := []string{"UPDATE items SET name = 'unseen' WHERE id < 20", "DELETE FROM items WHERE id BETWEEN 30 AND 50", "INSERT INTO items (id, name) VALUES (99001, 'unseen')"}
	for name, alter := range map[string][2]string{
		"member":  {"ALTER PUBLICATION %s DROP TABLE items", "ALTER PUBLICATION %s ADD TABLE items"},
		"options": {"ALTER PUBLICATION %s SET (publish = 'insert')", "ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate')"},
		"left so": {"ALTER PUBLICATION %s SET (publish = 'insert')", ""},
	} {
		for _, stopped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stopped %t", name, stopped), func(t *testing.T) {
				t.Parallel()
				r := newCaptureRig(t, testkit.Postgres(t), itemsSQL)
				r.opts.Discover = time.Hour // it is looked for when somebody waits
				r.con = New(r.opts)
				r.start()
				r.ran("items", 1)
				if stopped {
					r.stop()
				}
				publication := quoteName(r.con.opts.Publication)
				sql := append([]string{fmt.Sprintf(alter[0], publication)}, unseen...)
				if alter[1] != "" {
					sql = append(sql, fmt.Sprintf(alter[1], publication))
				}
				r.exec(append(sql, "UPDATE items SET name = 'seen' WHERE id = 60")...)
				if stopped {
					r.start()
				}
				r.settled()
				r.ran("items", 2)
				r.same("items")
				r.stop()
				r.start()
				r.exec("UPDATE items SET name = 'again' WHERE id = 61")
				r.settled()
				r.same("items")
				if m := r.newestRun("items"); m.Run != 2 {
					t.Errorf("it was read again without a cause: run %d", m.Run)
				}
			})
		}
	}
}
