package join_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// TestLostTailIsNoticed flips a bit in the last entries of a journal: the log
// takes them for torn and cuts them, and skips offsets and sequence numbers. The
// state of the views remembers what was in them, and they refuse to go on.
func TestLostTailIsNoticed(t *testing.T) {
	for _, lost := range []int{0, 1, 2} { // entries
		disk := vfs.NewMem()
		log, err := seglog.Open("log", seglog.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorldOn(t, log)
		p, def := one(w, "p")
		w.describe()
		w.snapshotDone()
		w.start(def)
		w.catchUp()
		tx := w.begin()
		tx.insert(p, 1, "x", "b")
		tx.commit()
		w.catchUp() // its outputs are the log's last entry
		w.stop()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		loseEntries(t, disk, lost)

		log, err = seglog.Open("log", seglog.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		w.opts.Log = log
		w.opts.Views = []derive.View{join.New(def)}
		r, err := derive.Open(w.opts)
		if err == nil {
			w.runner = r
		}
		if lost == 0 && err != nil || lost > 0 && !errors.Is(err, derive.ErrStateAhead) {
			t.Errorf("%d entries lost: derive.Open = %v", lost, err)
		}
		w.stop()
	}
}

// loseEntries flips a bit in the last of the newest journal file's n last entries,
// and cuts those before it, so that all n look torn.
func loseEntries(t *testing.T, disk *vfs.Mem, n int) {
	t.Helper()
	name := slices.MaxFunc(slices.Collect(maps.Keys(disk.Files())), func(a, b string) int {
		return strings.Compare(a[strings.Index(a, "/journal")+1:], b[strings.Index(b, "/journal")+1:])
	})
	b, err := vfs.ReadFile(disk, name)
	if err != nil {
		t.Fatal(err)
	}
	var begins []int
	for pos := 16; pos < len(b); pos += 9 + int(binary.LittleEndian.Uint32(b[pos+4:])) {
		begins = append(begins, pos)
	}
	if n == 0 {
		return
	}
	begin := begins[len(begins)-n]
	f, err := disk.OpenWrite(name)
	if err != nil {
		t.Fatal(err)
	}
	if n > 1 {
		if err := f.Truncate(int64(begins[len(begins)-n+1])); err != nil {
			t.Fatal(err)
		}
	}
	disk.Flip(name, int64(begin+9+3)*8)
}
