package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fake is a Daemon with one view of one document.
type fake struct {
	LogReader
	status  Status
	wait    error
	asked   RecordQuery
	request WaitRequest
}

const longNumber = `{"n":9223372036854775809,"d":1.10,"t":"<&>"}`

func (f *fake) Status() Status { return f.status }
func (f *fake) Topics(context.Context) ([]TopicStatus, error) {
	return []TopicStatus{{Name: "shop.public.a", Partitions: 4}}, nil
}
func (f *fake) Get(view, id string) ([]byte, uint64, error) {
	if view != "v" || id != `a|b/c` {
		return nil, 0, fmt.Errorf("%w: %s/%s", ErrNotFound, view, id)
	}
	return []byte(longNumber), 7, nil
}
func (f *fake) Dump(_ context.Context, view string, fn func(string, uint64, []byte) error) error {
	if view != "v" {
		return ErrNotFound
	}
	if err := fn("1", 7, []byte(longNumber)); err != nil {
		return err
	}
	return fn(`q"`, 8, []byte(`{}`))
}
func (f *fake) Search(_ context.Context, _, q string, limit, offset int) (*SearchResult, error) {
	if q == "none" {
		return &SearchResult{}, nil
	}
	return &SearchResult{Total: 1, Hits: []Hit{{ID: "1", Doc: json.RawMessage(longNumber)}}}, nil
}
func (f *fake) Wait(_ context.Context, r WaitRequest) error { f.request = r; return f.wait }
func (f *fake) Verify(context.Context, string, string) (json.RawMessage, bool, error) {
	return json.RawMessage(`{"compared":1}`), true, nil
}
func (f *fake) Records(_ context.Context, q RecordQuery, fn func([]byte) error) error {
	f.asked = q
	if q.Topic == "broken" {
		return errors.New("disk on fire")
	}
	if q.Begun != nil {
		q.Begun()
	}
	return fn([]byte(`{"offset":1}`))
}
func (f *fake) Snapshot(_ context.Context, r SnapshotRequest) (string, error) {
	return "begun" + r.Action, nil
}
func (f *fake) Rebuild(context.Context, string) error { return nil }
func (f *fake) Reload(context.Context) error          { return fmt.Errorf("%w: line 3", ErrBadRequest) }

func request(t *testing.T, h http.Handler, method, path, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7171"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(text), w.Result().Header
}

func TestPaths(t *testing.T) {
	f := &fake{}
	h := New(Options{Daemon: f})
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/healthz", "", 200, `"up"`},
		{"GET", "/readyz", "", 503, `"ready":false`},
		{"GET", "/v1/status", "", 200, `"ready":false`},
		{"GET", "/v1/topics", "", 200, "shop.public.a"},
		{"GET", "/v1/views/v/docs/a%7Cb%2Fc", "", 200, longNumber + "\n"},
		{"GET", "/v1/views/v/docs/zz", "", 404, `"title":"Not found"`},
		{"GET", "/v1/views/v/dump", "", 200, `{"id":"1","version":7,"doc":` + longNumber + "}\n" + `{"id":"q\"","version":8,"doc":{}}` + "\n"},
		{"GET", "/v1/views/w/dump", "", 404, "not found"},
		{"GET", "/v1/views/v/search?q=x", "", 200, longNumber},
		{"GET", "/v1/views/v/search?q=none", "", 200, `"hits":[]`},
		{"GET", "/v1/views/v/search?q=x&limit=-1", "", 400, "numbers from 0"},
		{"POST", "/v1/views/v/verify", `{"sink":"s"}`, 200, `{"compared":1}`},
		{"POST", "/v1/wait", `{"views":["v"],"timeout_ms":5}`, 200, `"ok":true`},
		{"POST", "/v1/wait", `{"veiws":["v"]}`, 400, "veiws"},
		{"POST", "/v1/snapshots", `{"table":"a"}`, 202, "begun"},
		{"POST", "/v1/reload", "", 400, "line 3"},
		{"GET", "/v1/topics/shop.public.a/records?from_offset=5&limit=2&partition=1", "", 200, `{"offset":1}` + "\n"},
		{"GET", "/v1/topics/t/records?from_offset=x", "", 400, "from_offset is a number"},
		{"GET", "/v1/topics/broken/records", "", 500, "disk on fire"},
		{"GET", "/v1/nothing", "", 404, "no such path"},
		{"GET", "/", "", 200, "<title>Tailwater</title>"},
		{"GET", "/metrics", "", 200, "tailwater_log_frontier_csn"},
	} {
		code, text, header := request(t, h, tt.method, tt.path, tt.body)
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", tt.method, tt.path, code, text, tt.code, tt.want)
		}
		if code >= 400 && code != 503 && header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: an error of type %s", tt.method, tt.path, header.Get("Content-Type"))
		}
	}
	if f.asked.Topic != "broken" || f.request.TimeoutMS != 5 {
		t.Errorf("asked %+v, %+v", f.asked, f.request)
	}
	f.wait = fmt.Errorf("%w after 1s: view v", ErrTimeout)
	if code, text, _ := request(t, h, "POST", "/v1/wait", ""); code != 504 || !strings.Contains(text, "view v") {
		t.Errorf("a timed-out wait: %d %s", code, text)
	}
}

func TestToken(t *testing.T) {
	h := New(Options{Daemon: &fake{}, Token: "secret"})
	if code, _, _ := request(t, h, "GET", "/healthz", ""); code != 200 {
		t.Errorf("healthz without the token: %d", code)
	}
	for _, header := range []string{"", "Bearer wrong", "secret"} {
		if code, text, _ := request(t, h, "GET", "/v1/status", "", "Authorization", header); code != 401 || strings.Contains(text, "secret") {
			t.Errorf("with %q: %d %s", header, code, text)
		}
	}
	if code, _, _ := request(t, h, "GET", "/v1/status", "", "Authorization", "Bearer secret"); code != 200 {
		t.Errorf("with the token: %d", code)
	}
}

// TestOtherHost: a page that a foreign name leads here reads nothing.
func TestOtherHost(t *testing.T) {
	for _, tt := range []struct {
		host string
		any  bool
		want int
	}{{"evil.example", false, 403}, {"evil.example:7171", false, 403}, {"localhost:7171", false, 200}, {"[::1]:7171", false, 200}, {"evil.example", true, 200}} {
		r := httptest.NewRequest("GET", "/v1/status", nil)
		r.Host = tt.host
		w := httptest.NewRecorder()
		New(Options{Daemon: &fake{}, AnyHost: tt.any}).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("host %s, any=%v: %d, want %d", tt.host, tt.any, w.Code, tt.want)
		}
	}
}

// TestPage: names from the outside come to the page through its script alone, as text, never as markup.
func TestPage(t *testing.T) {
	f := &fake{status: Status{Ready: true, Views: []ViewStatus{{Name: "<script>alert(1)</script>", Searchable: true}}}}
	code, text, header := request(t, New(Options{Daemon: f}), "GET", "/", "")
	if code != 200 || !strings.HasPrefix(text, "<!doctype html>") || strings.Contains(text, "alert") {
		t.Errorf("the page: %d, %s", code, text)
	}
	for _, markup := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write"} {
		if strings.Contains(text, markup) {
			t.Errorf("the page's script writes markup: %s", markup)
		}
	}
	if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("the page has no policy")
	}
}

func TestMetrics(t *testing.T) {
	f := &fake{status: Status{Log: LogStatus{FrontierCSN: 42}, Sources: []SourceStatus{{Name: "shop", LagBytes: 7, Rows: map[string]int64{"insert": 3}}},
		Sinks: []SinkStatus{{Sink: "find", View: "v", Written: 9, DeadLetters: 2}, {Sink: "find", View: "w", DeadLetters: 1}}}}
	_, text, _ := request(t, New(Options{Daemon: f}), "GET", "/metrics", "")
	for _, want := range []string{
		`tailwater_log_frontier_csn 42`, `tailwater_source_lag_bytes{source="shop"} 7`, `tailwater_source_rows_total{op="insert",source="shop"} 3`,
		`tailwater_sink_writes_total{result="written",sink="find"} 9`, `tailwater_dlq_records{sink="find"} 3`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestStream(t *testing.T) {
	_, text, header := request(t, New(Options{Daemon: &fake{}}), "GET", "/v1/topics/t/stream", "")
	if text != "data: {\"offset\":1}\n\n" || header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q, %v", text, header)
	}
}

// TestCrossOrigin: a page of another origin cannot make a browser change anything.
func TestCrossOrigin(t *testing.T) {
	h := New(Options{Daemon: &fake{}})
	for _, tt := range []struct {
		name   string
		header []string
		code   int
	}{
		{"a program", nil, http.StatusAccepted},
		{"the first page", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"}, http.StatusAccepted},
		{"a page elsewhere", []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example"}, http.StatusForbidden},
		{"a page elsewhere in an old browser", []string{"Origin", "http://evil.example"}, http.StatusForbidden},
	} {
		code, body, head := request(t, h, "POST", "/v1/snapshots", `{"table":"public.a","where":"true"}`, append([]string{"Content-Type", "text/plain"}, tt.header...)...)
		if code != tt.code {
			t.Errorf("%s: %d %s, want %d", tt.name, code, body, tt.code)
		}
		if code == http.StatusForbidden && head.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", tt.name, head.Get("Content-Type"))
		}
	}
}
