package elastic

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
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

// cutTransport loses requests and answers.
type cutTransport struct {
	on  atomic.Bool
	mu  sync.Mutex
	rnd *rand.Rand
	n   int
}

type cutError string

func (e cutError) Error() string { return string(e) }

func (c *cutTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	dice := c.rnd.IntN(8)
	c.mu.Unlock()
	if c.on.Load() && dice == 0 {
		return nil, cutError("connection refused")
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if c.on.Load() && dice == 1 && err == nil { // done, and nobody knows
		res.Body.Close()
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
		return nil, cutError("connection reset by peer")
	}
	return res, err
}

// TestWorker runs a worker against a real server over lost requests and lost
// answers, restarts, a deleted index and a changed definition.
func TestWorker(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		const seed = 3
		rnd := rand.New(rand.NewPCG(seed, 0))
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
				model[strconv.Itoa(n)] = doc
			} else {
				delete(model, strconv.Itoa(n))
			}
			must(t, l.Append(context.Background(), []*eventlog.Tx{{Kind: eventlog.TxOutput, CSN: tick.CSN, Since: tick.CSN - 1, Records: []eventlog.Record{r}}}))
		}
		cut := &cutTransport{rnd: rand.New(rand.NewPCG(seed, 1))}
		view := c.view()
		for round := range 5 {
			cut.on.Store(true)
			k := New(Options{URLs: []string{c.url}, Transport: cut, Frontier: func() uint64 { return uint64(l.Frontier()) }})
			w := sink.NewWorker(sink.WorkerOptions{
				Log: l, Sink: k, SinkName: "search", View: view, BatchCount: 100,
				RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond, SaveEvery: 10 * time.Millisecond,
			})
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			for i := range 400 {
				doc := fmt.Sprintf(`{"id":%d,"name":"round %d"}`, i, round)
				if rnd.IntN(5) == 0 {
					doc = ""
				}
				output(rnd.IntN(300), doc)
			}
			if err := w.Sync(ctx); err != nil {
				t.Fatalf("seed %d, round %d: Sync: %v; %+v", seed, round, err, w.Stats())
			}
			if round == 2 {
				c.call("DELETE", fmt.Sprintf("/%s-%06d", c.prefix, 1), "")
				output(1, `{"name":"after the loss"}`)
				if err := w.Sync(ctx); err != nil {
					t.Fatalf("seed %d: Sync after the index was deleted: %v; %+v", seed, err, w.Stats())
				}
			}
			cancel()
			must(t, <-done)
			cut.on.Store(false)
			opened, err := k.Open(context.Background(), view, l.ID())
			must(t, err)
			if got := contents(t, opened.(*target)); !maps.Equal(got, model) {
				t.Fatalf("seed %d, round %d: %d documents, the view has %d, or they differ", seed, round, len(got), len(model))
			}
			must(t, k.Close())
			if round == 3 {
				view.Fingerprint = "f2" // a new generation
			}
		}
		if cut.n == 0 {
			t.Error("no answer was lost")
		}
	})
}
