package server

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var pageText []byte

// page answers with the first page. It is the same for everybody: its script asks
// the API for what to show. It is no template, since html/template makes the
// linker keep every exported method of the whole program.
func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'self'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Write(pageText)
}
