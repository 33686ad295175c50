package crashlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tailwater/tailwater/eventlog"
)

// spooled is a streamed transaction in progress and what it is to show.
type spooled struct {
	s       eventlog.Stream
	id      string
	output  bool     // it carries outputs of views
	subs    []uint32 // of each record
	records []eventlog.Record
	aborted map[uint32]bool
}

// maxSpooled is how many streams are in progress at a time.
const maxSpooled = 3

// stream begins a streamed transaction or takes a step in one.
func (l *life) stream() error {
	if len(l.model.topic) == 0 {
		return l.ensureTopic()
	}
	if len(l.spools) == 0 || len(l.spools) < maxSpooled && l.rng.IntN(4) == 0 {
		return l.beginStream()
	}
	i := l.rng.IntN(len(l.spools))
	p := l.spools[i]
	var err error
	switch n := l.rng.IntN(10); {
	case n < 6:
		if err = l.addStreamed(p); err == nil {
			return nil
		}
	case n < 7:
		sub := subOf(l.rng.IntN(4))
		if err = p.s.Abort(sub); err == nil {
			p.aborted[sub] = true
			return nil
		}
	case n < 9:
		err = l.commitStream(p)
	}
	// Discarded, committed, or given up: a stream whose step failed for good.
	l.spools = append(l.spools[:i], l.spools[i+1:]...)
	if derr := p.s.Discard(); err == nil {
		err = derr
	}
	return err
}

func (l *life) beginStream() error {
	s, err := l.log.Stream(context.Background())
	if err != nil {
		return err
	}
	l.model.next++
	l.spools = append(l.spools, &spooled{s: s, id: fmt.Sprint("u", l.model.next), output: l.log.Frontier() > 0 && l.rng.IntN(4) == 0, aborted: map[uint32]bool{}})
	return nil
}

// subOf spreads sub-transactions over the whole range.
func subOf(n int) uint32 { return uint32(n) * (math.MaxUint32 / 3) }

// addStreamed adds a few records; without space it tries again.
func (l *life) addStreamed(p *spooled) error {
	sub := subOf(l.rng.IntN(4))
	records := l.records(p.id, 1+l.rng.IntN(8), uint32(len(p.records)), p.output, true)
	err := again(func() error { return p.s.Add(sub, records) })
	if err != nil {
		return err
	}
	for range records {
		p.subs = append(p.subs, sub)
	}
	p.records = append(p.records, records...)
	return nil
}

// again repeats what ended for want of space.
func again(do func() error) error {
	err := do()
	for i := 0; i < 3 && errors.Is(err, eventlog.ErrFull) && !errors.Is(err, eventlog.ErrStreamLost); i++ {
		err = do()
	}
	return err
}

// commitStream commits and notes the transaction's fate.
func (l *life) commitStream(p *spooled) error {
	want := &eventlog.Tx{ID: p.id, Kind: eventlog.TxChunk, CommitTime: l.now.UnixMicro() + int64(l.rng.IntN(1000)), Note: []byte(p.id)}
	switch n := l.rng.IntN(3); {
	case p.output:
		want.Kind, want.CSN = eventlog.TxOutput, l.log.Frontier()
	case n > 0:
		want.Kind, want.Source, want.Position = eventlog.TxSource, fmt.Sprint("s", l.rng.IntN(2)), []byte(p.id)
	}
	tx := *want
	err := again(func() error { return p.s.Commit(context.Background(), &tx) })
	f := acknowledged
	if err != nil {
		f = refused
		if l.dead(err) {
			f = unknown
		}
	}
	want.CSN, want.IngestTime = tx.CSN, tx.IngestTime
	for i, r := range p.records {
		if !p.aborted[p.subs[i]] {
			r.CSN, r.Time, r.Offset = want.CSN, want.CommitTime, unplaced
			want.Records = append(want.Records, r)
		}
	}
	l.model.add(want, f)
	if f == refused {
		l.doubtful = append(l.doubtful, want.ID)
	}
	clear(l.tables)
	return err
}

// comparePieces reads everything in pieces: joined they are the transactions.
func comparePieces(log eventlog.Log, want []eventlog.Tx, report reporter) (Faults, error) {
	wrong := func(format string, args ...any) (Faults, error) {
		report(format, args...)
		return Faults{Wrong: 1}, nil
	}
	r, err := log.Read(eventlog.ReadSpec{Outputs: true, Pieces: true})
	if err != nil {
		return Faults{}, fmt.Errorf("in pieces: %w", err)
	}
	defer r.Close()
	n := 0
	var whole eventlog.Tx
	for {
		tx, err := r.Next()
		if err != nil {
			return Faults{}, fmt.Errorf("next piece: %w", err)
		}
		if tx == nil {
			break
		}
		records := whole.Records
		whole = *tx
		whole.Records = append(records, clone(tx.Records)...)
		if tx.More {
			continue
		}
		if n == len(want) {
			return wrong("transaction %q in pieces is one too many", tx.ID)
		}
		if w := &want[n]; w.ID != tx.ID || w.CSN != tx.CSN || w.Kind != tx.Kind {
			return wrong("transaction %q of CSN %d in pieces where %q of CSN %d was due", tx.ID, tx.CSN, w.ID, w.CSN)
		} else if what := sameRecords(w.Records, whole.Records); what != "" {
			return wrong("transaction %q in pieces: %s", tx.ID, what)
		}
		n++
		whole = eventlog.Tx{}
	}
	if n != len(want) || len(whole.Records) > 0 {
		return wrong("%d transactions in pieces, want %d", n, len(want))
	}
	return Faults{}, nil
}

func clone(records []eventlog.Record) []eventlog.Record {
	out := make([]eventlog.Record, len(records))
	for i, r := range records {
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		out[i] = r
	}
	return out
}
