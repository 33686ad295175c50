package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// With fakeEnv set the test binary plays the tailwater command: it answers
// everything from the source by SQL, and with a value of "wrong" lies about
// one document. What it was started as is written down in its directory.
const fakeEnv = "TAILWATER_DEMO_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeEnv) != "" {
		os.Exit(fakeTailwater(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func fakeTailwater(args []string) int {
	config := args[len(args)-1]
	text, err := os.ReadFile(config)
	if err != nil {
		return 2
	}
	field := func(pattern string) string { return regexp.MustCompile(pattern).FindStringSubmatch(string(text))[1] }
	f := fake{dsn: field(`dsn: '(.*)'`), listen: field(`listen: '(.*)'`), dir: filepath.Dir(config)}
	log, err := os.OpenFile(filepath.Join(f.dir, "runs"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	fmt.Fprintln(log, strings.Join(args[:len(args)-2], " "))
	log.Close()
	docs, err := Expected(context.Background(), f.dsn)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	switch args[0] {
	case "run":
		return f.run()
	case "view":
		if os.Getenv(fakeEnv) == "wrong" {
			docs[slices.Min(slices.Collect(maps.Keys(docs)))] = json.RawMessage(`{"id":0}`)
		}
		for _, id := range slices.Sorted(maps.Keys(docs)) {
			fmt.Printf("{\"id\":%q,\"version\":7,\"doc\":%s}\n", id, docs[id])
		}
	case "verify":
		fmt.Printf("{\"view\":%q,\"compared\":%d,\"missing\":[],\"extra\":[],\"different\":[]}\n", View, len(docs))
	}
	return 0
}

type fake struct{ dsn, listen, dir string }

func (f fake) run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "tailwater_snapshot_rows_total{source=\"shop\",table=\"shop.public.products\"} 17")
	})
	mux.HandleFunc("/v1/views/product_search/search", func(w http.ResponseWriter, _ *http.Request) {
		docs, _ := Expected(ctx, f.dsn)
		var hits []map[string]string
		for id := range docs {
			hits = append(hits, map[string]string{"id": id})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"hits": hits})
	})
	mux.HandleFunc("/v1/views/product_search/docs/{id}", func(w http.ResponseWriter, r *http.Request) {
		docs, _ := Expected(ctx, f.dsn)
		_, _ = w.Write(docs[r.PathValue("id")])
	})
	mux.HandleFunc("/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"sinks":[{"sink":"find","state":"live","written":1}]}`)
	})
	server := http.Server{Addr: f.listen, Handler: mux}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	fmt.Fprintln(os.Stderr, "level=INFO msg=starting")
	fmt.Fprintln(os.Stderr, "ready sources=1")
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
