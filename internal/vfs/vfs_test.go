package vfs

import (
	"errors"
	"fmt"
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
	if _, err := m.Crash(nil).ReadDir("d"); !IsNotExist(err) {
		t.Errorf("a directory whose parent is not synced: ReadDir = %v", err)
	}
	check(t, m.SyncDir("."))
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
	check(t, m.SyncDir("."))
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
			seen[fmt.Sprint("nothing, size ", len(b))] = true
		case 4000:
			seen["all"] = true
		default:
			seen["part"] = true
		}
	}
	if len(seen) != 4 { // nothing, nothing but the size, all, a part
		t.Errorf("only %v seen", seen)
	}
}

// TestCrashReorders checks that a later change may survive without an earlier one:
// of writes to two files, and of two directory operations; a rename stays whole.
func TestCrashReorders(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	check(t, m.SyncDir("."))
	for _, name := range []string{"a", "b", "moving"} {
		check(t, WriteFile(m, "d", name, []byte("old")))
	}
	for _, name := range []string{"d/a", "d/b"} {
		f, err := m.OpenWrite(name)
		check(t, err)
		_, err = f.WriteAt([]byte("new"), 0)
		check(t, err)
	}
	_, err := m.Create("d/first")
	check(t, err)
	_, err = m.Create("d/second")
	check(t, err)
	check(t, m.Rename("d/moving", "d/moved"))
	seen := map[string]bool{}
	for seed := range uint64(300) {
		c := m.Crash(rand.New(rand.NewPCG(seed, 2)))
		a, err := ReadFile(c, "d/a")
		check(t, err)
		b, err := ReadFile(c, "d/b")
		check(t, err)
		names, err := c.ReadDir("d")
		check(t, err)
		has := func(name string) bool { return slices.Contains(names, name) }
		seen["later write alone"] = seen["later write alone"] || string(a) == "old" && string(b) == "new"
		seen["later file alone"] = seen["later file alone"] || has("second") && !has("first")
		if has("moving") == has("moved") {
			t.Fatalf("seed %d: half a rename: %v", seed, names)
		}
	}
	for what, ok := range seen {
		if !ok {
			t.Errorf("no crash leaves the %s", what)
		}
	}
}

// TestFailedSyncLoses: EIO once, then success; what the failed sync should have
// written is never on the disk for sure, also after the process was killed.
func TestFailedSyncLoses(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	check(t, m.SyncDir("."))
	check(t, WriteFile(m, "d", "a", []byte("0000")))
	f, err := m.OpenWrite("d/a")
	check(t, err)
	_, err = f.WriteAt([]byte("11"), 0)
	check(t, err)
	m.SetHook(FailNth(0, func(op Op) bool { return op.Kind == "sync" }, syscall.EIO))
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Sync = %v", err)
	}
	_, err = f.WriteAt([]byte("22"), 2)
	check(t, err)
	check(t, f.Sync())
	for what, disk := range map[string]*Mem{"": m, ", killed": m.Clone()} {
		if b, err := ReadFile(disk, "d/a"); string(b) != "1122" || err != nil {
			t.Errorf("readers see %q, %v%s", b, err, what)
		}
		if b, err := ReadFile(disk.Crash(nil), "d/a"); string(b) != "0022" || err != nil {
			t.Errorf("the disk holds %q, %v%s", b, err, what)
		}
	}
	_, err = f.WriteAt([]byte("33"), 0) // written again, it counts again
	check(t, err)
	check(t, f.Sync())
	if b, err := ReadFile(m.Crash(nil), "d/a"); string(b) != "3322" || err != nil {
		t.Errorf("the disk holds %q, %v", b, err)
	}
}

func TestSpace(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	f, err := m.Create("d/a")
	check(t, err)
	m.SetSpace(5)
	if n, err := f.WriteAt([]byte("hello you"), 0); n != 5 || !IsFull(err) {
		t.Errorf("WriteAt = %d, %v", n, err)
	}
	if n, err := f.WriteAt([]byte("HELLO"), 0); n != 5 || err != nil {
		t.Errorf("WriteAt over what is there = %d, %v", n, err)
	}
	if _, err := m.Create("d/b"); !IsFull(err) {
		t.Errorf("Create on a full disk = %v", err)
	}
	if err := m.MkdirAll("e"); !IsFull(err) {
		t.Errorf("MkdirAll on a full disk = %v", err)
	}
	check(t, f.Truncate(2))
	if n, err := f.WriteAt([]byte("y!"), 2); n != 2 || err != nil {
		t.Errorf("WriteAt with space again = %d, %v", n, err)
	}
	if m.Used() != 4 {
		t.Errorf("%d bytes used", m.Used())
	}
}

// TestCloneIsApart changes a file system and its copy: neither sees the other's changes.
func TestCloneIsApart(t *testing.T) {
	m := NewMem()
	check(t, m.MkdirAll("d"))
	check(t, m.SyncDir("."))
	check(t, WriteFile(m, "d", "a", []byte("both")))
	c := m.Clone()
	for fsys, text := range map[*Mem]string{m: "mine", c: "copy"} {
		f, err := fsys.OpenWrite("d/a")
		check(t, err)
		_, err = f.WriteAt([]byte(text), 0)
		check(t, err)
		check(t, f.Sync())
	}
	for fsys, text := range map[*Mem]string{m: "mine", c: "copy", m.Crash(nil): "mine", c.Crash(nil): "copy"} {
		if b, err := ReadFile(fsys, "d/a"); string(b) != text || err != nil {
			t.Errorf("a holds %q, %v; want %q", b, err, text)
		}
	}
	c.Flip("d/a", 0)
	if b, err := ReadFile(m, "d/a"); string(b) != "mine" || err != nil {
		t.Errorf("a bit flipped in the copy: %q, %v", b, err)
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
