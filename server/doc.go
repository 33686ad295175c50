// Package server is the daemon's HTTP side: the API of version 1, health and
// readiness, the metrics page and the embedded first page. It works over the
// Daemon interface that it declares and keeps no state of its own.
//
// Errors are problem+json (RFC 9457). Answers about documents are the bytes
// that the views made: no number passes through a float.
package server
