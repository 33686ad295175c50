package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"crypto/subtle"
)

// Daemon is what the server shows and does. All methods may be called from any goroutine.
type Daemon interface {
	LogReader
	Status() Status

	// Get returns a document's bytes and version; ErrNotFound if there is no such view or document.
	Get(view, id string) (doc []byte, version uint64, err error)
	// Dump calls fn for each document in key order, all at one state of the view.
	Dump(ctx context.Context, view string, fn func(id string, version uint64, doc []byte) error) error
	// Search asks the view's local index.
	Search(ctx context.Context, view, query string, limit, offset int) (*SearchResult, error)
	// Wait returns once everything committed before the call has reached what is named; ErrTimeout after r.Timeout.
	Wait(ctx context.Context, r WaitRequest) error
	// Verify compares a sink's content with the view and returns the JSON report; differences are not an error.
	Verify(ctx context.Context, view, sink string) (report json.RawMessage, equal bool, err error)
	// Snapshot asks for an ad-hoc snapshot of a table, or pauses, resumes or stops
	// snapshots, and returns what will happen, for people.
	Snapshot(ctx context.Context, r SnapshotRequest) (string, error)
	// Rebuild builds a view again from the log.
	Rebuild(ctx context.Context, view string) error
	// Reload takes the configuration file again.
	Reload(ctx context.Context) error
}

// Errors that choose the answer's status.
var (
	ErrNotFound    = errors.New("not found")
	ErrGone        = errors.New("no longer kept")
	ErrTimeout     = errors.New("timed out")
	ErrBadRequest  = errors.New("bad request")
	ErrUnavailable = errors.New("not available now")
)

// WaitRequest is the body of POST /v1/wait. Without views and sinks, all of them; with only sources, the log alone.
type WaitRequest struct {
	Sources   []string `json:"sources,omitempty"`
	Views     []string `json:"views,omitempty"`
	Sinks     []string `json:"sinks,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"`
}

// SnapshotRequest is the body of POST /v1/snapshots.
type SnapshotRequest struct {
	Table  string `json:"table,omitempty"`  // empty: all tables, for pause and resume
	Where  string `json:"where,omitempty"`  // SQL condition of a run
	Action string `json:"action,omitempty"` // run (or empty), pause, resume, stop
}

// SearchResult is the answer of a search.
type SearchResult struct {
	Total uint64 `json:"total"`
	Hits  []Hit  `json:"hits"`
}

// Hit is one found document.
type Hit struct {
	ID    string          `json:"id"`
	Score float64         `json:"score"`
	Doc   json.RawMessage `json:"doc"`
}

// Options of a Server.
type Options struct {
	Daemon Daemon
	Logger *slog.Logger
	// Token, if set, is asked for as a bearer token by everything but health and readiness.
	Token string
	// AnyHost takes requests by whatever name; else, without a token, only those
	// that name an address or localhost: a name of somebody else's may lead a
	// browser here (DNS rebinding).
	AnyHost bool
}

// New returns the handler of all paths.
func New(o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{d: o.Daemon, log: o.Logger}
	mux := http.NewServeMux()
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", h.health)
	open.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("GET /{$}", h.page)
	mux.Handle("GET /metrics", metricsHandler(o.Daemon))
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.d.Status()) })
	mux.HandleFunc("GET /v1/sources", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.d.Status().Sources) })
	mux.HandleFunc("GET /v1/views", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.d.Status().Views) })
	mux.HandleFunc("GET /v1/sinks", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.d.Status().Sinks) })
	mux.HandleFunc("GET /v1/topics", h.topics)
	mux.HandleFunc("GET /v1/log", h.logStats)
	mux.HandleFunc("GET /v1/log/check", h.logCheck)
	mux.HandleFunc("GET /v1/topics/{topic}/batches", h.batches)
	mux.HandleFunc("POST /v1/topics/{topic}/compact", h.compact)
	mux.HandleFunc("GET /v1/topics/{topic}/records", h.records)
	mux.HandleFunc("GET /v1/topics/{topic}/stream", h.stream)
	mux.HandleFunc("GET /v1/views/{view}/docs/{id...}", h.doc)
	mux.HandleFunc("GET /v1/views/{view}/dump", h.dump)
	mux.HandleFunc("GET /v1/views/{view}/search", h.search)
	mux.HandleFunc("POST /v1/views/{view}/verify", h.verify)
	mux.HandleFunc("POST /v1/views/{view}/rebuild", h.rebuild)
	mux.HandleFunc("POST /v1/wait", h.wait)
	mux.HandleFunc("POST /v1/snapshots", h.snapshot)
	mux.HandleFunc("POST /v1/reload", h.reload)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, "Not found", "no such path: "+r.Method+" "+r.URL.Path)
	})
	var inner http.Handler = sameOrigin(mux)
	if o.Token == "" && !o.AnyHost {
		inner = ownHost(inner)
	}
	open.Handle("/", authorize(o.Token, inner))
	return open
}

// ownHost refuses requests that came by another name than an address or localhost.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		socket := r.RemoteAddr == "@" || r.RemoteAddr == ""
		if !socket && host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			problem(w, http.StatusForbidden, "Forbidden", "ask by address or as localhost; for other names set server.token, or server.insecure_no_auth")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what a page of another origin makes a browser send: without
// a token the loopback address is open to every page that its owner looks at.
func sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusForbidden, "Forbidden", "requests from pages of another origin are refused")
	}))
	return p.Handler(next)
}

// authorize lets requests with the token pass; requests over the unix socket are the directory owner's.
func authorize(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.RemoteAddr != "@" && r.RemoteAddr != "" && (!ok || subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "Unauthorized", "send the configured token as: Authorization: Bearer TOKEN")
			return
		}
		next.ServeHTTP(w, r)
	})
}

type handler struct {
	d   Daemon
	log *slog.Logger
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "up"})
}

func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	s := h.d.Status()
	code := http.StatusOK
	if !s.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, map[string]any{"ready": s.Ready, "reasons": s.Reasons})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(v)
}

// Stopping is what a request is told that the daemon cannot finish, since it ends.
const Stopping = "the daemon stops before the answer is whole; ask again once it runs"

// problemBody is the form of RFC 9457.
func problemBody(code int, title, detail string) map[string]any {
	return map[string]any{"type": "about:blank", "title": title, "status": code, "detail": detail}
}

// problem answers in the form of RFC 9457.
func problem(w http.ResponseWriter, code int, title, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(problemBody(code, title, detail))
}

// fail answers an error of the Daemon.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	code, title, detail := h.fault(r, err)
	problem(w, code, title, detail)
}

// fault is the answer to an error of the Daemon. A request whose context has
// ended is told that the daemon stops: if its client has gone instead, nobody hears it.
func (h *handler) fault(r *http.Request, err error) (code int, title, detail string) {
	for _, known := range []struct {
		err   error
		code  int
		title string
	}{
		{ErrNotFound, http.StatusNotFound, "Not found"}, {ErrGone, http.StatusGone, "No longer kept"}, {ErrTimeout, http.StatusGatewayTimeout, "Timed out"},
		{ErrBadRequest, http.StatusBadRequest, "Bad request"}, {ErrUnavailable, http.StatusServiceUnavailable, "Not available"},
	} {
		if errors.Is(err, known.err) {
			return known.code, known.title, err.Error()
		}
	}
	if r.Context().Err() != nil {
		return http.StatusServiceUnavailable, "Not available", Stopping
	}
	h.log.Error("request failed", "request", r.Pattern, "err", err) // the path may hold a document's id
	return http.StatusInternalServerError, "Failed", err.Error()
}

// breakOff ends an answer of lines early. Its last line says why, and its encoding
// is not ended, so that no client takes it for whole.
func (h *handler) breakOff(w http.ResponseWriter, r *http.Request, err error) {
	line, _ := json.Marshal(map[string]any{"problem": problemBody(h.fault(r, err))}) // texts and a number always marshal
	w.Write(append(line, '\n'))
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
