package derive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/retry"
)

// Runner keeps views up to date with a log. Run belongs to one goroutine; the
// reading methods may be called from any, before, while and after Run runs.
type Runner struct {
	opts    Options
	log     eventlog.Log
	store   *image.Store
	meta    meta
	schemas *registry
	floors  *floors
	views   []*viewState // in the order of Options.Views, then those no longer asked for
	byName  map[string]*viewState

	applied eventlog.CSN // the images are the tables as of here
	reached eventlog.CSN // as of the step at hand
	images  map[string]*source
	builds  []*build
	replan  bool             // layouts changed: look again what can be compiled and built
	damaged map[string]error // topics whose builds were given up, until retryAt
	retryAt time.Time
	retry   retry.Backoff
	apart   bool // builds are of one topic each

	reader   eventlog.Reader
	topics   []eventlog.TopicID // of reader
	byTopic  map[eventlog.TopicID]*source
	byOutput map[eventlog.TopicID]*viewState

	synced   time.Time
	syncedAt eventlog.CSN
	keyBuf   []byte

	asks chan *ask
	over chan struct{} // closed by Close

	mu        sync.Mutex // guards what follows
	published map[string]*served
	unused    []string // views that are kept but not asked for
	closed    bool
}

// source is a topic that the main reader follows. Tables have an applier.
type source struct {
	name    string
	applier *image.Applier
}

// Open opens or makes the state of the views in StateDir and finds out what is to be done.
func Open(o Options) (*Runner, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	store, err := image.OpenStore(o.StateDir, image.Options{CacheBytes: o.CacheBytes, Logger: o.Logger, Fatal: o.Fatal})
	if err != nil {
		return nil, err
	}
	r := &Runner{
		opts: o, log: o.Log, store: store, schemas: newRegistry(o.Log), floors: newFloors(),
		byName: map[string]*viewState{}, images: map[string]*source{}, byOutput: map[eventlog.TopicID]*viewState{},
		synced: time.Now(), published: map[string]*served{}, replan: true, asks: make(chan *ask), damaged: map[string]error{},
		retry: retry.Backoff{First: 10 * time.Second, Most: 5 * time.Minute}, over: make(chan struct{}),
	}
	if err := r.recover(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Run follows the log until ctx ends or something fails; nil means ctx ended
// it. Whatever was not committed is done again by the next Run.
func (r *Runner) Run(ctx context.Context) error {
	for {
		changed := r.log.Changed()
		r.retryDamaged()
		more, err := r.turn(ctx)
		asked := false
		if err == nil {
			asked, err = r.answer(ctx)
		}
		if err == nil && !more && !asked { // what was asked may have given the next turn work
			err = r.idle(ctx, changed)
		}
		if ctx.Err() != nil {
			return r.sync()
		}
		if err != nil {
			return fmt.Errorf("derive: %w", err)
		}
	}
}

// idle waits for the log, for what is asked, or until what was given up is due again.
func (r *Runner) idle(ctx context.Context, changed <-chan struct{}) error {
	var retry <-chan time.Time
	if len(r.damaged) > 0 {
		retry = time.After(time.Until(r.retryAt))
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-retry:
	case a := <-r.asks:
		return a.run(ctx)
	}
	return nil
}

// CatchUp works until nothing is left to do at the log's frontier; Run must not
// be running. What waits for a snapshot or for a row that fills a column stays.
func (r *Runner) CatchUp(ctx context.Context) error {
	for {
		more, err := r.turn(ctx)
		if err != nil {
			return fmt.Errorf("derive: %w", err)
		}
		if !more {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// turn does a bounded piece of work; more tells that there is some left.
func (r *Runner) turn(ctx context.Context) (more bool, err error) {
	if err := r.resumeRefills(ctx); err != nil {
		return false, err
	}
	if r.replan {
		if err := r.plan(); err != nil {
			return false, err
		}
	}
	more, err = r.step(ctx)
	if err == nil {
		err = r.endRefills(ctx)
	}
	if err != nil {
		return false, err
	}
	building, err := r.buildImages(ctx)
	return more || building || r.replan, err
}

// sync makes the state durable.
func (r *Runner) sync() error {
	b := r.store.Batch()
	if err := b.Set(image.MemoryKey(memApplied), appendUvarint(nil, uint64(r.applied))); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := b.Commit(true); err != nil {
		return err
	}
	return r.saveCursor()
}

// Close closes the state. Run must have returned.
func (r *Runner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	close(r.over)
	var errs []error
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	for _, g := range r.builds {
		errs = append(errs, g.close())
	}
	for _, v := range r.views {
		errs = append(errs, v.frozen.release())
	}
	return errors.Join(append(errs, r.store.Close())...)
}

// follow makes the main reader show all topics that matter, from the applied position on.
func (r *Runner) follow() error {
	byTopic := map[eventlog.TopicID]*source{}
	var ids []eventlog.TopicID
	add := func(s *source) {
		t, ok := r.log.Topic(s.name)
		if !ok {
			return
		}
		if _, twice := byTopic[t.ID]; !twice {
			byTopic[t.ID] = s
			ids = append(ids, t.ID)
		}
	}
	add(&source{name: change.TopicSchemas})
	for _, topic := range r.tableTopics() {
		name := sourceOf(topic)
		if err := r.floors.load(r.log, name, r.applied); err != nil {
			return err
		}
		add(&source{name: change.TopicSnapshots + name})
		if s := r.images[topic]; s != nil {
			add(s)
		}
	}
	same := r.reader != nil && len(byTopic) == len(r.byTopic)
	for id, s := range byTopic {
		same = same && r.byTopic[id] != nil && r.byTopic[id].applier == s.applier
	}
	if same {
		return nil
	}
	return r.reopen(ids, byTopic)
}

func (r *Runner) reopen(ids []eventlog.TopicID, byTopic map[eventlog.TopicID]*source) error {
	if r.reader != nil {
		if err := r.reader.Close(); err != nil {
			return err
		}
		r.reader = nil
	}
	if ids == nil {
		ids = []eventlog.TopicID{}
	}
	if err := r.holdTables(); err != nil {
		return err
	}
	reader, err := r.log.Read(eventlog.ReadSpec{Topics: ids, After: r.applied, Pieces: true})
	if err != nil {
		return fmt.Errorf("read the log behind %d: %w", r.applied, err)
	}
	r.reader, r.topics, r.byTopic = reader, ids, byTopic
	return nil
}

// tableTopics returns the tables of all views asked for.
func (r *Runner) tableTopics() []string {
	var topics []string
	seen := map[string]bool{}
	for _, v := range r.views {
		if v.wanted == nil {
			continue
		}
		for _, t := range v.wanted.Topics() {
			if !seen[t] {
				seen[t] = true
				topics = append(topics, t)
			}
		}
	}
	for t := range r.images {
		if !seen[t] {
			seen[t] = true
			topics = append(topics, t)
		}
	}
	return topics
}

// newLayout takes a record of _schemas and stops the views that cannot go on with it.
func (r *Runner) newLayout(rec *eventlog.Record) error {
	topic, err := r.schemas.add(rec)
	if err != nil || topic == "" {
		return err
	}
	r.replan = true
	newest, _ := r.schemas.latest(topic)
	for _, v := range r.views {
		if v.next != nil && v.next.broken(newest) != "" {
			v.next = nil
		}
		if v.old != nil && v.old.broken(newest) != "" {
			v.old = nil
		}
		if v.current != nil && v.stopped == "" && v.wanted != nil {
			if reason := v.current.broken(newest); reason != "" {
				r.stop(v, reason)
			}
		}
	}
	return nil
}

// stop ends a view's work. When it goes on, after a restart, every root is rebuilt.
func (r *Runner) stop(v *viewState, reason string) {
	v.stopped = reason
	v.restart(0)
	v.old = nil
	clear(v.dirty)
	r.opts.Logger.Error("view stopped", "stage", "derive", "view", v.name, "reason", reason)
}

// passEnded notes that a view took over.
func (r *Runner) passEnded(s *step, v *viewState) error {
	r.opts.Logger.Info("view is live", "stage", "derive", "view", v.name, "documents", v.memory.Documents, "csn", uint64(s.b))
	if v.old == nil {
		return nil
	}
	v.old = nil
	r.replan = true // there may be images that only the old definition needed
	return remember(s.batch, memView+v.name, &viewRecord{ID: v.id, Current: &v.current.record})
}

// outputTopic returns a view's topic, making it if needed; one that is there
// with another partition count than asked for is an error.
func (r *Runner) outputTopic(v *viewState) error {
	want := r.opts.Topic(v.name)
	t, err := r.log.EnsureTopic(eventlog.TopicSpec{Name: change.TopicView + change.EscapeName(v.name), Partitions: want.Partitions,
		Cleanup: eventlog.CleanupCompact, TombstoneRetention: want.TombstoneRetention})
	if err != nil {
		return fmt.Errorf("topic of view %s: %w", v.name, err)
	}
	v.topic = t
	r.byOutput[t.ID] = v
	return nil
}

// DropUnused deletes the state of views that are no longer asked for and
// returns their names. Their topics stay. Run must not be running.
func (r *Runner) DropUnused() ([]string, error) {
	var names []string
	b := r.store.Batch()
	kept := r.views[:0:0]
	for _, v := range r.views {
		if v.wanted != nil {
			kept = append(kept, v)
			continue
		}
		names = append(names, v.name)
		for _, bounds := range image.ViewRanges(v.id) {
			if err := b.DeleteRange(bounds); err != nil {
				return nil, errors.Join(err, b.Close())
			}
		}
		for _, name := range []string{memView, memPass} {
			if err := b.Delete(image.MemoryKey(name + v.name)); err != nil {
				return nil, errors.Join(err, b.Close())
			}
		}
		delete(r.byName, v.name)
		delete(r.byOutput, v.topic.ID)
	}
	r.views = kept
	if err := b.Commit(true); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.publish()
	r.mu.Unlock()
	return names, r.holdTables()
}

// reasons joins the lines of an error for a one-line state.
func reasons(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
