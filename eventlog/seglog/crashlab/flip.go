package crashlab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// flipsPerLog is how many bits are flipped, one at a time, in one log.
const flipsPerLog = 500

// Flips flips random bits, one at a time, in files of healthy logs, and counts
// those after which a log shows something else without an error. A bit of the
// journal's very last entry may make it look torn: then it is cut.
func Flips(seed uint64, n int, report func(format string, args ...any)) (wrong int) {
	for done := 0; done < n; done += flipsPerLog {
		rng := rand.New(rand.NewPCG(seed, 1<<40+uint64(done)))
		wrong += flipLog(rng, min(flipsPerLog, n-done), report)
	}
	return wrong
}

func flipLog(rng *rand.Rand, n int, report func(format string, args ...any)) (wrong int) {
	l := &life{rng: rng, fs: vfs.NewMem(), model: newModel(), now: time.Unix(1_800_000_000, 0), report: report}
	l.opts = seglog.Options{FS: l.fs, Clock: func() time.Time { return l.now }, FileBytes: 3000, SealBatch: 1000, StreamChunk: 300}
	log, err := seglog.Open("log", l.opts)
	if err != nil {
		report("Open: %v", err)
		return 1
	}
	l.log = log
	l.fault = noFault
	l.work()
	log.Close()
	want, _, err := contents(l.fs, l.opts)
	if err != nil {
		report("healthy log: %v", err)
		return 1
	}
	files := l.fs.Files()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(s string) bool { return strings.HasSuffix(s, "/meta") })
	for range n {
		name := names[rng.IntN(len(names))]
		bit := rng.Int64N(files[name] * 8)
		disk := l.fs.Clone()
		disk.Flip(name, bit)
		got, torn, err := contents(disk, l.opts)
		switch {
		case errors.Is(err, eventlog.ErrCorrupt):
		case err != nil:
			report("bit %d of %s: %v; no CorruptError", bit, name, err)
			wrong++
		case !slices.Equal(got, want) && !(torn && len(got) < len(want) && slices.Equal(got, want[:len(got)])):
			report("bit %d of %s: %d lines differ from %d without an error", bit, name, len(got), len(want))
			wrong++
		}
	}
	return wrong
}

// journals counts the journal's files.
func journals(disk *vfs.Mem) (n int) {
	for name := range disk.Files() {
		if strings.HasSuffix(name, ".journal") {
			n++
		}
	}
	return n
}

// contents lists all that a log shows; torn tells that a tail was cut.
func contents(disk *vfs.Mem, opts seglog.Options) (lines []string, torn bool, err error) {
	opts.FS = disk
	before := journals(disk)
	log, err := seglog.Open("log", opts)
	if err != nil {
		return nil, false, err
	}
	defer log.Close()
	torn = journals(disk) != before // a file was begun behind the cut, or an empty one dropped
	r, err := log.Read(eventlog.ReadSpec{Outputs: true})
	if err != nil {
		return nil, torn, err
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil {
			return nil, torn, err
		}
		if tx == nil {
			break
		}
		lines = append(lines, fmt.Sprintf("%+v", *tx))
	}
	var damage error
	if _, err := log.Check(context.Background(), func(err error) { damage = err }); err != nil {
		return nil, torn, err
	}
	return lines, torn, damage
}
