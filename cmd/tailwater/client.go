package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

// client speaks with a running daemon.
type client struct {
	base  string
	where string // for messages
	token string
	http  *http.Client
}

// maxLine bounds one line of an answer: a document or a record.
const maxLine = 1 << 30

// client makes the client for --addr, or for the data directory's socket.
func (p *program) client(cfg *config.Config) (*client, error) {
	c := &client{token: cfg.Server.Token.Reveal()}
	if t, ok := p.env("TAILWATER_TOKEN"); ok && c.token == "" {
		c.token = t
	}
	transport := &http.Transport{DisableCompression: true}
	c.http = &http.Client{Transport: transport}
	switch {
	case p.addr == "":
		socket := cfg.SocketPath()
		c.base, c.where = "http://tailwater", "the daemon at "+socket
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialUnix(ctx, socket) }
	case strings.HasPrefix(p.addr, "unix:"):
		socket := strings.TrimPrefix(p.addr, "unix:")
		c.base, c.where = "http://tailwater", "the daemon at "+socket
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialUnix(ctx, socket) }
	default:
		base, err := addrURL(p.addr)
		if err != nil {
			return nil, err
		}
		c.base, c.where = base, "the daemon at "+p.addr
	}
	return c, nil
}

func addrURL(addr string) (string, error) {
	text := addr
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return "", misuse("--addr %q is no address; write host:port, https://host:port or unix:PATH", addr)
	}
	return u.Scheme + "://" + u.Host, nil
}

// dialUnix connects to a socket whose path may be longer than the 107 bytes
// that sockaddr_un holds (unix(7)): then through its directory's descriptor.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	if len(path) <= 107 {
		return d.DialContext(ctx, "unix", path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// errNoDaemon matches an error that says that no daemon answered at all.
var errNoDaemon = errors.New("no daemon answers")

// apiError is an answer that is not a success.
type apiError struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (e *apiError) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	if e.Title != "" {
		return e.Title
	}
	return fmt.Sprintf("the daemon answered %d %s", e.Status, http.StatusText(e.Status))
}

// code is the exit code that an answer means.
func (e *apiError) code() int {
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return exitMisuse
	case http.StatusGatewayTimeout:
		return exitTimeout
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return exitUnreachable
	}
	return exitFailed
}

// do sends a request and returns the answer if it is a success.
func (c *client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request %s: %w", path, err)
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, fmt.Errorf("make the request %s: %w", path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.connectError(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	e := &apiError{Status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = json.Unmarshal(text, e) // another body leaves the status alone to speak
	e.Status = resp.StatusCode
	return nil, &exitError{e.code(), e}
}

func (c *client) connectError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, os.ErrNotExist) {
		return unreachable(fmt.Errorf("%s does not answer: %w (%s); start it with: tailwater run", c.where, errNoDaemon, dialCause(err)))
	}
	if cutShort(err) {
		return unreachable(fmt.Errorf("%s ended before it had answered; its log says why, and tailwater status whether it runs", c.where))
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return unreachable(fmt.Errorf("ask %s: %w", c.where, err))
}

func dialCause(err error) string {
	var sys *os.SyscallError
	var pe *os.PathError
	switch {
	case errors.As(err, &sys):
		return sys.Err.Error()
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

// read gets a path and returns the whole body.
func (c *client) read(ctx context.Context, method, path string, body any) ([]byte, http.Header, error) {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, c.connectError(ctx, err)
	}
	return text, resp.Header, nil
}

func (c *client) decode(ctx context.Context, path string, v any) error {
	text, _, err := c.read(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read the answer of %s to %s: %w", c.where, path, err)
	}
	return nil
}

// lines gets a path and calls fn for each line of the answer.
func (c *client) lines(ctx context.Context, path string, fn func(line []byte) error) error {
	return c.linesOf(ctx, http.MethodGet, path, fn)
}

func (c *client) linesOf(ctx context.Context, method, path string, fn func(line []byte) error) error {
	resp, err := c.do(ctx, method, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s := bufio.NewScanner(resp.Body)
	s.Buffer(make([]byte, 64<<10), maxLine)
	for s.Scan() {
		if err := c.brokenOff(s.Bytes()); err != nil {
			return err
		}
		if err := fn(s.Bytes()); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if cutShort(err) {
			return unreachable(fmt.Errorf("%s ended in the middle of its answer, which is not whole; its log says why, and tailwater status whether it runs", c.where))
		}
		return unreachable(fmt.Errorf("read the answer of %s: %w", c.where, err))
	}
	return nil
}

// brokenOff is the error that the last line of an answer tells that ends early.
func (c *client) brokenOff(line []byte) error {
	if !bytes.HasPrefix(line, []byte(`{"problem":`)) {
		return nil
	}
	var last struct {
		Problem apiError `json:"problem"`
	}
	if err := json.Unmarshal(line, &last); err != nil {
		return fmt.Errorf("read why %s broke its answer off: %w", c.where, err)
	}
	return &exitError{last.Problem.code(), fmt.Errorf("%s broke its answer off: %w", c.where, &last.Problem)}
}

// cutShort reports whether an error only says that the other side ended.
func cutShort(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Views implements store.
func (c *client) Views(ctx context.Context) (v []server.ViewStatus, err error) {
	return v, c.decode(ctx, "/v1/views", &v)
}

// Get implements store.
func (c *client) Get(ctx context.Context, view, id string) ([]byte, uint64, error) {
	doc, h, err := c.read(ctx, http.MethodGet, "/v1/views/"+escape(view)+"/docs/"+escape(id), nil)
	if err != nil {
		return nil, 0, err
	}
	version, err := strconv.ParseUint(h.Get("Tailwater-Version"), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("the answer of %s names no version", c.where)
	}
	return bytes.TrimSuffix(doc, []byte("\n")), version, nil
}

// Dump implements store.
func (c *client) Dump(ctx context.Context, view string, fn func(string, uint64, []byte) error) error {
	return c.lines(ctx, "/v1/views/"+escape(view)+"/dump", func(line []byte) error {
		var d struct {
			ID      string          `json:"id"`
			Version uint64          `json:"version"`
			Doc     json.RawMessage `json:"doc"`
		}
		if err := json.Unmarshal(line, &d); err != nil {
			return fmt.Errorf("read a line of the dump: %w", err)
		}
		return fn(d.ID, d.Version, d.Doc)
	})
}

// Close implements store.
func (c *client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// escape writes a text as one segment of a path; dots too, so that no part of
// the way tidies up a segment like "..".
func escape(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
