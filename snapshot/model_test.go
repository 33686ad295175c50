package snapshot

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "run this interleaving alone and print it")
	modelSeeds = flag.Int("model.seeds", 3000, "interleavings of the model test")
)

// model runs one random interleaving.
type model struct {
	rng   *rand.Rand
	db    *simDB
	d     *simDaemon
	live  []*simTx
	trace strings.Builder
	keys  int
}

func newModel(seed uint64, mutant string) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 7)), db: newSimDB(10), keys: 5}
	m.db.keyless = seed%7 == 3
	for range m.rng.IntN(30) {
		m.database()
	}
	// The slot's creation waits for running transactions; one whose commit
	// record is written may hang beyond it (V2). The table is published before
	// it, or later, while others write (V1).
	for _, tx := range slices.Clone(m.live) {
		if tx.state == simRunning {
			m.commit(tx)
		}
	}
	m.db.published = m.rng.IntN(2) == 0
	start := len(m.db.wal)
	if !m.db.published {
		for range m.rng.IntN(10) {
			m.database()
		}
		m.db.published = true
	}
	m.d = newSimDaemon(m.db, mutant)
	m.d.streamed = start
	m.d.big = func(tx uint64) bool { return (tx+seed)%3 == 0 }
	m.d.print = func(s string) { fmt.Fprintf(&m.trace, "    %s\n", s) }
	return m
}

func (m *model) note(format string, args ...any) { fmt.Fprintf(&m.trace, format+"\n", args...) }

func (m *model) commit(tx *simTx) {
	m.db.commit(tx)
	m.note("commit record %d", tx.id)
}

// database does one step of a client.
func (m *model) database() {
	switch n := m.rng.IntN(100); {
	case n < 15 || len(m.live) == 0:
		if len(m.live) < 3 {
			m.live = append(m.live, m.db.begin())
		}
	case n < 18:
		m.db.vacuum()
	default:
		i := m.rng.IntN(len(m.live))
		tx := m.live[i]
		switch {
		case tx.state == simHanging:
			if m.rng.IntN(3) == 0 {
				m.db.finish(tx)
				m.note("end %d", tx.id)
				m.live = slices.Delete(m.live, i, i+1)
			}
		case n < 25:
			m.db.abort(tx)
			m.note("abort %d", tx.id)
			m.live = slices.Delete(m.live, i, i+1)
		case n < 45:
			m.commit(tx)
		case n < 48:
			rewrite := m.rng.IntN(2) == 0
			if m.db.truncate(tx, rewrite) {
				m.note("truncate %d rewrite=%v", tx.id, rewrite)
			}
		default:
			m.write(tx)
		}
	}
}

func (m *model) write(tx *simTx) {
	k := m.rng.IntN(m.keys)
	e := simEvent{op: change.OpInsert, before: simRow{key: k}, after: simRow{k, m.rng.IntN(900), m.rng.IntN(900)}}
	switch n := m.rng.IntN(100); {
	case n < 35:
	case n < 50:
		e.op = change.OpDelete
	case n < 60:
		e.op, e.moved = change.OpUpdate, true
		e.after.key = m.rng.IntN(m.keys)
		if e.after.key == k {
			return
		}
		e.whole = m.rng.IntN(3) == 0
	default:
		e.op = change.OpUpdate
		e.whole = m.rng.IntN(3) == 0
	}
	if m.db.keyless {
		e.whole = true
	}
	if m.db.write(tx, e, m.rng.IntN(len(m.db.heap))) {
		m.note("%d: %s %v -> %v whole=%v moved=%v", tx.id, e.op, e.before.key, e.after, e.whole, e.moved)
	}
}

// daemon does one step of ours.
func (m *model) daemon() bool {
	d := m.d
	steps := []struct {
		name string
		f    func() bool
	}{{"stream", d.stream}, {"pump", d.pump}, {"lock", d.lock}, {"snapshot", d.snapshot}, {"read", d.read},
		{"deliver", d.deliver}, {"release", func() bool { return d.held && d.release() }}, {"check", d.check}}
	s := steps[m.rng.IntN(len(steps))]
	if s.f() {
		m.note("  %s", s.name)
		return true
	}
	return false
}

// run lets it all happen and returns what is wrong in the end.
func (m *model) run() (fault string) {
	defer func() {
		if p := recover(); p != nil {
			fault = fmt.Sprint("panic: ", p)
		}
	}()
	runs := uint64(0)
	for range 150 + m.rng.IntN(300) {
		switch n := m.rng.IntN(100); {
		case n < 40:
			m.database()
		case n < 99:
			m.daemon()
		default:
			lost := m.rng.IntN(min(3, len(m.d.log.entries)+1))
			m.note("crash, losing %d batches", lost)
			m.d.crash(len(m.d.log.entries) - lost)
		}
		if s := m.d.m.Table(simTopic); s.Run > runs {
			runs = s.Run
		}
	}
	return m.settle()
}

// settle ends all transactions, lets the daemon finish and compares.
func (m *model) settle() string {
	for _, tx := range m.live {
		if tx.state == simRunning {
			m.commit(tx)
		}
		m.db.finish(tx)
		m.note("end %d", tx.id)
	}
	for i := 0; !m.d.idle() || m.d.node != m.db.filenode; i++ {
		m.daemon()
		if i > 20000 {
			return fmt.Sprintf("no end: %+v node %d/%d", m.d.m.Table(simTopic), m.d.node, m.db.filenode)
		}
	}
	if m.db.keyless {
		var want []string
		for _, v := range m.db.heap {
			if m.db.visible(v, func(uint64) bool { return true }) {
				want = append(want, v.row.String())
			}
		}
		slices.Sort(want)
		if got := m.d.log.bag(); !slices.Equal(got, want) {
			return fmt.Sprintf("log %v, table %v", got, want)
		}
		return ""
	}
	got, unfilled := m.d.log.fold()
	want := m.db.rows()
	if len(unfilled) > 0 || !maps.Equal(got, want) {
		return fmt.Sprintf("log %v unfilled %v, table %v", got, unfilled, want)
	}
	return ""
}

// TestModel: whatever the interleaving, the log ends equal to the table.
func TestModel(t *testing.T) {
	if *modelSeed != 0 {
		m := newModel(*modelSeed, "")
		fault := m.run()
		t.Logf("seed %d: %s\n%s", *modelSeed, fault, m.trace.String())
		return
	}
	for seed := range uint64(*modelSeeds) {
		m := newModel(seed+1, "")
		if fault := m.run(); fault != "" {
			t.Fatalf("seed %d: %s\nrepeat with -model.seed=%d\n%s", seed+1, fault, seed+1, m.trace.String())
		}
	}
}

// TestModelSeesMutants: each protection matters, and the model would tell.
func TestModelSeesMutants(t *testing.T) {
	for _, mutant := range []string{"lsn", "nowait", "latecollect", "noowed", "norequest", "partialwhole", "forget", "nobarrier", "nolock", "nofilenode", "nomoved", "noafter", "notread", "notkept"} {
		t.Run(mutant, func(t *testing.T) {
			for seed := range uint64(20000) {
				m := newModel(seed+1, mutant)
				if fault := m.run(); fault != "" {
					t.Logf("seed %d: %s", seed+1, fault)
					return
				}
			}
			t.Errorf("no interleaving of 20000 fails without the protection %q", mutant)
		})
	}
}
