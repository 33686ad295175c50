package derive

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// recover reads what the store remembers, checks it against the log and
// readies the views.
func (r *Runner) recover() error {
	b := r.store.Batch()
	err := r.recoverAll(b)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := b.Commit(false); err != nil {
		return err
	}
	r.reached = r.applied
	if err := r.plan(); err != nil {
		return err
	}
	if err := r.follow(); err != nil { // also loads the marks, which say what may be served
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish()
	return nil
}

func (r *Runner) recoverAll(b *image.Batch) error {
	if err := r.recoverMeta(b); err != nil {
		return err
	}
	if err := r.schemas.load(); err != nil {
		return err
	}
	if err := r.recoverTables(b); err != nil {
		return err
	}
	return r.recoverViews(b)
}

func (r *Runner) recoverMeta(b *image.Batch) error {
	ok, err := recall(b, memMeta, &r.meta)
	if err != nil {
		return err
	}
	if !ok {
		r.meta = meta{Version: formatVersion, Log: r.log.ID(), NextTable: 1, NextView: 1}
		return remember(b, memMeta, &r.meta)
	}
	if r.meta.Version != formatVersion {
		return fmt.Errorf("state %s has format %d, this program reads %d: use the program that wrote it, or delete the directory to rebuild the views from the log",
			r.opts.StateDir, r.meta.Version, formatVersion)
	}
	v, ok, err := b.Get(nil, image.MemoryKey(memApplied))
	if err == nil && ok {
		var applied uint64
		applied, _, err = uvarint(v)
		r.applied = eventlog.CSN(applied)
	}
	if err != nil {
		return err
	}
	return fits(r.opts.StateDir, &r.meta, r.applied, r.log)
}

// fits reports that a state is not one of this log, or remembers more than it holds.
func fits(stateDir string, m *meta, applied eventlog.CSN, log eventlog.Log) error {
	if m.Log != log.ID() {
		return fmt.Errorf("%w: state %s belongs to another log; delete the directory to rebuild the views from this one", ErrStateAhead, stateDir)
	}
	if applied > log.Frontier() {
		return fmt.Errorf("%w: state %s is at %d, the log ends at %d: the log lost its end; delete the directory to rebuild the views",
			ErrStateAhead, stateDir, applied, log.Frontier())
	}
	return nil
}

// recoverTables finds the live images; what was being built is deleted and built anew.
func (r *Runner) recoverTables(b *image.Batch) error {
	var stale []*image.Table
	err := recallAll(b, memTable, func(_ string, text []byte) error {
		var rec tableRecord
		if err := json.Unmarshal(text, &rec); err != nil {
			return fmt.Errorf("state of an image: %w", err)
		}
		if !rec.Live {
			stale = append(stale, rec.Table)
			return nil
		}
		r.images[rec.Table.Topic] = r.newSource(rec.Table)
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range stale {
		if err := dropTable(b, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) newSource(t *image.Table) *source {
	return &source{name: t.Topic, applier: image.NewApplier(t, r.schemas.schema)}
}

// dropTable deletes an image.
func dropTable(b *image.Batch, t *image.Table) error {
	for _, bounds := range t.Ranges() {
		if err := b.DeleteRange(bounds); err != nil {
			return err
		}
	}
	return b.Delete(image.MemoryKey(tableName(t)))
}

func tableName(t *image.Table) string { return fmt.Sprintf("%s%010d", memTable, t.ID) }

// recoverViews matches the views asked for with those kept.
func (r *Runner) recoverViews(b *image.Batch) error {
	records := map[string]*viewRecord{}
	var names []string
	err := recallAll(b, memView, func(name string, text []byte) error {
		rec := &viewRecord{}
		if err := json.Unmarshal(text, rec); err != nil {
			return fmt.Errorf("state of view %s: %w", name, err)
		}
		records[name], names = rec, append(names, name)
		return nil
	})
	if err != nil {
		return err
	}
	for _, w := range r.opts.Views {
		v := &viewState{name: w.Name(), wanted: w, dirty: map[string]eventlog.CSN{}}
		if r.byName[v.name] != nil {
			return fmt.Errorf("two views are named %s", v.name)
		}
		if err := r.addView(b, v, records[v.name]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if r.byName[name] == nil {
			if err := r.addView(b, &viewState{name: name, dirty: map[string]eventlog.CSN{}}, records[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Runner) addView(b *image.Batch, v *viewState, rec *viewRecord) error {
	r.views = append(r.views, v)
	r.byName[v.name] = v
	if rec == nil {
		return nil
	}
	v.id = rec.ID
	if _, err := recall(b, memPass+v.name, &v.memory); err != nil {
		return err
	}
	if v.wanted == nil {
		// Nothing marks its documents from here on: if it is asked for again, all are rebuilt.
		v.restart(0)
		v.changed = false
		return remember(b, memPass+v.name, &v.memory)
	}
	if err := r.outputTopic(v); err != nil {
		return err
	}
	if err := r.restoreUnits(v, rec); err != nil {
		return err
	}
	err := r.resend(b, v)
	if !errors.Is(err, eventlog.ErrCorrupt) {
		return err
	}
	// What was output beyond the committed state cannot be read: all is output again, as Refill does.
	r.opts.Logger.Error("the end of a view's topic is damaged: its documents are output again", "stage", "derive", "view", v.name, "err", err)
	v.memory.Ends, v.memory.Floor = r.log.EndOffsets(v.topic.ID), r.log.Frontier()
	v.memory.Refill, v.memory.Fresh, v.changed = true, false, false
	return remember(b, memPass+v.name, &v.memory)
}

// restoreUnits compiles the kept definitions of a view.
func (r *Runner) restoreUnits(v *viewState, rec *viewRecord) error {
	def, err := v.wanted.Definition()
	if err != nil {
		return err
	}
	if bytes.Equal(def, rec.Current.Definition) {
		v.current, err = restoreUnit(rec.Current, func([]byte) (View, error) { return v.wanted, nil })
	} else {
		v.current, err = restoreUnit(rec.Current, r.opts.Restore)
	}
	if err == nil && rec.Old != nil {
		v.old, err = restoreUnit(rec.Old, r.opts.Restore)
	}
	if err != nil {
		// The definition is of a program that is no more: the new one takes over by a pass.
		r.opts.Logger.Warn("kept definition does not compile, the view is rebuilt", "stage", "derive", "view", v.name, "err", err)
		v.current, v.old = nil, nil
	}
	if v.old != nil && r.broken(v.old) != "" {
		v.old = nil
	}
	if v.current != nil {
		if v.stopped = r.broken(v.current); v.stopped != "" {
			v.current, v.old = nil, nil
		}
	}
	if v.current == nil {
		v.restart(0)
	}
	return nil
}

// broken says why a unit cannot go on with the newest layouts; "" if it can.
func (r *Runner) broken(u *unit) string {
	for topic := range u.needs {
		newest, ok := r.schemas.latest(topic)
		if !ok {
			continue
		}
		if reason := u.broken(newest); reason != "" {
			return reason
		}
	}
	return ""
}

// resend notes what the view's topic holds beyond the remembered offsets: those
// keys are sent again, and nothing is output below the highest CSN found (V24).
func (r *Runner) resend(b *image.Batch, v *viewState) error {
	ends := r.log.EndOffsets(v.topic.ID)
	if len(v.memory.Ends) > len(ends) {
		return fmt.Errorf("%w: topic %s", ErrStateAhead, v.topic.Spec.Name)
	}
	count := 0
	for p := range ends {
		from := eventlog.Offset(0)
		if p < len(v.memory.Ends) {
			from = v.memory.Ends[p]
		}
		if from > ends[p] {
			return fmt.Errorf("%w: view %s remembers offset %d of partition %d of its topic, which ends at %d: delete the state directory to rebuild the views",
				ErrStateAhead, v.name, from, p, ends[p])
		}
		if from == ends[p] {
			continue
		}
		n, err := r.resendPartition(b, v, int32(p), from, ends[p])
		if err != nil {
			return fmt.Errorf("read topic %s behind its remembered end: %w", v.topic.Spec.Name, err)
		}
		count += n
	}
	if count == 0 {
		return nil
	}
	v.memory.Ends, v.memory.Fresh = ends, false
	v.changed = false
	r.opts.Logger.Info("outputs beyond the committed state are sent again", "stage", "derive", "view", v.name, "records", count, "csn", uint64(v.memory.Floor))
	return remember(b, memPass+v.name, &v.memory)
}

// resendPartition notes the keys from an offset on. Where the log was cut before
// that offset, all behind the cut is far away (V20).
func (r *Runner) resendPartition(b *image.Batch, v *viewState, p int32, from, end eventlog.Offset) (int, error) {
	pr, err := r.log.ReadPartition(v.topic.ID, p, max(from, r.log.StartOffsets(v.topic.ID)[p]))
	if err != nil {
		return 0, err
	}
	defer pr.Close()
	for n := 0; ; n++ {
		rec, ok, err := pr.Next()
		if n == 0 && err == nil {
			next := end
			if ok {
				next = rec.Offset
			}
			if eventlog.LostTail(from, next) {
				return 0, fmt.Errorf("%w: view %s remembers offset %d of partition %d of its topic, which the log has lost: it goes on at %d. Delete the state directory to rebuild the views",
					ErrStateAhead, v.name, from, p, next)
			}
		}
		if err != nil || !ok {
			return n, err
		}
		if _, control := change.Key(rec.Key).Control(); control {
			continue
		}
		v.memory.Floor = max(v.memory.Floor, rec.CSN)
		if err := r.enqueue(b, v, rec.Key, r.applied+1, mustSend); err != nil {
			return n, err
		}
	}
}

// adoptOutputs takes what the topic of a view without state holds as what was
// last output: after the loss of the state equal documents are not sent again,
// and those that are no more get tombstones.
func (r *Runner) adoptOutputs(v *viewState) error {
	ends := r.log.EndOffsets(v.topic.ID)
	starts := r.log.StartOffsets(v.topic.ID)
	for p := range ends {
		if starts[p] == ends[p] {
			continue
		}
		if err := r.adoptPartition(v, int32(p), starts[p]); err != nil {
			return fmt.Errorf("read topic %s: %w", v.topic.Spec.Name, err)
		}
	}
	v.memory.Ends = ends
	return nil
}

// adoptBatch bounds what is collected in memory.
const adoptBatch = 4 << 20

func (r *Runner) adoptPartition(v *viewState, p int32, from eventlog.Offset) error {
	pr, err := r.log.ReadPartition(v.topic.ID, p, from)
	if err != nil {
		return err
	}
	defer pr.Close()
	b := r.store.Batch()
	defer func() { b.Close() }()
	for {
		rec, ok, err := pr.Next()
		if err != nil {
			return err
		}
		if !ok {
			end := b
			b = r.store.Batch()
			return end.Commit(false)
		}
		if _, control := change.Key(rec.Key).Control(); control {
			continue
		}
		if err := adoptOutput(b, v, &rec); err != nil {
			return err
		}
		if b.Size() > adoptBatch {
			full := b
			b = r.store.Batch()
			if err := full.Commit(false); err != nil {
				return err
			}
		}
	}
}

func adoptOutput(b *image.Batch, v *viewState, rec *eventlog.Record) error {
	v.memory.Floor = max(v.memory.Floor, rec.CSN)
	key := image.HashKey(nil, v.id, rec.Key)
	_, had, err := b.Get(nil, key)
	if err != nil {
		return err
	}
	switch {
	case rec.Value == nil && had:
		v.memory.Documents--
		return b.Delete(key)
	case rec.Value == nil:
		return nil
	case !had:
		v.memory.Documents++
	}
	sum := sha256.Sum256(rec.Value)
	return b.Set(key, appendUvarint(sum[:hashLen:hashLen], uint64(rec.CSN)))
}
