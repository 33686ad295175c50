package derive

import (
	"errors"
	"log/slog"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// Options says what a Runner runs. Log, StateDir and Views are needed.
type Options struct {
	Log      eventlog.Log
	StateDir string // of the store; made if absent
	Views    []View
	// Restore makes a view of the bytes of its Definition: the old one of a
	// changed view, which serves until the new one has taken over.
	Restore func(definition []byte) (View, error)
	Logger  *slog.Logger // default: discarded

	MaxBatchTx    int   // transactions in a batch; default 1000
	MaxBatchBytes int   // keys and values in a batch; default 8 MiB
	InlineLimit   int   // roots a view rebuilds at once, the rest queues; default 5000
	DrainRoots    int   // queued roots that a view rebuilds in a step; default 2000
	OutputBytes   int   // documents in a step, beyond which roots queue; default 16 MiB
	CacheBytes    int64 // block cache of the store; default 64 MiB
	// SyncEvery bounds how much work a power loss can undo; it changes no result. Default 10s.
	SyncEvery time.Duration
	// Topic returns the partition count of a view's topic and how long it keeps
	// tombstones; 0 is what the topic has, or the default. Nothing else of it is used.
	Topic func(view string) eventlog.TopicSpec
	// Fatal is called when the store failed and the process must end; it must not return. Default: exit with code 1.
	Fatal func(msg string)
}

func (o *Options) complete() error {
	if o.Log == nil || o.StateDir == "" {
		return errors.New("derive: Log and StateDir are needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.MaxBatchTx, 1000)
	setDefault(&o.MaxBatchBytes, 8<<20)
	setDefault(&o.InlineLimit, 5000)
	setDefault(&o.DrainRoots, 2000)
	setDefault(&o.OutputBytes, 16<<20)
	if o.SyncEvery == 0 {
		o.SyncEvery = 10 * time.Second
	}
	if o.Topic == nil {
		o.Topic = func(string) eventlog.TopicSpec { return eventlog.TopicSpec{} }
	}
	return nil
}

func setDefault(n *int, v int) {
	if *n <= 0 {
		*n = v
	}
}

// Errors.
var (
	// ErrStateAhead means that the state remembers more than the log holds: the
	// log lost its end, or is another one.
	ErrStateAhead = errors.New("view state is beyond the log's end")
	// ErrUnknownView means a name that no view has.
	ErrUnknownView = errors.New("unknown view")
	// ErrNotReady means that a view cannot serve documents now; the text says why.
	ErrNotReady = errors.New("view is not ready")
)
