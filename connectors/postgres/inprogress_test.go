package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
)

// Messages of transactions in progress, as protocol 2 has them.
func startBlock(xid uint32, first byte) msg { return msg{'S'}.u32(xid).with(first) }
func stopBlock() msg                        { return msg{'E'} }
func abortPart(xid, sub uint32) msg         { return msg{'A'}.u32(xid).u32(sub) }
func commitRunning(xid uint32, at, end LSN) msg {
	return append(msg{'c'}.u32(xid), commit(at, end)[1:]...)
}

// under puts a sub-transaction's id into a message.
func under(sub uint32, m msg) msg { return append(msg{m[0]}.u32(sub), m[1:]...) }

func insertRow(key string) msg { return msg{'I'}.u32(7).with('N').tuple("="+key, "=1", "=x") }

// newRunningBench is a bench whose known tables are those of describe.
func newRunningBench(t testing.TB) *bench {
	b := newBench(t)
	b.known = b.relation
	b.unchanged = func(map[uint32]*table, uint32) error { return nil }
	b.whole = func(tx string, err error) error { return fmt.Errorf("%w: %s: %w", connectors.ErrReopen, tx, err) }
	return b
}

// story writes what was handed over: stages, parts, keys, positions.
func (b *bench) story(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, x := range b.batches {
		tx, err := strconv.ParseUint(x.Tx, 10, 64)
		if err != nil || tx>>32 != 2 {
			t.Errorf("transaction %s is not widened", x.Tx)
		}
		fmt.Fprintf(&out, "%s tx=%d", [...]string{"whole", "part", "back", "adopt"}[x.Stage], uint32(tx))
		if x.Sub != 0 {
			fmt.Fprintf(&out, " sub=%d", x.Sub)
		}
		if !x.Pos.IsZero() {
			fmt.Fprintf(&out, " at=%s", x.Pos)
		}
		for i := range x.Events {
			parts, err := change.DecodeKey(x.Key(&x.Events[i]))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, " %s:%s", x.Events[i].Op, change.AppendText(nil, parts[0]))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// TestInProgress: blocks of two transactions and a whole one take turns;
// sub-transactions, and one transaction, are rolled back.
func TestInProgress(t *testing.T) {
	b := newRunningBench(t)
	b.play(t,
		startBlock(10, 1), under(10, relationMsg()), under(10, insertRow("a")), under(11, insertRow("b")), under(11, insertRow("c")), under(10, insertRow("d")), stopBlock(),
		startBlock(20, 1), under(20, relationMsg()), under(20, insertRow("e")), stopBlock(),
		begin(0x100, 30), relationMsg(), insertRow("f"), commit(0x100, 0x140),
		abortPart(10, 11),
		startBlock(10, 0), under(12, insertRow("g")), stopBlock(),
		abortPart(20, 20),
		abortPart(40, 41), // of which nothing came
		commitRunning(10, 0x200, 0x240),
		startBlock(20, 1), stopBlock(), commitRunning(20, 0x300, 0x340))
	want := `part tx=10 sub=10 insert:a
part tx=10 sub=11 insert:b insert:c
part tx=10 sub=10 insert:d
part tx=20 sub=20 insert:e
whole tx=30 at=0/100 insert:f
back tx=10 sub=11
part tx=10 sub=12 insert:g
back tx=20
adopt tx=10 at=0/200
`
	if got := b.story(t); got != want {
		t.Errorf("came\n%swant\n%s", got, want)
	}
	if x := b.batches[len(b.batches)-1]; x.Pos.Resume != "42/1/0/240" || b.ends[len(b.ends)-1] != 0x340 {
		t.Errorf("adopted as %+v, ends %v", x, b.ends)
	}
}

// TestInProgressRelations: what a block describes counts for its transaction alone
// until that has committed, and for nobody if it is rolled back.
func TestInProgressRelations(t *testing.T) {
	block := func(xid uint32) []msg {
		return []msg{startBlock(xid, 1), under(xid, relationMsg()), under(xid, insertRow("a")), stopBlock()}
	}
	whole := []msg{begin(0x300, 30), insertRow("b"), commit(0x300, 0x340)}
	for name, tt := range map[string]struct {
		messages []msg
		fails    bool
	}{
		"committed":               {slices.Concat(block(10), []msg{commitRunning(10, 0x200, 0x240)}, whole), false},
		"in progress":             {slices.Concat(block(10), whole), true},
		"rolled back":             {slices.Concat(block(10), []msg{abortPart(10, 10)}, whole), true},
		"another one in progress": {append(block(10), startBlock(20, 1), under(20, insertRow("a"))), true},
		"described before it":     {[]msg{begin(1, 5), relationMsg(), commit(1, 2), startBlock(20, 1), under(20, insertRow("a"))}, true},
	} {
		b := newRunningBench(t)
		var err error
		for _, m := range tt.messages {
			if err = b.message(m); err != nil {
				break
			}
		}
		if (err != nil) != tt.fails || err != nil && !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInProgressHeld: a transaction that the log holds is given up at its commit.
func TestInProgressHeld(t *testing.T) {
	b := newRunningBench(t)
	b.held = 0x300
	b.play(t, startBlock(10, 1), under(10, relationMsg()), under(10, insertRow("a")), stopBlock(), commitRunning(10, 0x2C0, 0x300),
		startBlock(20, 1), under(20, relationMsg()), under(20, insertRow("a")), stopBlock(), commitRunning(20, 0x300, 0x340))
	if got, want := b.story(t), "part tx=10 sub=10 insert:a\nback tx=10\npart tx=20 sub=20 insert:a\nadopt tx=20 at=0/300\n"; got != want {
		t.Errorf("came\n%swant\n%s", got, want)
	}
}

// TestInProgressMessages: in blocks the server names no sub-transaction of a
// message; where one was rolled back the transaction is to come at its commit.
func TestInProgressMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		parted bool
		prefix string
		whole  bool
	}{
		"not parted": {false, "m", false}, "parted": {true, "m", true}, "a signal": {true, "tailwater", true}, "one that is not captured": {true, "tailwater.x", false},
	} {
		b := newRunningBench(t)
		messages := []msg{startBlock(10, 1), under(10, message(true, 5, tt.prefix, "{}")), under(10, relationMsg()), under(11, insertRow("a")), stopBlock()}
		if tt.parted {
			messages = append(messages, abortPart(10, 11))
		}
		var err error
		for _, m := range append(messages, commitRunning(10, 0x200, 0x240)) {
			if err = b.message(m); err != nil {
				break
			}
		}
		if errors.Is(err, connectors.ErrReopen) != tt.whole || err != nil && !tt.whole {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInProgressRefuses(t *testing.T) {
	for name, messages := range map[string][]msg{
		"a block in a block":       {startBlock(1, 1), startBlock(2, 1)},
		"a block in a transaction": {begin(1, 1), startBlock(2, 1)},
		"begin in a block":         {startBlock(1, 1), under(1, begin(1, 1))},
		"commit in a block":        {startBlock(1, 1), under(1, commit(1, 2))},
		"no first block":           {startBlock(1, 0)},
		"twice first":              {startBlock(1, 1), stopBlock(), startBlock(1, 1)},
		"an end alone":             {stopBlock()},
		"commit of none":           {commitRunning(1, 1, 2)},
		"commit inside":            {startBlock(1, 1), under(1, commitRunning(1, 1, 2))},
		"end before the commit":    {startBlock(1, 1), stopBlock(), commitRunning(1, 2, 2)},
		"rolled back inside":       {startBlock(1, 1), abortPart(1, 1)},
		"bytes behind":             {startBlock(1, 1).with(0)},
		"too short":                {msg{'A', 0, 0}},
		"row without its part":     {startBlock(1, 1), msg{'I', 0}},
	} {
		b := newRunningBench(t)
		var err error
		for _, m := range messages {
			if err = b.message(m); err != nil {
				break
			}
		}
		if !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
