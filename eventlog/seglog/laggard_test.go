package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// crowded is a log nearly full of live values and of tombstones old enough to go.
type crowded struct {
	*cleaned
	logged bytes.Buffer
	csns   []eventlog.CSN // of the tombstones
}

// newCrowded has live bytes of values beside 200 tombstones of some 100 bytes.
func newCrowded(t *testing.T, live int) *crowded {
	c := &crowded{cleaned: &cleaned{t: t, now: testTime}}
	c.opts = memOptions(vfs.NewMem())
	c.opts.Clock = func() time.Time { return c.now }
	c.opts.Logger = slog.New(slog.NewTextHandler(&c.logged, nil))
	c.opts.CompactLeast, c.opts.FileBytes = 1, 2000
	c.open()
	var records []string
	keys := make([]string, 200)
	rng := rand.NewChaCha8([32]byte{1})
	for n := range keys {
		b := make([]byte, 100)
		rng.Read(b)
		keys[n] = fmt.Sprintf("%x", b)
		records = append(records, keys[n]+"=v")
	}
	for n := range live / 1000 {
		b := make([]byte, 1000)
		rng.Read(b)
		records = append(records, fmt.Sprintf("live%d=%x", n, b))
	}
	c.put(records...)
	for _, key := range keys {
		c.put(key)
		c.csns = append(c.csns, c.log.Frontier())
	}
	return c
}

func (c *crowded) hold(consumer string, passed eventlog.CSN, rebuilds bool) {
	c.t.Helper()
	if err := c.log.SetCursor(consumer, &eventlog.Cursor{Topics: []eventlog.TopicID{c.top.ID}, Passed: passed, Rebuilds: rebuilds}); err != nil {
		c.t.Fatal(err)
	}
}

// fill makes the tombstones old and the quota full.
func (c *crowded) fill() {
	c.t.Helper()
	c.now = c.now.Add(2 * time.Hour)
	c.seal()
	c.compact()
	st := c.log.Stats()
	c.log.SetQuota(st.JournalBytes + st.SegmentBytes)
	if err := c.append(); !errors.Is(err, eventlog.ErrFull) {
		c.t.Fatalf("Append to a full log = %v", err)
	}
}

func (c *crowded) append() error {
	tx := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", CommitTime: c.now.UnixMicro(), Records: []eventlog.Record{{Topic: c.top.ID, Op: 1, Key: []byte("new"), Value: []byte("v")}}}
	return c.log.Append(context.Background(), []*eventlog.Tx{tx})
}

// work does what the background does until nothing is left to do.
func (c *crowded) work() {
	c.t.Helper()
	for n := 0; c.log.compactDirtiest(context.Background()) || c.log.relieve(); n++ {
		if n > 100 {
			c.t.Fatal("the background does not come to rest")
		}
	}
	c.now = c.now.Add(compactEvery)
}

func (c *crowded) tombstones() (n int) {
	for _, s := range c.from(0) {
		if !strings.Contains(s, "=") {
			n++
		}
	}
	return n
}

func (c *crowded) wantState(what, laggard string, tombstones int, letGo ...string) {
	c.t.Helper()
	got := ""
	if l := c.log.Stats().Laggard; l != nil {
		got = fmt.Sprint(l.Consumer, " ", l.Topic)
		if l.Since != testTime.UnixMicro() || l.Bytes < 2000 || l.Passed != c.log.Cursors()[l.Consumer].Passed {
			c.t.Errorf("%s: laggard %+v", what, *l)
		}
	}
	gone := []string{}
	for _, name := range []string{"a", "b", "c"} {
		if c.log.Cursors()[name].LetGo {
			gone = append(gone, name)
		}
	}
	if n := c.tombstones(); got != laggard || n != tombstones || fmt.Sprint(gone) != fmt.Sprint(letGo) {
		c.t.Errorf("%s: laggard %q, %d tombstones, %q let go; want %q, %d, %q", what, got, n, gone, laggard, tombstones, letGo)
	}
}

// TestLaggardIsNamed: a consumer that cannot begin anew keeps what it has not
// passed, though the log is full; the log says who it is, once.
func TestLaggardIsNamed(t *testing.T) {
	c := newCrowded(t, 0)
	c.hold("a", c.csns[9], false)
	c.hold("b", c.csns[99], true)
	c.wantState("before", "", 200)
	c.fill()
	c.work()
	passes := c.log.Stats().Compactions
	for range 3 {
		c.work()
	}
	c.wantState("full", "a s.p.t", 190)
	if n := c.log.Stats().Compactions - passes; n != 0 {
		t.Errorf("%d passes over what is held all the same", n)
	}
	if n := strings.Count(c.logged.String(), "consumer=a"); n != 1 {
		t.Errorf("%d lines about it: %s", n, c.logged.String())
	}
	c.hold("a", c.csns[199], false)
	if c.log.relieve() {
		t.Error("a consumer is let go before what it has passed itself")
	}
	c.work()
	c.wantState("the other one may begin anew, but need not", "", 100)
	if err := c.append(); err != nil {
		t.Errorf("Append = %v", err)
	}
	if !strings.Contains(c.logged.String(), "no consumer keeps") {
		t.Errorf("logged %s", c.logged.String())
	}
}

// TestUpToDateIsNoLaggard: a consumer that lacks no more than the newest records is not named.
func TestUpToDateIsNoLaggard(t *testing.T) {
	c := newCrowded(t, 400_000)
	c.hold("a", c.csns[198], true)
	c.fill()
	c.work()
	c.wantState("full", "", 1)
}

// TestLaggardIsLetGo: of consumers that can begin anew the one furthest behind is
// let go, durably before anything goes, and only it if that is enough. It cannot
// move on as if nothing had happened.
func TestLaggardIsLetGo(t *testing.T) {
	c := newCrowded(t, 0)
	c.hold("a", c.csns[9], true)
	c.hold("b", c.csns[198], true) // up to date but for the last one
	c.fill()
	c.work()
	c.wantState("full", "", 1, "a")
	if n := strings.Count(c.logged.String(), "must begin anew"); n != 1 {
		t.Errorf("%d lines about it: %s", n, c.logged.String())
	}
	if err := c.append(); err != nil {
		t.Errorf("Append = %v", err)
	}
	c.crash()
	c.wantState("after a power loss", "", 1, "a")
	err := c.log.SetCursor("a", &eventlog.Cursor{Topics: []eventlog.TopicID{c.top.ID}, Passed: c.csns[50], Rebuilds: true})
	if !errors.Is(err, eventlog.ErrLetGo) {
		t.Errorf("SetCursor = %v", err)
	}
	if err := c.log.SetCursor("a", nil); err != nil {
		t.Fatal(err)
	}
	c.hold("a", 0, true)
	if got := c.log.Cursors()["a"]; got.LetGo || !got.Rebuilds {
		t.Errorf("cursor %+v", got)
	}
}

// TestAllLaggardsAreLetGo: the next one is let go if the first did not make room.
func TestAllLaggardsAreLetGo(t *testing.T) {
	c := newCrowded(t, 0)
	c.hold("a", c.csns[9], true)
	c.hold("b", c.csns[11], true)
	c.fill()
	c.work()
	c.wantState("full", "", 0, "a", "b")
}

// TestLaggardsStay: nobody is let go where that would not make room, or while a
// reader has just begun.
func TestLaggardsStay(t *testing.T) {
	c := newCrowded(t, 400_000)
	c.hold("a", c.csns[9], true)
	c.fill()
	c.work()
	c.wantState("live data fills the log", "a s.p.t", 190)

	c = newCrowded(t, 0)
	c.hold("a", c.csns[9], true)
	release := c.log.Pin([]eventlog.TopicID{c.top.ID}, c.log.Frontier())
	c.fill()
	c.work()
	c.wantState("pinned", "a s.p.t", 200)
	release()
	c.work()
	c.wantState("released", "", 0, "a")

	c = newCrowded(t, 0)
	c.hold("a", c.csns[9], true)
	c.fill()
	c.log.SetQuota(0)
	for range 20 { // journal files that are not sealed yet
		if err := c.append(); err != nil {
			t.Fatal(err)
		}
	}
	st := c.log.Stats()
	c.log.SetQuota(st.JournalBytes + st.SegmentBytes)
	if err := c.append(); !errors.Is(err, eventlog.ErrFull) {
		t.Fatalf("Append to a full log = %v", err)
	}
	c.work()
	c.wantState("the journal may get smaller", "a s.p.t", 190)
	c.seal()
	c.work()
	c.wantState("sealed", "", 0, "a")
}

// TestLaggardInTx: who keeps the rows of transactions is named too.
func TestLaggardInTx(t *testing.T) {
	c := newCrowded(t, 0)
	c.seal()
	if err := c.log.SetCursor("c", &eventlog.Cursor{Topics: []eventlog.TopicID{txTopic}}); err != nil {
		t.Fatal(err)
	}
	c.log.st.topics[0].topic.Spec.RetentionBytes = 1
	c.fill()
	if err := c.log.Expire(); err != nil {
		t.Fatal(err)
	}
	c.work()
	c.wantState("full", "c _tx", 0)
}

// TestLetGoAll: of a topic's consumers those that can begin anew must, durably.
func TestLetGoAll(t *testing.T) {
	c := newCrowded(t, 0)
	c.hold("a", c.csns[9], true)
	c.hold("b", c.log.Frontier(), false)
	if err := c.log.SetCursor("c", &eventlog.Cursor{Topics: []eventlog.TopicID{txTopic}, Rebuilds: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.log.LetGoAll(c.top.ID); err != nil {
		t.Fatal(err)
	}
	c.wantState("at once", "", 200, "a")
	c.crash()
	c.wantState("after a power loss", "", 200, "a")
}
