package local_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/derive/sink/local"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// TestWorker copies a view from a log into an index, over restarts and the loss of the folder.
func TestWorker(t *testing.T) {
	l, dir := logtest.Mem(), t.TempDir()
	topic, err := l.EnsureTopic(eventlog.TopicSpec{Name: "view.products", Cleanup: eventlog.CleanupCompact})
	if err != nil {
		t.Fatal(err)
	}
	model := map[string]string{}
	output := func(n int, doc string) {
		tick := &eventlog.Tx{Kind: eventlog.TxTick}
		must(t, l.Append(context.Background(), []*eventlog.Tx{tick}))
		r := eventlog.Record{Topic: topic.ID, Key: change.AppendKeyPart(nil, change.Int(int64(n)), false)}
		if doc != "" {
			r.Value = []byte(doc)
			model[fmt.Sprint(n)] = doc
		} else {
			delete(model, fmt.Sprint(n))
		}
		must(t, l.Append(context.Background(), []*eventlog.Tx{{Kind: eventlog.TxOutput, CSN: tick.CSN, Since: tick.CSN - 1, Records: []eventlog.Record{r}}}))
	}
	for i := range 600 {
		output(i, fmt.Sprintf(`{"id":%d,"name":"product %d","price":%d.50}`, i, i, i))
	}
	view := sink.View{Name: "products", Fingerprint: "1", Fields: []sink.Field{
		{Name: "id", Kind: change.KindInt}, {Name: "name", Kind: change.KindText}, {Name: "price", Kind: change.KindDecimal},
	}}
	for round := range 4 {
		s := local.New(local.Options{Dir: dir})
		must(t, s.Check(context.Background()))
		w := sink.NewWorker(sink.WorkerOptions{Log: l, Sink: s, SinkName: "find", View: view})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		for i := range 20 {
			output(i*7+round, fmt.Sprintf(`{"name":"round %d"}`, round))
			output(i*11+round, "")
		}
		must(t, w.Sync(ctx))
		if round == 2 { // the folder is removed under the running worker
			must(t, os.RemoveAll(filepath.Join(dir, "products")))
			output(1, `{"name":"after the loss"}`)
			must(t, w.Sync(ctx))
		}
		hits, total, err := s.Search(ctx, "products", fmt.Sprintf("round %d", round), 100, 0)
		if err != nil || total == 0 || len(hits) == 0 {
			t.Errorf("round %d: %d hits, %v", round, total, err)
		}
		cancel()
		must(t, <-done)
		must(t, s.Close())
		target, err := local.New(local.Options{Dir: dir}).Open(context.Background(), view, l.ID())
		must(t, err)
		got := map[string]string{}
		must(t, target.Scan(context.Background(), func(id string, doc []byte) error { got[id] = string(doc); return nil }))
		must(t, target.Close())
		if !maps.Equal(got, model) {
			t.Fatalf("round %d: the index has %d documents, the view %d, or they differ", round, len(got), len(model))
		}
		if round == 0 { // every segment is gone: whatever older state bleve falls back to, the next worker makes it whole
			segments, err := filepath.Glob(filepath.Join(dir, "products", "*", "store", "*.zap"))
			must(t, err)
			if len(segments) == 0 {
				t.Fatal("the index has no segment on disk")
			}
			for _, f := range segments {
				must(t, os.Remove(f))
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
