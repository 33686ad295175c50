package seglog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

func TestStreamedFileDamage(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	mustStreamed(t, l, top, 0)
	newest, older := fs.Clone(), fs
	if err := l.Roll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 1, 2)
	name := "log/journal/" + streamName(1, 1)
	size := fs.Files()[name]
	names := func(err error) bool {
		var bad *CorruptError
		return errors.As(err, &bad) && bad.Path == name && errors.Is(err, eventlog.ErrCorrupt)
	}
	for what, damage := range map[string]func(fs *vfs.Mem){
		"missing": func(fs *vfs.Mem) {
			if err := fs.Remove(name); err != nil {
				t.Fatal(err)
			}
		},
		"shorter": func(fs *vfs.Mem) { cut(t, fs, name, size-1) },
	} {
		disk := newest.Clone()
		damage(disk)
		if _, err := Open("log", streamOptions(disk)); !names(err) {
			t.Errorf("%s: Open = %v", what, err)
		}
		if _, err := OpenReadOnly("log", streamOptions(disk)); !names(err) {
			t.Errorf("%s: OpenReadOnly = %v", what, err)
		}
		disk = older.Clone()
		damage(disk)
		checkDamage(t, what, disk, top, names)
	}
	disk := older.Clone() // whole in itself, and another transaction's
	writeFile(t, disk, name, otherStreamedFile(t))
	checkDamage(t, "another's", disk, top, names)
	for bit := range size * 8 {
		disk := older.Clone()
		disk.Flip(name, bit)
		checkDamage(t, fmt.Sprint("bit ", bit), disk, top, names)
	}
}

// otherStreamedFile is the file of a transaction like the one of TestStreamedFileDamage.
func otherStreamedFile(t *testing.T) []byte {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	mustStreamed(t, l, mustTopic(t, l, "s.p.t"), 5)
	b, err := vfs.ReadFile(fs, "log/journal/"+streamName(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkDamage opens a damaged log: readers, Check and sealing name the file.
func checkDamage(t *testing.T, what string, disk *vfs.Mem, top eventlog.Topic, names func(error) bool) {
	t.Helper()
	l := mustOpen(t, streamOptions(disk))
	for _, pieces := range []bool{false, true} {
		r, err := l.Read(eventlog.ReadSpec{Pieces: pieces})
		for err == nil {
			var tx *eventlog.Tx
			if tx, err = r.Next(); err == nil && tx == nil {
				t.Fatalf("%s: a reader sees nothing of it", what)
			}
		}
		if !names(err) {
			t.Fatalf("%s: Next = %v", what, err)
		}
		if _, again := r.Next(); !names(again) {
			t.Fatalf("%s: Next again = %v", what, again)
		}
	}
	var err error
	var part eventlog.PartitionReader
	for p := int32(0); p < 2 && err == nil; p++ {
		part, err = l.ReadPartition(top.ID, p, 0)
		for ok := true; ok && err == nil; {
			_, ok, err = part.Next()
		}
	}
	if !names(err) {
		t.Fatalf("%s: partition Next = %v", what, err)
	}
	if _, _, again := part.Next(); !names(again) {
		t.Fatalf("%s: partition Next again = %v", what, again)
	}
	found := 0
	if _, err := l.Check(context.Background(), func(err error) {
		if found++; !names(err) {
			t.Errorf("%s: Check says %v", what, err)
		}
	}); err != nil || found != 1 {
		t.Fatalf("%s: Check = %v, %d damaged", what, err, found)
	}
	if err := l.SealAll(context.Background()); !names(err) {
		t.Fatalf("%s: SealAll = %v", what, err)
	}
}

// TestChunkErrorStays: a chunk that is whole and does not fit its adoption is not passed over.
func TestChunkErrorStays(t *testing.T) {
	l := mustOpen(t, streamOptions(vfs.NewMem()))
	mustStreamed(t, l, mustTopic(t, l, "s.p.t"), 0)
	failed := false
	once := func(*eventlog.Record, bool) error {
		if failed {
			return nil
		}
		failed = true
		return errors.New("met once")
	}
	for what, damage := range map[string]func(a *adoption){
		"met once":         func(*adoption) { failed = false },
		"fewer offsets":    func(a *adoption) { a.parts[0].count = 1 },
		"no such part":     func(a *adoption) { a.parts = nil },
		"other topic":      func(a *adoption) { a.parts = a.parts[:1] },
		"shorter":          func(a *adoption) { a.length -= 40 },
		"more chunks":      func(a *adoption) { a.chunks++ },
		"another checksum": func(a *adoption) { a.heads++ },
	} {
		a, err := decodeAdoption(l.tail.groups[len(l.tail.groups)-1].payload)
		if err != nil {
			t.Fatal(err)
		}
		failed = true
		damage(a)
		c, err := l.openStream(a)
		if err != nil {
			t.Fatal(err)
		}
		read := func() error {
			for {
				k, _, err := c.next(nil)
				if err != nil || k == nil {
					return err
				}
				if err := c.records(k, func(partKey) bool { return true }, once); err != nil {
					return err
				}
			}
		}
		for range 2 {
			if err := read(); !errors.Is(err, eventlog.ErrCorrupt) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
