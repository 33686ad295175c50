package crashlab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

func isJournal(name string) bool { return strings.HasSuffix(name, ".journal") }
func isSegment(name string) bool { return strings.HasSuffix(name, ".seg") }

// FlipSmall flips every stride-th bit of every file of a small log that has all
// kinds of files: each is detected by Open, by reading or by Check, or shows
// exactly what was there. Only a bit of the journal's last entry may make that
// look torn: then all before it is there.
func FlipSmall(seed int64, stride int, report reporter) (bits int, all Faults) {
	for _, end := range []string{"append", "roll"} { // the newest file ends with an entry, or has none
		l := newLife(rand.New(rand.NewPCG(uint64(seed), 1<<44)), report)
		l.opts.FileBytes, l.opts.SealBatch, l.values = 1<<20, 600, 20
		l.session(strike{}, func() {
			for _, c := range []string{"none", "snappy", "lz4", "zstd"} {
				l.topicWith(c)
			}
			for _, name := range []string{"append", "append", "mark", "append", "seal all", "append", "seal all", "cursor", "compact", "append", "mark", "append", "roll", "append", end} {
				l.do(operationNamed(name))
			}
			l.strike.crashed = l.fs.Clone()
		})
		if l.faults.Any() {
			return bits, l.faults
		}
		h := healthyLog(l)
		for _, name := range slices.Sorted(maps.Keys(h.files)) {
			for bit := int64(0); bit < h.files[name]*8; bit += int64(stride) {
				bits++
				h.flipped(name, bit, h.whole)
			}
		}
		all.add(l.faults)
	}
	n, f := flipIndex(seed, stride, report)
	all.add(f)
	return bits + n, all
}

// flipIndex flips the bits of an index entry, which only a large closed file has.
func flipIndex(seed int64, stride int, report reporter) (bits int, f Faults) {
	l := newLife(rand.New(rand.NewPCG(uint64(seed), 1<<46)), report)
	l.opts.TailBytes = 1
	l.session(strike{}, func() {
		l.topicWith("none")
		for i := range 3 {
			r := eventlog.Record{Topic: l.model.topic[0].ID, Op: 1, Key: []byte("k"), Value: make([]byte, 1<<20)}
			if err := l.log.Append(context.Background(), []*eventlog.Tx{{ID: fmt.Sprint(i), Records: []eventlog.Record{r}}}); err != nil {
				l.wrong("append: %v", err)
			}
		}
		l.do(operationNamed("roll"))
		l.strike.crashed = l.fs.Clone()
	})
	h := healthyLog(l)
	for name, size := range h.files {
		if !isJournal(name) || name == h.newest {
			continue
		}
		b := h.bytes(name)
		pos := size - int64(binary.LittleEndian.Uint32(b[size-4:]))
		if b[pos+8] != 4 {
			l.wrong("%s does not end with an index", name)
		}
		for bit := pos * 8; bit < size*8; bit += int64(stride) {
			bits++
			h.flipped(name, bit, h.whole)
		}
	}
	return bits, l.faults
}

func (l *life) topicWith(compression string) {
	spec := eventlog.TopicSpec{Name: "s.p." + compression, Partitions: 1, Compression: compression}
	if compression == "zstd" {
		spec.Cleanup = eventlog.CleanupCompact
	}
	t, err := l.log.EnsureTopic(spec)
	if err != nil {
		l.wrong("EnsureTopic: %v", err)
	}
	l.model.topic = append(l.model.topic, t)
}

// healthy is a log without damage, in which bits are flipped one at a time.
type healthy struct {
	*life
	files  map[string]int64
	want   contents
	newest string // journal file
	last   int64  // where the last entry of that begins
}

// contents are digests of what a log shows, a line for each transaction, record of a partition, topic and mark.
type contents struct{ txs, rest []uint64 }

func healthyLog(l *life) *healthy {
	h := &healthy{life: l, files: l.fs.Files()}
	h.newest, _ = newestJournal(l.fs)
	b := h.bytes(h.newest)
	for pos := int64(16); pos < int64(len(b)); pos += entrySize(b[pos:]) {
		h.last = pos
	}
	var err error
	if h.want, err = contentsOf(l.fs.Clone(), l.opts); err != nil {
		l.wrong("healthy log: %v", err)
	}
	return h
}

func (h *healthy) bytes(name string) []byte {
	b, err := vfs.ReadFile(h.fs, name)
	if err != nil {
		panic(err) // the file system in memory, without a hook
	}
	return b
}

// entrySize returns the size of the journal's entry at the start of b.
func entrySize(b []byte) int64 { return 9 + int64(binary.LittleEndian.Uint32(b[4:])) }

// flipped flips a bit, asks look what is wrong with what the log shows, and flips it back.
func (h *healthy) flipped(name string, bit int64, look func(name string, bit int64) string) {
	h.fs.Flip(name, bit)
	what := look(name, bit)
	h.fs.Flip(name, bit)
	if what != "" {
		h.wrong("bit %d of byte %d of %s: %s", bit%8, bit/8, name, what)
	}
}

// whole opens a copy of the log, reads all and lets it check itself.
func (h *healthy) whole(name string, bit int64) string {
	got, err := contentsOf(h.fs.Clone(), h.opts)
	switch {
	case errors.Is(err, eventlog.ErrCorrupt):
		return ""
	case err != nil:
		return fmt.Sprintf("%v; not called damage", err)
	case slices.Equal(got.txs, h.want.txs) && slices.Equal(got.rest, h.want.rest):
		return ""
	case name == h.newest && bit/8 >= h.last && len(got.txs) < len(h.want.txs) && slices.Equal(got.txs, h.want.txs[:len(got.txs)]):
		return "" // looks torn
	}
	return fmt.Sprintf("%d transactions of %d, without an error", len(got.txs), len(h.want.txs))
}

// contentsOf reads all that a log shows, in all ways; the first damage found is the error.
func contentsOf(disk *vfs.Mem, opts seglog.Options) (c contents, err error) {
	opts.FS = disk
	log, err := seglog.Open("log", opts)
	if err != nil {
		return c, err
	}
	defer log.Close()
	d := newDigester()
	if c.txs, err = d.transactions(log, 0); err != nil {
		return c, err
	}
	for _, t := range log.Topics() {
		c.rest = append(c.rest, d.of("%+v", t))
		for p := range int32(t.Spec.Partitions) {
			records, err := d.partition(log, t.ID, p, 0)
			if err != nil {
				return c, err
			}
			c.rest = append(c.rest, records...)
		}
	}
	marks, err := log.Checkpoints()
	for _, consumer := range slices.Sorted(maps.Keys(marks)) {
		c.rest = append(c.rest, d.of("%s %s", consumer, marks[consumer]))
	}
	var damage error
	if _, cerr := log.Check(context.Background(), func(err error) { damage = err }); cerr != nil {
		err = cerr
	}
	return c, errors.Join(err, damage)
}

// digester makes digests of what a log shows.
type digester struct{ h maphash.Hash }

var digestSeed = maphash.MakeSeed()

func newDigester() *digester {
	d := &digester{}
	d.h.SetSeed(digestSeed)
	return d
}

func (d *digester) of(format string, args ...any) uint64 {
	d.h.Reset()
	fmt.Fprintf(&d.h, format, args...)
	return d.h.Sum64()
}

func (d *digester) int(v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	d.h.Write(b[:])
}

func (d *digester) bytes(b []byte) {
	n := uint64(len(b))
	if b == nil {
		n = 1 << 63
	}
	d.int(n)
	d.h.Write(b)
}

func (d *digester) record(r *eventlog.Record) {
	for _, v := range []uint64{uint64(r.Topic), uint64(r.Partition), uint64(r.Offset), uint64(r.CSN), uint64(r.Seq), uint64(r.Op), uint64(r.Flags), uint64(r.Schema), uint64(r.Time)} {
		d.int(v)
	}
	d.bytes(r.Key)
	d.bytes(r.Value)
}

func (d *digester) tx(tx *eventlog.Tx) uint64 {
	d.h.Reset()
	for _, v := range []uint64{uint64(tx.Kind), uint64(tx.CSN), uint64(tx.Since), uint64(tx.CommitTime), uint64(tx.IngestTime), uint64(len(tx.Records))} {
		d.int(v)
	}
	d.bytes([]byte(tx.Source))
	d.bytes(tx.Position)
	d.bytes([]byte(tx.ID))
	d.bytes(tx.Note)
	for i := range tx.Records {
		d.record(&tx.Records[i])
	}
	return d.h.Sum64()
}

// transactions returns the digests of all transactions behind a CSN.
func (d *digester) transactions(log eventlog.Log, after eventlog.CSN) (out []uint64, err error) {
	r, err := log.Read(eventlog.ReadSpec{After: after, Outputs: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		tx, err := r.Next()
		if err != nil || tx == nil {
			return out, err
		}
		out = append(out, d.tx(tx))
	}
}

// partition returns the digests of a partition's records from an offset on.
func (d *digester) partition(log eventlog.Log, topic eventlog.TopicID, p int32, from eventlog.Offset) (out []uint64, err error) {
	r, err := log.ReadPartition(topic, p, from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		rec, ok, err := r.Next()
		if err != nil || !ok {
			return out, err
		}
		d.h.Reset()
		d.record(&rec)
		out = append(out, d.h.Sum64())
	}
}
