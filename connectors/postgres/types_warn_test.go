package postgres

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tailwater/tailwater/internal/testkit"
)

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// TestK16Warned: a type that is kept as text for want of better is warned of at
// the start, once for all its columns, and when a column of it is added.
func TestK16Warned(t *testing.T) {
	r := newRig(t, testkit.Postgres(t), extensionDDL(), "CREATE TABLE a (id int PRIMARY KEY, x ext.odd, y ext.odd[], z text)", "CREATE TABLE b (id int PRIMARY KEY)")
	log := &lockedBuffer{}
	r.opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	r.connector()
	r.open()
	r.step()
	if n := log.count("type ext.odd of column x is not known"); n != 1 || log.count("is not known") != 1 {
		t.Errorf("%d warnings of column x, %d in all", n, log.count("is not known"))
	}
	r.exec("INSERT INTO b VALUES (1)")
	r.next()
	r.exec("ALTER TABLE b ADD v ext.dom_odd", "INSERT INTO b VALUES (2, 'w')")
	r.next()
	if n := log.count("type ext.dom_odd of column v is not known"); n != 1 {
		t.Errorf("%d warnings of the column that was added", n)
	}
}
