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
	l.spools = append(l.spools, &spooled{s: s, id: fmt.Sprint("u", l.model.next), aborted: map[uint32]bool{}})
	return nil
}

// subOf spreads sub-transactions over the whole range.
func subOf(n int) uint32 { return uint32(n) * (math.MaxUint32 / 3) }

// addStreamed adds a few records; without space it tries again.
func (l *life) addStreamed(p *spooled) error {
	sub := subOf(l.rng.IntN(4))
	records := l.records(p.id, 1+l.rng.IntN(8), uint32(len(p.records)))
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
	switch l.rng.IntN(4) {
	case 0:
		if want.CSN = l.log.Frontier(); want.CSN > 0 {
			want.Kind = eventlog.TxOutput
		}
	case 1, 2:
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
			r.CSN, r.Time = want.CSN, want.CommitTime
			want.Records = append(want.Records, r)
		}
	}
	l.model.add(want, f)
	if f == refused {
		l.doubtful = append(l.doubtful, want.ID)
	}
	l.model.byID[p.id].unplaced = true
	return err
}

// comparePieces reads everything in pieces: joined they are the transactions.
func (m *model) comparePieces(log eventlog.Log, report reporter) (Faults, error) {
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
		if tx.ID == "" {
			continue // a tick of Skip
		}
		records := whole.Records
		whole = *tx
		whole.Records = append(records, clone(tx.Records)...)
		if tx.More {
			continue
		}
		if n == len(m.txs) {
			return wrong("transaction %q in pieces is one too many", tx.ID)
		}
		if k := m.txs[n]; k.tx.ID != tx.ID {
			return wrong("transaction %q in pieces where %q was due", tx.ID, k.tx.ID)
		} else if what := m.differs(k, &whole); what != "" {
			return wrong("transaction %q in pieces: %s", tx.ID, what)
		}
		n++
		whole = eventlog.Tx{}
	}
	if n != len(m.txs) || len(whole.Records) > 0 {
		return wrong("%d transactions in pieces, want %d", n, len(m.txs))
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
