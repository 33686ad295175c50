package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxCSN is the largest that a log gives.
const maxCSN = 1<<53 - 1

// query reads the parameters of a request; what is wrong is a bad request.
type query struct {
	v   url.Values
	err error
}

// newQuery refuses parameters that are not known: a filter with a typing error
// would else show everything.
func newQuery(r *http.Request, known ...string) *query {
	q := &query{v: r.URL.Query()}
	for name, values := range q.v {
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found {
			q.fail("unknown parameter %q; known here: %s", name, strings.Join(known, ", "))
		} else if len(values) > 1 {
			q.fail("%s is given %d times", name, len(values))
		}
	}
	return q
}

func (q *query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = fmt.Errorf(format, args...)
	}
}

// number returns a parameter from 0 to most, or none where it is not given.
func (q *query) number(name string, none, most int64) int64 {
	text := q.v.Get(name)
	if text == "" {
		return none
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		q.fail("%s is a number from 0 to %d, not %q", name, most, text)
	}
	return n
}

func (q *query) time(name string) (t time.Time) {
	if text := q.v.Get(name); text != "" {
		var err error
		if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
			q.fail("%s is a time like 2026-01-02T03:04:05Z, not %q", name, text)
		}
	}
	return t
}

// word returns a parameter that must be one of some words; the first where it is not given.
func (q *query) word(name string, words ...string) string {
	text := q.v.Get(name)
	if text == "" {
		return words[0]
	}
	for _, w := range words {
		if w == text {
			return w
		}
	}
	q.fail("%s is one of %s, not %q", name, strings.Join(words, ", "), text)
	return ""
}

// recordQuery reads the filters that `tailwater log cat` has from a request.
func recordQuery(r *http.Request) (RecordQuery, error) {
	v := newQuery(r, "from_offset", "to_offset", "from_csn", "from_time", "partition", "key", "limit", "schema", "last")
	const most = 1<<63 - 1
	last := v.number("last", -1, 1<<31-1)
	q := RecordQuery{
		Topic: r.PathValue("topic"), FromOffset: v.number("from_offset", -1, most), ToOffset: v.number("to_offset", -1, most),
		FromCSN: uint64(v.number("from_csn", 0, maxCSN)), FromTime: v.time("from_time"), Partition: int(v.number("partition", -1, 1<<31-1)),
		Key: v.v.Get("key"), Limit: int(v.number("limit", 0, 1<<31-1)), CurrentSchema: v.word("schema", "written", "current") == "current",
		Tail: last >= 0, Last: int(max(last, 0)),
	}
	return q, v.err
}

func batchQuery(r *http.Request) (BatchQuery, error) {
	v := newQuery(r, "from_offset", "to_offset", "from_csn", "from_time", "partition", "limit", "records")
	const most = 1<<63 - 1
	q := BatchQuery{
		Topic: r.PathValue("topic"), FromOffset: v.number("from_offset", -1, most), ToOffset: v.number("to_offset", -1, most),
		FromCSN: uint64(v.number("from_csn", 0, maxCSN)), FromTime: v.time("from_time"), Partition: int(v.number("partition", -1, 1<<31-1)),
		Limit: int(v.number("limit", 0, 1<<31-1)), Records: v.number("records", 0, 1) == 1,
	}
	return q, v.err
}

func (h *handler) records(w http.ResponseWriter, r *http.Request) {
	q, err := recordQuery(r)
	if err != nil {
		problem(w, http.StatusBadRequest, "Bad request", err.Error())
		return
	}
	h.lines(w, r, func(line func([]byte) error) error { return h.d.Records(r.Context(), q, line) })
}

func (h *handler) batches(w http.ResponseWriter, r *http.Request) {
	q, err := batchQuery(r)
	if err != nil {
		problem(w, http.StatusBadRequest, "Bad request", err.Error())
		return
	}
	h.lines(w, r, func(line func([]byte) error) error { return h.d.Batches(r.Context(), q, line) })
}

// lines answers with JSON lines. An error before the first is an answer of its
// own; after it the answer is broken off, so that nobody takes it for whole.
func (h *handler) lines(w http.ResponseWriter, r *http.Request, each func(line func([]byte) error) error) {
	started := false
	start := func() {
		if !started {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
			started = true
		}
	}
	err := each(func(line []byte) error {
		start()
		_, err := w.Write(append(line, '\n'))
		return err
	})
	switch {
	case err != nil && !started:
		h.fail(w, r, err)
	case err != nil:
		h.breakOff(w, r, err)
	default:
		start()
	}
}

// stream sends records as server-sent events until the client goes. An error
// after the first is an event of the name error.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	q, err := recordQuery(r)
	if err != nil {
		problem(w, http.StatusBadRequest, "Bad request", err.Error())
		return
	}
	c := http.NewResponseController(w)
	started := false
	q.Follow = true
	q.Begun = func() { // also before the first record, so that the client knows
		started = true
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		c.Flush()
	}
	err = h.d.Records(r.Context(), q, func(line []byte) error {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil {
			return err
		}
		return c.Flush()
	})
	switch {
	case err == nil:
	case !started:
		h.fail(w, r, err)
	default:
		_, _, detail := h.fault(r, err)
		text, _ := json.Marshal(detail)
		fmt.Fprintf(w, "event: error\ndata: %s\n\n", text)
	}
}
