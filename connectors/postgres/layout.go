package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
)

// catalog makes tables of what the catalogue and the stream say. Stream and
// snapshot use it together.
type catalog struct {
	include, exclude []pattern

	mu       sync.Mutex // guards what follows; not held across queries
	layouts  *layouts
	streamed map[uint32]*table // in the layout of the stream, by oid
	fresh    map[uint32]bool   // read at Open and not yet described by the stream
}

func newCatalog(o *Options, last map[string]*change.Schema) *catalog {
	return &catalog{include: parsePatterns(o.Tables), exclude: parsePatterns(o.Exclude), layouts: newLayouts(o.Source, last),
		streamed: map[uint32]*table{}, fresh: map[uint32]bool{}}
}

func (c *catalog) captures(name string) bool {
	return matchAny(c.include, name) && !matchAny(c.exclude, name)
}

// load makes the tables of the relations at Open.
func (c *catalog) load(ctx context.Context, s *session, list []*relation) ([]*table, error) {
	fresh := types{}
	if err := fresh.load(ctx, s, typeOIDs(list)); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn(fresh)
	tables := make([]*table, 0, len(list))
	for _, r := range list {
		t, err := c.layouts.table(r, r.live())
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
		c.streamed[r.oid], c.fresh[r.oid] = t, true
	}
	return tables, nil
}

// learn takes types over; c.mu is held.
func (c *catalog) learn(fresh types) {
	for oid, t := range fresh {
		c.layouts.types[oid] = t
	}
}

// read reads one relation and the types of its columns, nil if it is gone.
func (c *catalog) read(ctx context.Context, s *session, oid uint32, more []uint32) (*relation, error) {
	list, err := readRelations(ctx, s, oid)
	if err != nil {
		return nil, err
	}
	if err := readColumns(ctx, s, list); err != nil {
		return nil, err
	}
	fresh := types{}
	if err := fresh.load(ctx, s, append(typeOIDs(list), more...)); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.learn(fresh)
	c.mu.Unlock()
	if len(list) == 0 {
		return nil, nil
	}
	return list[0], nil
}

// current returns the table as the catalogue has it now, nil if it is gone.
func (c *catalog) current(ctx context.Context, s *session, oid uint32) (*table, error) {
	r, err := c.read(ctx, s, oid, nil)
	if err != nil || r == nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.layouts.table(r, r.live())
}

// layoutChange is a change of a table's layout in the stream.
type layoutChange struct {
	was, now *table
	retyped  bool
}

// describe makes the table of a relation message. The catalogue is as of now,
// the message as of its place in the stream: the message decides names and types.
func (c *catalog) describe(ctx context.Context, s *session, m relationMessage) (*relationUse, *layoutChange, error) {
	use := &relationUse{wire: len(m.columns)}
	if !c.captures(m.schema + "." + m.name) {
		return use, nil, nil
	}
	c.mu.Lock()
	known, fresh := c.streamed[m.oid], c.fresh[m.oid]
	delete(c.fresh, m.oid)
	c.mu.Unlock()
	if fresh && known.schema == m.schema && known.name == m.name {
		if use.columns = placesOf(known, m); len(use.columns) == len(m.columns) { // else columns were added since
			use.table = known
			return use, nil, nil
		}
	}
	now, err := c.atPosition(ctx, s, m)
	if err != nil {
		return nil, nil, err
	}
	if use.columns = placesOf(now, m); use.columns == nil {
		return nil, nil, fmt.Errorf("table %s: its columns in the stream cannot be told", now)
	}
	use.table = now
	return use, c.adopt(known, now), nil
}

// adopt makes now the layout of the stream, and returns the change if there is one.
func (c *catalog) adopt(known, now *table) *layoutChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streamed[now.oid] = now
	c.layouts.last[now.topic()] = now.layout
	if known == nil || known.topic() != now.topic() {
		return nil
	}
	if bytes.Equal(known.layout.AppendLayout(nil), now.layout.AppendLayout(nil)) {
		return nil
	}
	ch := &layoutChange{was: known, now: now, retyped: !slices.Equal(known.layout.KeyNames(), now.layout.KeyNames())}
	for i := range now.layout.Columns {
		n := now.layout.Columns[i].Number
		old := newestGeneration(known.layout, n&(1<<numberBits-1))
		ch.retyped = ch.retyped || old != nil && old.Number != n
	}
	return ch
}

// placesOf returns for each column of the table its place in the message's
// tuples, nil if the message does not describe this layout.
func placesOf(t *table, m relationMessage) []int {
	places := make([]int, 0, len(t.columns))
	at := 0
	for i := range t.columns {
		for at < len(m.columns) && m.columns[at].name != t.layout.Columns[i].Name {
			at++ // a generated column
		}
		if at == len(m.columns) || m.columns[at].typ != t.columns[i].typ.oid || m.columns[at].typmod != t.columns[i].typmod {
			return nil
		}
		places = append(places, at)
		at++
	}
	return places
}

// atPosition makes the table as the message has it.
func (c *catalog) atPosition(ctx context.Context, s *session, m relationMessage) (*table, error) {
	var oids []uint32
	for _, col := range m.columns {
		oids = append(oids, col.typ)
	}
	r, err := c.read(ctx, s, m.oid, oids)
	if err != nil {
		return nil, err
	}
	if r == nil { // dropped since
		r = &relation{oid: m.oid, kind: 'r'}
	}
	r.schema, r.name = m.schema, m.name
	c.mu.Lock()
	last := c.layouts.last[change.TableTopic(c.layouts.source, m.schema, m.name)]
	c.mu.Unlock()
	attrs := align(m.columns, r, last)
	if err := nameTypes(ctx, s, attrs); err != nil {
		return nil, err
	}
	keyFromMessage(r, attrs, m)
	if r.key() == nil {
		fault, fix := unfit(r)
		return nil, fmt.Errorf("table %s cannot be captured any more, %s: %s Or exclude it. Then start again: %w", r, fault, inLine(fix), connectors.ErrPrerequisite)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.layouts.table(r, attrs)
}

// retype returns the table with its columns' types as the catalogue has them now.
// A type that is gone, or became one of another kind, stays as it is.
func (c *catalog) retype(ctx context.Context, s *session, t *table) (*table, error) {
	var oids []uint32
	for _, col := range t.columns {
		oids = append(oids, col.typ.oid)
	}
	fresh := types{}
	if err := fresh.load(ctx, s, oids); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.learn(fresh)
	c.mu.Unlock()
	now := *t
	now.columns, now.loose = slices.Clone(t.columns), false
	for i := range now.columns {
		if typ := fresh[oids[i]]; typ != nil && typ.kind == t.columns[i].typ.kind {
			now.columns[i].typ = typ
		}
	}
	return &now, nil
}

// nameTypes fills the names of types that do not come from the catalogue's row.
func nameTypes(ctx context.Context, s *session, attrs []attr) error {
	for i := range attrs {
		a := &attrs[i]
		if a.typeText != "" {
			continue
		}
		text, err := s.text(ctx, "SELECT pg_catalog.format_type($1::pg_catalog.oid, $2::pg_catalog.int4)", fmt.Sprint(a.typ), fmt.Sprint(a.typmod))
		if err != nil {
			return fmt.Errorf("read the name of type %d: %w", a.typ, err)
		}
		a.typeText = text
	}
	return nil
}

// keyFromMessage takes the key from the message where the catalogue's is not of
// its columns: the message marks the key's columns, unless all are.
func keyFromMessage(r *relation, attrs []attr, m relationMessage) {
	key := r.key()
	if key != nil && !slices.ContainsFunc(key, func(num int16) bool { return indexOf(attrs, num) < 0 }) {
		return
	}
	if m.identity == 'f' || m.identity == 'n' {
		return
	}
	var marked []int16
	for _, col := range m.columns {
		if i := slices.IndexFunc(attrs, func(a attr) bool { return a.name == col.name }); i >= 0 && col.key {
			marked = append(marked, attrs[i].num)
		}
	}
	r.identity, r.primary = 'd', marked
}

// align gives the message's columns their attribute numbers. A name that the
// catalogue or the last layout has decides; the columns between two of those
// are in the order of the numbers left between, dropped ones included.
func align(columns []wireColumn, r *relation, last *change.Schema) []attr {
	attrs := make([]attr, 0, len(columns))
	for _, col := range columns {
		a := attr{name: col.name, typ: col.typ, typmod: col.typmod, notNull: col.key}
		if i := slices.IndexFunc(r.columns, func(x attr) bool { return !x.dropped && x.name == col.name }); i >= 0 {
			x := r.columns[i]
			if x.generated {
				continue
			}
			if x.typ == col.typ && x.typmod == col.typmod {
				a = x
			} else {
				a.num, a.notNull, a.hasDefault = x.num, x.notNull, x.hasDefault
			}
		} else if last != nil {
			if i := last.Column(col.name); i >= 0 {
				a.num = int16(last.Columns[i].Number & (1<<numberBits - 1))
				a.notNull = !last.Columns[i].Nullable
			}
		}
		attrs = append(attrs, a)
	}
	numberRest(attrs, r)
	return attrs
}

// numberRest numbers the columns that no name has numbered.
func numberRest(attrs []attr, r *relation) {
	used := map[int16]bool{}
	for _, a := range attrs {
		used[a.num] = true
	}
	low, spare := int16(0), int16(1600) // above every attribute number
	for i := range attrs {
		if attrs[i].num != 0 {
			low = attrs[i].num
			continue
		}
		high := spare
		for _, later := range attrs[i+1:] {
			if later.num != 0 {
				high = later.num
				break
			}
		}
		at := slices.IndexFunc(r.columns, func(x attr) bool { return x.num > low && x.num < high && !x.generated && !used[x.num] })
		if at < 0 {
			spare++
			attrs[i].num = spare
			continue
		}
		num := r.columns[at].num
		attrs[i].num, attrs[i].notNull, used[num], low = num, r.columns[at].notNull, true, num
	}
}
