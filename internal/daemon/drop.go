package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

// DropRequest says what Drop removes.
type DropRequest struct {
	Sources []string // slot, publication and position of these
	Unused  bool     // state and cursors of views and sinks that the configuration no longer names
	State   bool     // log, state and local index
	DryRun  bool     // only say it
}

// Drop removes what r names and calls step before each. The daemon must be stopped.
func Drop(ctx context.Context, cfg *config.Config, r DropRequest, logger *slog.Logger, step func(string)) error {
	var dir *dataDir
	if exists(filepath.Join(cfg.DataDir, "FORMAT")) { // else there is nothing of ours
		var err error
		if dir, err = openDataDir(cfg.DataDir, lockDrop, logger); err != nil {
			return err
		}
		defer dir.close()
	}
	for _, name := range r.Sources {
		if err := dropSource(ctx, cfg, name, dir, r, logger, step); err != nil {
			return err
		}
	}
	if dir == nil {
		return nil
	}
	if r.Unused && !r.State {
		if err := dropUnused(cfg, dir, r.DryRun, logger, step); err != nil {
			return err
		}
	}
	if r.State {
		return dropState(dir, r.DryRun, step)
	}
	return nil
}

func dropSource(ctx context.Context, cfg *config.Config, name string, dir *dataDir, r DropRequest, logger *slog.Logger, step func(string)) error {
	s := cfg.Source(name)
	if s == nil {
		return fmt.Errorf("the configuration has no source %q", name)
	}
	step(fmt.Sprintf("source %q: replication slot %q and publication %q at %s", name, s.Slot, s.Publication, s.Address))
	if !r.DryRun {
		c, err := newConnector(s, logger)
		if err != nil {
			return err
		}
		if err := c.Drop(ctx); err != nil {
			return fmt.Errorf("source %q: %w", name, err)
		}
	}
	if dir == nil || !exists(dir.logDir()) || r.State { // the log goes too, whether or not it still opens
		return nil
	}
	step(fmt.Sprintf("source %q: its position in the log; the next run reads its tables again", name))
	if r.DryRun {
		return nil
	}
	return withLog(dir, logger, func(log *seglog.Log) error {
		return (&connectors.LogHistory{Log: log, Source: name}).Forget()
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func withLog(dir *dataDir, logger *slog.Logger, fn func(*seglog.Log) error) (err error) {
	log, err := seglog.Open(dir.logDir(), seglog.Options{Logger: logger})
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return fn(log)
}

// dropUnused removes the state of views, and the cursors and local indexes of
// views in sinks, that the configuration no longer has.
func dropUnused(cfg *config.Config, dir *dataDir, dry bool, logger *slog.Logger, step func(string)) error {
	if !exists(dir.logDir()) {
		return nil
	}
	wanted := map[string]bool{}
	local := map[string]bool{}
	for _, v := range cfg.Views {
		for _, t := range v.To {
			wanted[sink.CheckpointName(t.Sink, v.Name)] = true
			if k := cfg.Sink(t.Sink); k != nil && k.Kind == config.Local {
				local[change.EscapeName(v.Name)] = true
			}
		}
	}
	return withLog(dir, logger, func(log *seglog.Log) error {
		if err := dropViews(cfg, dir, log, dry, logger, step); err != nil {
			return err
		}
		marks, err := log.Checkpoints()
		if err != nil {
			return err
		}
		for name := range marks {
			if len(name) < 5 || name[:5] != "sink/" || wanted[name] {
				continue
			}
			step("cursor " + name)
			if !dry {
				if err := errors.Join(log.SaveCheckpoint(name, nil), log.SetCursor(name, nil)); err != nil {
					return err
				}
			}
		}
		return dropLocal(dir, local, dry, step)
	})
}

func dropViews(cfg *config.Config, dir *dataDir, log *seglog.Log, dry bool, logger *slog.Logger, step func(string)) (err error) {
	if !exists(dir.stateDir()) {
		return nil
	}
	if dry {
		return sayUnused(cfg, dir, step)
	}
	runner, err := derive.Open(runnerOptions(cfg, log, dir.stateDir(), logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	for _, name := range runner.Unused() {
		step(fmt.Sprintf("state of view %q", name))
	}
	_, err = runner.DropUnused()
	return err
}

// sayUnused names the views whose state would go; it writes nothing.
func sayUnused(cfg *config.Config, dir *dataDir, step func(string)) error {
	r, err := derive.OpenReadOnly(dir.stateDir(), join.Restore)
	if err != nil {
		return err
	}
	for _, s := range r.Stats() {
		if cfg.View(s.Name) == nil {
			step(fmt.Sprintf("state of view %q", s.Name))
		}
	}
	return r.Close()
}

func dropLocal(dir *dataDir, wanted map[string]bool, dry bool, step func(string)) error {
	entries, err := os.ReadDir(dir.localDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the folder of the local index: %w", err)
	}
	for _, e := range entries {
		if wanted[e.Name()] {
			continue
		}
		step("local index " + e.Name())
		if !dry {
			if err := os.RemoveAll(filepath.Join(dir.localDir(), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropState removes everything of ours in the data directory, FORMAT last.
func dropState(dir *dataDir, dry bool, step func(string)) error {
	for _, name := range []string{"local", "state", "log", "tailwater.sock", "FORMAT"} {
		path := filepath.Join(dir.path, name)
		if !exists(path) {
			continue
		}
		step(path)
		if dry {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
