package derive

import (
	"slices"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// State says what a view is doing.
type State string

// The states of views.
const (
	StateWaiting  State = "waiting for snapshot" // its tables are not captured, or not read whole yet
	StateBuilding State = "building"             // images or documents are being built
	StateLive     State = "live"
	StateHeld     State = "held"    // a table is read anew: the old documents are served
	StateStopped  State = "stopped" // Reason says why, and what to do
)

// ViewStats describes a view at some moment.
type ViewStats struct {
	Name        string
	State       State
	Reason      string // for every state but live; may be empty
	Documents   int64
	Applied     eventlog.CSN // its tables are as of here
	CompleteCSN eventlog.CSN // every document is at least as of here
	Pending     int64        // roots to rebuild that are queued
	LastCommit  time.Time    // commit time of the newest transaction that changed a document; zero if unknown
	Fingerprint string       // of the definition asked for; "" before it compiles
	Info        *Info        // of that definition; nil before it compiles
	// Switching is set until a changed definition has replaced the documents of the old one.
	Switching bool
}

// Stats describes all views asked for, in their order.
func (r *Runner) Stats() []ViewStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]ViewStats, 0, len(r.opts.Views))
	for _, w := range r.opts.Views {
		if s := r.published[w.Name()]; s != nil {
			out = append(out, s.stats)
		}
	}
	return out
}

// Unused returns the names of the views whose state is kept though they are no
// longer asked for; DropUnused deletes it.
func (r *Runner) Unused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.unused)
}

// Applied returns the position that the images are at.
func (r *Runner) Applied() eventlog.CSN {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied
}

// DiskBytes returns what the state takes on disk.
func (r *Runner) DiskBytes() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0
	}
	return r.store.DiskBytes()
}

func (r *Runner) viewStats(v *viewState) ViewStats {
	s := ViewStats{Name: v.name, Documents: v.memory.Documents, Applied: r.applied, CompleteCSN: v.complete,
		Pending: v.memory.Pending, Switching: v.old != nil || v.current != nil && v.next != nil}
	if v.lastCommit != 0 {
		s.LastCommit = time.UnixMicro(v.lastCommit).UTC()
	}
	if v.next != nil {
		s.Info, s.Fingerprint = v.next.stage.Info(), v.next.record.Fingerprint
	} else if v.current != nil {
		s.Info, s.Fingerprint = v.current.stage.Info(), v.current.record.Fingerprint
	}
	s.State, s.Reason = r.state(v)
	return s
}

func (r *Runner) state(v *viewState) (State, string) {
	switch {
	case v.stopped != "":
		return StateStopped, v.stopped
	case v.current == nil && v.next == nil:
		return StateWaiting, v.waiting
	case v.unread != nil:
		return StateStopped, reasons(v.unread) + "; 'tailwater view rebuild " + v.name + "' outputs its documents again"
	case v.current == nil && r.damageOf(v.next) != nil:
		return StateWaiting, reasons(r.damageOf(v.next)) + "; 'tailwater log check' tells the way out, then it goes on by itself"
	case v.current == nil:
		return StateBuilding, "images are built from the log"
	}
	if table, below, ok := r.floors.open(v.current.stage.Info().Topics); !ok {
		if below == 0 || v.memory.Pass && v.old == nil {
			return StateWaiting, "table " + table + " is being read"
		}
		return StateHeld, "table " + table + " is read anew"
	}
	if r.behind(v) {
		reason := "the log keeps only newer values than those at this place; documents follow when it is passed"
		if v.memory.Pass && v.old == nil {
			return StateBuilding, reason
		}
		return StateHeld, reason
	}
	switch {
	case v.next != nil:
		return StateBuilding, "images for the changed definition are built from the log"
	case v.memory.Pass:
		return StateBuilding, "documents are built"
	}
	return StateLive, ""
}
