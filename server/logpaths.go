package server

import (
	"encoding/json"
	"net/http"
)

func (h *handler) topics(w http.ResponseWriter, r *http.Request) {
	list, err := h.d.Topics(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (h *handler) logStats(w http.ResponseWriter, r *http.Request) {
	s, err := h.d.LogStats(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, s)
}

// logCheck answers with a line for each damage and then one for the whole.
func (h *handler) logCheck(w http.ResponseWriter, r *http.Request) {
	h.lines(w, r, func(line func([]byte) error) error {
		result, err := h.d.CheckLog(r.Context(), func(d Damage) error { return writeLine(line, d) })
		if err != nil {
			return err
		}
		return writeLine(line, result)
	})
}

// compact answers with a line for each topic that was compacted.
func (h *handler) compact(w http.ResponseWriter, r *http.Request) {
	h.lines(w, r, func(line func([]byte) error) error {
		return h.d.Compact(r.Context(), r.PathValue("topic"), func(c Compacted) error { return writeLine(line, c) })
	})
}

func writeLine(line func([]byte) error, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return line(text)
}
