package image

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// Schemas finds the layout that a record was written with.
type Schemas func(topic string, id uint32) (*change.Schema, bool)

// Delta is one row change against an image: the row before and after, in the
// table's layout, unchanged columns filled as far as they are known. nil is
// absent. It is valid until the next Prepare.
type Delta struct {
	Key      change.Key
	Old, New []change.Value
	Same     bool // no column that the image holds differs
}

// Applier brings one table up to date, record by record in log order. One goroutine.
type Applier struct {
	Table   *Table
	schemas Schemas

	projections map[uint32]*projection
	oldRow      []byte
	oldBuf      []byte
	old, new    []change.Value
	scratch     []change.Value
	present     bool // in the image before
	newRow      []byte
	keyBuf      []byte

	moved moved

	fresh bool   // the table was empty at first
	top   []byte // then: the greatest key written
}

// moved keeps the row that the delete half of a key change removed.
type moved struct {
	valid  bool
	csn    eventlog.CSN
	seq    uint32
	buf    []byte
	values []change.Value
}

// projection maps a record's columns to the image's.
type projection struct {
	schema *change.Schema
	from   []int          // column of the record, or -1
	fill   []change.Value // what a column that the record's layout lacks is
}

// NewApplier returns an applier of the table.
func NewApplier(t *Table, schemas Schemas) *Applier {
	return &Applier{Table: t, schemas: schemas, projections: map[uint32]*projection{}}
}

// Fill tells that the table is empty: keys above all that were written need no look.
func (a *Applier) Fill() { a.fresh = true }

func (a *Applier) projection(id uint32) (*projection, error) {
	if p := a.projections[id]; p != nil {
		return p, nil
	}
	s, ok := a.schemas(a.Table.Topic, id)
	if !ok {
		return nil, fmt.Errorf("topic %s: schema %d is not in %s", a.Table.Topic, id, change.TopicSchemas)
	}
	p := &projection{schema: s}
	for i := range a.Table.Layout.Columns {
		c := &a.Table.Layout.Columns[i]
		j, fill := s.ByNumber(c.Number), change.Null
		switch {
		case j >= 0 && s.Columns[j].Kind == c.Kind:
		case j >= 0 || id >= a.Table.Layout.ID: // another kind, or dropped: views that need it have stopped
			j = -1
		case c.HasDefault:
			var err error
			if fill, err = c.DefaultValue(); err != nil {
				return nil, fmt.Errorf("default of column %s of %s: %w", c.Name, a.Table.Topic, err)
			}
		case !c.Nullable:
			fill = change.UnchangedValue
		}
		p.from, p.fill = append(p.from, j), append(p.fill, fill)
	}
	a.projections[id] = p
	return p, nil
}

// Prepare reads what the record does to the image. r must see all earlier records.
func (a *Applier) Prepare(r Reader, rec *eventlog.Record) (Delta, error) {
	d := Delta{Key: change.Key(rec.Key)}
	if err := a.loadOld(r, d.Key); err != nil {
		return d, err
	}
	if a.present {
		d.Old = a.old
	}
	if rec.Value == nil {
		a.noteMoved(rec)
		d.Same = !a.present
		return d, nil
	}
	if err := a.project(rec); err != nil {
		return d, fmt.Errorf("%s offset %d: %w", a.Table.Topic, rec.Offset, err)
	}
	a.fill(rec)
	a.newRow = change.AppendRow(a.newRow[:0], a.new)
	d.New = a.new
	d.Same = a.present && bytes.Equal(a.oldRow, a.newRow)
	return d, nil
}

func (a *Applier) loadOld(r Reader, key change.Key) error {
	if a.fresh && bytes.Compare(key, a.top) > 0 {
		a.oldRow, a.present = nil, false
		return nil
	}
	_, row, buf, ok, err := a.Table.Row(r, a.oldBuf[:0], key)
	a.oldBuf, a.oldRow, a.present = buf, row, ok
	if err != nil || !ok {
		return err
	}
	a.old, err = change.Row{Schema: a.Table.Layout, Data: row}.Values(a.old)
	return err
}

// project decodes the record's after row into the image's columns.
func (a *Applier) project(rec *eventlog.Record) error {
	p, err := a.projection(rec.Schema)
	if err != nil {
		return err
	}
	_, after, err := change.DecodeRecordValue(rec.Value)
	if err != nil {
		return err
	}
	if a.scratch, err = (change.Row{Schema: p.schema, Data: after}).Values(a.scratch); err != nil {
		return err
	}
	a.new = a.new[:0]
	for i, j := range p.from {
		if j < 0 {
			a.new = append(a.new, p.fill[i])
		} else {
			a.new = append(a.new, a.scratch[j])
		}
	}
	return nil
}

// fill takes unchanged columns from the delete half of the same move, else
// from the row before under the same key.
func (a *Applier) fill(rec *eventlog.Record) {
	base := a.old
	if !a.present {
		base = nil
	}
	if change.Flags(rec.Flags)&change.FlagMoved != 0 && a.moved.valid && a.moved.csn == rec.CSN && a.moved.seq+1 == rec.Seq {
		base = a.moved.values
	}
	a.moved.valid = false
	if base == nil {
		return
	}
	for i := range a.new {
		if a.new[i].IsUnchanged() {
			a.new[i] = base[i]
		}
	}
}

func (a *Applier) noteMoved(rec *eventlog.Record) {
	a.moved.valid = false
	if change.Flags(rec.Flags)&change.FlagMoved == 0 || !a.present {
		return
	}
	m := &a.moved
	m.buf = append(m.buf[:0], a.oldRow...)
	values, err := change.Row{Schema: a.Table.Layout, Data: m.buf}.Values(m.values)
	if err != nil {
		return // it was read a moment ago from the same bytes
	}
	m.values, m.csn, m.seq, m.valid = values, rec.CSN, rec.Seq, true
}

// Write applies what the last Prepare returned.
func (a *Applier) Write(b *Batch, d *Delta, csn eventlog.CSN) error {
	if d.Old == nil && d.New == nil {
		return nil
	}
	if !d.Same {
		if err := a.writeIndexes(b, d); err != nil {
			return err
		}
	}
	if a.fresh && bytes.Compare(d.Key, a.top) > 0 {
		a.top = append(a.top[:0], d.Key...)
	}
	a.keyBuf = append(a.Table.Prefix(a.keyBuf[:0]), d.Key...)
	if d.New == nil {
		return b.Delete(a.keyBuf)
	}
	n := len(a.keyBuf)
	a.keyBuf = append(binary.AppendUvarint(a.keyBuf, uint64(csn)), a.newRow...)
	return b.Set(a.keyBuf[:n], a.keyBuf[n:])
}

func (a *Applier) writeIndexes(b *Batch, d *Delta) error {
	for i := range a.Table.Indexes {
		x := &a.Table.Indexes[i]
		old, hadOld := a.indexKey(nil, x, d.Key, d.Old)
		key, hasNew := a.indexKey(nil, x, d.Key, d.New)
		if hadOld && hasNew && bytes.Equal(old, key) {
			continue
		}
		if hadOld {
			if err := b.Delete(old); err != nil {
				return err
			}
		}
		if hasNew {
			if err := b.Set(key, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Applier) indexKey(dst []byte, x *Index, key change.Key, row []change.Value) ([]byte, bool) {
	if row == nil {
		return dst, false
	}
	dst = a.Table.IndexPrefix(dst, x)
	for i, c := range x.Columns {
		v := row[c]
		if v.IsNull() || v.IsUnchanged() {
			return dst, false
		}
		dst = change.AppendKeyPart(dst, v, x.Need.Fold[i])
	}
	return append(dst, key...), true
}

// Truncate removes all rows.
func (a *Applier) Truncate(b *Batch) error {
	for _, r := range a.Table.Ranges() {
		if err := b.DeleteRange(r); err != nil {
			return err
		}
	}
	return nil
}
