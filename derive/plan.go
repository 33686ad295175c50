package derive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// plan compiles what can be compiled, starts the images that are missing, drops
// those that nothing needs, and switches the views whose images are there. It
// runs between steps.
func (r *Runner) plan() error {
	r.replan = false
	for _, v := range r.views {
		if v.wanted != nil {
			if err := r.planView(v); err != nil {
				return err
			}
		}
	}
	if err := r.planImages(); err != nil {
		return err
	}
	return r.takeOver()
}

// planView compiles the definition asked for unless it is there already.
func (r *Runner) planView(v *viewState) error {
	def, err := v.wanted.Definition()
	if err != nil {
		return err
	}
	if v.next != nil || v.current != nil && v.stopped == "" && bytes.Equal(v.current.record.Definition, def) {
		return nil
	}
	if v.current != nil && v.stopped != "" {
		return nil // it goes on after a restart
	}
	for _, topic := range v.wanted.Topics() {
		if _, ok := r.schemas.latest(topic); !ok {
			v.waiting = "table " + topic + " is not captured yet"
			return nil
		}
	}
	u, err := newUnit(v.wanted, r.schemas.latest)
	if err != nil {
		v.waiting = ""
		v.stopped = reasons(err)
		r.opts.Logger.Error("view does not compile", "stage", "derive", "view", v.name, "err", v.stopped)
		return nil
	}
	v.next, v.waiting = u, ""
	return nil
}

// planImages compares what the units need with the images that are live or being built.
func (r *Runner) planImages() error {
	needs := r.imageNeeds()
	if err := r.dropUnneeded(needs); err != nil {
		return err
	}
	var fresh []*image.Table
	for _, topic := range sortedKeys(needs) {
		if s := r.images[topic]; s != nil && servesAll(s.applier.Table, needs[topic]) {
			continue
		}
		if r.beingBuilt(topic, needs[topic]) || r.damaged[topic] != nil {
			continue
		}
		if err := r.abandon(topic); err != nil {
			return err
		}
		fresh = append(fresh, image.NewTable(r.meta.NextTable, topic, needs[topic]))
		r.meta.NextTable++
	}
	if len(fresh) == 0 {
		return r.bindAll()
	}
	if !r.apart {
		return r.startBuild(fresh)
	}
	for i := range fresh {
		if err := r.startBuild(fresh[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// imageNeeds returns the needs of each topic, the newest layout's last.
func (r *Runner) imageNeeds() map[string][]image.Need {
	needs := map[string][]image.Need{}
	for _, v := range r.views {
		if v.wanted == nil {
			continue
		}
		for _, u := range v.units() {
			for topic, n := range u.needs {
				needs[topic] = append(needs[topic], n)
			}
		}
	}
	for _, list := range needs {
		slices.SortStableFunc(list, func(a, b image.Need) int { return int(a.Schema.ID) - int(b.Schema.ID) })
	}
	return needs
}

func servesAll(t *image.Table, needs []image.Need) bool {
	for _, n := range needs {
		if !t.Serves(n) {
			return false
		}
	}
	return true
}

// dropUnneeded deletes live images that no unit reads: they would go stale.
func (r *Runner) dropUnneeded(needs map[string][]image.Need) error {
	b := r.store.Batch()
	for _, topic := range sortedKeys(r.images) {
		if needs[topic] == nil {
			if err := dropTable(b, r.images[topic].applier.Table); err != nil {
				return err
			}
			delete(r.images, topic)
		}
	}
	return b.Commit(false)
}

// startBuild makes records of new images. One whose topic does not exist yet is
// live at once: the log has none of its rows.
func (r *Runner) startBuild(tables []*image.Table) error {
	b := r.store.Batch()
	g := &build{tables: map[eventlog.TopicID]*source{}}
	for _, t := range tables {
		topic, exists := r.log.Topic(t.Topic)
		if exists {
			src := r.newSource(t)
			src.applier.Fill()
			g.tables[topic.ID] = src
		} else if err := r.replaceImage(b, t); err != nil {
			return err
		}
		if err := remember(b, tableName(t), &tableRecord{Table: t, Live: !exists}); err != nil {
			return err
		}
	}
	if err := remember(b, memMeta, &r.meta); err != nil {
		return err
	}
	if err := b.Commit(false); err != nil {
		return err
	}
	if len(g.tables) > 0 {
		if err := r.pin(g); err != nil {
			return err
		}
		r.builds = append(r.builds, g)
	}
	return r.bindAll()
}

// replaceImage makes a table the live image of its topic.
func (r *Runner) replaceImage(b *image.Batch, t *image.Table) error {
	if old := r.images[t.Topic]; old != nil {
		if err := dropTable(b, old.applier.Table); err != nil {
			return err
		}
	}
	r.images[t.Topic] = r.newSource(t)
	return nil
}

// bindAll binds every unit to the live images.
func (r *Runner) bindAll() error {
	tables := r.liveTables()
	for _, v := range r.views {
		for _, u := range v.units() {
			if err := u.bind(tables); err != nil {
				return fmt.Errorf("view %s: %w", v.name, err)
			}
		}
	}
	return nil
}

func (r *Runner) liveTables() map[string]*image.Table {
	tables := make(map[string]*image.Table, len(r.images))
	for topic, s := range r.images {
		tables[topic] = s.applier.Table
	}
	return tables
}

// takeOver switches the views whose next definition has its images: it outputs
// from here on, and a pass brings what was output up to it.
func (r *Runner) takeOver() error {
	for _, v := range r.views {
		if v.next == nil || v.next.bound == nil || v.unread != nil {
			continue
		}
		if err := r.switchView(v); err != nil {
			return fmt.Errorf("view %s: %w", v.name, err)
		}
	}
	return nil
}

func (r *Runner) switchView(v *viewState) error {
	b := r.store.Batch()
	if v.id == 0 {
		if err := r.outputTopic(v); err != nil {
			return err
		}
		v.id = r.meta.NextView
		for _, bounds := range image.ViewRanges(v.id) { // an attempt that did not get to its commit
			if err := b.DeleteRange(bounds); err != nil {
				return err
			}
		}
		if err := b.Commit(false); err != nil {
			return err
		}
		if err := r.adoptOutputs(v); errors.Is(err, eventlog.ErrCorrupt) {
			r.leaveUnread(v, err)
			return nil
		} else if err != nil {
			return err
		}
		b = r.store.Batch()
		r.meta.NextView++
		if err := remember(b, memMeta, &r.meta); err != nil {
			return err
		}
	}
	if v.old == nil || !v.memory.Pass {
		v.old = v.current
	}
	v.current, v.next, v.stopped = v.next, nil, ""
	v.restart(0)
	clear(v.dirty)
	rec := viewRecord{ID: v.id, Current: &v.current.record}
	if v.old != nil {
		rec.Old = &v.old.record
	}
	if err := remember(b, memView+v.name, &rec); err != nil {
		return err
	}
	if err := remember(b, memPass+v.name, &v.memory); err != nil {
		return err
	}
	v.changed = false
	r.opts.Logger.Info("view is built", "stage", "derive", "view", v.name, "fingerprint", v.current.record.Fingerprint)
	return b.Commit(false)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
