package snapshot

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
)

var update = flag.Bool("update", false, "write what the scripts of testdata print into them")

// TestScripts runs testdata/*.txt: commands on a simulated database and a
// daemon; lines that begin with "> " are what the commands above them print.
//
//	row K A BIG           a row that was always there
//	begin T               a transaction; insert T K A BIG, update T K A [BIG], delete T K,
//	                      move T K TO (big unchanged), truncate T, rewrite T (a += 1000)
//	commit T              its commit record is written; it hangs until: end T
//	publish               the table from now on; without it: from the start
//	start [MUTANT]        the slot, and the daemon (one protection taken out)
//	vacuum                frees the places of rows that are gone; lose K: a row goes without an event
//	stream                all commits that the stream has
//	next                  all that the machine wants; step: one thing of it
//	lock snapshot read deliver   the steps of reading a chunk; chunk: all of them
//	release               end the wait for older transactions, if it is over
//	pause, resume, stop   what people ask for; again [WHERE]: another run, a floor if one is due
//	crash N               the daemon restarts, its last N batches are lost; status
//	check                 compare the storage outside of a run
//	log, table            what the log's readers see; what is in the table
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("%s prints:\n%s", file, got)
			}
		})
	}
}

// script is the state of one run.
type script struct {
	t    *testing.T
	db   *simDB
	d    *simDaemon
	txs  map[string]*simTx
	late bool // publish comes later
	out  []string
}

func runScript(t *testing.T, text string) string {
	s := &script{t: t, db: newSimDB(6), txs: map[string]*simTx{}, late: strings.Contains(text, "\npublish\n")}
	s.db.published = !s.late
	var lines []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		lines = append(lines, line)
		if line == "" || line[0] == '#' {
			continue
		}
		s.out = nil
		s.do(strings.Fields(line))
		for _, o := range s.out {
			lines = append(lines, "> "+o)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s *script) print(text string) { s.out = append(s.out, text) }

func (s *script) number(f []string, i int) int {
	n, err := strconv.Atoi(f[i])
	if err != nil {
		s.t.Fatalf("%v: %v", f, err)
	}
	return n
}

func (s *script) do(f []string) {
	switch f[0] {
	case "row":
		tx := s.db.begin()
		s.write(tx, simEvent{op: change.OpInsert, after: simRow{s.number(f, 1), s.number(f, 2), s.number(f, 3)}, silent: true})
		tx.state = simEnded
	case "begin":
		s.txs[f[1]] = s.db.begin()
	case "commit":
		s.db.commit(s.txs[f[1]])
	case "end":
		s.db.finish(s.txs[f[1]])
	case "publish":
		s.db.published = true
	case "insert", "update", "delete", "move", "truncate", "rewrite":
		s.change(f)
	case "vacuum":
		s.db.vacuum()
	case "lose":
		tx := s.db.begin()
		s.write(tx, simEvent{op: change.OpDelete, before: simRow{key: s.number(f, 1)}, silent: true})
		tx.state = simEnded
	case "start":
		s.start(f[1:])
	case "table":
		s.print(describeRows(s.db.rows()))
	default:
		s.daemon(f)
	}
}

func (s *script) write(tx *simTx, e simEvent) {
	if !s.db.write(tx, e, 0) {
		s.print("refused")
	}
}

func (s *script) change(f []string) {
	tx := s.txs[f[1]]
	e := simEvent{op: change.OpUpdate}
	switch f[0] {
	case "truncate", "rewrite":
		if !s.db.truncate(tx, f[0] == "rewrite") {
			s.print("waits for a lock")
		}
		return
	case "insert":
		e.op, e.after = change.OpInsert, simRow{s.number(f, 2), s.number(f, 3), s.number(f, 4)}
	case "delete":
		e.op, e.before.key = change.OpDelete, s.number(f, 2)
	case "move":
		ver, _ := s.db.current(tx, s.number(f, 2))
		e.before.key, e.moved, e.after = s.number(f, 2), true, ver.row
		e.after.key = s.number(f, 3)
	case "update":
		e.before.key = s.number(f, 2)
		e.after = simRow{key: e.before.key, a: s.number(f, 3)}
		if e.whole = len(f) > 4; e.whole {
			e.after.big = s.number(f, 4)
		}
	}
	s.write(tx, e)
}

func (s *script) start(mutant []string) {
	s.d = newSimDaemon(s.db, strings.Join(mutant, ""))
	s.d.print = s.print
	for s.d.pump() {
	}
}

func (s *script) daemon(f []string) {
	d := s.d
	step := func(ok bool) {
		if !ok {
			s.print("cannot " + f[0] + " now")
		}
	}
	switch f[0] {
	case "stream":
		for d.stream() {
		}
	case "next":
		for d.pump() {
		}
	case "step":
		step(d.pump())
	case "lock":
		step(d.lock())
	case "snapshot":
		step(d.snapshot())
	case "read":
		step(d.read())
	case "deliver":
		s.deliver()
	case "chunk":
		step(d.lock() && d.snapshot() && d.read())
		s.deliver()
	case "release":
		if !d.release() {
			s.print("older transactions are in progress")
		}
	case "crash":
		d.crash(len(d.log.entries) - s.number(f, 1))
		for d.pump() {
		}
	case "pause":
		d.m.Pause(simTopic)
	case "resume":
		d.m.Resume(simTopic)
	case "stop":
		d.m.Stop(simTopic)
	case "again":
		where := strings.Join(f[1:], "")
		d.m.Begin(Start{Topic: simTopic, Floor: where == "" && d.m.Table(simTopic).Due, Where: where, Cursor: d.cursor(0), After: d.after()})
	case "status":
		st := d.m.Table(simTopic)
		s.print(fmt.Sprintf("run %d running=%v due=%v floor=%v", st.Run, st.Running, st.Due, st.Mark.Floor))
	case "check":
		step(d.check())
	case "log":
		rows, unfilled := d.log.fold()
		s.print(describeRows(rows))
		if len(unfilled) > 0 {
			s.print(fmt.Sprintf("unfilled %v", unfilled))
		}
	default:
		s.t.Fatalf("unknown command %q", f[0])
	}
}

func (s *script) deliver() {
	if c := s.d.result; c != nil {
		switch {
		case c.Moved != nil:
			s.print("the storage is another")
		case s.d.mutant == "" && s.d.m.current != nil && s.d.m.current.window != nil && s.d.m.current.window.missing(c.View):
			s.print("a transaction appended before is not in it: again")
		}
	}
	s.d.deliver()
}

func describeRows(rows map[int]simRow) string {
	if len(rows) == 0 {
		return "(no rows)"
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, rows[k].String())
	}
	return strings.Join(list, " ")
}
