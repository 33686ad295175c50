package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// In these tests a value is four columns, "a|b|c|d", of which "~" is unchanged.

const (
	testInsert   = 1
	testUpdate   = 2
	testDelete   = 3
	testTruncate = 4
)

func mergeTest(_ eventlog.Topic, older, newer eventlog.Record) ([]byte, bool, error) {
	n, o := strings.Split(string(newer.Value), "|"), strings.Split(string(older.Value), "|")
	for i := range n {
		if n[i] == "~" {
			n[i] = o[i]
		}
	}
	return []byte(strings.Join(n, "|")), !slices.Contains(n, "~"), nil
}

// table is what the records of a topic amount to.
type table map[string]string

// apply folds one record in; the delete half of a key change comes before its insert half.
func (t table) apply(r *eventlog.Record, moved map[eventlog.CSN]string) {
	switch {
	case isTruncate(r):
		clear(t)
	case r.Value == nil:
		if r.Flags&eventlog.FlagMoved != 0 {
			moved[r.CSN] = t[string(r.Key)]
		}
		delete(t, string(r.Key))
	default:
		old, ok := t[string(r.Key)]
		if r.Flags&eventlog.FlagMoved != 0 {
			old, ok = moved[r.CSN], moved[r.CSN] != ""
		}
		value := string(r.Value)
		if r.Flags&eventlog.FlagPartial != 0 && ok {
			v, _, _ := mergeTest(eventlog.Topic{}, eventlog.Record{Value: []byte(old)}, *r)
			value = string(v)
		}
		t[string(r.Key)] = value
	}
}

// fold returns the table as of upTo, from a start as of after.
func fold(start table, records []eventlog.Record, after, upTo eventlog.CSN) table {
	t, moved := maps.Clone(start), map[eventlog.CSN]string{}
	for i := range records {
		if r := &records[i]; r.CSN > after && r.CSN <= upTo {
			t.apply(r, moved)
		}
	}
	return t
}

// compactModel drives a log and remembers what it was given.
type compactModel struct {
	t       *testing.T
	rng     *rand.Rand
	fs      *vfs.Mem
	opts    Options
	log     *Log
	top     eventlog.Topic
	now     time.Time
	records []eventlog.Record // all appended, in order of CSN and seq
	table   table             // with the values as a source has them
	cursor  eventlog.CSN      // registered as passed
	pending map[string]string // keys whose insert half came partial: the source's row
	ops     int
	crashed *vfs.Mem
	ran     Compacted
}

func (m *compactModel) open() {
	m.t.Helper()
	m.opts.FS = m.fs
	l, err := Open("log", m.opts)
	if err != nil {
		m.t.Fatalf("Open = %v", err)
	}
	m.log = l
	if m.top, err = l.EnsureTopic(eventlog.TopicSpec{Name: "s.p.t", Partitions: 2, Cleanup: eventlog.CleanupCompact, TombstoneRetention: time.Hour, Compression: "snappy"}); err != nil {
		m.t.Fatal(err)
	}
}

func (m *compactModel) key() string { return fmt.Sprint("k", m.rng.IntN(12)) }

func (m *compactModel) row() string {
	n := len(m.records)
	return fmt.Sprintf("%da|%db|%dc|%s", n, n, n, strings.Repeat("d", m.rng.IntN(60)))
}

// transaction makes a random change that a source could make.
func (m *compactModel) transaction() []eventlog.Record {
	var out []eventlog.Record
	add := func(op, flags uint8, key string, value []byte) {
		out = append(out, eventlog.Record{Topic: m.top.ID, Seq: uint32(len(out)), Op: op, Flags: flags, Key: []byte(key), Value: value})
	}
	key := m.key()
	old, have := m.table[key]
	switch n := m.rng.IntN(20); {
	case n == 0 && m.rng.IntN(3) == 0:
		out = append(out, eventlog.Record{Topic: m.top.ID, Op: testTruncate, Partition: eventlog.EveryPartition, Key: []byte(eventlog.TruncateKey), Value: []byte{1}})
		clear(m.table)
		clear(m.pending)
	case n < 4 && have:
		add(testDelete, 0, key, nil)
		delete(m.table, key)
		delete(m.pending, key)
	case n < 8 && have: // a change that leaves a large column alone
		row := strings.Split(m.row(), "|")
		row[3] = strings.Split(old, "|")[3]
		m.table[key] = strings.Join(row, "|")
		row[3] = "~"
		if _, open := m.pending[key]; open {
			m.pending[key] = m.table[key]
		}
		add(testUpdate, eventlog.FlagPartial, key, []byte(strings.Join(row, "|")))
	case n < 10 && have: // a key change that leaves it alone
		to := m.key()
		if _, taken := m.table[to]; taken || m.pending[key] != "" {
			return nil
		}
		add(testDelete, eventlog.FlagMoved, key, nil)
		row := strings.Split(old, "|")
		row[3] = "~"
		add(testInsert, eventlog.FlagMoved|eventlog.FlagPartial, to, []byte(strings.Join(row, "|")))
		m.table[to] = old
		delete(m.table, key)
		m.pending[to] = old
	case n < 12 && len(m.pending) > 0: // the row read again
		key = slices.Sorted(maps.Keys(m.pending))[0]
		add(0, 0, key, []byte(m.table[key]))
		delete(m.pending, key)
	case n == 12:
		out = append(out, eventlog.Record{Topic: m.top.ID, Op: 5, Key: nil, Value: []byte("append only")})
	default:
		m.table[key] = m.row()
		delete(m.pending, key)
		add(testUpdate, 0, key, []byte(m.table[key]))
	}
	return out
}

func (m *compactModel) append() bool {
	before, pending := maps.Clone(m.table), maps.Clone(m.pending)
	records := m.transaction()
	if records == nil {
		return true
	}
	m.now = m.now.Add(time.Duration(m.rng.IntN(10)) * time.Minute)
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", CommitTime: m.now.UnixMicro(), Records: records}
	if err := m.log.Append(context.Background(), []*eventlog.Tx{tx}); err != nil {
		// What the model's source did is undone: whether it is there is settled after the restart.
		m.table, m.pending = before, pending
		return false
	}
	m.records = append(m.records, tx.Records...)
	return true
}

func (m *compactModel) hook(op vfs.Op) (int, error) {
	if m.crashed != nil {
		return 0, errors.New("power is lost")
	}
	if !op.Changes() {
		return 0, nil
	}
	if m.ops--; m.ops == 0 {
		m.crashed = m.fs.Crash(m.rng)
		return 0, errors.New("power is lost")
	}
	if m.ops == -20 {
		return 0, syscall.ENOSPC
	}
	return 0, nil
}

// work appends, seals and compacts until power is lost, or for a while.
func (m *compactModel) work() {
	ctx := context.Background()
	var release func()
	for range 40 + m.rng.IntN(80) {
		switch n := m.rng.IntN(30); {
		case n < 2:
			_ = m.log.SealAll(ctx) // failures are those of the file system; what counts is the comparison
		case n < 5:
			done, err := m.log.Compact(ctx, m.top.ID)
			if err != nil && m.crashed == nil && !errors.Is(err, syscall.ENOSPC) {
				m.t.Fatalf("Compact = %v", err)
			}
			m.ran.add(done)
		case n == 5:
			passed := m.log.Frontier()
			if err := m.log.SetCursor("view", &eventlog.Cursor{Topics: []eventlog.TopicID{m.top.ID}, Passed: passed}); err == nil {
				m.cursor = passed
			} else {
				m.cursor = max(m.cursor, passed) // it may have got through
			}
		case n == 6 && release == nil:
			release = m.log.Pin([]eventlog.TopicID{m.top.ID}, m.log.Frontier())
		case n == 7 && release != nil:
			release()
			release = nil
		case n == 8:
			m.now = m.now.Add(2 * time.Hour)
		default:
			if !m.append() && m.crashed == nil {
				continue
			}
		}
		if m.crashed != nil {
			return
		}
	}
}

// read returns what the log holds of the topic, in order of CSN and seq.
func (m *compactModel) read() []eventlog.Record {
	m.t.Helper()
	var out []eventlog.Record
	for p := range int32(m.top.Spec.Partitions) {
		pr, err := m.log.ReadPartition(m.top.ID, p, 0)
		if err != nil {
			m.t.Fatal(err)
		}
		for {
			r, ok, err := pr.Next()
			if err != nil {
				m.t.Fatalf("read partition %d: %v", p, err)
			}
			if !ok {
				break
			}
			r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
			out = append(out, r)
		}
		pr.Close()
	}
	slices.SortStableFunc(out, func(a, b eventlog.Record) int {
		if a.CSN != b.CSN {
			return int(int64(a.CSN) - int64(b.CSN))
		}
		return int(a.Seq) - int(b.Seq)
	})
	return out
}

// settle takes in what was appended without an answer.
func (m *compactModel) settle(got []eventlog.Record) {
	last := eventlog.CSN(0)
	if n := len(m.records); n > 0 {
		last = m.records[n-1].CSN
	}
	for i := range got {
		if got[i].CSN > last {
			m.records = append(m.records, got[i])
		}
	}
	// The source goes on from what it committed: what the log has.
	m.table = fold(table{}, m.records, 0, eventlog.MaxCSN)
	for k := range m.pending {
		if _, ok := m.table[k]; !ok {
			delete(m.pending, k)
		}
	}
	for i := range m.records {
		r := &m.records[i]
		if k := string(r.Key); r.Flags&eventlog.FlagMoved != 0 && r.Value != nil && r.CSN > last {
			m.pending[k] = m.table[k]
		}
	}
}

// readWhole is read by whole transactions.
func (m *compactModel) readWhole() []eventlog.Record {
	m.t.Helper()
	r, err := m.log.Read(eventlog.ReadSpec{Topics: []eventlog.TopicID{m.top.ID}})
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.Close()
	var out []eventlog.Record
	for {
		tx, err := r.Next()
		if err != nil {
			m.t.Fatalf("Next = %v", err)
		}
		if tx == nil {
			return out
		}
		for _, r := range tx.Records {
			r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
			out = append(out, r)
		}
	}
}

// compare checks that the log still amounts to what it was given: from nothing
// at each CSN from the horizon on, and from each state that the cursor admits.
func (m *compactModel) compare() {
	m.t.Helper()
	m.compareWith(m.read())
	m.compareWith(m.readWhole())
}

func (m *compactModel) compareWith(got []eventlog.Record) {
	m.t.Helper()
	byPlace := map[string]*eventlog.Record{}
	place := func(r *eventlog.Record) string {
		if isTruncate(r) {
			return fmt.Sprint(r.CSN, "/", r.Seq)
		}
		return fmt.Sprint(r.CSN, "/", r.Seq, "/", r.Partition, "/", r.Offset)
	}
	for i := range m.records {
		byPlace[place(&m.records[i])] = &m.records[i]
	}
	for i := range got {
		if byPlace[place(&got[i])] == nil {
			m.t.Fatalf("record %+v is not where one was appended", got[i])
		}
	}
	horizon := m.log.Horizon(m.top.ID)
	for i := range m.records {
		at := m.records[i].CSN
		if at < horizon {
			continue
		}
		if want, have := fold(table{}, m.records, 0, at), fold(table{}, got, 0, at); !maps.Equal(want, have) {
			m.t.Fatalf("as of CSN %d (horizon %d): %s", at, horizon, difference(have, want))
		}
	}
	end := m.log.Frontier()
	for i := range m.records {
		if a := m.records[i].CSN; a >= m.cursor && m.cursor > 0 {
			state := fold(table{}, m.records, 0, a)
			if want, have := fold(table{}, m.records, 0, end), fold(state, got, a, end); !maps.Equal(want, have) {
				m.t.Fatalf("from CSN %d (cursor %d) to the end: %s", a, m.cursor, difference(have, want))
			}
		}
	}
}

func difference(have, want table) string {
	var out []string
	for k, v := range want {
		if h, ok := have[k]; !ok || h != v {
			out = append(out, fmt.Sprintf("%s is %q, want %q", k, h, v))
		}
	}
	for k, v := range have {
		if _, ok := want[k]; !ok {
			out = append(out, fmt.Sprintf("%s is %q, want none", k, v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// minimal checks that nothing superseded is left once nothing holds it.
func (m *compactModel) minimal() {
	m.t.Helper()
	m.now = m.now.Add(24 * time.Hour)
	ctx := context.Background()
	if err := m.log.SetCursor("view", &eventlog.Cursor{Topics: []eventlog.TopicID{m.top.ID}, Passed: m.log.Frontier()}); err != nil {
		m.t.Fatal(err)
	}
	m.cursor = m.log.Frontier()
	if err := m.log.SealAll(ctx); err != nil {
		m.t.Fatal(err)
	}
	for range 4 { // tombstones go in the pass behind the one that removed what they hide
		if _, err := m.log.Compact(ctx, m.top.ID); err != nil {
			m.t.Fatal(err)
		}
	}
	m.compare()
	if len(m.pending) > 0 {
		return // key changes whose rows were not read again hold older records
	}
	seen := map[string]bool{}
	for _, r := range m.read() {
		switch k := string(r.Key); {
		case isTruncate(&r), r.Value == nil:
			m.t.Fatalf("tombstone %+v is left", r)
		case r.Key == nil:
		case seen[k]:
			m.t.Fatalf("key %s has two records", k)
		default:
			seen[k] = true
		}
	}
}

func TestCompactionModel(t *testing.T) {
	rounds := uint64(150)
	if testing.Short() {
		rounds = 30
	}
	var ran Compacted
	for seed := range rounds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, seed))
			m := &compactModel{t: t, rng: rng, fs: vfs.NewMem(), table: table{}, pending: map[string]string{}, now: testTime}
			m.opts = Options{
				Clock: func() time.Time { return m.now }, FileBytes: int64(400 + rng.IntN(2000)), SealBatch: 60 + rng.IntN(500),
				TailBytes: int64(1 + rng.IntN(4000)), Merge: mergeTest, SegmentBytes: int64(1 + rng.IntN(4000)),
				CompactBytes: int64(16 * (16 + rng.IntN(3)*10)), MergeBytes: int64(60 + rng.IntN(5000)),
			}
			for range 2 + rng.IntN(4) {
				m.crashed, m.ops = nil, rng.IntN(800)
				m.fs.SetHook(nil)
				m.open()
				m.settle(m.read())
				m.compare()
				m.fs.SetHook(m.hook)
				m.work()
				if m.crashed != nil {
					m.fs = m.crashed
					continue
				}
				m.fs.SetHook(nil)
				m.compare()
				m.log.Close()
			}
			m.fs.SetHook(nil)
			m.open()
			m.settle(m.read())
			m.compare()
			m.minimal()
			ran.add(m.ran)
		})
	}
	t.Logf("compactions: %+v", ran)
	if ran.Removed == 0 || ran.Merged == 0 {
		t.Errorf("compactions removed %d and merged %d records: the test tests nothing", ran.Removed, ran.Merged)
	}
}
