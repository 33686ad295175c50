package derive

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// Names of the log's cursors that hold what the images still need.
const (
	cursorMain  = "derive"
	cursorBuild = "derive/build"
)

// horizonOf returns the CSN from which on the images of tables are what a
// transaction left: below it the log lacks values that compaction removed (V21).
func (r *Runner) horizonOf(tables []string) eventlog.CSN {
	var h eventlog.CSN
	for _, name := range tables {
		if t, ok := r.log.Topic(name); ok {
			h = max(h, r.log.Horizon(t.ID))
		}
	}
	return h
}

// behind reports whether the images of a view's tables, as of the step at hand,
// lie below the horizon. The horizon is set before anything is removed: a step
// that was read whole above it missed nothing.
func (r *Runner) behind(v *viewState) bool {
	return v.current != nil && r.reached < r.horizonOf(v.current.stage.Info().Topics)
}

// holdBehind keeps for readers the state from before a step that leads below a horizon.
func (r *Runner) holdBehind() {
	for _, v := range r.views {
		if r.behind(v) {
			r.holdReaders()
			return
		}
	}
}

// saveCursor tells the log how far the synced state has come. A full disk only
// delays it: an older cursor is harmless (C8).
func (r *Runner) saveCursor() error {
	r.synced, r.syncedAt = time.Now(), r.applied
	err := r.log.SaveCheckpoint("derive", appendUvarint(nil, uint64(r.applied)))
	if err == nil {
		err = r.log.SetCursor(cursorMain, &eventlog.Cursor{Topics: r.tableIDs(), Passed: r.syncedAt})
	}
	if err != nil && !errors.Is(err, eventlog.ErrFull) {
		return fmt.Errorf("save the views' cursor: %w", err)
	}
	return nil
}

// holdTables registers the cursor for the tables that the main reader follows
// now, at what is surely durable of the state.
func (r *Runner) holdTables() error {
	ids := r.tableIDs()
	have, ok := r.log.Cursors()[cursorMain]
	passed := r.applied
	if r.syncedAt > 0 {
		passed = r.syncedAt
	} else if ok {
		passed = min(passed, have.Passed)
	}
	if ok && have.Passed <= passed && slices.Equal(have.Topics, ids) {
		return nil
	}
	err := r.log.SetCursor(cursorMain, &eventlog.Cursor{Topics: ids, Passed: passed})
	if err != nil && !errors.Is(err, eventlog.ErrFull) {
		return fmt.Errorf("hold the tables of the views: %w", err)
	}
	return nil
}

func (r *Runner) tableIDs() []eventlog.TopicID {
	var ids []eventlog.TopicID
	for _, name := range r.tableTopics() {
		if t, ok := r.log.Topic(name); ok {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// pin holds the tables of a build as they are, also over a crash: an image that
// has a row must see the row's tombstone.
func (r *Runner) pin(g *build) error {
	ids := make([]eventlog.TopicID, 0, len(g.tables))
	for id := range g.tables {
		ids = append(ids, id)
	}
	g.release = r.log.Pin(ids, r.applied)
	for _, other := range r.builds {
		for id := range other.tables {
			ids = append(ids, id)
		}
	}
	err := r.log.SetCursor(cursorBuild, &eventlog.Cursor{Topics: ids})
	if errors.Is(err, eventlog.ErrFull) { // nothing is compacted without space either; a restart builds anew
		r.opts.Logger.Warn("no space to hold the topics that images are built from", "stage", "derive", "err", err)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("hold the topics that images are built from: %w", err)
	}
	return nil
}

// unpin ends what pin began, once the main cursor holds the tables.
func (r *Runner) unpin(g *build) error {
	if len(r.builds) > 0 {
		return nil // the last one does it
	}
	if err := r.holdTables(); err != nil {
		return err
	}
	main := r.log.Cursors()[cursorMain]
	for id := range g.tables {
		if !slices.Contains(main.Topics, id) {
			return nil // there was no space for the main cursor: the next build's end lets go
		}
	}
	err := r.log.SetCursor(cursorBuild, nil)
	if err != nil && !errors.Is(err, eventlog.ErrFull) {
		return fmt.Errorf("release the topics that images were built from: %w", err)
	}
	return nil
}
