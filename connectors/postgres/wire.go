package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// wire is a replication connection after START_REPLICATION. One goroutine
// reads; others may send status.
type wire struct {
	conn net.Conn

	buf        []byte
	start, end int // what was read and not taken

	closing atomic.Bool

	mu  sync.Mutex // guards writes
	out [39]byte
}

// Sizes of the read buffer: what it begins with and is brought back to, and the
// steps in which it grows for a message, so that a wrong length takes no memory.
const (
	wireBuffer = 256 << 10
	wireGrow   = 4 << 20
	// maxMessage is what PostgreSQL can send: a field has at most 1 GiB.
	maxMessage = 1<<31 - 1
)

func newWire(conn net.Conn) *wire { return &wire{conn: conn, buf: make([]byte, wireBuffer)} }

// startReplication takes the session's connection over and starts streaming.
func startReplication(ctx context.Context, s *session, command string, timeout time.Duration) (*wire, error) {
	if err := syncConn(ctx, s.conn, timeout); err != nil {
		return nil, fmt.Errorf("take the replication connection over: %w", err)
	}
	h, err := s.conn.Hijack()
	if err != nil {
		return nil, fmt.Errorf("take the replication connection over: %w", err)
	}
	w := newWire(h.Conn)
	if err := w.begin(command, timeout); err != nil {
		w.conn.Close()
		return nil, err
	}
	return w, nil
}

// syncConn ends the reads that the connection has under way by itself (after a
// slow write): they would take the first bytes of the stream.
func syncConn(ctx context.Context, conn *pgconn.PgConn, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var refused *pgconn.PgError
	err := conn.SyncConn(ctx)
	for range 10 {
		// Walsenders before PostgreSQL 15 refuse its ping; their answer ends the read as well.
		if !errors.As(err, &refused) {
			break
		}
		err = conn.SyncConn(ctx)
	}
	return err
}

func (w *wire) begin(command string, timeout time.Duration) error {
	_ = w.conn.SetDeadline(time.Now().Add(timeout))
	query, err := (&pgproto3.Query{String: command}).Encode(nil)
	if err != nil {
		return err
	}
	if _, err := w.conn.Write(query); err != nil {
		return fmt.Errorf("start replication: %w", err)
	}
	for {
		kind, body, err := w.next()
		if err != nil {
			return fmt.Errorf("start replication: %w", err)
		}
		switch kind {
		case 'W': // CopyBothResponse
			w.keepAlive()
			return w.conn.SetDeadline(time.Time{})
		case 'E':
			return fmt.Errorf("start replication: %w", serverError(body))
		case 'N', 'S':
		default:
			return fmt.Errorf("start replication: %w: message %q", errMessage, kind)
		}
	}
}

// next returns the next message of the connection; the body is valid until the next call.
func (w *wire) next() (kind byte, body []byte, err error) {
	if err := w.fill(5); err != nil {
		return 0, nil, err
	}
	kind = w.buf[w.start]
	n := int64(binary.BigEndian.Uint32(w.buf[w.start+1:]))
	if n < 4 || n > maxMessage {
		return 0, nil, fmt.Errorf("%w: a length of %d", errMessage, n)
	}
	if err := w.fill(int(n) + 1); err != nil {
		return 0, nil, err
	}
	body = w.buf[w.start+5 : w.start+1+int(n)]
	w.start += int(n) + 1
	return kind, body, nil
}

// fill reads until n bytes are there.
func (w *wire) fill(n int) error {
	if w.end-w.start >= n {
		return nil
	}
	w.makeRoom(n)
	for w.end-w.start < n {
		if w.end == len(w.buf) {
			grown := make([]byte, min(len(w.buf)+max(len(w.buf), wireGrow), w.start+n))
			copy(grown, w.buf[:w.end])
			w.buf = grown
		}
		m, err := w.conn.Read(w.buf[w.end:])
		w.end += m
		if err != nil && w.end-w.start < n {
			return err
		}
	}
	return nil
}

// makeRoom moves what is left to the front, and gives a large buffer back.
func (w *wire) makeRoom(n int) {
	left := w.buf[w.start:w.end]
	if len(w.buf) > wireBuffer && n <= wireBuffer && len(left) <= wireBuffer {
		small := make([]byte, wireBuffer)
		w.start, w.end = 0, copy(small, left)
		w.buf = small
		return
	}
	if w.start > 0 {
		w.start, w.end = 0, copy(w.buf, left)
	}
}

// status tells the server what is durable, and asks for an answer if ping is set.
func (w *wire) status(durable LSN, ping bool) error {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	b := append(w.out[:0], 'd')
	b = binary.BigEndian.AppendUint32(b, 38)
	b = append(b, 'r')
	for range 3 { // written, flushed, applied
		b = binary.BigEndian.AppendUint64(b, uint64(durable))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(now.UnixMicro()-946684800*1000000))
	flag := byte(0)
	if ping {
		flag = 1
	}
	b = append(b, flag)
	if w.closing.Load() {
		return errClosed
	}
	_ = w.conn.SetWriteDeadline(now.Add(30 * time.Second))
	_, err := w.conn.Write(b)
	return err
}

// close ends the stream in the server's words, so that it frees the slot at once.
func (w *wire) close() error {
	w.closing.Store(true)
	_ = w.conn.SetWriteDeadline(time.Now().Add(time.Second)) // also of a write that hangs
	w.mu.Lock()
	_, _ = w.conn.Write([]byte{'c', 0, 0, 0, 4, 'X', 0, 0, 0, 4}) // CopyDone, Terminate
	w.mu.Unlock()
	return w.conn.Close()
}

// keepAlive lets the kernel find out that the peer is gone. A silent server may
// be alive: decoding a large transaction it answers nothing for minutes.
func (w *wire) keepAlive() {
	conn := w.conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 4})
	}
}

// serverError reads an ErrorResponse.
func serverError(body []byte) error {
	var e pgproto3.ErrorResponse
	if err := e.Decode(body); err != nil {
		return errors.Join(errMessage, err)
	}
	return &pgconn.PgError{Severity: e.Severity, Code: e.Code, Message: e.Message, Detail: e.Detail, Hint: e.Hint}
}
