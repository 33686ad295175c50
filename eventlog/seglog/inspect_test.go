package seglog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// mixedLog is a log with sealed, closed and newest records, and a torn tail that was cut.
func mixedLog(t *testing.T) (*Log, Options, eventlog.Topic) {
	t.Helper()
	fs := vfs.NewMem()
	opts := memOptions(fs)
	opts.SealBatch, opts.FileBytes = 200, 3000
	l := mustOpen(t, opts)
	top := mustTopic(t, l, "s.p.t")
	mustAppend(t, l, top, 0, 20)
	if err := l.SealAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, top, 20, 41)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	name, size := newestJournal(fs)
	cut(t, fs, name, size-1) // transaction 40 is lost; offsets skip
	l = mustOpen(t, opts)
	mustAppend(t, l, top, 40, 50)
	return l, opts, top
}

func TestInspect(t *testing.T) {
	l, opts, top := mixedLog(t)
	ro, err := OpenReadOnly("log", opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []*Log{l, ro} {
		for _, journal := range []bool{false, true} {
			infos, err := log.Inspect(context.Background(), journal)
			if err != nil {
				t.Fatal(err)
			}
			i := infos[top.ID-1]
			if i.SegmentRecords != 40 || i.JournalRecords != 60 || i.Segments != 2 || i.SegmentBytes == 0 ||
				!slices.Equal(i.End, l.EndOffsets(top.ID)) || !slices.Equal(i.Start, []eventlog.Offset{0, 0}) {
				t.Errorf("topic is %+v", i)
			}
			if journal != (i.JournalBytes > 0) || journal != (i.NewestTime == testTime.UnixMicro()) {
				t.Errorf("with journal %v: %d bytes, newest %d", journal, i.JournalBytes, i.NewestTime)
			}
			if tx := infos[txTopic-1]; tx.SegmentRecords != 20 || tx.JournalRecords != 30 {
				t.Errorf("_tx is %+v", tx)
			}
		}
	}
}

// TestBatches finds each record once in the batches, at the place they name.
func TestBatches(t *testing.T) {
	for name, log := range map[string]func(*testing.T) (*Log, Options, eventlog.Topic){"mixed": mixedLog, "overlapping": overlapping} {
		t.Run(name, func(t *testing.T) {
			l, opts, top := log(t)
			checkBatches(t, l, opts, top)
		})
	}
}

func checkBatches(t *testing.T, l *Log, opts Options, top eventlog.Topic) {
	journal := int64(0)
	for p := range int32(2) {
		var got []eventlog.Record
		err := l.Batches(context.Background(), top.ID, p, func(b *RawBatch) error {
			data, err := vfs.ReadFile(opts.FS, b.Path)
			if err != nil {
				t.Fatal(err)
			}
			if h, err := eventlog.DecodeBatch(data[b.Pos:]); err != nil || b.Bad != nil || h.Base != b.Batch.Base || h.Size != b.Batch.Size || b.Partition != p {
				t.Errorf("%s byte %d: %v, %v", b.Path, b.Pos, err, b.Bad)
			}
			if strings.HasPrefix(b.Path, "log/journal/") {
				journal += int64(b.Batch.Size)
			}
			for _, r := range b.Records {
				r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
				got = append(got, r)
			}
			return nil
		})
		if want := partition(t, l, partKey{top.ID, p}); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("partition %d: %d records in batches, %d read, %v", p, len(got), len(want), err)
		}
	}
	if infos, err := l.Inspect(context.Background(), true); err != nil || infos[top.ID-1].JournalBytes != journal {
		t.Errorf("the journal holds %d bytes, %v; its batches have %d", infos[top.ID-1].JournalBytes, err, journal)
	}
	if err := l.Batches(context.Background(), top.ID, 2, nil); !errors.Is(err, eventlog.ErrUnknownTopic) {
		t.Errorf("batches of no partition: %v", err)
	}
}

// TestCheckDirFindsEveryFlip flips bytes all over a log; a check of its directory
// names the file, whether or not the log opens, or finds the last entry torn.
func TestCheckDirFindsEveryFlip(t *testing.T) {
	_, opts, top := mixedLog(t)
	mem := opts.FS.(*vfs.Mem)
	newest, _ := newestJournal(mem)
	for name, size := range mem.Files() {
		if name == "log/topics/"+topicDir(top)+"/meta" || name == "log/topics/000001-_tx/meta" {
			continue // for people: nothing reads it while the journal is whole
		}
		step := max(1, size/60)
		for at := int64(0); at < size; at += step {
			disk := mem.Clone()
			disk.Flip(name, at*8+at%8)
			opts.FS = disk
			var found []string
			topic := ""
			c, err := CheckDir(context.Background(), "log", opts, func(d Damage, n string) error {
				found, topic = append(found, d.Path), n
				return nil
			})
			torn := name == newest && c.Torn > 0 && len(found) == 0
			if err != nil || !torn && !slices.Contains(found, name) {
				t.Fatalf("byte %d of %s: found %v, %+v, %v", at, name, found, c, err)
			}
			if _, journal := parseJournalName(name[len(name)-len("000000000001.journal"):]); !journal && topic == "" {
				t.Errorf("byte %d of %s: the topic is not named", at, name)
			}
		}
	}
	opts.FS = mem
	c, err := CheckDir(context.Background(), "log", opts, func(d Damage, _ string) error { t.Errorf("damage in a whole log: %v", d); return nil })
	if err != nil || c.Files < 6 || c.Records < 100 || c.Bytes < 5000 || c.Torn != 0 {
		t.Errorf("a whole log: %+v, %v", c, err)
	}
}
