package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresServer is a private server, for what a shared one cannot show:
// settings, a stop, a crash, a standby, a promotion. Its methods belong to one
// goroutine.
type PostgresServer struct {
	URL     string // superuser postgres, database postgres; stays the same over restarts
	Port    int
	DataDir string

	t        T
	bin      string
	dir      string // owned by the server's user; holds the data and the log
	settings []string
	proc     *process
}

// PostgresOptions says which server StartPostgresWith starts.
type PostgresOptions struct {
	Version  int      // major version; 0 = the default server's
	Settings []string // name=value, over the defaults below
}

// basicSettings make a server that tests can replicate from; later ones win.
// There is no Unix socket: the path of a test's directory may be too long.
var basicSettings = []string{
	"listen_addresses=127.0.0.1", "unix_socket_directories=", "wal_level=logical", "max_wal_senders=20",
	"max_replication_slots=20", "max_connections=60", "max_prepared_transactions=10", "shared_buffers=16MB",
	"fsync=off", "log_min_messages=warning", "hot_standby=on",
}

// StartPostgres starts a server of the default version on data of its own.
func StartPostgres(t T, settings ...string) *PostgresServer {
	t.Helper()
	return StartPostgresWith(t, PostgresOptions{Settings: settings})
}

// StartPostgresWith is StartPostgres with a choice of the version.
func StartPostgresWith(t T, opts PostgresOptions) *PostgresServer {
	t.Helper()
	s := newPostgres(t, PostgresBin(t, opts.Version), opts.Settings)
	if out, err := s.command("initdb", "-D", s.DataDir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.Start()
	return s
}

func newPostgres(t T, bin string, settings []string) *PostgresServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "tailwater-pg-")
	if err != nil {
		t.Fatalf("make a directory for PostgreSQL: %v", err)
	}
	s := &PostgresServer{t: t, bin: bin, dir: dir, DataDir: filepath.Join(dir, "data"), Port: freePort(t)}
	s.settings = append(slices.Clone(basicSettings), settings...)
	s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.Port)
	t.Cleanup(func() {
		s.Crash() // nobody needs the data any more
		os.RemoveAll(dir)
	})
	s.own(dir)
	return s
}

// own gives a tree to the user that the server runs as.
func (s *PostgresServer) own(root string) {
	s.t.Helper()
	if os.Getuid() != 0 {
		return
	}
	uid, gid, err := nobody()
	if err == nil {
		err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, gid)
		})
	}
	if err != nil {
		s.t.Fatalf("give %s to nobody, as whom PostgreSQL runs: %v", root, err)
	}
}

func (s *PostgresServer) command(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	attr, err := childAttr(true)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr, cmd.Dir, cmd.Env = attr, s.dir, s.env()
	return cmd.CombinedOutput()
}

func (s *PostgresServer) env() []string {
	return append(os.Environ(), "HOME="+s.dir, "LC_ALL=C.UTF-8", "PGDATA=")
}

// Start starts the server and returns when it takes connections.
func (s *PostgresServer) Start() {
	s.t.Helper()
	_ = os.Remove(filepath.Join(s.DataDir, "postmaster.pid")) // left by a crash; its pid may be another's now
	args := []string{"-D", s.DataDir, "-p", strconv.Itoa(s.Port)}
	for _, v := range s.settings {
		args = append(args, "-c", v)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...)
	cmd.Dir, cmd.Env = s.dir, s.env()
	p, err := startProcess(cmd, true, filepath.Join(s.dir, "server.log"))
	if err != nil {
		s.t.Fatalf("start PostgreSQL: %v", err)
	}
	s.proc = p
	Eventually(s.t, 60*time.Second, "PostgreSQL takes connections", func() error {
		if p.ended() {
			s.t.Fatalf("PostgreSQL ended while it started: %v\n%s", p.err, s.Log())
		}
		return s.ping()
	})
}

func (s *PostgresServer) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// Log returns what the server has printed so far.
func (s *PostgresServer) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "server.log"))
	return string(text)
}

// Set changes settings (name=value); they hold from the next Start.
func (s *PostgresServer) Set(settings ...string) { s.settings = append(s.settings, settings...) }

// Stop is the fast shutdown: sessions are ended, a checkpoint is written.
func (s *PostgresServer) Stop() {
	s.t.Helper()
	if err := s.proc.end(syscall.SIGINT, 60*time.Second); err != nil {
		s.t.Fatalf("stop PostgreSQL: %v", err)
	}
}

// Crash kills the server and its children; the next Start recovers.
func (s *PostgresServer) Crash() {
	if s.proc == nil || s.proc.ended() {
		return
	}
	kids := children(s.proc.pid())
	_ = s.proc.end(syscall.SIGKILL, 20*time.Second)
	for _, pid := range kids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = eventually(10*time.Second, func() error { // a child may hold the port a little longer
		for _, pid := range kids {
			if syscall.Kill(pid, 0) == nil && !isZombie(pid) {
				return errors.New("a child is still there")
			}
		}
		return nil
	})
}

// Restart is Stop and Start.
func (s *PostgresServer) Restart() {
	s.t.Helper()
	s.Stop()
	s.Start()
}

// Pause freezes the server with all its processes, as a machine that hangs:
// connections stay open and nothing answers. Resume ends it.
func (s *PostgresServer) Pause() { s.signalAll(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *PostgresServer) Resume() { s.signalAll(syscall.SIGCONT) }

func (s *PostgresServer) signalAll(sig syscall.Signal) {
	pid := s.proc.pid()
	for _, p := range append([]int{pid}, children(pid)...) {
		_ = syscall.Kill(p, sig)
	}
}

func isZombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(text, ')')
	return i >= 0 && i+2 < len(text) && text[i+2] == 'Z'
}

// freePort finds a port below the range that outgoing connections take theirs
// from, so that it is still free when the server restarts.
func freePort(t T) int {
	t.Helper()
	for range 200 {
		port := 10000 + rand.IntN(9000)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("no free port between 10000 and 19000")
	return 0
}
