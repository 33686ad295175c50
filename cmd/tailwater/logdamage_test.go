package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/server"
)

// damageCase is a change of one file, and where it must be found.
type damageCase struct {
	name string
	file string // its end
	byte int64  // of what the check names
	do   func(data []byte) []byte
	fix  string
}

func flip(at int64) func([]byte) []byte {
	return func(data []byte) []byte {
		if at < 0 {
			at += int64(len(data))
		}
		data[at] ^= 0x40
		return data
	}
}

func cutTo(size int64) func([]byte) []byte {
	return func(data []byte) []byte {
		if size < 0 {
			size += int64(len(data))
		}
		return data[:size]
	}
}

// entries returns where the entries of a journal file begin.
func entries(t *testing.T, path string) (out []int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for pos := int64(16); pos < int64(len(data)); pos += 9 + int64(binary.LittleEndian.Uint32(data[pos+4:])) {
		out = append(out, pos)
	}
	return out
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	slices.Sort(list)
	return list
}

// TestLogCheckNamesDamage damages one file after the other; the check must name
// file, byte and way out, whether or not the log still opens, for people and as JSON.
func TestLogCheckNamesDamage(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	for range 3 { // more batches in the table's first segment
		f.must(f.log.SealAll(context.Background()))
		f.order("z", 1)
	}
	logDir := filepath.Join(c.dir, "data", "log")
	journal := files(t, logDir+"/journal/*.journal")
	for len(journal) < 2 {
		f.must(f.log.Roll(context.Background()))
		f.order("y", 2)
		journal = files(t, logDir+"/journal/*.journal")
	}
	closed, newest := filepath.Base(journal[0]), filepath.Base(journal[len(journal)-1])
	first, last := entries(t, journal[0]), entries(t, journal[len(journal)-1])
	segment := files(t, logDir+"/topics/000003-shop.public.products/00001-*.seg")[0]
	size := sizeOfFile(t, segment)
	batches := int64(len(mustRead(t, segment))) - 16 - int64(binary.LittleEndian.Uint32(mustRead(t, segment)[size-16:]))
	refill := "tailwater snapshot run shop.public.products refills it; if that ends with the same damage, begin a new log: stop the daemon, tailwater drop --yes, tailwater run reads every table again"
	start := "tailwater drop --yes"
	rebuild := "tailwater view rebuild products"
	view := filepath.Base(files(t, logDir+"/topics/000005-view.products/*.seg")[0])
	seg := filepath.Base(segment)
	for _, d := range []damageCase{
		{"segment's batch", seg, 16, flip(16 + 70), refill},
		{"segment's batch, its length", seg, 16, flip(16 + 9), refill},
		{"segment's footer", seg, batches, flip(batches + 3), refill},
		{"segment's trailer, checksum", seg, batches, flip(-10), refill},
		{"segment's trailer, end", seg, size - 16, flip(-1), refill},
		{"segment's header", seg, 0, flip(9), refill},
		{"segment cut short", seg, size - 26, cutTo(-10), refill},
		{"segment cut to nothing", seg, 0, cutTo(0), refill},
		{"view's batch", view, 16, flip(40), rebuild},
		{"closed journal file, group", closed, first[len(first)-1], flip(first[len(first)-1] + 20), start},
		{"closed journal file, checkpoint", closed, 16, flip(30), start},
		{"closed journal file, header", closed, 0, flip(1), start},
		{"closed journal file cut short", closed, first[len(first)-1], cutTo(-5), start},
		{"newest journal file, group", newest, last[len(last)-2], flip(last[len(last)-2] + 12), start},
		{"newest journal file, header", newest, 0, flip(8), start},
	} {
		t.Run(d.name, func(t *testing.T) { d.run(t, c.dir) })
	}
}

func (d *damageCase) run(t *testing.T, from string) {
	c := newCLI(t)
	c.deps = wire()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(filepath.Join(c.dir, "data"), os.DirFS(filepath.Join(from, "data"))))
	c.run("log", "check").want(t, exitDone, "ok: ", "")
	var path string
	must(filepath.WalkDir(filepath.Join(c.dir, "data"), func(p string, _ os.DirEntry, err error) error {
		if filepath.Base(p) == d.file && (strings.Contains(p, "products") || strings.Contains(p, "journal")) {
			path = p
		}
		return err
	}))
	must(os.WriteFile(path, d.do(mustRead(t, path)), 0o600))

	r := c.run("log", "check")
	r.want(t, exitFailed, fmt.Sprintf("%s: byte %d: ", path, d.byte), "")
	r.want(t, exitFailed, d.fix, "")
	r.want(t, exitFailed, "damaged place", "")
	var found server.Damage
	lines := strings.Split(strings.TrimSpace(c.run("log", "check", "--json").stdout), "\n")
	if err := json.Unmarshal([]byte(lines[0]), &found); err != nil || found.File != path || found.Byte != d.byte || found.Reason == "" || !strings.Contains(found.Fix, d.fix) {
		t.Errorf("log check --json: %s", lines[0])
	}
	var result server.CheckResult
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil || result.OK || result.Damages != len(lines)-1 || result.Files == 0 {
		t.Errorf("log check --json ends with %s behind %d damages", lines[len(lines)-1], len(lines)-1)
	}
	for _, args := range [][]string{{"cat", "*"}, {"tail", "*", "-n", "1000"}, {"dump", "*"}, {"topics"}, {"stats"}} {
		if r := c.run(append([]string{"log"}, args...)...); r.code != exitDone && r.code != exitFailed {
			t.Errorf("log %v with damage: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}

// TestLogCheckWithHole names a journal file that is missing.
func TestLogCheckWithHole(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	f.must(f.log.Roll(context.Background()))
	f.order("y", 2)
	journal := files(t, filepath.Join(c.dir, "data", "log", "journal", "*"))
	f.must(os.Remove(journal[1]))
	c.run("log", "check").want(t, exitFailed, journal[1]+": byte 0: file is missing", "")
	c.run("log", "topics").want(t, exitFailed, "", "tailwater log check names all damage and the way out")
}

// TestLogCheckOfTornTail takes a torn tail for no damage: the next start cuts it.
func TestLogCheckOfTornTail(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	journal := files(t, filepath.Join(c.dir, "data", "log", "journal", "*"))
	newest := journal[len(journal)-1]
	f.must(os.Truncate(newest, sizeOfFile(t, newest)-3))
	c.run("log", "check").want(t, exitDone, "ok: ", "behind the journal's last whole entry")
	c.run("log", "check", "--json").want(t, exitDone, `"torn_bytes":`, "")
}

// TestLogCheckOfNothing checks a data directory without a log.
func TestLogCheckOfNothing(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	c.run("log", "check").want(t, exitFailed, "", "has no log")
}

// TestLogDumpPlaces finds a whole record batch at each place that dump names.
func TestLogDumpPlaces(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	fillLog(t, c)
	n := 0
	for line := range strings.Lines(c.run("log", "dump", "*", "--json").stdout) {
		var b server.BatchLine
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		got, err := eventlog.DecodeBatch(mustRead(t, b.File)[b.Byte:])
		if err != nil || int64(got.Base) != b.BaseOffset || int64(got.Last) != b.LastOffset || got.Size != b.Size || got.Count != b.Count {
			t.Errorf("%s byte %d holds %+v, %v; the dump says %s", b.File, b.Byte, got, err, line)
		}
		n++
	}
	if n < 10 {
		t.Errorf("only %d batches", n)
	}
}

// TestLogDumpShowsDamage shows a damaged batch and goes on behind it.
func TestLogDumpShowsDamage(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	fillLog(t, c)
	segment := files(t, filepath.Join(c.dir, "data/log/topics/000003-*/00001-*.seg"))[0]
	if err := os.WriteFile(segment, flip(90)(mustRead(t, segment)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := c.run("log", "dump", "shop.public.products")
	r.want(t, exitFailed, segment+" byte 16  DAMAGED: record batch: checksum", "")
	r.want(t, exitFailed, "journal byte", "")
	c.run("log", "dump", "shop.public.products", "--partition", "1", "--json").want(t, exitFailed, `"crc_ok":false,"damage":"record batch: checksum`, "")
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sizeOfFile(t *testing.T, path string) int64 {
	t.Helper()
	return int64(len(mustRead(t, path)))
}
