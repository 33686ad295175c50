package cache

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// cutter is a proxy that cuts each connection after a while.
type cutter struct {
	net.Listener
	to   string
	on   atomic.Bool
	cuts atomic.Int64
	mu   sync.Mutex
	rnd  *rand.Rand
}

func newCutter(t *testing.T, to string, rnd *rand.Rand) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{Listener: l, to: to, rnd: rnd}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *cutter) serve(conn net.Conn) {
	defer conn.Close()
	up, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer up.Close()
	c.mu.Lock()
	left := int64(500 + c.rnd.IntN(20_000))
	c.mu.Unlock()
	var budget atomic.Int64
	budget.Store(left)
	done := make(chan struct{}, 2)
	pipe := func(dst io.Writer, src io.Reader) {
		defer func() { done <- struct{}{} }()
		buf := make([]byte, 512)
		for {
			n, err := src.Read(buf)
			if err != nil || c.on.Load() && budget.Add(-int64(n)) < 0 {
				return
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go pipe(up, conn)
	go pipe(conn, up)
	<-done
	c.cuts.Add(1)
}

// TestV31ConnectionsCut runs a worker over connections that are cut at any
// byte, over kills, FLUSHDB and restores of the mark, and compares all keys.
func TestV31ConnectionsCut(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := newServer(t)
	proxy := newCutter(t, s.opts.Addr, rand.New(rand.NewPCG(seed, 1)))
	proxy.on.Store(true)
	l := logtest.Mem()
	topic, err := l.EnsureTopic(eventlog.TopicSpec{Name: "view.products", Cleanup: eventlog.CleanupCompact})
	must(t, err)
	model := map[string]string{}
	output := func(n int, doc string) {
		tick := &eventlog.Tx{Kind: eventlog.TxTick}
		must(t, l.Append(context.Background(), []*eventlog.Tx{tick}))
		r := eventlog.Record{Topic: topic.ID, Key: change.AppendKeyPart(nil, change.Int(int64(n)), false)}
		if doc != "" {
			r.Value = []byte(doc)
			model["product:"+strconv.Itoa(n)] = doc
		} else {
			delete(model, "product:"+strconv.Itoa(n))
		}
		must(t, l.Append(context.Background(), []*eventlog.Tx{{Kind: eventlog.TxOutput, CSN: tick.CSN, Since: tick.CSN - 1, Records: []eventlog.Record{r}}}))
	}
	opts := s.opts
	opts.Addr, opts.State, opts.BatchCount, opts.Timeout = proxy.Addr().String(), l, 16, 2*time.Second
	for round := range 12 {
		proxy.on.Store(round%4 != 3)
		k := New(opts)
		w := sink.NewWorker(sink.WorkerOptions{
			Log: l, Sink: k, SinkName: "cache", View: testView, BatchCount: 64,
			RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond, SaveEvery: 10 * time.Millisecond, ProbeEvery: time.Second,
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		for i := range 300 {
			doc := fmt.Sprintf(`{"round":%d,"i":%d}`, round, i)
			if rnd.IntN(5) == 0 {
				doc = ""
			}
			output(rnd.IntN(400), doc)
		}
		switch rnd.IntN(4) {
		case 0:
			must(t, s.do("FLUSHDB").Error())
		case 1:
			must(t, s.do("DEL", "tw:products").Error())
		}
		proxy.on.Store(round%2 == 1)
		if err := w.Sync(ctx); err != nil {
			t.Fatalf("seed %d, round %d: Sync: %v; %+v", seed, round, err, w.Stats())
		}
		// A FLUSHDB behind the last batch shows at the next one.
		output(0, fmt.Sprintf(`{"last":%d}`, round))
		if err := w.Sync(ctx); err != nil {
			t.Fatalf("seed %d, round %d: Sync: %v; %+v", seed, round, err, w.Stats())
		}
		cancel()
		must(t, <-done)
		must(t, k.Close())
		if got := s.keys(); !maps.Equal(got, model) {
			t.Fatalf("seed %d, round %d: %d keys, the view has %d documents, or they differ", seed, round, len(got), len(model))
		}
	}
	if proxy.cuts.Load() < 10 {
		t.Errorf("only %d connections were cut", proxy.cuts.Load())
	}
}
