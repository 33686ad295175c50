package crashlab

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

const (
	// flipsPerLog is how many bits are flipped, one at a time, in one large log.
	flipsPerLog = 50_000
	// wholeEvery is how many flips are looked at where they can show, for each
	// after which the whole log is.
	wholeEvery = 1000
)

// FlipLarge flips n random bits, one at a time, in files of large logs. After a
// flip it reads what the bit can change: in a segment the batch, in a closed
// journal file all its transactions, else all that Open reads. After every
// wholeEvery-th it looks at the whole log as FlipSmall does.
func FlipLarge(seed int64, n int, report reporter) (all Faults) {
	for done := 0; done < n && !all.Any(); done += flipsPerLog {
		l := newLife(rand.New(rand.NewPCG(uint64(seed), 1<<45+uint64(done))), report)
		l.opts.FileBytes, l.opts.SealBatch, l.opts.TailBytes = 20_000, 8000, 1
		l.session(strike{}, func() {
			for _, c := range []string{"none", "snappy", "lz4", "zstd"} {
				l.topicWith(c)
			}
			for part := range 3 {
				for range 150 {
					l.do(operationNamed("append"))
				}
				if part == 1 {
					l.do(operationNamed("seal all"))
				}
			}
			l.strike.crashed = l.fs.Clone()
		})
		if !l.faults.Any() {
			newLarge(l).flip(min(flipsPerLog, n-done))
		}
		all.add(l.faults)
	}
	return all
}

// large is a large log without damage. It is open: what reads it finds a flipped bit at once.
type large struct {
	*healthy
	log    *seglog.Log
	d      *digester
	names  []string
	before string  // journal file added last
	ends   []int64 // sum of sizes up to and with names[i]
	parts  map[string]segmentPart
	files  map[string]*journalPart
}

// segmentPart is what a segment's name and batches say.
type segmentPart struct {
	topic   eventlog.TopicID
	part    int32
	batches []batchPart
	end     int64 // of the batches
}

type batchPart struct {
	pos  int64
	base eventlog.Offset
	next eventlog.Offset
	want []uint64 // digests of its records
}

// journalPart is a closed file of the journal.
type journalPart struct {
	body  int64        // where its checkpoint ends
	after eventlog.CSN // its transactions are those behind it and below stop
	stop  eventlog.CSN
	want  []uint64 // digests of them
}

func newLarge(l *life) *large {
	b := &large{healthy: healthyLog(l), d: newDigester(), parts: map[string]segmentPart{}, files: map[string]*journalPart{}}
	l.opts.FS = l.fs
	var err error
	if b.log, err = seglog.Open("log", l.opts); err != nil {
		l.wrong("healthy log: %v", err)
		return b
	}
	b.names = slices.Sorted(maps.Keys(b.healthy.files))
	var sum int64
	for _, name := range b.names {
		sum += b.healthy.files[name]
		b.ends = append(b.ends, sum)
		switch {
		case isSegment(name):
			b.addSegment(name)
		case isJournal(name):
			b.addJournal(name)
		}
	}
	for name, p := range b.files {
		if p.want, err = b.readFile(p); err != nil || len(p.want) == 0 && name != b.newest {
			l.wrong("healthy log: %s: %d transactions, %v", name, len(p.want), err)
		}
	}
	return b
}

// addJournal notes between which CSNs a journal file's transactions are; names come in order.
func (b *large) addJournal(name string) {
	file := b.bytes(name)[16:]
	_, skip := binary.Uvarint(file[9+17:]) // behind version and log id: the end of the file before
	csn, _ := binary.Uvarint(file[9+17+skip:])
	if before := b.files[b.before]; before != nil {
		before.stop = eventlog.CSN(csn)
	}
	b.before = name
	b.files[name] = &journalPart{body: 16 + entrySize(file), after: eventlog.CSN(csn) - 1, stop: eventlog.MaxCSN + 1}
}

// readFile returns the digests of a journal file's transactions, and of outputs
// behind them in the same file; it reads on to the first of the next.
func (b *large) readFile(p *journalPart) (out []uint64, err error) {
	r, err := b.log.Read(eventlog.ReadSpec{After: p.after, Outputs: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil || tx == nil || tx.CSN >= p.stop && tx.Kind != eventlog.TxOutput {
			return out, err
		}
		out = append(out, b.d.tx(tx))
	}
}

// addSegment notes the batches of a segment, reading each once so that its index is in memory.
func (b *large) addSegment(name string) {
	var p segmentPart
	fields := strings.Split(name, "/") // log, topics, topic, segment
	for i, to := range []func(int64){func(v int64) { p.topic = eventlog.TopicID(v) }, func(v int64) { p.part = int32(v) }} {
		digits, _, _ := strings.Cut(fields[2+i], "-")
		v, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			panic(err) // not a segment of ours
		}
		to(v)
	}
	file := b.bytes(name)
	for p.end = 16; ; {
		h, err := eventlog.DecodeBatch(file[p.end:])
		if err != nil {
			break // the footer
		}
		p.batches = append(p.batches, batchPart{pos: p.end, base: h.Base, next: h.Last + 1})
		p.end += int64(h.Size)
	}
	for i := range p.batches {
		k := &p.batches[i]
		var err error
		if k.want, err = b.readBatch(p, *k); err != nil || len(k.want) == 0 {
			b.wrong("healthy log: %s: batch at byte %d: %d records, %v", name, k.pos, len(k.want), err)
		}
	}
	b.parts[name] = p
}

// readBatch returns digests of the records that a batch holds.
func (b *large) readBatch(p segmentPart, k batchPart) (out []uint64, err error) {
	r, err := b.log.ReadPartition(p.topic, p.part, k.base)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok || rec.Offset >= k.next {
			return out, err
		}
		b.d.h.Reset()
		b.d.record(&rec)
		out = append(out, b.d.h.Sum64())
	}
}

func (b *large) flip(n int) {
	for i := 0; i < n && !b.faults.Any(); i++ {
		at := b.rng.Int64N(b.ends[len(b.ends)-1])
		k, _ := slices.BinarySearchFunc(b.ends, at, func(end, at int64) int { return cmp.Compare(end, at+1) })
		name := b.names[k]
		bit := (at-(b.ends[k]-b.healthy.files[name]))*8 + b.rng.Int64N(8)
		look := b.nearby
		if i%wholeEvery == 0 {
			look = b.whole
			b.checked()
		}
		b.flipped(name, bit, look)
	}
}

// nearby reads what the bit can change.
func (b *large) nearby(name string, bit int64) string {
	pos := bit / 8
	switch {
	case isSegment(name) && pos >= 16 && pos < b.parts[name].end:
		p := b.parts[name]
		i, _ := slices.BinarySearchFunc(p.batches, pos+1, func(k batchPart, pos int64) int { return cmp.Compare(k.pos, pos) })
		got, err := b.readBatch(p, p.batches[i-1])
		return judge(got, p.batches[i-1].want, err)
	case isSegment(name):
		return b.segmentAnew(name)
	case isJournal(name) && name != b.newest:
		return b.closedFile(name, pos)
	}
	return b.whole(name, bit)
}

// judge tells what is wrong with digests read: all must be right, or damage be said before one is wrong.
func judge(got, want []uint64, err error) string {
	switch {
	case err != nil && !errors.Is(err, eventlog.ErrCorrupt):
		return fmt.Sprintf("%v; not called damage", err)
	case len(got) > len(want) || !slices.Equal(got, want[:len(got)]):
		return "other bytes were served"
	case err == nil && len(got) < len(want):
		return fmt.Sprintf("%d of %d served, without an error", len(got), len(want))
	}
	return ""
}

// segmentAnew reads a segment of a log that has not read its index yet.
func (b *large) segmentAnew(name string) string {
	log, err := seglog.OpenReadOnly("log", b.opts)
	if err != nil {
		return judge(nil, nil, err)
	}
	p := b.parts[name]
	fresh := large{healthy: b.healthy, log: log, d: b.d}
	for _, k := range p.batches {
		got, err := fresh.readBatch(p, k)
		if what := judge(got, k.want, err); what != "" || err != nil {
			return what
		}
	}
	return ""
}

// closedFile reads a closed file of the journal: the checkpoint as Open does,
// else its transactions.
func (b *large) closedFile(name string, pos int64) string {
	p := b.files[name]
	if pos < p.body {
		return b.whole(name, pos*8)
	}
	got, err := b.readFile(p)
	return judge(got, p.want, err)
}

// checked flips a bit in every segment and closed file of the journal at once:
// Check must name each.
func (b *large) checked() {
	bits := map[string]int64{}
	for _, name := range b.names {
		if isSegment(name) || isJournal(name) && name != b.newest {
			bits[name] = b.harmful(name) * 8
			b.fs.Flip(name, bits[name])
		}
	}
	found := map[string]bool{}
	_, err := b.log.Check(context.Background(), func(err error) {
		var bad *seglog.CorruptError
		if errors.As(err, &bad) {
			found[bad.Path] = true
		}
	})
	if err != nil {
		b.wrong("Check: %v", err)
	}
	for name, bit := range bits {
		b.fs.Flip(name, bit)
		if !found[name] {
			b.wrong("byte %d of %s: not found by Check", bit/8, name)
		}
	}
}

// harmful returns a random byte of a file that means something: a batch's leader epoch does not.
func (b *large) harmful(name string) int64 {
	for {
		pos := b.rng.Int64N(b.healthy.files[name])
		if !slices.ContainsFunc(b.parts[name].batches, func(k batchPart) bool { return pos >= k.pos+12 && pos < k.pos+16 }) {
			return pos
		}
	}
}
