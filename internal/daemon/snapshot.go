package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/server"
)

// snapshotter is a Source whose tables can be read again.
type snapshotter interface {
	Snapshot(topic, where string) error
	SnapshotControl(action connectors.SnapshotAction, topics []string) (changed []string, err error)
}

// Snapshot begins an ad-hoc snapshot of a table, or pauses, resumes or stops what
// is read. A table is SOURCE.SCHEMA.TABLE, or SCHEMA.TABLE where there is one source.
func (d *Daemon) Snapshot(_ context.Context, r server.SnapshotRequest) (string, error) {
	action := connectors.SnapshotAction(r.Action)
	switch {
	case r.Action == "" || r.Action == "run":
		return d.beginSnapshot(r.Table, r.Where)
	case !slices.Contains([]connectors.SnapshotAction{connectors.SnapshotPause, connectors.SnapshotResume, connectors.SnapshotStop}, action):
		return "", fmt.Errorf("%w: action %q; there are run, pause, resume and stop", server.ErrBadRequest, r.Action)
	case r.Where != "":
		return "", fmt.Errorf("%w: only a run takes a condition", server.ErrBadRequest)
	case r.Table == "" && action == connectors.SnapshotStop:
		return "", fmt.Errorf("%w: name the table whose snapshot is to stop", server.ErrBadRequest)
	case r.Table == "":
		return d.controlAll(action)
	}
	s, topic, err := d.snapshotter(r.Table)
	if err != nil {
		return "", err
	}
	changed, err := s.SnapshotControl(action, []string{topic})
	if err != nil {
		return "", fmt.Errorf("%w: %v", server.ErrBadRequest, err)
	}
	return controlled(action, changed, topic), nil
}

func (d *Daemon) beginSnapshot(table, where string) (string, error) {
	s, topic, err := d.snapshotter(table)
	if err != nil {
		return "", err
	}
	if err := s.Snapshot(topic, where); err != nil {
		return "", fmt.Errorf("%w: %v", server.ErrBadRequest, err)
	}
	return "snapshot of " + topic + " begins; tailwater snapshot list shows how far it is", nil
}

// snapshotter finds a table's source and topic.
func (d *Daemon) snapshotter(table string) (s snapshotter, topic string, err error) {
	for _, r := range d.sources {
		topic := table
		if !strings.HasPrefix(table, change.EscapeName(r.cfg.Name)+".") && !strings.HasPrefix(table, r.cfg.Name+".") {
			if len(d.sources) > 1 {
				continue
			}
			topic = change.EscapeName(r.cfg.Name) + "." + table
		}
		s, err := r.snapshotter()
		return s, escaped(d.log, topic), err
	}
	return nil, "", fmt.Errorf("%w: name the table as SOURCE.SCHEMA.TABLE, not %q", server.ErrBadRequest, table)
}

func (r *sourceRunner) snapshotter() (snapshotter, error) {
	r.mu.Lock()
	src := r.src
	r.mu.Unlock()
	s, ok := src.(snapshotter)
	if !ok {
		return nil, fmt.Errorf("%w: source %q is not connected", server.ErrUnavailable, r.cfg.Name)
	}
	return s, nil
}

// controlAll pauses or resumes all tables of all sources.
func (d *Daemon) controlAll(action connectors.SnapshotAction) (string, error) {
	var all []string
	for _, r := range d.sources {
		s, err := r.snapshotter()
		if err != nil {
			return "", err
		}
		var topics []string
		st, _, _, _ := r.stats()
		for _, t := range st.Tables {
			topics = append(topics, t.Topic)
		}
		changed, err := s.SnapshotControl(action, topics)
		if err != nil {
			return "", fmt.Errorf("%w: %v", server.ErrBadRequest, err)
		}
		all = append(all, changed...)
	}
	return controlled(action, all, "any table"), nil
}

// controlled says for people what an action has done.
func controlled(action connectors.SnapshotAction, changed []string, of string) string {
	names := strings.Join(changed, ", ")
	switch {
	case len(changed) == 0 && action == connectors.SnapshotStop:
		return "no snapshot of " + of + " is running"
	case len(changed) == 0:
		return "snapshots of " + of + ": nothing to " + string(action)
	case action == connectors.SnapshotPause:
		return "no snapshot of " + names + " reads on, also after a restart, until tailwater snapshot resume; changes are streamed all the while"
	case action == connectors.SnapshotResume:
		return "snapshots of " + names + " go on"
	}
	return "the snapshot of " + names + " is given up; one that views wait for begins anew at the next start, or with tailwater snapshot run"
}
