package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
)

// Options of a run of the daemon.
type Options struct {
	Config  *config.Config
	Logger  *slog.Logger
	Version string
	// Reload delivers a request to take the file again, which Load reads.
	Reload <-chan struct{}
	Load   func() (*config.Config, error)
	// Ready is called once, when all sources stream, with the rest of the line "ready …".
	Ready func(text string)
}

// Run runs the daemon until ctx ends; nil means that it stopped cleanly. A
// reload stops all parts and builds them anew from the new file, in this process.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	cfg, started := o.Config, time.Now()
	for {
		next, err := runOnce(ctx, o, cfg, started)
		if err != nil || next == nil || ctx.Err() != nil {
			return err
		}
		o.Logger.Info("configuration taken anew")
		cfg, o.Ready = next, nil
	}
}

// Daemon is one run with one configuration.
type Daemon struct {
	*LogReader
	opts    Options
	cfg     *config.Config
	logger  *slog.Logger
	started time.Time
	dir     *dataDir
	log     *seglog.Log
	sources []*sourceRunner
	sinks   *sinkSet
	reload  chan chan error // requests through HTTP
	disk    diskMeter

	mu       sync.Mutex
	views    *viewSet // nil until the views are compiled
	building string   // why there are none yet
}

// runOnce builds everything from cfg and runs it until ctx ends, a part fails
// for good, or a reload brings the next configuration.
func runOnce(ctx context.Context, o Options, cfg *config.Config, started time.Time) (next *config.Config, err error) {
	dir, err := openDataDir(cfg.DataDir, lockRun, o.Logger)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	log, err := openLog(cfg, dir, o.Logger)
	if err != nil {
		return nil, dirError(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := derive.CheckState(dir.stateDir(), log); err != nil { // before a source can append
		return nil, err
	}
	d := &Daemon{LogReader: NewLogReader(log, sourceKinds(cfg)), opts: o, cfg: cfg, logger: o.Logger, started: started, dir: dir, log: log, reload: make(chan chan error), building: "connecting to the sources"}
	if err := d.build(); err != nil {
		return nil, err
	}
	defer d.sinks.close()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.serve(gctx) })
	g.Go(func() error { return d.log.Run(gctx) })
	for _, s := range d.sources {
		g.Go(func() error { return s.Run(gctx) })
	}
	g.Go(func() error { return d.runViews(gctx) })
	g.Go(func() error { return d.announce(gctx) })
	g.Go(func() error {
		next = d.awaitReload(gctx)
		stop()
		return nil
	})
	err = g.Wait()
	if next != nil || o.stopped(ctx, err) {
		return next, nil
	}
	return nil, err
}

// stopped reports whether err is only the end of the run's context.
func (o *Options) stopped(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// build makes the parts; it does not connect.
func (d *Daemon) build() error {
	if err := applyTopicRules(d.cfg, d.log); err != nil {
		return err
	}
	for _, s := range d.cfg.Sources {
		c, err := newConnector(s, d.logger)
		if err != nil {
			return err
		}
		d.sources = append(d.sources, newSourceRunner(s, c, d.log, d.dir.path, func(topic string) eventlog.TopicSpec { return topicSpec(d.cfg, topic) }, d.logger))
	}
	var err error
	d.sinks, err = newSinkSet(d.cfg, d.dir.localDir(), d.log, d.logger)
	return err
}

func (d *Daemon) source(name string) *sourceRunner {
	for _, s := range d.sources {
		if s.cfg.Name == name {
			return s
		}
	}
	return nil
}

// announce says that all sources stream; it fails if none can.
func (d *Daemon) announce(ctx context.Context) error {
	var failed []error
	for _, s := range d.sources {
		select {
		case <-s.opened:
		case <-ctx.Done():
			return nil
		}
		if err := s.failure(); err != nil {
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) > 0 && len(failed) == len(d.sources):
		return errors.Join(failed...)
	case len(failed) == 0 && d.opts.Ready != nil:
		d.opts.Ready(fmt.Sprintf("%s, http://%s", plural(len(d.sources), "source streams", "sources stream"), d.cfg.Server.Listen))
	}
	return nil
}

// awaitReload returns the next configuration, or nil when ctx ends. A file with
// problems is reported and changes nothing.
func (d *Daemon) awaitReload(ctx context.Context) *config.Config {
	for {
		var answer chan error
		select {
		case <-ctx.Done():
			return nil
		case <-d.opts.Reload:
		case answer = <-d.reload:
		}
		next, err := d.opts.Load()
		if err == nil && next.DataDir != d.cfg.DataDir {
			err = fmt.Errorf("data_dir cannot change while the daemon runs: restart it")
		}
		if err != nil {
			d.logger.Error("the edited configuration is not taken; the old one stays", "err", err)
		}
		if answer != nil {
			answer <- err
		}
		if err == nil {
			return next
		}
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
