package snapshot

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// simDB is a small database with multi-version rows, a heap of slots in which
// updates move rows, a log of commit records, and transactions that become
// visible some time after their commit record was written.
type simDB struct {
	next      uint64 // next transaction id
	heap      []*simVersion
	txs       map[uint64]*simTx
	wal       []simRecord
	published bool
	shared    int    // chunk readers that hold the table's lock
	filenode  int    // the table's storage
	movedBy   uint64 // who exchanged it
	keyless   bool
}

type simVersion struct {
	row        simRow
	xmin, xmax uint64 // xmax 0: nobody deleted it
}

type simRow struct{ key, a, big int }

type simState int

const (
	simRunning simState = iota
	simHanging          // its commit record is written; it is not visible yet
	simEnded
	simAborted
)

type simTx struct {
	id     uint64
	state  simState
	wrote  bool
	alone  bool // holds the table against everybody
	node   int  // the table's storage before that
	events []simEvent
	undo   []func()
}

type simEvent struct {
	op           change.Op
	before       simRow
	after        simRow
	whole, moved bool
	silent       bool // a rewrite: the stream does not see it
}

// simRecord is a commit in the database's log; its place is its index + 1.
type simRecord struct {
	tx     *simTx
	events []simEvent // those that were published when they were made
	all    []simEvent
}

func newSimDB(slots int) *simDB {
	return &simDB{next: 100, heap: make([]*simVersion, slots), txs: map[uint64]*simTx{}, filenode: 1}
}

func (db *simDB) end() Place { return Place(len(db.wal)) }

func (db *simDB) begin() *simTx {
	tx := &simTx{id: db.next}
	db.next++
	db.txs[tx.id] = tx
	return tx
}

// simView is a snapshot: what had ended.
type simView struct {
	xmin, xmax uint64
	active     map[uint64]bool
}

func (db *simDB) view() *simView {
	v := &simView{xmin: db.next, xmax: db.next, active: map[uint64]bool{}}
	for id, tx := range db.txs {
		if tx.state == simRunning || tx.state == simHanging {
			v.active[id] = true
			v.xmin = min(v.xmin, id)
		}
	}
	return v
}

func (v *simView) sees(id uint64) bool { return id < v.xmax && !v.active[id] }

// Contains implements View.
func (v *simView) Contains(tx string) bool {
	id, err := strconv.ParseUint(tx, 10, 64)
	return err == nil && v.sees(id)
}

func (db *simDB) visible(ver *simVersion, see func(uint64) bool) bool {
	if ver == nil || !see(ver.xmin) || db.txs[ver.xmin].state == simAborted {
		return false
	}
	return ver.xmax == 0 || !see(ver.xmax) || db.txs[ver.xmax].state == simAborted
}

// current returns the row that tx may change; locked tells that another holds the key.
func (db *simDB) current(tx *simTx, key int) (ver *simVersion, locked bool) {
	for _, v := range db.heap {
		if v == nil || v.row.key != key {
			continue
		}
		for _, id := range []uint64{v.xmin, v.xmax} {
			if o := db.txs[id]; id != 0 && o != tx && (o.state == simRunning || o.state == simHanging) {
				return nil, true
			}
		}
		if db.visible(v, func(id uint64) bool { return db.txs[id] == tx || db.txs[id].state == simEnded }) {
			ver = v
		}
	}
	return ver, false
}

// busy reports whether anybody else uses the table.
func (db *simDB) busy(tx *simTx) bool {
	for _, o := range db.txs {
		if o != tx && o.wrote && (o.state == simRunning || o.state == simHanging) {
			return true
		}
	}
	return db.shared > 0
}

// held reports whether another transaction holds the table against all.
func (db *simDB) held(tx *simTx) bool {
	for _, o := range db.txs {
		if o != tx && o.alone && (o.state == simRunning || o.state == simHanging) {
			return true
		}
	}
	return false
}

// storage returns the table's storage as a session reads it in the catalogue.
func (db *simDB) storage() int {
	for _, o := range db.txs {
		if o.alone && (o.state == simRunning || o.state == simHanging) {
			return o.node
		}
	}
	return db.filenode
}

// place puts a version into the free slot at or behind a place, if there is one.
func (db *simDB) place(ver *simVersion, at int) bool {
	for i := range db.heap {
		if j := (at + i) % len(db.heap); db.heap[j] == nil {
			db.heap[j] = ver
			return true
		}
	}
	return false
}

// write makes one change; false if a lock or the heap forbids it.
func (db *simDB) write(tx *simTx, e simEvent, at int) bool {
	if tx.state != simRunning || db.held(tx) {
		return false
	}
	var old *simVersion
	if e.op != change.OpInsert || e.moved {
		ver, locked := db.current(tx, e.before.key)
		if locked || ver == nil {
			return false
		}
		old, e.before = ver, ver.row
	}
	if e.op == change.OpInsert || e.moved {
		if ver, locked := db.current(tx, e.after.key); locked || ver != nil {
			return false
		}
	}
	if e.op != change.OpDelete {
		if old != nil && !e.whole {
			e.after.big = old.row.big
		}
		if !db.place(&simVersion{row: e.after, xmin: tx.id}, at) {
			return false
		}
	}
	if old != nil {
		old.xmax = tx.id
		tx.undo = append(tx.undo, func() { old.xmax = 0 })
	}
	db.log(tx, e)
	return true
}

func (db *simDB) log(tx *simTx, e simEvent) {
	tx.wrote = true
	e.silent = e.silent || !db.published
	tx.events = append(tx.events, e)
}

// truncate empties the table into new storage; a rewrite adds 1000 to every a, silently.
func (db *simDB) truncate(tx *simTx, rewrite bool) bool {
	if tx.state != simRunning || db.busy(tx) || tx.alone {
		return false // both in one transaction cannot be told from a truncate alone (docs/snapshots.md)
	}
	node, by, heap := db.filenode, db.movedBy, slices.Clone(db.heap)
	tx.undo = append(tx.undo, func() { db.filenode, db.movedBy, db.heap = node, by, heap })
	tx.alone, tx.node = true, node
	fresh := make([]*simVersion, len(db.heap))
	if rewrite {
		for i, v := range db.heap {
			if db.visible(v, func(id uint64) bool { return db.txs[id] == tx || db.txs[id].state == simEnded }) {
				row := v.row
				row.a += 1000
				fresh[i] = &simVersion{row: row, xmin: tx.id}
			}
		}
	}
	db.heap, db.filenode, db.movedBy = fresh, db.filenode+1, tx.id
	db.log(tx, simEvent{op: change.OpTruncate, silent: rewrite, whole: rewrite})
	return true
}

// commit writes the commit record; the transaction hangs until finish.
func (db *simDB) commit(tx *simTx) {
	tx.state = simHanging
	r := simRecord{tx: tx, all: tx.events}
	for _, e := range tx.events {
		if !e.silent {
			r.events = append(r.events, e)
		}
	}
	db.wal = append(db.wal, r)
}

func (db *simDB) finish(tx *simTx) { tx.state = simEnded }

func (db *simDB) abort(tx *simTx) {
	tx.state = simAborted
	for i := len(tx.undo) - 1; i >= 0; i-- {
		tx.undo[i]()
	}
	for i, v := range db.heap {
		if v != nil && v.xmin == tx.id {
			db.heap[i] = nil
		}
	}
}

// vacuum frees the slots of versions that nobody sees, when no reader is there.
func (db *simDB) vacuum() {
	if db.shared > 0 {
		return
	}
	for i, v := range db.heap {
		if v != nil && v.xmax != 0 && db.txs[v.xmax].state == simEnded {
			db.heap[i] = nil
		}
	}
}

// rows returns what a session sees now.
func (db *simDB) rows() map[int]simRow {
	see := func(id uint64) bool { return db.txs[id].state == simEnded }
	got := map[int]simRow{}
	for _, v := range db.heap {
		if db.visible(v, see) {
			got[v.row.key] = v.row
		}
	}
	return got
}

func (r simRow) String() string { return fmt.Sprintf("%d(a=%d big=%d)", r.key, r.a, r.big) }

var simSchema = &change.Schema{Topic: "src.public.t", Columns: []change.Column{
	{Number: 1, Name: "k", Kind: change.KindInt}, {Number: 2, Name: "a", Kind: change.KindInt, Nullable: true},
	{Number: 3, Name: "big", Kind: change.KindInt, Nullable: true}}, Key: []int{0}}

var simKeyless = &change.Schema{Topic: "src.public.t", Columns: simSchema.Columns}

func simKey(k int) change.Key { return change.AppendKeyPart(nil, change.Int(int64(k)), false) }

func (r simRow) encode(whole bool) []byte {
	big := change.UnchangedValue
	if whole {
		big = change.Int(int64(r.big))
	}
	return change.AppendRow(nil, []change.Value{change.Int(int64(r.key)), change.Int(int64(r.a)), big})
}

// batch is the stream's form of a commit.
func (db *simDB) batch(r simRecord) *change.Batch {
	b := &change.Batch{Source: "src", Tx: strconv.FormatUint(r.tx.id, 10)}
	for _, e := range r.events {
		flags := change.Flags(0)
		if !e.whole && (e.op == change.OpUpdate || e.moved) && !db.keyless {
			flags |= change.FlagPartial
		}
		switch {
		case e.op == change.OpTruncate:
			b.Add(db.schema(), e.op, 0, nil, nil, nil)
		case db.keyless && e.op == change.OpDelete:
			b.Add(db.schema(), e.op, 0, nil, e.before.encode(true), nil)
		case db.keyless && e.op == change.OpInsert && !e.moved:
			b.Add(db.schema(), e.op, 0, nil, nil, e.after.encode(true))
		case db.keyless:
			b.Add(db.schema(), change.OpUpdate, 0, nil, e.before.encode(true), e.after.encode(true))
		case e.op == change.OpDelete:
			b.Add(db.schema(), e.op, 0, simKey(e.before.key), nil, nil)
		case e.moved:
			b.Add(db.schema(), change.OpDelete, change.FlagMoved, simKey(e.before.key), nil, nil)
			b.Add(db.schema(), change.OpInsert, change.FlagMoved|flags, simKey(e.after.key), nil, e.after.encode(e.whole))
		default:
			b.Add(db.schema(), e.op, flags, simKey(e.after.key), nil, e.after.encode(e.whole || e.op == change.OpInsert))
		}
	}
	return b
}

func (db *simDB) schema() *change.Schema {
	if db.keyless {
		return simKeyless
	}
	return simSchema
}
