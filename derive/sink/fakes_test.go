package sink

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

const testFingerprint = "f1"

var testView = View{Name: "products", Fingerprint: testFingerprint, Key: []KeyColumn{{Name: "id", Kind: change.KindInt}}}

// viewLog is a log in memory with the topic of one view.
type viewLog struct {
	*logtest.MemLog
	t     *testing.T
	topic eventlog.Topic
	model map[string]string // documents by id
	dead  atomic.Bool       // checkpoints and cursors are no longer kept, as after a kill
	// ensure, if set, is called before a topic is made; its error is returned.
	ensure func() error
}

func newViewLog(t *testing.T) *viewLog {
	t.Helper()
	l := &viewLog{MemLog: logtest.Mem(), t: t, model: map[string]string{}}
	l.makeTopic()
	return l
}

func (l *viewLog) makeTopic() {
	var err error
	l.topic, err = l.EnsureTopic(eventlog.TopicSpec{Name: "view.products", Cleanup: eventlog.CleanupCompact})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *viewLog) EnsureTopic(spec eventlog.TopicSpec) (eventlog.Topic, error) {
	if l.ensure != nil {
		if err := l.ensure(); err != nil {
			return eventlog.Topic{}, err
		}
	}
	return l.MemLog.EnsureTopic(spec)
}

func (l *viewLog) SaveCheckpoint(name string, c eventlog.Checkpoint) error {
	if l.dead.Load() {
		return nil
	}
	return l.MemLog.SaveCheckpoint(name, c)
}

func (l *viewLog) SetCursor(name string, c *eventlog.Cursor) error {
	if l.dead.Load() {
		return nil
	}
	return l.MemLog.SetCursor(name, c)
}

// crowd makes the log let go the worker's cursor once its tombstones are of that
// age, and delete those that no cursor keeps.
func (l *viewLog) crowd(age time.Duration) {
	time.Sleep(age)
	l.LetGo(CheckpointName("search", testView.Name))
	l.DropTombstones(l.topic.ID, time.Now().Add(-age).UnixMicro()+1)
}

// kept is longer than tombstones are kept for themselves.
const kept = 25 * time.Hour

func intKey(n int) change.Key { return change.AppendKeyPart(nil, change.Int(int64(n)), false) }

// output appends one batch of the view: document n becomes doc, "" deletes it. It returns the version.
func (l *viewLog) output(docs ...any) eventlog.CSN {
	l.t.Helper()
	ctx, now := context.Background(), time.Now().UnixMicro()
	tick := &eventlog.Tx{Kind: eventlog.TxTick, CommitTime: now}
	if err := l.Append(ctx, []*eventlog.Tx{tick}); err != nil {
		l.t.Fatal(err)
	}
	tx := &eventlog.Tx{Kind: eventlog.TxOutput, CSN: tick.CSN, Since: tick.CSN - 1, CommitTime: now}
	for i := 0; i < len(docs); i += 2 {
		n, doc := docs[i].(int), docs[i+1].(string)
		r := eventlog.Record{Topic: l.topic.ID, Seq: uint32(i / 2), Key: intKey(n), Op: uint8(change.OpDelete)}
		if doc != "" {
			r.Value, r.Op = []byte(doc), uint8(change.OpUpdate)
			l.model[strconv.Itoa(n)] = doc
		} else {
			delete(l.model, strconv.Itoa(n))
		}
		tx.Records = append(tx.Records, r)
	}
	if err := l.Append(ctx, []*eventlog.Tx{tx}); err != nil {
		l.t.Fatal(err)
	}
	return tick.CSN
}

// letters returns the values of the dead letters by id.
func (l *viewLog) letters(sink string) map[string]string {
	out := map[string]string{}
	topic, ok := l.Topic(change.TopicDeadLetters + sink)
	if !ok {
		return out
	}
	r, err := l.ReadPartition(topic.ID, 0, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Close()
	for {
		rec, ok, err := r.Next()
		if err != nil {
			l.t.Fatal(err)
		}
		if !ok {
			return out
		}
		parts, err := change.DecodeKey(rec.Key)
		if err != nil {
			l.t.Fatal(err)
		}
		if rec.Value == nil {
			delete(out, parts[1].TextValue())
			continue
		}
		out[parts[1].TextValue()] = string(rec.Value)
	}
}

type fakeDoc struct {
	doc     string // "" = deleted
	version uint64
}

// fakeSink is a target in memory, versioned like a search server. Its content
// outlives workers.
type fakeSink struct {
	mu      sync.Mutex // held by the target's methods and copyState
	docs    map[string]fakeDoc
	stamp   *Stamp
	writes  int
	sent    int // updates received
	begins  int
	flushes int
	history map[string][]uint64 // versions in the order they took effect

	lost    bool // the next flush finds the target emptied
	openErr func() error
	begin   func() error // before a build begins
	// before and after a write is applied; an error is what Write returns.
	before, after func(updates []Update) error
	outcome       func(u Update) Result // of an update; zero: by version
}

func newFakeSink() *fakeSink {
	return &fakeSink{docs: map[string]fakeDoc{}, history: map[string][]uint64{}}
}

func (f *fakeSink) Check(context.Context) error { return nil }
func (f *fakeSink) Close() error                { return nil }

func (f *fakeSink) Open(context.Context, View, [16]byte) (Target, error) {
	if f.openErr != nil {
		if err := f.openErr(); err != nil {
			return nil, err
		}
	}
	return &fakeTarget{f}, nil
}

func (f *fakeSink) live() map[string]string {
	out := map[string]string{}
	for id, d := range f.docs {
		if d.doc != "" {
			out[id] = d.doc
		}
	}
	return out
}

// copyState is a backup of the target.
func (f *fakeSink) copyState() (map[string]fakeDoc, *Stamp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stamp == nil {
		return nil, nil
	}
	s := *f.stamp
	return maps.Clone(f.docs), &s
}

type fakeTarget struct{ *fakeSink }

func (t *fakeTarget) Stamp() (Stamp, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stamp == nil {
		return Stamp{}, false
	}
	return *t.stamp, true
}

func (t *fakeTarget) setStamp(s Stamp) {
	if t.stamp != nil {
		s.Seq = t.stamp.Seq + 1
	}
	t.stamp = &s
}

func (t *fakeTarget) Begin(_ context.Context, s Stamp) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begin != nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	t.begins++
	t.setStamp(s)
	return nil
}

func (t *fakeTarget) Write(_ context.Context, updates []Update, s Stamp) ([]Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	t.sent += len(updates)
	if t.before != nil {
		if err := t.before(updates); err != nil {
			return nil, err
		}
	}
	results := make([]Result, len(updates))
	done := true
	for i, u := range updates {
		results[i] = t.apply(u)
		done = done && results[i].Outcome != Retry
	}
	if done {
		t.setStamp(s)
	}
	if t.after != nil {
		if err := t.after(updates); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (t *fakeTarget) apply(u Update) Result {
	if t.outcome != nil {
		if r := t.outcome(u); r != (Result{}) {
			return r
		}
	}
	if have, ok := t.docs[u.ID]; ok && have.version > u.Version {
		return Result{Outcome: Stale}
	}
	t.docs[u.ID] = fakeDoc{string(u.Doc), u.Version}
	t.history[u.ID] = append(t.history[u.ID], u.Version)
	return Result{}
}

func (t *fakeTarget) Finish(_ context.Context, s Stamp, keep func(string) (bool, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, d := range t.docs {
		ok, err := keep(id)
		if err != nil {
			return err
		}
		if !ok && d.doc != "" {
			t.docs[id] = fakeDoc{"", d.version}
		}
	}
	t.setStamp(s)
	return nil
}

func (t *fakeTarget) Flush(_ context.Context, s Stamp) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushes++
	if t.lost {
		t.lost = false
		return fmt.Errorf("%w: emptied", ErrWentBack)
	}
	t.setStamp(s)
	return nil
}

func (t *fakeTarget) Scan(_ context.Context, fn func(string, []byte) error) error {
	for id, d := range t.live() {
		if err := fn(id, []byte(d)); err != nil {
			return err
		}
	}
	return nil
}

func (t *fakeTarget) Drop(context.Context) error { return nil }
func (t *fakeTarget) Close() error               { return nil }

// runner runs one worker inside a test.
type runner struct {
	*Worker
	t    *testing.T
	stop func()
}

func start(t *testing.T, l *viewLog, f *fakeSink, change ...func(*WorkerOptions)) *runner {
	t.Helper()
	opts := WorkerOptions{Log: l, Sink: f, SinkName: "search", View: testView}
	for _, c := range change {
		c(&opts)
	}
	r := &runner{Worker: NewWorker(opts), t: t}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// sync waits until the target holds what the view's topic does.
func (r *runner) sync() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := r.Sync(ctx); err != nil {
		r.t.Fatalf("Sync: %v; stats %+v", err, r.Stats())
	}
}

func same(t *testing.T, l *viewLog, f *fakeSink) {
	t.Helper()
	if got := f.live(); !maps.Equal(got, l.model) {
		t.Fatalf("target has %v, the view %v", got, l.model)
	}
}

func doc(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }
