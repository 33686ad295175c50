package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/testkit"
)

// memState keeps epochs.
type memState struct {
	mu    sync.Mutex
	marks map[string]eventlog.Checkpoint
}

func newState() *memState { return &memState{marks: map[string]eventlog.Checkpoint{}} }

func (m *memState) SaveCheckpoint(name string, c eventlog.Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks[name] = append(eventlog.Checkpoint(nil), c...)
	if c == nil {
		delete(m.marks, name)
	}
	return nil
}

func (m *memState) Checkpoint(name string) (eventlog.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks[name], nil
}

func (m *memState) clone() *memState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memState{marks: maps.Clone(m.marks)}
}

// server is a database of its own on the test server.
type server struct {
	t    *testing.T
	opts Options
	raw  rueidis.Client
}

func newServer(t *testing.T) *server {
	t.Helper()
	u, err := url.Parse(testkit.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	db, err := strconv.Atoi(strings.Trim(u.Path, "/"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, opts: Options{Name: "cache", Addr: u.Host, DB: db, State: newState()}}
	s.raw, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{u.Host}, SelectDB: db, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.raw.Close)
	return s
}

func (s *server) do(args ...string) rueidis.RedisResult {
	return s.raw.Do(context.Background(), s.raw.B().Arbitrary(args[0]).Args(args[1:]...).Build())
}

// keys is all that is in the database but marks.
func (s *server) keys() map[string]string {
	s.t.Helper()
	names, err := s.do("KEYS", "*").AsStrSlice()
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]string{}
	for _, k := range names {
		if strings.HasPrefix(k, "tw:") {
			continue
		}
		if out[k], err = s.do("GET", k).ToString(); err != nil {
			s.t.Fatal(err)
		}
	}
	return out
}

var testView = sink.View{Name: "products", Fingerprint: "f1", Key: []sink.KeyColumn{{Name: "id", Kind: change.KindInt}}, Options: ViewOptions{Key: "product:{id}"}}

func (s *server) sink(opts Options) *Sink {
	k := New(opts)
	s.t.Cleanup(func() { k.Close() })
	return k
}

func (s *server) open(opts Options, log byte) sink.Target {
	s.t.Helper()
	t, err := s.sink(opts).Open(context.Background(), testView, [16]byte{log})
	if err != nil {
		s.t.Fatalf("Open: %v", err)
	}
	return t
}

func stampAt(csn uint64) sink.Stamp {
	return sink.Stamp{CSN: csn, Fingerprint: "f1", Complete: true, Time: 1}
}

func up(n int, doc string, version uint64) sink.Update {
	u := sink.Update{Key: change.AppendKeyPart(nil, change.Int(int64(n)), false), ID: strconv.Itoa(n), Version: version}
	if doc != "" {
		u.Doc = []byte(doc)
	}
	return u
}

func write(t *testing.T, target sink.Target, csn uint64, ups ...sink.Update) []sink.Result {
	t.Helper()
	r, err := target.Write(context.Background(), ups, stampAt(csn))
	if err != nil {
		t.Fatalf("Write at %d: %v", csn, err)
	}
	return r
}

func build(t *testing.T, target sink.Target, ups ...sink.Update) {
	t.Helper()
	ctx := context.Background()
	begin := stampAt(0)
	begin.Complete = false
	must(t, target.Begin(ctx, begin))
	begin.CSN = 1
	if _, err := target.Write(ctx, ups, begin); err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{}
	for _, u := range ups {
		keep[u.ID] = true
	}
	must(t, target.Finish(ctx, stampAt(1), func(id string) (bool, error) { return keep[id], nil }))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKeys(t *testing.T, s *server, want map[string]string) {
	t.Helper()
	if got := s.keys(); !maps.Equal(got, want) {
		t.Errorf("database has %v; want %v", got, want)
	}
}

func TestValuesArePlain(t *testing.T) {
	s := newServer(t)
	target := s.open(s.opts, 1)
	big := `{"n":9223372036854775809,"p":1.10,"t":"a\u0000é <b>","x":` + strings.Repeat("7", 131072) + `}`
	build(t, target, up(1, big, 1), up(2, `{}`, 1))
	write(t, target, 2, up(2, "", 2), up(3, `{"c":3}`, 2))
	wantKeys(t, s, map[string]string{"product:1": big, "product:3": `{"c":3}`})
	got := map[string]string{}
	must(t, target.Scan(context.Background(), func(id string, doc []byte) error { got[id] = string(doc); return nil }))
	if !maps.Equal(got, map[string]string{"1": big, "3": `{"c":3}`}) {
		t.Errorf("Scan gives %v", got)
	}
	mark, err := s.do("HGETALL", "tw:products").AsStrMap()
	if err != nil || mark["csn"] != "2" || mark["complete"] != "1" || mark["log"] != "01"+strings.Repeat("0", 30) {
		t.Errorf("mark %v, %v", mark, err)
	}
	must(t, target.Drop(context.Background()))
	if n, _ := s.do("DBSIZE").AsInt64(); n != 0 {
		t.Errorf("%d keys after Drop", n)
	}
}

func TestTTLAndSplitting(t *testing.T) {
	s := newServer(t)
	s.opts.BatchCount = 7
	v := testView
	v.Options = ViewOptions{Key: "product:{id}", TTL: time.Hour}
	target, err := s.sink(s.opts).Open(context.Background(), v, [16]byte{1})
	must(t, err)
	var ups []sink.Update
	for i := range 100 {
		ups = append(ups, up(i, `{}`, 1))
	}
	build(t, target, ups...)
	if ms, _ := s.do("PTTL", "product:50").AsInt64(); ms <= 0 || ms > 3600_000 {
		t.Errorf("PTTL %d", ms)
	}
	if n := len(s.keys()); n != 100 {
		t.Errorf("%d keys", n)
	}
	if st, _ := target.Stamp(); st.Seq < 14 {
		t.Errorf("%d writes for 100 documents in scripts of 7", st.Seq)
	}
}

func TestReopenIsNoRewrite(t *testing.T) {
	s := newServer(t)
	target := s.open(s.opts, 1)
	build(t, target, up(1, `{"v":1}`, 1))
	write(t, target, 5, up(1, `{"v":5}`, 5))
	target = s.open(s.opts, 1)
	st, ok := target.Stamp()
	if !ok || st.CSN != 5 || !st.Complete || st.Fingerprint != "f1" {
		t.Fatalf("stamp %+v", st)
	}
	r := write(t, target, 4, up(1, `{"v":4}`, 4), up(2, `{"v":5}`, 5))
	if r[0].Outcome != sink.Stale || r[1].Outcome != sink.Written {
		t.Errorf("outcomes %+v", r)
	}
	if st, _ = target.Stamp(); st.CSN != 5 {
		t.Errorf("the stamp went back to %d", st.CSN)
	}
	wantKeys(t, s, map[string]string{"product:1": `{"v":5}`, "product:2": `{"v":5}`})
}

// V29: keys of a log that is lost are swept; keys of others are left alone.
func TestV29Sweep(t *testing.T) {
	s := newServer(t)
	build(t, s.open(s.opts, 1), up(1, `{}`, 1), up(7, `{}`, 1))
	must(t, s.do("SET", "products:x", "not ours").Error())
	s.opts.State = newState()
	build(t, s.open(s.opts, 2), up(1, `{"new":1}`, 1))
	wantKeys(t, s, map[string]string{"product:1": `{"new":1}`, "products:x": "not ours"})
}

// V30: a foreign id is taken over once; the one that lost it stops.
func TestV30ForeignWriter(t *testing.T) {
	s := newServer(t)
	mine, other := s.opts, s.opts
	other.State = newState()
	a := s.open(mine, 1)
	build(t, a, up(1, `{"a":1}`, 1))
	b := s.open(other, 2)
	if st, ok := b.Stamp(); !ok || st.Log != [16]byte{1} {
		t.Fatalf("the foreign stamp is %+v, %v", st, ok)
	}
	build(t, b, up(2, `{"b":1}`, 1))
	if _, err := a.Write(context.Background(), []sink.Update{up(1, `{"a":2}`, 2)}, stampAt(2)); !errors.Is(err, sink.ErrOtherWriter) {
		t.Errorf("Write of the writer that lost it: %v", err)
	}
	a = s.open(mine, 1)
	if _, err := a.Write(context.Background(), []sink.Update{up(1, `{"a":2}`, 2)}, stampAt(2)); !errors.Is(err, sink.ErrOtherWriter) {
		t.Errorf("after a restart: %v", err)
	}
	if err := a.Flush(context.Background(), stampAt(2)); !errors.Is(err, sink.ErrOtherWriter) {
		t.Errorf("Flush: %v", err)
	}
	wantKeys(t, s, map[string]string{"product:2": `{"b":1}`})
	build(t, a, up(1, `{"a":3}`, 3)) // on request
	wantKeys(t, s, map[string]string{"product:1": `{"a":3}`})
}

// V30: a copied data directory has our id; its epochs tell.
func TestV30ClonedDirectory(t *testing.T) {
	s := newServer(t)
	ours := s.opts
	a := s.open(ours, 1)
	build(t, a, up(1, `{"a":1}`, 1))
	clone := s.opts
	clone.State = ours.State.(*memState).clone()
	b := s.open(clone, 1) // raises the epoch
	write(t, b, 2, up(1, `{"b":2}`, 2))
	if _, err := a.Write(context.Background(), []sink.Update{up(1, `{"a":2}`, 2)}, stampAt(2)); !errors.Is(err, sink.ErrOtherWriter) {
		t.Errorf("Write beside a clone: %v", err)
	}
	a = s.open(ours, 1)
	if _, err := a.Write(context.Background(), []sink.Update{up(1, `{"a":2}`, 2)}, stampAt(2)); !errors.Is(err, sink.ErrOtherWriter) {
		t.Errorf("Write beside a clone after a restart: %v", err)
	}
	wantKeys(t, s, map[string]string{"product:1": `{"b":2}`})
}

// V31: what an old session still has on the way is refused, as is a batch that overtook another.
func TestV31OldScriptsAreRefused(t *testing.T) {
	s := newServer(t)
	old := s.open(s.opts, 1)
	build(t, old, up(1, `{"v":1}`, 1))
	now := s.open(s.opts, 1)
	write(t, now, 3, up(1, `{"v":3}`, 3))
	if _, err := old.Write(context.Background(), []sink.Update{up(1, `{"v":2}`, 2)}, stampAt(2)); err == nil {
		t.Error("a session that was followed by another could write")
	}
	ahead := *now.(*target)
	ahead.found.csn, ahead.found.seq = 4, ahead.found.seq+1 // as if a batch at 4 had been sent before
	if _, err := ahead.Write(context.Background(), []sink.Update{up(1, `{"v":5}`, 5)}, stampAt(5)); !errors.Is(err, sink.ErrWentBack) {
		t.Errorf("a batch without its predecessor: %v", err)
	}
	wantKeys(t, s, map[string]string{"product:1": `{"v":3}`})
}

// V31: a failover or FLUSHALL loses writes: the next batch says so.
func TestV31LostWrites(t *testing.T) {
	s := newServer(t)
	target := s.open(s.opts, 1)
	build(t, target, up(1, `{"v":1}`, 1))
	before, err := s.do("DUMP", "tw:products").ToString()
	must(t, err)
	write(t, target, 3, up(1, `{"v":2}`, 2))
	write(t, target, 3, up(2, `{"v":3}`, 3)) // a second script at the same CSN
	must(t, s.do("RESTORE", "tw:products", "0", before, "REPLACE").Error())
	if _, err := target.Write(context.Background(), []sink.Update{up(1, `{"v":4}`, 4)}, stampAt(4)); !errors.Is(err, sink.ErrWentBack) {
		t.Errorf("after lost writes: %v", err)
	}
	if err := target.Flush(context.Background(), stampAt(3)); !errors.Is(err, sink.ErrWentBack) {
		t.Errorf("Flush after lost writes: %v", err)
	}
	target = s.open(s.opts, 1)
	if st, _ := target.Stamp(); st.CSN != 1 {
		t.Errorf("stamp %+v; want the restored one", st)
	}
	must(t, s.do("FLUSHDB").Error())
	if err := target.Flush(context.Background(), stampAt(1)); !errors.Is(err, sink.ErrWentBack) {
		t.Errorf("Flush after FLUSHDB: %v", err)
	}
}

func TestBuildGoesOn(t *testing.T) {
	s := newServer(t)
	target := s.open(s.opts, 1)
	begin := sink.Stamp{Fingerprint: "f1"}
	must(t, target.Begin(context.Background(), begin))
	begin.CSN = 3
	_, err := target.Write(context.Background(), []sink.Update{up(1, `{}`, 3)}, begin)
	must(t, err)
	target = s.open(s.opts, 1) // killed
	st, ok := target.Stamp()
	if !ok || st.Complete || st.CSN != 3 {
		t.Fatalf("stamp %+v", st)
	}
	must(t, target.Begin(context.Background(), begin))
	if again, _ := target.Stamp(); again.Seq != st.Seq {
		t.Errorf("the build began anew: %+v", again)
	}
	begin.CSN = 2
	_, err = target.Write(context.Background(), []sink.Update{up(2, `{}`, 2)}, begin)
	must(t, err)
	if n := len(s.keys()); n != 2 {
		t.Errorf("%d keys", n)
	}
}

func TestRedisErrors(t *testing.T) {
	s := newServer(t)
	bad := s.opts
	bad.Addr = "127.0.0.1:1"
	if err := New(bad).Check(context.Background()); err == nil || errors.Is(err, sink.ErrStopped) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("unreachable: %v", err)
	}
	bad = s.opts
	bad.Username, bad.Password = "nobody", "a secret word"
	if err := New(bad).Check(context.Background()); !errors.Is(err, sink.ErrStopped) || strings.Contains(fmt.Sprint(err), "secret word") {
		t.Errorf("wrong password: %v", err)
	}
	must(t, s.do("SET", "tw:products", "x").Error())
	if _, err := s.sink(s.opts).Open(context.Background(), testView, [16]byte{1}); !errors.Is(err, sink.ErrStopped) {
		t.Errorf("a mark that is none of ours: %v", err)
	}
}
