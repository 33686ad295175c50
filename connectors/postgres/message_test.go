package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/testkit"
)

func message(transactional bool, at LSN, prefix, content string) msg {
	flags := byte(0)
	if transactional {
		flags = 1
	}
	return append(msg{'M', flags}.u64(uint64(at)).text(prefix).u32(uint32(len(content))), content...)
}

func TestMessages(t *testing.T) {
	b := newBench(t)
	insert := msg{'I'}.u32(7).with('N').tuple("=a", "=1", "=")
	// In a transaction it keeps its place among the rows.
	got := b.play(t, begin(0x100, 5), relationMsg(), message(true, 0xF0, "audit", "before"), insert,
		message(true, 0xF8, "audit", "\xff"), message(true, 0xFA, "tailwater.nudge", ""), commit(0x100, 0x140))
	want := `message s key=audit after={prefix:"audit" transactional:true content:"before" bytes:null}` + "\n" +
		`insert t key=a,1 after={k:"a" id:1 body:""}` + "\n" +
		`message s key=audit after={prefix:"audit" transactional:true content:null bytes:"/w=="}` + "\n"
	if got != want {
		t.Errorf("%swant\n%s", got, want)
	}
	// Alone it is a transaction without an id, at the end of its record.
	b.sent = 1
	got = b.play(t, message(false, 0x160, "audit", ""), message(false, 0x170, "tailwater.heartbeat", "x"))
	if want := `message s key=audit after={prefix:"audit" transactional:false content:"" bytes:null}` + "\n"; got != want || len(b.batches) != 1 {
		t.Errorf("%swant\n%s", got, want)
	}
	if x := b.batches[0]; x.Tx != "" || x.Pos.Name != "0/160" || x.Pos.Resume != "42/1/0/160" || x.CommitTime != change.UnixMicros(1) || b.ends[0] != 0x160 {
		t.Errorf("batch %+v, end %s", x, b.ends[0])
	}
	// What the log holds is dropped: up to its own end, which is the held one.
	b.held = 0x200
	got = b.play(t, message(false, 0x200, "audit", "held"), begin(0x1F0, 6), message(true, 0x1E0, "audit", "held"), commit(0x1F0, 0x200),
		message(false, 0x208, "audit", "new"), begin(0x210, 7), message(true, 0x1E8, "audit", "new"), commit(0x210, 0x230))
	if strings.Count(got, "new") != 2 || strings.Contains(got, "held") {
		t.Errorf("after a restart at 0/200:\n%s", got)
	}
	// Other prefixes than those that are captured come to nothing.
	b.messages = newMessageRules(&Options{Source: "s", Messages: []string{"app.*", "x"}})
	got = b.play(t, begin(0x300, 8), message(true, 0x290, "app.a", "1"), message(true, 0x298, "xy", "2"), message(true, 0x2A0, "x", "3"), commit(0x300, 0x340))
	if strings.Count(got, "message") != 2 || strings.Contains(got, `"2"`) {
		t.Errorf("by prefix:\n%s", got)
	}
	b.messages = newMessageRules(&Options{Source: "s", Messages: []string{"*"}, NoMessages: true})
	if got = b.play(t, message(false, 0x400, "app.a", "1")); got != "" || len(b.batches) != 0 {
		t.Errorf("with none captured: %q", got)
	}
}

func TestMessagesRefused(t *testing.T) {
	for name, messages := range map[string][]msg{
		"transactional outside":     {message(true, 1, "a", "b")},
		"not transactional, inside": {begin(1, 1), message(false, 1, "a", "b")},
		"longer than it says":       {message(false, 1, "a", "b").with(0)},
		"shorter than it says":      {msg{'M', 0}.u64(1).text("a").u32(5)},
		"of no length":              {msg{'M', 0}.u64(1).text("a").u32(1 << 31)},
		"prefix without an end":     {msg{'M', 0}.u64(1).with('a')},
	} {
		b := newBench(t)
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

// messageVersions are the servers that put messages into the stream.
func messageVersions(t *testing.T, run func(t *testing.T, dsn string)) {
	for _, v := range testkit.PostgresVersions(t) {
		if v >= 14 {
			t.Run(fmt.Sprint(v), func(t *testing.T) { run(t, testkit.PostgresVersion(t, v)) })
		}
	}
}

// TestMessagesResume stops after each batch of messages and rows, told to the
// server or not: each comes once, at its place.
func TestMessagesResume(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("told=%v", told), func(t *testing.T) {
			messageVersions(t, func(t *testing.T, dsn string) { messagesResume(t, dsn, told) })
		})
	}
}

func messagesResume(t *testing.T, dsn string, told bool) {
	r := newRig(t, dsn, "CREATE TABLE a (id int PRIMARY KEY)")
	r.log.silent = !told
	r.open()
	r.step()
	r.exec("SELECT pg_logical_emit_message(false, 'alone', 'one'); SELECT pg_logical_emit_message(false, 'alone', 'two')",
		"BEGIN; SELECT pg_logical_emit_message(true, 'within', 'three'); INSERT INTO a VALUES (1); SELECT pg_logical_emit_message(true, 'within', '\\x00ff'::bytea); COMMIT",
		"BEGIN; SELECT pg_logical_emit_message(false, 'alone', 'four'); SELECT pg_logical_emit_message(true, 'within', 'never'); INSERT INTO a VALUES (2); ROLLBACK",
		"SELECT pg_logical_emit_message(true, 'within', 'five')")
	want := []string{
		`message alone {prefix:"alone" transactional:false content:"one" bytes:null}`,
		`message alone {prefix:"alone" transactional:false content:"two" bytes:null}`,
		`message within {prefix:"within" transactional:true content:"three" bytes:null}|insert 1 {id:1}|message within {prefix:"within" transactional:true content:null bytes:"AP8="}`,
		`message alone {prefix:"alone" transactional:false content:"four" bytes:null}`,
		`message within {prefix:"within" transactional:true content:"five" bytes:null}`,
	}
	last := LSN(0)
	for i := range want {
		b := r.next()
		at, err := parsePosition(b.Pos)
		if err != nil || at.end <= last {
			t.Fatalf("position %s behind %s: %v", b.Pos, last, err)
		}
		last = at.end
		if got := messageLine(t, b); got != want[i] {
			t.Errorf("came %s\nwant %s", got, want[i])
		}
		r.close()
		r.open()
	}
	r.exec("SELECT pg_logical_emit_message(true, 'within', 'six')")
	if got := messageLine(t, r.next()); !strings.Contains(got, "six") {
		t.Errorf("then came %s", got)
	}
}

// messageLine writes the events of a batch in one line.
func messageLine(t *testing.T, b *change.Batch) string {
	var parts []string
	for i := range b.Events {
		e := &b.Events[i]
		key, err := change.DecodeKey(b.Key(e))
		if err != nil {
			t.Fatal(err)
		}
		row, _ := b.After(e)
		parts = append(parts, fmt.Sprintf("%s %s %s", e.Op, change.AppendText(nil, key[0]), renderRow(t, row)))
	}
	return strings.Join(parts, "|")
}
