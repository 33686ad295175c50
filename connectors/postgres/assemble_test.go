package postgres

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
)

// msg writes messages as a server does.
type msg []byte

func (m msg) u16(v int) msg      { return binary.BigEndian.AppendUint16(m, uint16(v)) }
func (m msg) u32(v uint32) msg   { return binary.BigEndian.AppendUint32(m, v) }
func (m msg) u64(v uint64) msg   { return binary.BigEndian.AppendUint64(m, v) }
func (m msg) text(s string) msg  { return append(append(m, s...), 0) }
func (m msg) with(b ...byte) msg { return append(m, b...) }
func begin(commit LSN, xid uint32) msg {
	return msg{'B'}.u64(uint64(commit)).u64(0).u32(xid)
}
func commit(at, end LSN) msg { return msg{'C', 0}.u64(uint64(at)).u64(uint64(end)).u64(0) }

// tuple writes columns: "n" null, "u" unchanged, else text behind a "=".
func (m msg) tuple(columns ...string) msg {
	m = m.u16(len(columns))
	for _, c := range columns {
		if c == "n" || c == "u" {
			m = append(m, c[0])
			continue
		}
		m = append(m.with('t').u32(uint32(len(c)-1)), c[1:]...)
	}
	return m
}

func testTypes4() types {
	return types{
		23: {oid: 23, name: "integer", kind: change.KindInt, append: appendInt, known: true},
		25: {oid: 25, name: "text", kind: change.KindText, append: appendText, known: true, plain: true},
	}
}

// testTable is a table (k text, id int, body text) with the key (k, id).
func testTable(t testing.TB) *table {
	l := newLayouts("s", nil)
	l.types = testTypes4()
	r := &relation{oid: 7, schema: "public", name: "t", kind: 'r', identity: 'd', primary: []int16{1, 2}, columns: []attr{
		{num: 1, name: "k", typ: 25, typmod: -1, typeText: "text", notNull: true},
		{num: 2, name: "id", typ: 23, typmod: -1, typeText: "integer", notNull: true},
		{num: 3, name: "body", typ: 25, typmod: -1, typeText: "text"}}}
	tab, err := l.table(r, r.live())
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func relationMsg() msg {
	m := msg{'R'}.u32(7).text("public").text("t").with('d').u16(3)
	m = m.with(1).text("k").u32(25).u32(1<<32 - 1)
	m = m.with(1).text("id").u32(23).u32(1<<32 - 1)
	return m.with(0).text("body").u32(25).u32(1<<32 - 1)
}

// bench is an assembler whose batches are kept.
type bench struct {
	assembler
	batches []*change.Batch
	ends    []LSN
	got     []signalMessage
}

func newBench(t testing.TB) *bench {
	tab := testTable(t)
	b := &bench{}
	b.assembler = assembler{source: "s", system: "42", timeline: 1, partBytes: 8 << 20, xid: 1 << 33,
		relation: func(m relationMessage) (*relationUse, error) {
			if m.oid != 7 {
				return &relationUse{wire: len(m.columns)}, nil
			}
			places := placesOf(tab, m)
			if places == nil {
				return nil, errMessage
			}
			return &relationUse{table: tab, wire: len(m.columns), columns: places}, nil
		},
		messages: newMessageRules(&Options{Source: "s", Messages: []string{"*"}}),
		emit: func(x *change.Batch, end LSN, signals []signalMessage) error {
			b.got = append(b.got, signals...)
			if x != nil {
				b.batches = append(b.batches, x)
			}
			b.ends = append(b.ends, end)
			return nil
		}}
	return b
}

func (b *bench) play(t *testing.T, messages ...msg) string {
	t.Helper()
	b.batches, b.ends, b.got = nil, nil, nil
	for i, m := range messages {
		if err := b.message(m); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	var out strings.Builder
	for _, x := range b.batches {
		out.WriteString(render(t, x))
	}
	return out.String()
}

// TestV13UnchangedKey: an unchanged column of the key is taken from the old key,
// and an old key that is equal is no move.
func TestV13UnchangedKey(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		name   string
		update msg
		want   string
	}{
		{"toasted key stays", msg{'U'}.u32(7).with('K').tuple("=long", "=1", "n").with('N').tuple("u", "=1", "=x"),
			"update t key=long,1 after={k:\"long\" id:1 body:\"x\"}\n"},
		{"toasted key stays, the other part changes", msg{'U'}.u32(7).with('K').tuple("=long", "=1", "n").with('N').tuple("u", "=2", "u"),
			"delete t moved key=long,1\ninsert t partial moved key=long,2 after={k:\"long\" id:2 body:(unchanged)}\n"},
		{"moved, filled from the full before image", msg{'U'}.u32(7).with('O').tuple("=long", "=1", "=old").with('N').tuple("u", "=2", "u"),
			"delete t moved key=long,1 before={k:\"long\" id:1 body:\"old\"}\ninsert t moved key=long,2 after={k:\"long\" id:2 body:\"old\"}\n"},
		{"not moved, filled from the full before image", msg{'U'}.u32(7).with('O').tuple("=long", "=1", "=old").with('N').tuple("u", "=1", "u"),
			"update t key=long,1 before={k:\"long\" id:1 body:\"old\"} after={k:\"long\" id:1 body:\"old\"}\n"},
		{"no old key", msg{'U'}.u32(7).with('N').tuple("=k", "=1", "u"),
			"update t partial key=k,1 after={k:\"k\" id:1 body:(unchanged)}\n"},
	} {
		got := b.play(t, begin(0x100, 5), relationMsg(), tt.update, commit(0x100, 0x140))
		if got != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, tt.want)
		}
	}
	err := b.message(begin(0x200, 6))
	if err == nil {
		err = b.message(msg{'U'}.u32(7).with('N').tuple("u", "=1", "u"))
	}
	if !errors.Is(err, errMessage) {
		t.Errorf("an unchanged key without an old one: %v", err)
	}
}

func TestAssemble(t *testing.T) {
	b := newBench(t)
	insert := msg{'I'}.u32(7).with('N').tuple("=a", "=1", "=")
	got := b.play(t, begin(0x100, 5), relationMsg(), insert, msg{'T'}.u32(2).with(0).u32(7).u32(7), commit(0x100, 0x140))
	if want := "insert t key=a,1 after={k:\"a\" id:1 body:\"\"}\ntruncate t key=\ntruncate t key=\n"; got != want {
		t.Errorf("%swant\n%s", got, want)
	}
	x := b.batches[0]
	if x.Tx != "8589934597" || x.Pos.Name != "0/100" || x.Pos.Resume != "42/1/0/140" || x.More {
		t.Errorf("batch = %+v", x)
	}
	// An empty transaction is progress only.
	if got := b.play(t, begin(0x200, 6), commit(0x200, 0x240)); got != "" || len(b.ends) != 1 || b.ends[0] != 0x240 {
		t.Errorf("an empty transaction: %q %v", got, b.ends)
	}
	// What the log holds is dropped, by the commit's place and not the begin's.
	b.held = 0x300
	got = b.play(t, begin(0x2F0, 7), insert, commit(0x2F0, 0x300), begin(0x300, 4), insert, commit(0x300, 0x340))
	if len(b.batches) != 1 || b.batches[0].Pos.Name != "0/300" {
		t.Errorf("held transactions: %s", got)
	}
	// A large transaction comes in parts of one name.
	b.partBytes = 64
	messages := []msg{begin(0x400, 8)}
	for range 20 {
		messages = append(messages, insert)
	}
	b.play(t, append(messages, commit(0x400, 0x440))...)
	events := 0
	for i, x := range b.batches {
		events += len(x.Events)
		if last := i == len(b.batches)-1; x.More == last || x.Pos.Name != "0/400" || (x.Pos.Resume == "") == last {
			t.Errorf("part %d of %d: %+v", i, len(b.batches), x)
		}
	}
	if events != 20 || len(b.batches) < 2 {
		t.Errorf("%d events in %d parts", events, len(b.batches))
	}
}

func TestAssembleRefuses(t *testing.T) {
	insert := msg{'I'}.u32(7).with('N').tuple("=a", "=1", "=x")
	for name, messages := range map[string][]msg{
		"empty message":            {{}},
		"unknown kind":             {{'z'}},
		"row outside":              {relationMsg(), insert},
		"row before description":   {begin(1, 1), insert},
		"begin inside":             {begin(1, 1), begin(2, 2)},
		"commit alone":             {commit(1, 2)},
		"other commit":             {begin(1, 1), commit(2, 3)},
		"end before the commit":    {begin(5, 1), commit(5, 5)},
		"unchanged in an insert":   {begin(1, 1), relationMsg(), msg{'I'}.u32(7).with('N').tuple("=a", "=1", "u")},
		"too few columns":          {begin(1, 1), relationMsg(), msg{'I'}.u32(7).with('N').tuple("=a", "=1")},
		"bytes behind":             {begin(1, 1), relationMsg(), insert.with(0)},
		"delete without a key":     {begin(1, 1), relationMsg(), msg{'D'}.u32(7).with('N').tuple("=a", "=1", "=x")},
		"a length past the end":    {begin(1, 1), relationMsg(), msg{'I'}.u32(7).with('N').u16(1).with('t').u32(1 << 31)},
		"not an integer":           {begin(1, 1), relationMsg(), msg{'I'}.u32(7).with('N').tuple("=a", "=x", "=x")},
		"truncate of too many":     {begin(1, 1), msg{'T'}.u32(1 << 30).with(0).u32(7)},
		"binary column":            {begin(1, 1), relationMsg(), msg{'I'}.u32(7).with('N').u16(1).with('b').u32(0)},
		"more columns than it has": {msg{'R'}.u32(7).text("public").text("t").with('d').u16(65535)},
	} {
		b := newBench(t)
		var err error
		for _, m := range messages {
			if err = b.message(m); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%s is taken", name)
		} else if strings.Contains(err.Error(), "=x") {
			t.Errorf("%s: the error holds a value: %v", name, err)
		}
	}
}

// FuzzMessages plays arbitrary messages, split at 0xFFFE: no panic, and what is
// taken can be decoded.
func FuzzMessages(f *testing.F) {
	sep := []byte{0xFF, 0xFE}
	join := func(ms ...msg) []byte {
		var b []byte
		for i, m := range ms {
			if i > 0 {
				b = append(b, sep...)
			}
			b = append(b, m...)
		}
		return b
	}
	f.Add(join(begin(1, 2), msg{'I'}.u32(7).with('N').tuple("=a", "=1", "=x"), commit(1, 2)))
	f.Add(join(begin(1, 2), msg{'U'}.u32(7).with('K').tuple("=a", "=1", "n").with('N').tuple("u", "=2", "u"), msg{'D'}.u32(7).with('O').tuple("=a", "=1", "=x"), commit(1, 2)))
	f.Add(join(begin(1, 2), msg{'T'}.u32(1).with(0).u32(7), commit(1, 2)))
	f.Add(join(message(false, 5, "m", "text"), begin(1, 2), message(true, 5, "m", "\xff"), message(true, 5, "tailwater", "{}"), commit(1, 2)))
	f.Add(join(startBlock(1, 1), under(1, relationMsg()), under(2, insertRow("a")), under(1, message(true, 5, "m", "x")), stopBlock(), abortPart(1, 2), commitRunning(1, 1, 2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newRunningBench(t)
		b.partBytes = 256
		_ = b.message(relationMsg())
		for _, m := range strings.Split(string(data), string(sep)) {
			if b.message([]byte(m)) != nil {
				break
			}
		}
		for _, x := range b.batches {
			render2(t, x)
		}
	})
}

// render2 decodes a batch without *testing.T's helper chain.
func render2(t *testing.T, b *change.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if _, err := change.DecodeKey(b.Key(e)); err != nil {
			t.Fatal(err)
		}
		if row, ok := b.After(e); ok {
			if _, err := row.Values(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
