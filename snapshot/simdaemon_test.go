package snapshot

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
)

const simTopic = "src.public.t"

// simDaemon drives a Machine over a simDB as a connector does.
type simDaemon struct {
	db     *simDB
	log    *simLog
	m      *Machine
	mutant string // which protection is taken out
	chunk  int    // slots a chunk

	streamed int  // records of the database's log observed
	held     bool // chunks wait for the barrier
	barrier  uint64
	action   *Action // to be read
	locked   bool
	view     *simView
	seen     int      // the table's storage when the view was taken
	stale    *simView // mutants: a view from before the collection
	result   *Chunk
	node     int                  // storage known from the last run
	big      func(tx uint64) bool // whether the stream has a transaction while it is in progress
	print    func(string)
}

func newSimDaemon(db *simDB, mutant string) *simDaemon {
	d := &simDaemon{db: db, log: &simLog{}, mutant: mutant, chunk: 2, print: func(string) {}, streamed: len(db.wal)}
	d.open()
	return d
}

// open starts the machine on what the log holds, as after a crash.
func (d *simDaemon) open() {
	d.m = New("src")
	d.unlock()
	d.action, d.result, d.view = nil, nil, nil
	marks, requests := d.log.marks()
	if err := d.m.Restore(marks, d.after()); err != nil {
		panic(err)
	}
	since := d.log.since()
	for i, e := range d.log.entries {
		if i >= since && d.mutant != "forget" {
			d.recall(e)
		}
		if e.batch.Kind == change.Transaction {
			d.streamed = e.place
		}
	}
	for _, k := range requests {
		d.m.Request(simTopic, k)
	}
	if d.mutant == "unsettled" {
		clear(d.m.recent)
	}
	s := d.m.Table(simTopic)
	if !(s.Running && s.Read) {
		d.hold()
	}
	if s.Run == 0 {
		d.m.Begin(Start{Topic: simTopic, Floor: true, Cursor: d.cursor(0), NoSweep: d.db.keyless, After: d.after()})
		d.node = d.db.storage()
	} else {
		d.node, _ = d.parse(s.Cursor)
	}
	d.m.Pass(Place(d.streamed))
}

func (d *simDaemon) after() Place {
	if d.mutant == "noafter" {
		return 0
	}
	return d.db.end()
}

func (d *simDaemon) recall(e simEntry) {
	tx := ""
	if e.batch.Kind == change.Transaction {
		tx = e.batch.Tx
	}
	d.m.Recall(tx)
	for i := range e.batch.Events {
		ev := &e.batch.Events[i]
		d.m.RecallEvent(tx, simTopic, ev.Op, ev.Flags, e.batch.Key(ev))
	}
	for _, k := range e.swept {
		d.m.RecallEvent("", simTopic, change.OpDelete, 0, simKey(k))
	}
}

// hold makes all chunks wait for the transactions in progress now.
func (d *simDaemon) hold() {
	if d.mutant == "nobarrier" {
		return
	}
	d.held, d.barrier = true, d.db.next
	d.m.Hold()
}

// release ends the waiting once it is over.
func (d *simDaemon) release() bool {
	if d.held && d.db.view().xmin < d.barrier {
		return false
	}
	d.held = false
	d.m.Release()
	return true
}

// crash loses what is not durable.
func (d *simDaemon) crash(durable int) {
	for _, e := range d.log.entries[durable:] {
		if e.batch.Kind == change.Transaction {
			d.streamed = e.place - 1
			break
		}
	}
	d.log.entries = d.log.entries[:durable]
	last := -1
	for i, e := range d.log.entries {
		if e.batch.Kind == change.Transaction {
			last = i
		}
	}
	if last >= 0 {
		d.streamed = d.log.entries[last].place
	}
	d.open()
}

// stream observes the next commit; false if there is none.
func (d *simDaemon) stream() bool {
	if d.streamed == len(d.db.wal) {
		return false
	}
	b := d.db.batch(d.db.wal[d.streamed])
	d.streamed++
	observed := b
	if d.mutant == "partialwhole" {
		observed = d.db.batch(d.db.wal[d.streamed-1])
		for i := range observed.Events {
			observed.Events[i].Flags &^= change.FlagPartial
		}
	}
	if tx := d.db.wal[d.streamed-1].tx.id; d.big != nil && d.big(tx) {
		d.adopt(observed)
	} else {
		d.m.Observe(observed)
	}
	b.Controls = observed.Controls
	if d.mutant == "noowed" {
		if t := d.m.table(simTopic); t.run != nil {
			clear(t.run.owed)
		}
	}
	if len(b.Events) > 0 {
		d.append(b)
	}
	d.m.Pass(Place(d.streamed))
	return true
}

// adopt observes a transaction whose rows came while it was in progress, among
// others that a rolled back sub-transaction wrote.
func (d *simDaemon) adopt(b *change.Batch) {
	lost := &change.Batch{Stage: change.InProgress, Sub: 2}
	if len(b.Events) > 0 && len(b.Events[0].Schema.Key) > 0 {
		s := b.Events[0].Schema
		lost.Add(s, change.OpUpdate, change.FlagPartial, simKey(0), nil, nil)
		lost.Add(s, change.OpInsert, change.FlagPartial, simKey(1), nil, nil)
		lost.Add(s, change.OpTruncate, 0, nil, nil, nil)
	}
	b.Sub = 1
	var kept Streamed
	kept.Add(d.m.source, b)
	kept.Add(d.m.source, lost)
	kept.Rollback(2)
	if d.mutant == "notkept" {
		kept.events = nil
	}
	d.m.ObserveStreamed(b, &kept)
	if r := d.m.current; d.mutant == "notread" && r != nil && r.window != nil {
		r.window.streamed = nil
	}
}

func (d *simDaemon) append(b *change.Batch) {
	if d.mutant == "norequest" {
		kept := b.Controls[:0]
		for _, c := range b.Controls {
			if change.IsSnapshotMark(c.Key) {
				kept = append(kept, c)
			}
		}
		b.Controls = kept
		clear(d.m.table(simTopic).requests)
	}
	d.log.append(b, d.streamed)
	d.print(d.log.entries[len(d.log.entries)-1].describe())
}

// pump does what the machine wants, up to the next reading; false if it wants nothing.
func (d *simDaemon) pump() bool {
	a, err := d.m.Next()
	if err != nil {
		panic(err)
	}
	switch a.Kind {
	case ActionAppend:
		d.append(a.Batch)
	case ActionRead:
		d.action = &a
		words := "read chunk"
		for _, k := range a.Keys {
			words += " key " + strconv.Itoa(decodeSimKey(k))
		}
		d.print(words)
		if d.mutant == "latecollect" && d.stale != nil {
			d.view, d.seen = d.stale, d.db.storage()
		}
	case ActionWait:
		return false
	}
	return true
}

func (d *simDaemon) cursor(slot int) []byte {
	return fmt.Appendf(nil, "%d:%d", d.db.storage(), slot)
}

func (d *simDaemon) parse(cursor []byte) (node, slot int) {
	n, s, _ := strings.Cut(string(cursor), ":")
	node, _ = strconv.Atoi(n)
	slot, _ = strconv.Atoi(s)
	return node, slot
}

func (d *simDaemon) unlock() {
	if d.locked {
		d.locked = false
		d.db.shared--
	}
}

// lock takes the chunk's lock; false while it must wait.
func (d *simDaemon) lock() bool {
	if d.action == nil || d.locked || d.view != nil && d.mutant != "latecollect" || d.result != nil || d.db.held(nil) {
		return false
	}
	if d.mutant != "nolock" {
		d.locked = true
		d.db.shared++
	}
	return true
}

// snapshot takes the chunk's snapshot.
func (d *simDaemon) snapshot() bool {
	if d.action == nil || d.view != nil || !d.locked && d.mutant != "nolock" {
		return false
	}
	d.view, d.seen = d.db.view(), d.db.storage()
	return true
}

// read reads the chunk's rows.
func (d *simDaemon) read() bool {
	if d.action == nil || d.view == nil || d.result != nil || !d.locked && d.mutant != "nolock" {
		return false
	}
	a, c := d.action, &Chunk{View: d.view, After: d.db.end(), Schema: d.db.schema(), Total: 1}
	node, slot := d.parse(a.Cursor)
	if node != d.seen && a.Keys == nil && d.mutant != "nofilenode" {
		c.Moved = &Moved{Txs: []string{strconv.FormatUint(d.db.movedBy, 10)}, Explained: d.cursor(0), Cursor: d.cursor(0), NoSweep: d.db.keyless}
		d.result = c
		return true
	}
	c.Rows = &change.Batch{Source: "src", Kind: change.Chunk}
	from, to := slot, min(slot+d.chunk, len(d.db.heap))
	if a.Keys != nil || d.db.keyless {
		from, to = 0, len(d.db.heap)
	}
	for _, v := range d.db.heap[from:to] {
		if d.db.visible(v, d.view.sees) && d.wanted(a, v.row.key) {
			key := simKey(v.row.key)
			if d.db.keyless {
				key = nil
			}
			c.Rows.Add(d.db.schema(), change.OpRead, change.FlagSnapshot, key, nil, v.row.encode(true))
		}
	}
	c.Cursor = d.cursor(to)
	c.Last = to == len(d.db.heap)
	d.result = c
	return true
}

func (d *simDaemon) wanted(a *Action, key int) bool {
	if a.Keys == nil {
		return true
	}
	for _, k := range a.Keys {
		if decodeSimKey(k) == key {
			return true
		}
	}
	return false
}

// allSeen is the view of one who decides by places in the log.
type allSeen struct{}

func (allSeen) Contains(string) bool { return true }

// deliver hands the chunk over.
func (d *simDaemon) deliver() bool {
	if d.result == nil {
		return false
	}
	c := d.result
	switch d.mutant {
	case "lsn":
		c.View = allSeen{}
	case "nowait":
		c.After = 0
	case "nomoved":
		if c.Moved != nil {
			c.Moved.Txs = nil
		}
	}
	d.stale = d.db.view()
	d.unlock()
	d.action, d.result, d.view = nil, nil, nil
	d.m.Deliver(c)
	return true
}

// check compares the storage with the one known, outside of a run.
func (d *simDaemon) check() bool {
	if s := d.m.Table(simTopic); s.Running || s.Run == 0 || d.node == d.db.filenode || d.db.held(nil) || len(d.m.checks) > 0 {
		if s.Running {
			d.node, _ = d.parse(s.Cursor)
		}
		return false
	}
	d.node = d.db.filenode
	d.m.Check(simTopic, d.db.end(), Moved{Txs: []string{strconv.FormatUint(d.db.movedBy, 10)}, Explained: d.cursor(0), Cursor: d.cursor(0), NoSweep: d.db.keyless})
	return true
}

// idle reports whether everything is streamed and done.
func (d *simDaemon) idle() bool {
	s := d.m.Table(simTopic)
	return d.streamed == len(d.db.wal) && !s.Running && s.Run > 0 && s.Owed == 0 && d.action == nil && len(d.m.ready) == 0 && len(d.m.checks) == 0
}
