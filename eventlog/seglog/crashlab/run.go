package crashlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// opEvery is the op of the records that the lab puts into every partition.
const opEvery = 4

// ErrFaults is returned when a round found anything wrong.
var ErrFaults = errors.New("crashlab: the log broke its contract")

// Run lives rounds lives, then flips bits flip times, and prints a line of what
// it found. The same seed does the same again.
func Run(rounds int, seed int64, flip int, out io.Writer) error {
	var all Faults
	report := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	for i := range rounds {
		f := Round(uint64(seed), uint64(i), report)
		if f.Any() {
			report("round %d of seed %d: %+v", i, seed, f)
		}
		all.add(f)
	}
	all.Wrong += Flips(uint64(seed), flip, report)
	fmt.Fprintf(out, "crash rounds=%d flips=%d lost=%d duplicate=%d reordered=%d wrong=%d seed=%d\n",
		rounds, flip, all.Lost, all.Duplicate, all.Reordered, all.Wrong, seed)
	if all.Any() {
		return ErrFaults
	}
	return nil
}

// life is a round in progress.
type life struct {
	rng    *rand.Rand
	fs     *vfs.Mem
	opts   seglog.Options
	model  *model
	now    time.Time
	report func(format string, args ...any)
	log    *seglog.Log
	spools []*spooled // streamed transactions in progress

	ops     int // until the fault
	fault   fault
	crashed *vfs.Mem // what the disk held when power was lost
	full    int      // operations for which the disk stays full
}

type fault uint8

const (
	noFault   fault = iota
	powerLoss       // at an operation; nothing works afterwards
	killed          // at an operation; the disk's cache survives
	ioErr           // one operation fails
	diskFull        // no space for a number of operations
)

var errDead = errors.New("power is lost")

// Round lives one life and returns what was wrong in it.
func Round(seed, round uint64, report func(format string, args ...any)) Faults {
	rng := rand.New(rand.NewPCG(seed, round))
	l := &life{rng: rng, fs: vfs.NewMem(), model: newModel(), now: time.Unix(1_800_000_000, 0)}
	l.report = func(format string, args ...any) {
		report("round %d: "+format, append([]any{round}, args...)...)
	}
	l.opts = seglog.Options{
		Clock: func() time.Time { return l.now }, FileBytes: int64(500 + rng.IntN(6000)),
		TailBytes: int64(1 + rng.IntN(4000)), SealBatch: 100 + rng.IntN(2000),
		StreamChunk: 50 + rng.IntN(1000),
	}
	var f Faults
	for range 2 + rng.IntN(4) {
		f.add(l.session())
		if f.Any() {
			return f
		}
	}
	f.add(l.last())
	return f
}

// session opens the log, compares, works until the fault and leaves the disk behind.
func (l *life) session() Faults {
	l.now = l.now.Add(time.Duration(l.rng.IntN(3)-1) * time.Minute)
	l.fault = fault(l.rng.IntN(5))
	l.ops, l.full, l.crashed = 1+l.rng.IntN(150), 0, nil
	if l.rng.IntN(4) == 0 {
		l.ops = 1 + l.rng.IntN(15) // strike while the log opens
	}
	l.fs.SetHook(l.hook)
	l.opts.FS = l.fs
	log, err := seglog.Open("log", l.opts)
	if err != nil {
		return l.after(l.refusedToOpen(err))
	}
	l.log, l.spools = log, nil
	f := l.model.compare(log, func(format string, args ...any) {
		if l.crashed == nil {
			l.report(format, args...)
		}
	})
	if l.crashed != nil {
		f = Faults{} // what it read after the lights went out does not count
	}
	if !f.Any() {
		l.work()
	}
	return l.after(f)
}

func (l *life) refusedToOpen(err error) Faults {
	if l.fault == noFault || l.ops > 0 {
		l.report("Open: %v", err)
		return Faults{Wrong: 1}
	}
	return Faults{}
}

// after ends a session: the next one finds what the disk holds.
func (l *life) after(f Faults) Faults {
	l.fs.SetHook(nil)
	switch {
	case l.crashed != nil:
		l.fs = l.crashed
	case l.rng.IntN(2) == 0:
		l.fs = l.fs.Crash(l.rng) // power fails when the process has gone
	}
	l.log = nil
	return f
}

// last opens the log once more, without faults, compares and checks it.
func (l *life) last() Faults {
	l.opts.FS = l.fs
	log, err := seglog.Open("log", l.opts)
	if err != nil {
		l.report("last Open: %v", err)
		return Faults{Wrong: 1}
	}
	defer log.Close()
	f := l.model.compare(log, l.report)
	if err := log.SealAll(context.Background()); err != nil {
		l.report("SealAll: %v", err)
		f.Wrong++
	}
	f.add(l.model.compare(log, l.report))
	_, err = log.Check(context.Background(), func(err error) {
		l.report("Check: %v", err)
		f.Wrong++
	})
	if err != nil {
		l.report("Check: %v", err)
		f.Wrong++
	}
	return f
}

// hook strikes at the chosen operation.
func (l *life) hook(op vfs.Op) (short int, err error) {
	if l.crashed != nil {
		return 0, errDead
	}
	if l.full > 0 {
		if op.Kind == "write" || op.Kind == "create" || op.Kind == "mkdir" {
			l.full--
			return l.rng.IntN(op.N + 1), syscall.ENOSPC
		}
	}
	if !op.Changes() {
		return 0, nil
	}
	if l.ops--; l.ops != 0 {
		return 0, nil
	}
	switch l.fault {
	case powerLoss:
		l.crashed = l.fs.Crash(l.rng)
		return 0, errDead
	case killed:
		l.crashed = l.fs.Clone()
		return 0, errDead
	case ioErr:
		return l.rng.IntN(op.N + 1), syscall.EIO
	case diskFull:
		l.full = 1 + l.rng.IntN(6)
	}
	return 0, nil
}

// dead reports that the session is over.
func (l *life) dead(err error) bool { return l.crashed != nil || errors.Is(err, seglog.ErrSync) }

// work does random things until the fault has ended the session, or long enough.
func (l *life) work() {
	for range 5 + l.rng.IntN(60) {
		var err error
		switch n := l.rng.IntN(20); {
		case n == 0 || len(l.model.topic) == 0:
			err = l.ensureTopic()
		case n == 1:
			err = l.log.SealAll(context.Background())
		case n == 2:
			err = l.log.Seal(context.Background(), int64(l.rng.IntN(8000)))
		case n < 5:
			err = l.saveMark()
		case n < 11:
			err = l.stream()
		default:
			err = l.append()
		}
		if l.dead(err) {
			return
		}
		if errors.Is(err, eventlog.ErrCorrupt) {
			l.report("damage in a healthy log: %v", err)
		}
	}
	if l.rng.IntN(2) == 0 {
		l.log.Close() // its error is the fault's
	}
}

func (l *life) ensureTopic() error {
	t, err := l.log.EnsureTopic(eventlog.TopicSpec{
		Name: fmt.Sprint("s.p.t", len(l.model.topic)), Partitions: 1 + l.rng.IntN(3),
		Compression: []string{"none", "snappy", "lz4", "zstd"}[l.rng.IntN(4)],
	})
	if err == nil {
		l.model.topic = append(l.model.topic, t)
	} else if t, ok := l.log.Topic(fmt.Sprint("s.p.t", len(l.model.topic))); ok {
		l.model.topic = append(l.model.topic, t) // made before, unknown to us
		err = nil
	}
	return err
}

func (l *life) saveMark() error {
	l.model.next++
	consumer, v := fmt.Sprint("c", l.rng.IntN(3)), fmt.Append(nil, l.model.next)
	err := l.log.SaveCheckpoint(consumer, v)
	switch {
	case err == nil:
		l.model.marks[consumer] = [][]byte{v}
	case l.dead(err):
		if len(l.model.marks[consumer]) == 0 {
			l.model.marks[consumer] = [][]byte{nil}
		}
		l.model.marks[consumer] = append(l.model.marks[consumer], v)
	}
	return err
}

// append appends a group and notes its fate.
func (l *life) append() error {
	group := make([]*eventlog.Tx, 1+l.rng.IntN(3))
	for i := range group {
		group[i] = l.transaction()
	}
	err := l.log.Append(context.Background(), group)
	f := acknowledged
	if err != nil {
		f = refused
		if l.dead(err) {
			f = unknown
		}
	}
	for _, tx := range group {
		l.model.add(tx, f)
	}
	return err
}

func (l *life) transaction() *eventlog.Tx {
	l.model.next++
	id := fmt.Sprint("t", l.model.next)
	tx := &eventlog.Tx{
		ID: id, Kind: eventlog.TxKind(l.rng.IntN(4)), CommitTime: l.now.UnixMicro() + int64(l.rng.IntN(1000)),
		Note: make([]byte, l.rng.IntN(3)),
	}
	switch tx.Kind {
	case eventlog.TxSource, eventlog.TxTick:
		tx.Source, tx.Position = fmt.Sprint("s", l.rng.IntN(2)), []byte(id)
	case eventlog.TxOutput:
		if tx.CSN = l.log.Frontier(); tx.CSN == 0 {
			tx.Kind = eventlog.TxChunk // nothing to derive from yet
		}
	}
	if tx.Kind == eventlog.TxTick {
		return tx
	}
	tx.Records = l.records(id, l.rng.IntN(6), 0)
	return tx
}

// records makes n records of a transaction, from seq on.
func (l *life) records(id string, n int, seq uint32) (out []eventlog.Record) {
	for i := range n {
		r := eventlog.Record{
			Topic: l.model.topic[l.rng.IntN(len(l.model.topic))].ID, Seq: seq + uint32(i), Op: 1,
			Key: fmt.Append(nil, "k", l.rng.IntN(20)), Value: fmt.Appendf(nil, "%s/%d/%*d", id, seq+uint32(i), 1+l.rng.IntN(300), i),
		}
		switch l.rng.IntN(12) {
		case 0:
			r.Value = nil
		case 1:
			r.Op, r.Partition, r.Key = opEvery, eventlog.EveryPartition, []byte{0, 4}
		}
		out = append(out, r)
	}
	return out
}
