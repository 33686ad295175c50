package seglog

import (
	"bufio"
	"context"
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/internal/vfs"
)

const goldenDirectory = "testdata/directory.golden"

// writeGolden makes the directory of goldenDirectory: sealed rows, rows that
// are in the journal alone, and a checkpoint.
func writeGolden(t *testing.T) *vfs.Mem {
	fs := vfs.NewMem()
	l := mustOpen(t, memOptions(fs))
	top := mustTopic(t, l, "s.public.Order-20Lines")
	mustAppend(t, l, top, 0, 3)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 3, 5)
	if err := l.SaveCheckpoint("c", []byte("m")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestGoldenDirectory opens a directory as version 1 of the format wrote it. If
// it fails, the format has changed: that needs a new version, not a new golden file.
func TestGoldenDirectory(t *testing.T) {
	f, err := os.Open(goldenDirectory)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := vfs.NewMem()
	names := []string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, digits, _ := strings.Cut(lines.Text(), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, old, name, b)
		names = append(names, name)
	}
	if now := slices.Sorted(maps.Keys(writeGolden(t).Files())); !slices.Equal(now, names) {
		t.Errorf("files are now\n%v\nand were\n%v", now, names)
	}
	l := mustOpen(t, memOptions(old))
	if got := ids(t, l); !slices.Equal(got, numbers(0, 5)) {
		t.Errorf("transactions %v", got)
	}
	if marks, err := l.Checkpoints(); err != nil || string(marks["c"]) != "m" {
		t.Errorf("checkpoints %v, %v", marks, err)
	}
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	if err := fs.MkdirAll(name[:strings.LastIndexByte(name, '/')]); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
