package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

// deps are what the commands need from the rest of the program. A nil function
// makes its command fail with a clear error.
type deps struct {
	// run is the daemon, until ctx ends; nil means that it stopped cleanly.
	run func(ctx context.Context, o runOptions) error

	// checkLive tries connections, privileges and settings and changes nothing.
	checkLive func(ctx context.Context, cfg *config.Config) ([]finding, error)

	// plan says what run would do, without doing it.
	plan func(ctx context.Context, cfg *config.Config) ([]planStep, error)

	// offline opens the data directory for reading; the daemon need not run.
	offline func(cfg *config.Config) (store, error)

	// checkDir checks the log of a data directory and calls fn for each damage.
	checkDir func(ctx context.Context, cfg *config.Config, fn func(server.Damage) error) (server.CheckResult, error)

	// compactDir compacts topics of a data directory that no daemon has open.
	compactDir func(ctx context.Context, cfg *config.Config, glob string, fn func(server.Compacted) error) error

	// drop removes what r names and calls step with a line for people before
	// each; with r.DryRun it only calls step.
	drop func(ctx context.Context, cfg *config.Config, r dropRequest, step func(string)) error

	// demo runs until ctx ends; with Check until its comparison is done.
	demo func(ctx context.Context, o demoOptions) error

	// code is the exit code of an error of another package; 0 = none special.
	code func(err error) int
}

// runOptions are what `tailwater run` gives to the daemon.
type runOptions struct {
	Config  *config.Config
	Log     *slog.Logger
	Version string
	// Reload delivers a request for each SIGHUP; Load reads the file again.
	Reload <-chan struct{}
	Load   func() (*config.Config, error)
	// Ready is called once, with the rest of the line "ready …", when all
	// sources stream.
	Ready func(text string)
}

// finding is one thing that check --live says.
type finding struct {
	Part        string `json:"part"`                  // "source shop", "sink search"
	OK          bool   `json:"ok"`                    // a good thing, or a fault
	Warning     bool   `json:"warning,omitempty"`     // OK, but worth a look
	Message     string `json:"message"`               // one line
	Fix         string `json:"fix,omitempty"`         // SQL or another way out
	Unreachable bool   `json:"unreachable,omitempty"` // the part did not answer
}

// planStep is one thing that run would do.
type planStep struct {
	Action string `json:"action"` // "snapshot", "build view", "create index", …
	Target string `json:"target"`
	Detail string `json:"detail,omitempty"`
	Fix    string `json:"fix,omitempty"` // what mends it: SQL, one statement a line
}

// dropRequest says what drop removes.
type dropRequest struct {
	Sources []string // slot and publication of these
	Unused  bool     // sources, views and local indexes that the configuration no longer names
	State   bool     // log, state and local index
	DryRun  bool
}

// demoOptions are the flags of `tailwater demo`.
type demoOptions struct {
	DSN    string        // of a PostgreSQL database
	Check  bool          // run without a terminal, kill -9 the daemon, compare everything, end
	For    time.Duration // of a check; 0 = the demo's own default
	Listen string        // of the page; "" = the demo's own choice
	Dir    string        // of the demo's data; "" = a temporary one
	Rate   float64       // transactions a second; 0 = the demo's own default
	Out    io.Writer     // what a person reads
}

// store is what view and log commands read: a running daemon, or a data
// directory. Its methods mean what those of server.Daemon mean.
type store interface {
	Topics(ctx context.Context) ([]server.TopicStatus, error)
	Views(ctx context.Context) ([]server.ViewStatus, error)
	Get(ctx context.Context, view, id string) (doc []byte, version uint64, err error)
	Dump(ctx context.Context, view string, fn func(id string, version uint64, doc []byte) error) error
	Records(ctx context.Context, q server.RecordQuery, fn func(line []byte) error) error
	Batches(ctx context.Context, q server.BatchQuery, fn func(line []byte) error) error
	LogStats(ctx context.Context) (server.LogDetail, error)
	Close() error
}
