package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// formatLine is the content of FORMAT: the version of the whole layout.
const formatLine = "tailwater data directory, format 1\n"

// ErrLocked means that a process has the data directory open.
var ErrLocked = errors.New("data directory is in use")

// ErrFormat means that the directory is not one that this version can read.
var ErrFormat = errors.New("data directory has another format")

// dataDir is the locked data directory.
type dataDir struct {
	path string
	lock *os.File
}

var ownNames = []string{"LOCK", "FORMAT", "log", "state", "local", "tailwater.sock"}

// The commands that lock a data directory, as LOCK names them.
const (
	lockRun     = "tailwater run"
	lockCompact = "tailwater log compact"
	lockDrop    = "tailwater drop"
)

// openDataDir makes the directory if needed, locks it for a command and checks its format.
func openDataDir(path, command string, log *slog.Logger) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	d := &dataDir{path: path}
	var err error
	if d.lock, err = lockFile(filepath.Join(path, "LOCK"), command); err != nil {
		return nil, err
	}
	if err := d.format(); err != nil {
		d.close()
		return nil, err
	}
	d.warnOthers(log)
	return d, nil
}

// lockFile locks a file and writes into it whose lock it is, for who finds it locked.
func lockFile(path, command string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(path)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrLocked, lockedText(filepath.Dir(path), string(owner), command))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d %s\n", os.Getpid(), command)
	}
	return f, nil
}

// lockedText says who holds a directory's lock, as LOCK names it, and what the
// command that wants it can do.
func lockedText(dir, owner, command string) string {
	process, holder, _ := strings.Cut(strings.TrimSpace(owner), " ")
	if process == "" { // it has just taken the lock
		return dir + " is locked by another process; try again"
	}
	if holder == "" {
		holder = lockRun // of an older version, whose LOCK did not say
	}
	way := "it ends by itself: try again then"
	switch {
	case holder == lockRun && command == lockRun:
		way = "stop it, or give this one another data_dir"
	case holder == lockRun:
		way = "stop it, or try again once it answers (tailwater status)"
		if command == lockDrop {
			way = "stop it first"
		}
	}
	return fmt.Sprintf("%s is locked by process %s (%s); %s", dir, process, holder, way)
}

// format checks FORMAT, or writes it into a directory that has none of our data.
func (d *dataDir) format() error {
	name := filepath.Join(d.path, "FORMAT")
	b, err := os.ReadFile(name)
	switch {
	case err == nil && string(b) == formatLine:
		return nil
	case err == nil && len(b) > 0:
		return fmt.Errorf("%w: %s says %q, this version reads format 1; use the version that made it, or another data_dir", ErrFormat, name, strings.TrimSpace(string(b)))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", name, err)
	}
	if _, err := os.Stat(filepath.Join(d.path, "log")); err == nil {
		return fmt.Errorf("%w: %s has a log but no FORMAT; restore the directory whole, or give another data_dir", ErrFormat, d.path)
	}
	return writeSynced(name, formatLine)
}

func writeSynced(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// warnOthers names what is not ours; it is left alone.
func (d *dataDir) warnOthers(log *slog.Logger) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	var others []string
	for _, e := range entries {
		if !slices.Contains(ownNames, e.Name()) {
			others = append(others, e.Name())
		}
	}
	if len(others) > 0 {
		log.Warn("the data directory holds names that are not ours; they are left alone", "names", others)
	}
}

func (d *dataDir) logDir() string   { return filepath.Join(d.path, "log") }
func (d *dataDir) stateDir() string { return filepath.Join(d.path, "state") }
func (d *dataDir) localDir() string { return filepath.Join(d.path, "local") }

func (d *dataDir) close() { d.lock.Close() }

// diskUse adds up the sizes of all files below a directory.
func diskUse(path string) int64 {
	var total int64
	filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}
