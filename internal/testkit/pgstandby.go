package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Standby makes a streaming standby of a running server, named name as its
// application_name (what synchronous_standby_names lists) and its slot, and
// returns when it has connected. It inherits the settings.
func (s *PostgresServer) Standby(name string, settings ...string) *PostgresServer {
	s.t.Helper()
	sb := newPostgres(s.t, s.bin, append(s.settings[len(basicSettings):len(s.settings):len(s.settings)], settings...))
	if err := s.baseBackup(sb.DataDir, name); err != nil {
		s.t.Fatalf("copy the primary for a standby: %v", err)
	}
	conf := fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=postgres application_name=%s'\nprimary_slot_name = '%s'\n",
		s.Port, name, name)
	for file, text := range map[string]string{"standby.signal": "", "postgresql.auto.conf": conf} {
		if err := os.WriteFile(filepath.Join(sb.DataDir, file), []byte(text), 0o600); err != nil {
			s.t.Fatalf("set up the standby: %v", err)
		}
	}
	sb.own(sb.dir)
	// A copied setting would make the standby wait for itself once it is promoted.
	sb.Set("synchronous_standby_names=")
	sb.Start()
	c := Connect(s.t, s.URL)
	Eventually(s.t, 30*time.Second, "the standby streams", func() error {
		var n int
		err := c.QueryRow(context.Background(),
			"select count(*) from pg_stat_replication where application_name = $1 and state = 'streaming'", name).Scan(&n)
		if err == nil && n == 0 {
			err = errors.New("it has not connected")
		}
		return err
	})
	return sb
}

// Promote makes a standby a primary, on a new timeline.
func (s *PostgresServer) Promote() {
	s.t.Helper()
	Exec(s.t, s.URL, "select pg_promote(true, 60)")
}

// baseBackup copies the running server's files between the start and the stop
// of a backup; the physical slot keeps the WAL that the copy needs.
func (s *PostgresServer) baseBackup(to, slot string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := Connect(s.t, s.URL)
	var version int
	if err := c.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&version); err != nil {
		return err
	}
	// The functions were renamed in PostgreSQL 15, which has the non-exclusive backup only.
	start, stop := "select pg_backup_start('testkit', true)::text", "select labelfile from pg_backup_stop(false)"
	if version < 150000 {
		start, stop = "select pg_start_backup('testkit', true, false)::text", "select labelfile from pg_stop_backup(false, false)"
	}
	if _, err := c.Exec(ctx, "select pg_create_physical_replication_slot($1, true)", slot); err != nil {
		return err
	}
	var lsn, label string
	if err := c.QueryRow(ctx, start).Scan(&lsn); err != nil {
		return err
	}
	if err := copyTree(s.DataDir, to); err != nil {
		return err
	}
	if err := c.QueryRow(ctx, stop).Scan(&label); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "backup_label"), []byte(label), 0o600)
}

// copyTree copies a live data directory. Files may vanish meanwhile; those of
// pg_wal and pg_replslot are left out, as in any base backup.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && strings.HasPrefix(rel, "pg_replslot/"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case rel == "postmaster.pid" || rel == "postmaster.opts" || strings.HasPrefix(rel, "pg_wal/"):
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
