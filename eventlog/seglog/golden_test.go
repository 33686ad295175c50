package seglog

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
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
	l := openGolden(t, goldenDirectory, writeGolden(t))
	if got := ids(t, l); !slices.Equal(got, numbers(0, 5)) {
		t.Errorf("transactions %v", got)
	}
	if marks, err := l.Checkpoints(); err != nil || string(marks["c"]) != "m" {
		t.Errorf("checkpoints %v, %v", marks, err)
	}
}

// openGolden opens the directory that a golden file lists; it has the names that one written now has.
func openGolden(t *testing.T, golden string, now *vfs.Mem) *Log {
	t.Helper()
	f, err := os.Open(golden)
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
	if now := slices.Sorted(maps.Keys(now.Files())); !slices.Equal(now, names) {
		t.Errorf("files are now\n%v\nand were\n%v", now, names)
	}
	return mustOpen(t, memOptions(old))
}

const goldenStream = "testdata/stream.golden"

// writeGoldenStream makes the directory of goldenStream: a streamed transaction
// of several chunks, with a truncate and an aborted sub-transaction, and an
// ordinary one behind it.
func writeGoldenStream(t *testing.T) *vfs.Mem {
	fs := vfs.NewMem()
	l := mustOpen(t, streamOptions(fs))
	top := mustTopic(t, l, "s.p.t")
	s := mustStream(t, l)
	truncate := eventlog.Record{Topic: top.ID, Seq: 0, Op: 4, Partition: eventlog.EveryPartition, Key: []byte{0, 4}, Value: []byte("0")}
	if err := s.Add(5, []eventlog.Record{truncate}); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(12) {
		sub := i % 3
		r := eventlog.Record{Topic: top.ID, Seq: i + 1, Op: 1, Flags: 2, Schema: 3, Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, sub)}
		if err := s.Add(sub, []eventlog.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Abort(1); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(context.Background(), streamedTx(0)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 1, 2)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestGoldenStream is TestGoldenDirectory for a directory with a streamed file.
func TestGoldenStream(t *testing.T) {
	l := openGolden(t, goldenStream, writeGoldenStream(t))
	for range 2 { // from the journal, and sealed
		r, err := l.Read(eventlog.ReadSpec{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		tx, err := r.Next()
		if err != nil || tx == nil || tx.ID != "0" {
			t.Fatalf("Next = %+v, %v", tx, err)
		}
		var got []string
		for _, r := range tx.Records {
			got = append(got, fmt.Sprintf("%d:%s=%s/%d/%d", r.Seq, r.Key, r.Value, r.Op, r.Schema))
		}
		want := []string{"0:\x00\x04=0/4/0", "1:k0=0/1/3", "3:k2=2/1/3", "4:k3=0/1/3", "6:k5=2/1/3", "7:k6=0/1/3", "9:k8=2/1/3", "10:k9=0/1/3", "12:k11=2/1/3"}
		if !slices.Equal(got, want) || tx.CommitTime != testTime.UnixMicro() || string(tx.Position) != "0" {
			t.Errorf("transaction %+v shows\n%q, want\n%q", tx, got, want)
		}
		if tx, err = r.Next(); err != nil || tx == nil || tx.ID != "1" {
			t.Errorf("Next = %+v, %v", tx, err)
		}
		if got := l.EndOffsets(2); got[0]+got[1] != 16 {
			t.Errorf("end offsets %v: aborted records take theirs too", got)
		}
		if err := l.SealAll(context.Background()); err != nil {
			t.Fatal(err)
		}
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
