package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/server"
)

// maxSocketPath is what sockaddr_un holds, see unix(7).
const maxSocketPath = 107

// serve answers HTTP on the socket and the address until ctx ends.
func (d *Daemon) serve(ctx context.Context) error {
	socket, err := listenUnix(d.cfg.SocketPath())
	if err != nil {
		return err
	}
	defer os.Remove(d.cfg.SocketPath())
	tcp, err := net.Listen("tcp", d.cfg.Server.Listen)
	if err != nil {
		socket.Close()
		return fmt.Errorf("listen on server.listen: %w; another program has the address, or give another", err)
	}
	handler := server.New(server.Options{Daemon: d, Logger: d.logger, Token: d.cfg.Server.Token.Reveal(), AnyHost: d.cfg.Server.InsecureNoAuth})
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return served(srv.Serve(socket)) })
	g.Go(func() error {
		if d.cfg.Server.TLSCert != "" {
			return served(srv.ServeTLS(tcp, d.cfg.Server.TLSCert, d.cfg.Server.TLSKey))
		}
		return served(srv.Serve(tcp))
	})
	g.Go(func() error {
		<-gctx.Done()
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if srv.Shutdown(sctx) != nil {
			srv.Close()
		}
		return nil
	})
	return g.Wait()
}

func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listenUnix listens on a path for its owner only; the lock of the data
// directory says that a socket found there is a leftover.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	name := path
	if len(path) > maxSocketPath { // reach it through its directory's descriptor
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", path, err)
		}
		defer dir.Close()
		name = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if name != path {
		l.(*net.UnixListener).SetUnlinkOnClose(false)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect %s: %w", path, err)
	}
	return l, nil
}
