package vfs

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// TestFS runs the same steps on both file systems.
func TestFS(t *testing.T) {
	for name, fsys := range map[string]FS{"os": OS, "mem": NewMem()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/a/b"
			check(t, fsys.MkdirAll(dir))
			check(t, WriteFile(fsys, dir, "x", []byte("hello")))
			check(t, WriteFile(fsys, dir, "x", []byte("bye")))
			f, err := fsys.Create(dir + "/y")
			check(t, err)
			_, err = f.WriteAt([]byte("world"), 3)
			check(t, err)
			check(t, f.Truncate(6))
			check(t, f.Sync())
			check(t, f.Close())
			check(t, fsys.Rename(dir+"/y", dir+"/z"))
			check(t, fsys.SyncDir(dir))
			if b, err := ReadFile(fsys, dir+"/x"); string(b) != "bye" || err != nil {
				t.Errorf("x holds %q, %v", b, err)
			}
			if b, err := ReadFile(fsys, dir+"/z"); string(b) != "\x00\x00\x00wor" || err != nil {
				t.Errorf("z holds %q, %v", b, err)
			}
			if names, err := fsys.ReadDir(dir); !slices.Equal(names, []string{"x", "z"}) || err != nil {
				t.Errorf("ReadDir = %v, %v", names, err)
			}
			r, err := fsys.Open(dir + "/x")
			check(t, err)
			check(t, fsys.Remove(dir+"/x"))
			b := make([]byte, 4)
			if n, err := r.ReadAt(b, 1); n != 2 || err != io.EOF || string(b[:n]) != "ye" {
				t.Errorf("ReadAt of a removed file = %d, %v, %q", n, err, b)
			}
			if _, err := r.WriteAt(b, 0); err == nil {
				t.Error("a file opened for reading takes a write")
			}
			check(t, r.Close())
			for what, err := range map[string]error{
				"Open": second(fsys.Open(dir + "/x")), "OpenWrite": second(fsys.OpenWrite(dir + "/x")),
				"Remove": fsys.Remove(dir + "/x"), "Rename": fsys.Rename(dir+"/x", dir+"/w"),
				"ReadDir": second(fsys.ReadDir(dir + "/none")), "Create": second(fsys.Create(dir + "/none/x")),
			} {
				if !IsNotExist(err) {
					t.Errorf("%s of what is not there = %v", what, err)
				}
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestCrashDropsWhatIsNotSynced(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	check(t, WriteFile(m, "d", "old", []byte("kept")))
	a, err := m.Create("d/a")
	check(t, err)
	_, err = a.WriteAt([]byte("synced"), 0)
	check(t, err)
	check(t, a.Sync())
	if _, err := m.Crash(nil).Open("d/a"); !IsNotExist(err) {
		t.Errorf("a synced file in a directory that is not synced: Open = %v", err)
	}
	check(t, m.SyncDir("d"))
	_, err = a.WriteAt([]byte("SYNC and more"), 0)
	check(t, err)
	check(t, m.Rename("d/old", "d/new"))
	c := m.Crash(nil)
	if b, err := ReadFile(c, "d/a"); string(b) != "synced" || err != nil {
		t.Errorf("a holds %q, %v", b, err)
	}
	if b, err := ReadFile(c, "d/old"); string(b) != "kept" || err != nil {
		t.Errorf("old holds %q, %v", b, err)
	}
	if b, err := ReadFile(m, "d/a"); string(b) != "SYNC and more" || err != nil {
		t.Errorf("Crash changed the file system: a holds %q, %v", b, err)
	}
}

// TestCrashTears checks that a random crash keeps all that was synced, and that
// of a write since then it keeps sometimes nothing, sometimes all and sometimes a part.
func TestCrashTears(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	check(t, WriteFile(m, "d", "a", make([]byte, 4000)))
	f, err := m.OpenWrite("d/a")
	check(t, err)
	_, err = f.WriteAt(slices.Repeat([]byte{1}, 4000), 2000)
	check(t, err)
	seen := map[string]bool{}
	for seed := range uint64(200) {
		b, err := ReadFile(m.Crash(rand.New(rand.NewPCG(seed, 1))), "d/a")
		check(t, err)
		if len(b) < 4000 || slices.Contains(b[:2000], 1) {
			t.Fatalf("seed %d: what was synced has changed", seed)
		}
		ones := 0
		for _, c := range b {
			ones += int(c)
		}
		switch ones {
		case 0:
			seen["nothing"] = true
		case 4000:
			seen["all"] = true
		default:
			seen["part"] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %v seen", seen)
	}
}

func TestHook(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	f, err := m.Create("d/a")
	check(t, err)
	m.SetHook(func(op Op) (int, error) {
		if op.Kind == "write" {
			return 2, syscall.ENOSPC
		}
		return 0, nil
	})
	n, err := f.WriteAt([]byte("hello"), 0)
	if n != 2 || !IsFull(err) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteAt = %d, %v", n, err)
	}
	if b, err := ReadFile(m, "d/a"); string(b) != "he" || err != nil {
		t.Errorf("a holds %q, %v", b, err)
	}
}
