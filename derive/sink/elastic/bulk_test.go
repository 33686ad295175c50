package elastic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tailwater/tailwater/derive/sink"
)

// fakeServer answers bulk requests as a test says; documents that it took are in docs.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	docs     map[string]string
	requests int
	bulk     func(n int, w http.ResponseWriter, ids []string) bool // true: it has answered
	status   func(id string) (int, string)                         // of an item; 0: 201
	mget     map[string]uint64
}

func newFakeServer(t *testing.T) (*fakeServer, *target) {
	f := &fakeServer{docs: map[string]string{}, mget: map[string]uint64{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	s := New(Options{URLs: []string{f.URL}, InFlight: 1, Frontier: func() uint64 { return 100 }})
	t.Cleanup(func() { s.Close() })
	return f, &target{sink: s, view: "products", alias: "products", current: &generation{name: "products-000001", ours: true}}
}

func (f *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/_mget") {
		f.serveMget(w, r)
		return
	}
	if r.URL.Path != "/products-000001.TAILWATER/_bulk" || r.URL.Query().Get("require_alias") != "true" {
		http.Error(w, `{"error":"unexpected `+r.URL.String()+`"}`, http.StatusBadRequest)
		return
	}
	f.requests++
	var ids, docs []string
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var meta map[string]struct {
			ID          string `json:"_id"`
			VersionType string `json:"version_type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &meta); err != nil {
			panic(err)
		}
		doc := ""
		if m, ok := meta["index"]; ok && lines.Scan() {
			doc = lines.Text()
			ids = append(ids, m.ID)
		} else {
			ids = append(ids, meta["delete"].ID)
		}
		docs = append(docs, doc)
	}
	if f.bulk != nil && f.bulk(f.requests, w, ids) {
		return
	}
	f.answer(w, ids, docs)
}

func (f *fakeServer) answer(w io.Writer, ids, docs []string) {
	items := make([]map[string]item, len(ids))
	for i, id := range ids {
		it := item{Status: 201, Result: "created"}
		if f.status != nil {
			if code, reason := f.status(id); code != 0 {
				it = item{Status: code, Error: &itemError{Type: "some_exception", Reason: reason}}
				if code == 404 {
					it = item{Status: 404, Result: "not_found"}
				}
			}
		}
		if it.Status < 300 {
			f.docs[id] = docs[i]
		}
		items[i] = map[string]item{"index": it}
	}
	_ = json.NewEncoder(w).Encode(bulkAnswer{Errors: true, Items: items})
}

func (f *fakeServer) serveMget(w io.Writer, r *http.Request) {
	var req struct {
		IDs []string `json:"ids"`
	}
	_ = json.NewDecoder(r.Body).Decode(&req)
	var docs []map[string]any
	for _, id := range req.IDs {
		v, ok := f.mget[id]
		d := map[string]any{"_id": id, "found": ok}
		if ok {
			d["_version"] = v
		}
		docs = append(docs, d)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"docs": docs})
}

func send(target *target, ups ...sink.Update) ([]sink.Result, error) {
	return target.Write(context.Background(), ups, sink.Stamp{})
}

func outcomes(r []sink.Result) string {
	var out []sink.Outcome
	for _, x := range r {
		out = append(out, x.Outcome)
	}
	return fmt.Sprint(out)
}

// BUGS B080: partial failures inside an answer of 200.
func TestItemsAreJudgedOneByOne(t *testing.T) {
	f, target := newFakeServer(t)
	f.status = func(id string) (int, string) {
		return map[string]int{"b": 429, "c": 503, "d": 400, "e": 404, "f": 403, "g": 500}[id], "failed to parse field [x] of type [long] in document with id 'd'. Preview of field's value: 'secret'"
	}
	r, err := send(target, up("a", `{}`, 1), up("b", `{}`, 1), up("c", `{}`, 1), up("d", `{}`, 1), up("e", "", 1), up("f", `{}`, 1), up("g", `{}`, 1))
	want := fmt.Sprint([]sink.Outcome{sink.Written, sink.Retry, sink.Retry, sink.Rejected, sink.Written, sink.Rejected, sink.Retry})
	if err != nil || outcomes(r) != want {
		t.Fatalf("%v, %v; want %s", outcomes(r), err, want)
	}
	if strings.Contains(r[3].Reason, "secret") || !strings.Contains(r[3].Reason, "[x]") {
		t.Errorf("reason %q", r[3].Reason)
	}
}

func TestClusterBlockIsRetried(t *testing.T) {
	r := outcome(item{Status: 403, Error: &itemError{Type: "cluster_block_exception", Reason: "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]"}})
	if r.Outcome != sink.Retry || !strings.Contains(r.Reason, "flood-stage") {
		t.Errorf("%+v", r)
	}
}

// BUGS B079: a connection cut in the middle of a bulk request loses nothing: it is an error and is sent again.
func TestCutInTheMiddle(t *testing.T) {
	f, target := newFakeServer(t)
	for name, cut := range map[string]func(w http.ResponseWriter){
		"no answer":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"half answer": func(w http.ResponseWriter) { io.WriteString(w, `{"errors":false,"items":[{"index":{"sta`) },
		"too few items": func(w http.ResponseWriter) {
			io.WriteString(w, `{"errors":false,"items":[{"index":{"status":201}}]}`)
		},
		"empty item": func(w http.ResponseWriter) {
			io.WriteString(w, `{"errors":false,"items":[{"index":{"status":201}},{}]}`)
		},
		"502": func(w http.ResponseWriter) { http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway) },
		"429": func(w http.ResponseWriter) {
			http.Error(w, `{"error":{"type":"rejected","reason":"busy"}}`, http.StatusTooManyRequests)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.requests, f.docs = 0, map[string]string{}
			f.bulk = func(n int, w http.ResponseWriter, _ []string) bool {
				if n == 1 {
					cut(w)
				}
				return n == 1
			}
			_, err := send(target, up("1", `{"a":1}`, 1), up("2", `{"a":2}`, 1))
			if err == nil || errors.Is(err, sink.ErrStopped) || errors.Is(err, sink.ErrWentBack) {
				t.Fatalf("Write = %v; want an error that is retried", err)
			}
			if r, err := send(target, up("1", `{"a":1}`, 1), up("2", `{"a":2}`, 1)); err != nil || outcomes(r) != "[0 0]" || len(f.docs) != 2 {
				t.Errorf("again: %v, %v, documents %v", outcomes(r), err, f.docs)
			}
		})
	}
}

// A request that is too large or refused as a whole is halved down to the document that is to blame.
func TestHalving(t *testing.T) {
	for _, code := range []int{413, 400} {
		f, target := newFakeServer(t)
		f.bulk = func(_ int, w http.ResponseWriter, ids []string) bool {
			if len(ids) > 3 || strings.Contains(strings.Join(ids, ""), "bad") {
				http.Error(w, `{"error":{"type":"parse_exception","reason":"no"}}`, code)
				return true
			}
			return false
		}
		var ups []sink.Update
		for i := range 20 {
			ups = append(ups, up(fmt.Sprint(i), `{}`, 1))
		}
		ups[13].ID = "bad"
		r, err := send(target, ups...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r {
			if want := map[bool]sink.Outcome{true: sink.Rejected}[i == 13]; r[i].Outcome != want {
				t.Errorf("%d: item %d is %+v; want %v", code, i, r[i], want)
			}
		}
	}
}

// V32 and the frontier: what a version conflict means.
func TestV32Conflicts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stored uint64 // by _mget; 0: not found
		named  string
		want   sink.Outcome
		err    error
	}{
		{"a newer version of ours", 60, "current version [60]", sink.Stale, nil},
		{"deleted at a newer version", 0, "[1]: version conflict, current version [70] is higher than the one provided [50]", sink.Stale, nil},
		{"above the frontier", 101, "current version [101]", 0, sink.ErrAhead},
		{"deleted above the frontier", 0, "current version [101]", 0, sink.ErrAhead},
		{"restored to an older one meanwhile", 40, "current version [60]", sink.Retry, nil},
		{"restored to a newer one", 100, "current version [60]", sink.Stale, nil},
		{"nothing known", 0, "conflict", sink.Retry, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, target := newFakeServer(t)
			f.status = func(id string) (int, string) { return map[string]int{"1": 409}[id], tt.named }
			if tt.stored > 0 {
				f.mget["1"] = tt.stored
			}
			r, err := send(target, up("1", `{}`, 50), up("2", `{}`, 50))
			if !errors.Is(err, tt.err) || err == nil && (r[0].Outcome != tt.want || r[1].Outcome != sink.Written) {
				t.Errorf("%+v, %v; want %v, %v", r, err, tt.want, tt.err)
			}
		})
	}
}

func TestAuthenticationStops(t *testing.T) {
	f, target := newFakeServer(t)
	for _, code := range []int{401, 403} {
		f.bulk = func(_ int, w http.ResponseWriter, _ []string) bool {
			http.Error(w, `{"error":{"type":"security_exception","reason":"no permissions"}}`, code)
			return true
		}
		if _, err := send(target, up("1", `{}`, 1)); !errors.Is(err, sink.ErrStopped) {
			t.Errorf("%d: %v", code, err)
		}
	}
	f.bulk = func(_ int, w http.ResponseWriter, _ []string) bool {
		http.Error(w, `{"error":{"type":"index_not_found_exception","reason":"x"}}`, 404)
		return true
	}
	if _, err := send(target, up("1", `{}`, 1)); !errors.Is(err, sink.ErrWentBack) {
		t.Errorf("404: %v", err)
	}
}

func TestWithoutValues(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"failed to parse field [n] of type [long] in document with id '2'. Preview of field's value: 'secret'", "failed to parse field [n] of type [long]"},
		{"mapping set to strict, dynamic introduction of [foo] within [_doc] is not allowed", "mapping set to strict, dynamic introduction of [foo] within [_doc] is not allowed"},
		{`For input string: "it's secret"`, "For input string: '…'"},
		{"Numeric value (99999999999999999999) out of range of long (-9 - 9)", "Numeric value (…) out of range of long (…)"},
		{"it's a secret without an end", "it"},
	} {
		if got := withoutValues(tt.in); got != tt.want {
			t.Errorf("withoutValues(%q) = %q; want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzAppendItem(f *testing.F) {
	f.Add("1", "{\n}")
	f.Fuzz(func(t *testing.T, id, doc string) {
		b := appendItem(nil, &sink.Update{ID: strings.ToValidUTF8(id, "?"), Doc: []byte(doc), Version: 1})
		if strings.Count(string(b), "\n") != 2 {
			t.Errorf("%q: an item has two lines", b)
		}
	})
}
