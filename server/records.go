package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// recordQuery reads the filters that `tailwater log cat` has from a request.
func recordQuery(r *http.Request) (RecordQuery, error) {
	v := r.URL.Query()
	q := RecordQuery{Topic: r.PathValue("topic"), FromOffset: -1, ToOffset: -1, Partition: -1, Key: v.Get("key"), CurrentSchema: v.Get("schema") == "current"}
	var err error
	whole := func(name string, to *int64) {
		if text := v.Get(name); text != "" && err == nil {
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
				err = fmt.Errorf("%s is a number, not %q", name, text)
			}
		}
	}
	csn, partition, limit := int64(0), int64(-1), int64(0)
	whole("from_offset", &q.FromOffset)
	whole("to_offset", &q.ToOffset)
	whole("from_csn", &csn)
	whole("partition", &partition)
	whole("limit", &limit)
	q.FromCSN, q.Partition, q.Limit = uint64(csn), int(partition), int(limit)
	if text := v.Get("from_time"); text != "" && err == nil {
		if q.FromTime, err = time.Parse(time.RFC3339Nano, text); err != nil {
			err = fmt.Errorf("from_time is a time like 2026-01-02T03:04:05Z, not %q", text)
		}
	}
	return q, err
}

func (h *handler) records(w http.ResponseWriter, r *http.Request) {
	q, err := recordQuery(r)
	if err != nil {
		problem(w, http.StatusBadRequest, "Bad request", err.Error())
		return
	}
	started := false
	start := func() {
		if !started {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
			started = true
		}
	}
	err = h.d.Records(r.Context(), q, func(line []byte) error {
		start()
		_, err := w.Write(append(line, '\n'))
		return err
	})
	switch {
	case err != nil && !started:
		h.fail(w, r, err)
	case err != nil:
		panic(http.ErrAbortHandler)
	default:
		start()
	}
}

// stream sends records as server-sent events, an id each, until the client goes.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	q, err := recordQuery(r)
	if err != nil {
		problem(w, http.StatusBadRequest, "Bad request", err.Error())
		return
	}
	q.Follow = true
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	err = h.d.Records(r.Context(), q, func(line []byte) error {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil {
			return err
		}
		return c.Flush()
	})
	if err != nil && r.Context().Err() == nil {
		fmt.Fprintf(w, "event: error\ndata: %s\n\n", strconv.Quote(err.Error()))
	}
}
