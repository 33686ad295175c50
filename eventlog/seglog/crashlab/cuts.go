package crashlab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// Cuts ends the newest file of a journal at every stride-th byte, as it is and
// with zeros or noise behind the cut. Each time the log opens with exactly the
// transactions whose entries are whole, and goes on.
func Cuts(seed int64, stride int, report reporter) (runs int, all Faults) {
	l := newLife(rand.New(rand.NewPCG(uint64(seed), 1<<42)), report)
	l.opts.FileBytes, l.opts.SealBatch = 1<<20, 400
	var ends []int64 // of the newest file, behind each of the model's transactions
	l.session(strike{}, func() {
		for _, name := range []string{"topic", "topic", "append", "append", "seal all", "append", "roll"} {
			l.do(operationNamed(name))
		}
		for range 8 {
			before := len(l.model.txs)
			l.do(operationNamed("append"))
			for len(ends) < before {
				ends = append(ends, 0) // in files before it
			}
			_, size := newestJournal(l.fs)
			for len(ends) < len(l.model.txs) {
				ends = append(ends, size)
			}
		}
		l.strike.crashed = l.fs.Clone()
	})
	name, size := newestJournal(l.fs)
	for at := int64(0); at <= size && !l.faults.Any(); at += int64(stride) {
		for _, behind := range []string{"nothing", "zeros", "noise"} {
			runs++
			disk := l.fs.Clone()
			cutFile(disk, name, at, size, behind, l.rng)
			whole, n := samePrefix(l.fs, disk, name), 0 // zeros behind the cut may be what was there
			for n < len(ends) && ends[n] <= whole {
				n++
			}
			if what := l.showsPrefix(disk, n); what != "" {
				l.wrong("cut at byte %d of %d, %s behind it: %s", at, size, behind, what)
			}
		}
	}
	return runs, l.faults
}

func newestJournal(fs *vfs.Mem) (name string, size int64) {
	for n, s := range fs.Files() {
		if isJournal(n) && n > name {
			name, size = n, s
		}
	}
	return name, size
}

// cutFile cuts a file and puts something behind the cut, up to its old size.
func cutFile(fs *vfs.Mem, name string, at, size int64, behind string, rng *rand.Rand) {
	f, err := fs.OpenWrite(name)
	if err == nil {
		err = f.Truncate(at)
	}
	noise := make([]byte, size-at)
	switch behind {
	case "nothing":
		noise = nil
	case "noise":
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
	}
	if err == nil && len(noise) > 0 {
		_, err = f.WriteAt(noise, at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		panic(err) // the file system in memory, without a hook
	}
}

// samePrefix returns how many bytes two disks have in common at the start of a file.
func samePrefix(a, b *vfs.Mem, name string) (n int64) {
	x, err := vfs.ReadFile(a, name)
	if err != nil {
		panic(err) // as above
	}
	y, err := vfs.ReadFile(b, name)
	if err != nil {
		panic(err)
	}
	for int(n) < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// showsPrefix opens a log and tells what keeps it from being that of the model's first n transactions, and a good one.
func (l *life) showsPrefix(disk *vfs.Mem, n int) string {
	opts := l.opts
	opts.FS = disk
	log, err := seglog.Open("log", opts)
	if err != nil {
		return fmt.Sprintf("Open: %v", err)
	}
	got, err := readAll(log)
	if err != nil {
		return fmt.Sprintf("read: %v", err)
	}
	if len(got) != n {
		return fmt.Sprintf("%d transactions, want %d", len(got), n)
	}
	for i := range got {
		if what := l.model.differs(l.model.txs[i], &got[i]); what != "" {
			return what
		}
	}
	tx := &eventlog.Tx{Kind: eventlog.TxChunk, ID: "more", Records: []eventlog.Record{{Topic: l.model.topic[0].ID, Op: 1, Key: []byte("k"), Value: []byte("v")}}}
	if err := log.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
		return fmt.Sprintf("Append: %v", err)
	}
	again, err := seglog.Open("log", opts)
	if err != nil {
		return fmt.Sprintf("Open after an append: %v", err)
	}
	got, err = readAll(again)
	if err != nil || len(got) != n+1 || got[n].ID != "more" {
		return fmt.Sprintf("after an append: %d transactions, want %d; %v", len(got), n+1, err)
	}
	if slices.ContainsFunc(got[:n], func(t eventlog.Tx) bool { return t.CSN >= got[n].CSN && t.Kind != eventlog.TxOutput }) {
		return "a CSN was given twice"
	}
	return ""
}
