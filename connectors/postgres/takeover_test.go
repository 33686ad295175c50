package postgres

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// slowConn lets a write return only when the answer was read and the next read waits.
type slowConn struct {
	net.Conn
	mu    sync.Mutex
	slow  bool
	reads chan struct{}
}

func (c *slowConn) Read(b []byte) (int, error) {
	select {
	case c.reads <- struct{}{}:
	default:
	}
	return c.Conn.Read(b)
}

func (c *slowConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	slow := c.slow
	c.slow = false
	c.mu.Unlock()
	for slow && len(c.reads) > 0 {
		<-c.reads
	}
	n, err := c.Conn.Write(b)
	if slow {
		<-c.reads // the connection's own reader gets the answer
		<-c.reads // and waits for more
	}
	return n, err
}

// serveWalsender answers a startup, then queries, then START_REPLICATION. Like
// old servers it refuses what begins with a comment if picky.
func serveWalsender(conn net.Conn, picky bool) error {
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return err
	}
	b.Send(&pgproto3.AuthenticationOk{})
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if err := b.Flush(); err != nil {
			return err
		}
		m, err := b.Receive()
		if err != nil {
			return err
		}
		q, ok := m.(*pgproto3.Query)
		switch {
		case !ok:
			return nil
		case q.String == "START_REPLICATION":
			b.Send(&pgproto3.CopyBothResponse{})
			b.Send(&pgproto3.CopyData{Data: []byte("first")})
			return b.Flush()
		case picky && q.String == "-- ping":
			b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42601", Message: "syntax error"})
		default:
			b.Send(&pgproto3.EmptyQueryResponse{})
		}
	}
}

// TestTakeOver: a read that the driver began by itself must not take the first
// bytes of the stream.
func TestTakeOver(t *testing.T) {
	for _, picky := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		served := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				err = serveWalsender(conn, picky)
			}
			served <- err
		}()
		cfg, err := pgconn.ParseConfig("postgres://u@" + l.Addr().String() + "/d?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		slow := &slowConn{reads: make(chan struct{}, 100)}
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			slow.Conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return slow, err
		}
		conn, err := pgconn.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		slow.mu.Lock()
		slow.slow = true
		slow.mu.Unlock()
		if _, err := conn.Exec(t.Context(), "").ReadAll(); err != nil {
			t.Fatal(err)
		}
		w, err := startReplication(t.Context(), &session{conn: conn}, "START_REPLICATION", 5*time.Second)
		if err != nil {
			t.Fatalf("picky %t: %v", picky, err)
		}
		if kind, body, err := w.next(); err != nil || kind != 'd' || string(body) != "first" {
			t.Errorf("picky %t: message %q %q, %v", picky, kind, body, err)
		}
		w.conn.Close()
		if err := <-served; err != nil {
			t.Errorf("the server: %v", err)
		}
	}
}
