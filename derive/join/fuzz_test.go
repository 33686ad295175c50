package join_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
)

var (
	seedFlag   = flag.Uint64("derive.seed", 0, "seed of the first model run; 0 takes the clock")
	roundsFlag = flag.Int("derive.rounds", 2, "model runs")
)

// filters are the predicates of random views, in SQL and in Go.
var filters = map[string]func([]change.Value, *change.Schema) bool{
	"a > 2": func(r []change.Value, s *change.Schema) bool {
		v := r[s.Column("a")]
		return !v.IsNull() && v.Int64() > 2
	},
	"b IS NULL OR b < 4": func(r []change.Value, s *change.Schema) bool {
		v := r[s.Column("b")]
		return v.IsNull() || v.Int64() < 4
	},
	"s <> 'x'": func(r []change.Value, s *change.Schema) bool {
		v := r[s.Column("s")]
		return !v.IsNull() && v.TextValue() != "x"
	},
}

// model is one random world with a random view.
type model struct {
	*world
	rng   *rand.Rand
	def   join.Definition
	filts map[string]func([]change.Value, *change.Schema) bool
	big   int
}

func newModel(t testing.TB, seed uint64) *model {
	m := &model{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 7)), filts: filters}
	for i := range 4 {
		columns := []change.Column{col(1, "id", change.KindInt), col(2, "a", change.KindInt), col(3, "b", change.KindInt), col(4, "s", change.KindText), col(5, "big", change.KindText)}
		keys := 1
		if i == 3 {
			columns[1], keys = col(2, "a", change.KindInt), 2 // composite key (id, a)
		}
		m.table(fmt.Sprintf("t%d", i), keys, columns...)
	}
	m.describe()
	m.def = join.Definition{Name: "v", Node: m.node(3)}
	return m
}

func (m *model) pick(list ...string) string { return list[m.rng.IntN(len(list))] }

func (m *model) filter() string {
	if m.rng.IntN(2) == 0 {
		return ""
	}
	return m.pick(slices.Sorted(maps.Keys(m.filts))...)
}

func (m *model) node(depth int) join.Node {
	n := join.Node{Table: "db.public." + m.pick("t0", "t1", "t2", "t3"), Where: m.filter()}
	if m.rng.IntN(3) > 0 {
		n.Fields = []join.Field{}
		for _, c := range []string{"id", "a", "b", "s", "big"} {
			if m.rng.IntN(2) == 0 {
				n.Fields = append(n.Fields, join.Field{Name: "f_" + c, Column: c})
			}
		}
	}
	if depth == 0 {
		return n
	}
	for i := range m.rng.IntN(3) + depth/3 {
		r := m.relation(fmt.Sprintf("r%d_%d", depth, i), depth)
		n.Nest = append(n.Nest, r)
		for _, k := range []join.Calc{{Func: "count"}, {Func: "sum", Column: "b"}, {Func: "min", Column: "a"}, {Func: "max", Column: "b"}, {Func: "count", Column: "b"}} {
			if m.rng.IntN(5) == 0 {
				k.Name, k.Relation = fmt.Sprintf("c%d_%s%s", i, k.Func, k.Column), r.Name
				n.Calc = append(n.Calc, k)
			}
		}
	}
	return n
}

func (m *model) relation(name string, depth int) join.Relation {
	r := join.Relation{Name: name, Kind: []join.Kind{join.BelongsTo, join.HasOne, join.HasMany, join.HasMany}[m.rng.IntN(4)], Node: m.node(depth - 1)}
	switch {
	case r.Kind != join.BelongsTo && m.rng.IntN(3) == 0:
		r.Through = &join.Through{Table: "db.public." + m.pick("t1", "t2", "t3"), Where: m.filter(),
			Near: []join.By{{Column: "a", Refers: "id"}}, Far: []join.By{{Column: "b", Refers: m.pick("id", "a")}}}
	case m.rng.IntN(4) == 0:
		r.By = []join.By{{Column: "a", Refers: "a"}, {Column: "b", Refers: "id"}}
	default:
		r.By = []join.By{{Column: m.pick("a", "b"), Refers: m.pick("id", "id", "a")}}
	}
	for _, c := range []string{"b", "s", "a"} {
		if m.rng.IntN(3) == 0 {
			r.Order = append(r.Order, join.Order{Column: c, Desc: m.rng.IntN(2) == 0, NullsFirst: m.rng.IntN(3) == 0})
		}
	}
	if r.Kind == join.HasMany {
		r.Limit = m.rng.IntN(3)
	}
	return r
}

func (m *model) row() []any {
	m.big++
	return []any{m.rng.IntN(7), m.nullable(), m.nullable(), []any{nil, "x", "y", "Z\""}[m.rng.IntN(4)], fmt.Sprintf("big %d", m.big)}
}

func (m *model) nullable() any {
	if m.rng.IntN(6) == 0 {
		return nil
	}
	return m.rng.IntN(6)
}

// transaction appends a random transaction, some as streams that come in pieces.
func (m *model) transaction() {
	tx := m.begin()
	for range 1 + m.rng.IntN(4) {
		tb := m.tables[m.pick(m.world.names...)]
		m.operation(tx, tb)
	}
	if len(tx.tx.Records) > 0 && m.rng.IntN(3) == 0 {
		tx.commitStreamed(1 + m.rng.IntN(2))
		return
	}
	tx.commit()
}

func (m *model) operation(tx *txn, tb *table) {
	row := m.row()
	if len(tb.schema.Key) == 2 && row[1] == nil {
		row[1] = 0
	}
	key := tb.key(rowOf(row))
	old := tb.rows[string(key)]
	switch n := m.rng.IntN(20); {
	case n == 0 && m.rng.IntN(3) == 0:
		tx.truncate(tb)
	case n == 0:
		tx.sweep(tb, m.log.Frontier()-eventlog.CSN(m.rng.IntN(6)))
	case n < 5 && len(tb.rows) > 0:
		keys := slices.Sorted(maps.Keys(tb.rows))
		tx.deleteFlag(tb, 0, change.Key(keys[m.rng.IntN(len(keys))]))
	case n < 8 && len(tb.rows) > 0:
		keys := slices.Sorted(maps.Keys(tb.rows))
		from := change.Key(keys[m.rng.IntN(len(keys))])
		if string(from) == string(key) {
			return
		}
		if m.rng.IntN(2) == 0 {
			row[4] = change.UnchangedValue
		}
		if old != nil {
			tx.deleteFlag(tb, 0, key)
		}
		tx.move(tb, from, row...)
	case old != nil && n < 16:
		row[4] = change.UnchangedValue
		tx.update(tb, row...)
	case old != nil:
		tx.update(tb, row...)
	default:
		tx.insert(tb, row...)
	}
}

// check compares the sink with nested loops over the tables, and each output
// since the last check with the tables at its own version.
func (m *model) check() {
	m.t.Helper()
	s := m.sink("v")
	for _, o := range s.seen {
		b := &brute{w: m.world, state: m.history[o.csn], where: m.filts}
		if got := b.docs(&m.def)[o.key]; got != o.doc {
			m.t.Fatalf("output of %s at %d\n got  %s\n want %s", change.Key(o.key), o.csn, o.doc, got)
		}
	}
	front := m.log.Frontier()
	want := (&brute{w: m.world, state: m.history[front], where: m.filts}).docs(&m.def)
	if !maps.Equal(s.docs, want) {
		for k := range want {
			if s.docs[k] != want[k] {
				m.t.Errorf("key %s\n got  %s\n want %s", change.Key(k), s.docs[k], want[k])
			}
		}
		for k := range s.docs {
			if _, ok := want[k]; !ok {
				m.t.Errorf("key %s is no document: %s", change.Key(k), s.docs[k])
			}
		}
		m.t.FailNow()
	}
	if st := m.stats("v"); st.CompleteCSN != front || int(st.Documents) != len(want) || st.Pending != 0 {
		m.t.Fatalf("stats %+v; want complete %d, %d documents", st, front, len(want))
	}
}

// failAfter lets the Runner work until it has output n times.
func (m *model) failAfter(n int) {
	boom := errors.New("boom")
	m.mem.FailAppend = func() error {
		if n--; n < 0 {
			return boom
		}
		return nil
	}
	if err := m.runner.CatchUp(context.Background()); err != nil && !errors.Is(err, boom) {
		m.t.Fatal(err)
	}
	m.mem.FailAppend = nil
}

// copyState copies the closed state directory, as power loss could bring it back.
func (m *model) copyState(to string) {
	if err := os.CopyFS(to, os.DirFS(m.opts.StateDir)); err != nil {
		m.t.Fatal(err)
	}
}

func TestModelAgainstBruteForce(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano() % 1e9)
	}
	for i := range *roundsFlag {
		for _, batch := range []int{1, 7, 1000} {
			t.Run(fmt.Sprintf("seed=%d,batch=%d", seed+uint64(i), batch), func(t *testing.T) { runModel(t, seed+uint64(i), batch) })
		}
	}
}

func runModel(t *testing.T, seed uint64, batch int) {
	m := newModel(t, seed)
	m.opts.MaxBatchTx = batch
	m.opts.InlineLimit = 1 + m.rng.IntN(4)
	m.opts.DrainRoots = 1 + m.rng.IntN(5)
	if m.rng.IntN(2) == 0 {
		m.opts.MaxBatchBytes = 1 + m.rng.IntN(30*batch)
	}
	for range 20 {
		m.transaction()
	}
	m.snapshotDone()
	m.start(m.def)
	m.catchUp()
	m.check()
	var copies []string
	for i := range 60 {
		for range 1 + m.rng.IntN(3)*batch/7 {
			m.transaction()
		}
		switch n := m.rng.IntN(10); {
		case n == 0: // a clean restart, the state kept aside
			m.stop()
			dir := filepath.Join(m.dir, fmt.Sprintf("copy%d", i))
			m.copyState(dir)
			copies = append(copies, dir)
			m.start(m.def)
		case n == 1 && len(copies) > 0: // a crash that lost everything since a copy
			m.catchUp()
			m.stop()
			if err := os.RemoveAll(m.opts.StateDir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(m.opts.StateDir, os.DirFS(copies[m.rng.IntN(len(copies))])); err != nil {
				t.Fatal(err)
			}
			m.start(m.def)
		case n == 3: // a crash on the way, the state of which may come back later
			m.failAfter(m.rng.IntN(4))
			m.stop()
			dir := filepath.Join(m.dir, fmt.Sprintf("copy%d", i))
			m.copyState(dir)
			copies = append(copies, dir)
			m.start(m.def)
		case n == 2 && m.rng.IntN(3) == 0: // the state is lost, the log is not
			m.stop()
			if err := os.RemoveAll(m.opts.StateDir); err != nil {
				t.Fatal(err)
			}
			copies = nil
			m.start(m.def)
			if m.rng.IntN(2) == 0 {
				m.failAfter(m.rng.IntN(3))
				m.stop()
				dir := filepath.Join(m.dir, fmt.Sprintf("copy%d", i))
				m.copyState(dir)
				copies = append(copies, dir)
				m.start(m.def)
			}
		}
		m.catchUp()
		m.check()
	}
	m.dumpEquals()
}

// dumpEquals compares what readers are shown.
func (m *model) dumpEquals() {
	m.t.Helper()
	b := &brute{w: m.world, state: m.history[m.log.Frontier()], where: m.filts}
	want := b.docs(&m.def)
	if len(want) != len(m.dump("v")) {
		m.t.Fatalf("dump has %d documents, want %d", len(m.dump("v")), len(want))
	}
	for k, doc := range m.dump("v") {
		if want[k] != doc {
			m.t.Fatalf("dump of %s: %s, want %s", change.Key(k), doc, want[k])
		}
		id, err := change.DocumentID(change.Key(k))
		if err != nil {
			m.t.Fatal(err)
		}
		d, ok, err := m.runner.Get("v", id)
		if err != nil || !ok || string(d.JSON) != doc || eventlog.CSN(d.Version) != m.sinks["v"].versions[k] {
			m.t.Fatalf("get %s: %s version %d, %v %v; want %s version %d", id, d.JSON, d.Version, ok, err, doc, m.sinks["v"].versions[k])
		}
	}
}
