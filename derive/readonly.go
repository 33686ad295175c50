package derive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// OpenReadOnly opens the state of a stopped daemon for Get, GetKey, Dump and
// Stats. It needs no log: documents are those of the last commit. restore makes
// a view of its kept definition.
func OpenReadOnly(stateDir string, restore func(definition []byte) (View, error)) (*Runner, error) {
	if _, err := os.Stat(stateDir); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	store, err := image.OpenStore(stateDir, image.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	r := &Runner{over: make(chan struct{}), opts: Options{Restore: restore, StateDir: stateDir}, store: store, published: map[string]*served{}}
	if err := r.loadReadOnly(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// CheckState reports with ErrStateAhead that a state remembers more than the log
// holds, or belongs to another. It must be asked before anything is appended:
// what a log that lost its end appends then is soon beyond the state again. No
// state is a good one.
func CheckState(stateDir string, log eventlog.Log) (err error) {
	if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	store, err := image.OpenStore(stateDir, image.Options{ReadOnly: true})
	if err != nil {
		return nil // there is none yet, or Open tells what is wrong
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	snap := store.Snapshot()
	defer snap.Close()
	var m meta
	if ok, err := recall(snap, memMeta, &m); err != nil || !ok {
		return err
	}
	v, ok, err := snap.Get(nil, image.MemoryKey(memApplied))
	if err != nil || !ok {
		return err
	}
	applied, _, err := uvarint(v)
	if err != nil {
		return err
	}
	return fits(stateDir, &m, eventlog.CSN(applied), log)
}

func (r *Runner) loadReadOnly() error {
	snap := r.store.Snapshot()
	defer snap.Close()
	if v, ok, err := snap.Get(nil, image.MemoryKey(memApplied)); err != nil {
		return err
	} else if ok {
		applied, _, err := uvarint(v)
		if err != nil {
			return err
		}
		r.applied = eventlog.CSN(applied)
	}
	tables := map[string]*image.Table{}
	err := recallAll(snap, memTable, func(_ string, text []byte) error {
		var rec tableRecord
		err := json.Unmarshal(text, &rec)
		if err == nil && rec.Live {
			tables[rec.Table.Topic] = rec.Table
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("state of an image: %w", err)
	}
	records := map[string]*viewRecord{}
	err = recallAll(snap, memView, func(name string, text []byte) error {
		records[name] = &viewRecord{}
		return json.Unmarshal(text, records[name])
	})
	if err != nil {
		return fmt.Errorf("state of a view: %w", err)
	}
	for _, name := range sortedKeys(records) {
		if err := r.publishReadOnly(snap, name, records[name], tables); err != nil {
			return fmt.Errorf("view %s: %w", name, err)
		}
	}
	return nil
}

func (r *Runner) publishReadOnly(snap *image.Snapshot, name string, rec *viewRecord, tables map[string]*image.Table) error {
	var p progress
	if _, err := recall(snap, memPass+name, &p); err != nil {
		return err
	}
	kept := rec.Current
	if rec.Old != nil {
		kept = rec.Old
	}
	u, err := restoreUnit(kept, r.opts.Restore)
	if err != nil {
		return err
	}
	s := &served{id: rec.ID, name: name, applied: r.applied, stats: ViewStats{Name: name, State: p.State, Documents: p.Documents,
		Applied: r.applied, Pending: p.Pending, Fingerprint: kept.Fingerprint, Info: u.stage.Info(), Switching: rec.Old != nil}}
	if serves(u.needs, tables) {
		s.stage, s.tables = u.stage, tables
	}
	r.published[name] = s
	r.opts.Views = append(r.opts.Views, nameOnly{name})
	return nil
}

// nameOnly stands for a view in the list of a read-only Runner.
type nameOnly struct{ name string }

func (n nameOnly) Name() string                   { return n.name }
func (n nameOnly) Definition() ([]byte, error)    { return nil, nil }
func (n nameOnly) Topics() []string               { return nil }
func (n nameOnly) Compile(Schemas) (Stage, error) { return nil, ErrNotReady }
