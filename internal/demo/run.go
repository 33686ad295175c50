package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Options say how Run runs the demo.
type Options struct {
	DSN     string    // of PostgreSQL; its database may be missing
	DataDir string    // made and refilled by the demo; "" = a temporary one, removed at the end
	Binary  string    // the tailwater command that is run as the daemon
	Listen  string    // "" = 127.0.0.1:7171, or a free port where that is taken or Check is set
	Check   bool      // run for CheckTime, kill the daemon twice, compare every document
	Out     io.Writer // what a person reads

	Load      LoadOptions
	Rate      float64       // transactions a second of live traffic; default 20
	CheckTime time.Duration // default a minute
}

const (
	defaultListen = "127.0.0.1:7171"
	markFile      = "tailwater-demo" // in DataDir: what is in it is the demo's own
)

// runner is one run of the demo.
type runner struct {
	opts    Options
	dir     string
	began   time.Time
	daemon  *daemon
	traffic *Trafficker
	stop    func() error // ends the traffic; may be repeated
}

// Run loads the shop, starts the daemon and live traffic, and prints where to
// look and what to try until ctx ends; or, with Check, runs for a while, kills
// the daemon in the snapshot and in the stream, and compares every document
// with SQL on the source. All that it started has ended when it returns; slot
// and publication are gone. nil means that ctx ended it, or that the check
// found no difference.
func Run(ctx context.Context, opts Options) (err error) {
	r := &runner{opts: withDefaults(opts), began: time.Now()}
	if err := r.openDir(); err != nil {
		return err
	}
	defer r.closeDir()
	if err := r.listen(); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return ended(ctx, opts.Check, err)
	}
	defer func() { err = errors.Join(err, r.release()) }()
	if err := r.writeConfig(); err != nil {
		return err
	}
	r.startTraffic(ctx)
	defer func() { err = errors.Join(err, r.stop()) }()
	defer func() { err = errors.Join(err, r.daemon.terminate()) }()
	if opts.Check {
		return r.check(ctx)
	}
	return ended(ctx, false, r.show(ctx))
}

// ended turns an error that is only the person's Ctrl-C into none; a check that
// was cut short has failed.
func ended(ctx context.Context, check bool, err error) error {
	if ctx.Err() != nil && !check {
		return nil
	}
	return err
}

func withDefaults(o Options) Options {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Rate == 0 {
		o.Rate = 20
	}
	if o.CheckTime == 0 {
		o.CheckTime = time.Minute
	}
	if o.Load.Seed == 0 {
		o.Load.Seed = 1
	}
	o.Load.Size = o.Load.Size.withDefaults()
	return o
}

func (r *runner) say(format string, args ...any) { fmt.Fprintf(r.opts.Out, format+"\n", args...) }

// load empties what an earlier demo left at the server and loads the shop.
func (r *runner) load(ctx context.Context) error {
	c, err := connectOrCreate(ctx, r.opts.DSN)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL for the demo: %w", err)
	}
	err = dropReplication(ctx, c)
	closeConn(c)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := Load(ctx, r.opts.DSN, r.opts.Load); err != nil {
		return err
	}
	r.say("The shop is loaded: %d products and %d reviews in %.1f s.", r.opts.Load.Size.Products, r.opts.Load.Size.Reviews, time.Since(start).Seconds())
	return nil
}

func (r *runner) startTraffic(ctx context.Context) {
	r.traffic = NewTrafficker(r.opts.DSN, r.opts.Rate, r.opts.Load.Seed)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = r.traffic.Run(ctx)
	}()
	r.stop = func() error {
		cancel()
		<-done
		return err
	}
}

// openDir makes the directory for configuration, log and data, empty.
func (r *runner) openDir() error {
	if r.opts.DataDir == "" {
		dir, err := os.MkdirTemp("", "tailwater-demo-")
		r.dir = dir
		return err
	}
	dir, err := filepath.Abs(r.opts.DataDir)
	if err != nil {
		return err
	}
	r.dir = dir
	if err := clearDir(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, markFile), []byte("Made by `tailwater demo`, which empties this directory at its start.\n"), 0o600)
}

// clearDir removes an earlier demo's directory; another's is refused.
func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, markFile)); err != nil {
		return fmt.Errorf("%s is not empty and was not made by the demo: name another directory", dir)
	}
	return os.RemoveAll(dir)
}

func (r *runner) closeDir() {
	if r.opts.DataDir == "" {
		os.RemoveAll(r.dir)
	}
}

func (r *runner) listen() error {
	if r.opts.Listen != "" {
		return nil
	}
	first := defaultListen
	if r.opts.Check {
		first = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", first)
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("find a port for the demo's page: %w", err)
	}
	r.opts.Listen = l.Addr().String()
	return l.Close()
}

func (r *runner) configFile() string { return filepath.Join(r.dir, "tailwater.yaml") }

func (r *runner) writeConfig() error {
	text := Config(r.opts.DSN, filepath.Join(r.dir, "data"), r.opts.Listen)
	if err := os.WriteFile(r.configFile(), []byte(text), 0o600); err != nil {
		return err
	}
	r.daemon = &daemon{binary: r.opts.Binary, config: r.configFile(), log: filepath.Join(r.dir, "daemon.log")}
	return nil
}
