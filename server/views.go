package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tailwater/tailwater/change"
)

// maxBody bounds the bodies of requests.
const maxBody = 1 << 20

// doc answers the document's own bytes; its version is the ETag and a header.
func (h *handler) doc(w http.ResponseWriter, r *http.Request) {
	doc, version, err := h.d.Get(r.PathValue("view"), r.PathValue("id"))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	v := strconv.FormatUint(version, 10)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", `"`+v+`"`)
	w.Header().Set("Tailwater-Version", v)
	w.Write(append(doc, '\n'))
}

// dump answers JSON lines in key order.
func (h *handler) dump(w http.ResponseWriter, r *http.Request) {
	started := false
	var line []byte
	err := h.d.Dump(r.Context(), r.PathValue("view"), func(id string, version uint64, doc []byte) error {
		if !started {
			w.Header().Set("Content-Type", "application/x-ndjson")
			started = true
		}
		line = AppendDumpLine(line[:0], id, version, doc)
		_, err := w.Write(line)
		return err
	})
	switch {
	case err != nil && !started:
		h.fail(w, r, err)
	case err != nil:
		h.breakOff(w, r, err)
	case !started:
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
	}
}

// AppendDumpLine appends one line of `view dump --json`.
func AppendDumpLine(dst []byte, id string, version uint64, doc []byte) []byte {
	dst = change.AppendJSONString(append(dst, `{"id":`...), id)
	dst = strconv.AppendUint(append(dst, `,"version":`...), version, 10)
	return append(append(append(dst, `,"doc":`...), doc...), "}\n"...)
}

func (h *handler) search(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err1 := number(q.Get("limit"), 10, 1000)
	offset, err2 := number(q.Get("offset"), 0, 100000)
	for _, err := range []error{err1, err2} {
		if err != nil {
			problem(w, http.StatusBadRequest, "Bad request", err.Error())
			return
		}
	}
	res, err := h.d.Search(r.Context(), r.PathValue("view"), q.Get("q"), limit, offset)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if res.Hits == nil {
		res.Hits = []Hit{}
	}
	writeJSON(w, http.StatusOK, res)
}

func number(text string, preset, most int) (int, error) {
	if text == "" {
		return preset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("limit and offset are numbers from 0 to %d, not %q", most, text)
	}
	return n, nil
}

// body decodes a JSON body into v; an empty body leaves v as it is.
func body(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil && err != io.EOF {
		problem(w, http.StatusBadRequest, "Bad request", "the body is not the JSON that this path takes: "+err.Error())
		return false
	}
	return true
}

func (h *handler) verify(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Sink string `json:"sink"`
	}
	if !body(w, r, &req) {
		return
	}
	report, equal, err := h.d.Verify(r.Context(), r.PathValue("view"), req.Sink)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Tailwater-Equal", strconv.FormatBool(equal))
	w.Write(append(report, '\n'))
}

func (h *handler) rebuild(w http.ResponseWriter, r *http.Request) {
	if err := h.d.Rebuild(r.Context(), r.PathValue("view")); err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusAccepted, map[string]bool{"ok": true})
}

func (h *handler) wait(w http.ResponseWriter, r *http.Request) {
	var req WaitRequest
	if !body(w, r, &req) {
		return
	}
	if err := h.d.Wait(r.Context(), req); err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

func (h *handler) snapshot(w http.ResponseWriter, r *http.Request) {
	var req SnapshotRequest
	if !body(w, r, &req) {
		return
	}
	text, err := h.d.Snapshot(r.Context(), req)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusAccepted, map[string]string{"result": text})
}

func (h *handler) reload(w http.ResponseWriter, r *http.Request) {
	if err := h.d.Reload(r.Context()); err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}
