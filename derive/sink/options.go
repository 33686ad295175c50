package sink

import (
	"context"
	"log/slog"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// WorkerOptions say what a Worker copies, and how.
type WorkerOptions struct {
	Log      eventlog.Log
	Sink     Sink   // shared by the workers of all its views
	SinkName string // names the cursor and the topic of dead letters
	View     View
	Topic    string // default view.NAME

	// Ready is closed once the view is live, that is, once its topic holds every
	// document; nil: it is. Builds wait for it, nothing else does.
	Ready <-chan struct{}
	// Has reports whether the view has a document of that id, for sweeps; nil:
	// the view's topic decides.
	Has func(id string) (bool, error)
	// Restamp makes the view output every document again with a version above
	// csn, and returns when that is in the topic. It is asked for when a target
	// holds versions of another log above ours. nil: not needed.
	Restamp func(ctx context.Context, csn eventlog.CSN) error

	RejectStops bool          // on_reject: stop; default: dead letters
	BatchCount  int           // documents in one write; default 1000
	BatchBytes  int           // of one write; default 8 MiB
	BatchWait   time.Duration // for more documents once the topic's end is reached; default none
	SaveEvery   time.Duration // between saves of the cursor; default 1s
	FlushEvery  time.Duration // between flushes, which also find out a target that was restored or emptied; default 30s
	ProbeEvery  time.Duration // between attempts of a stopped sink; default 1m
	RetryMin    time.Duration // first wait between attempts; default 100ms
	RetryMax    time.Duration // longest; default 30s
	StopTimeout time.Duration // of the last flush when Run ends; default 5s

	Logger *slog.Logger // default: discards
}

func (o WorkerOptions) withDefaults() WorkerOptions {
	if o.Topic == "" {
		o.Topic = change.TopicView + change.EscapeName(o.View.Name)
	}
	setDefault(&o.BatchCount, 1000)
	setDefault(&o.BatchBytes, 8<<20)
	setDefault(&o.SaveEvery, time.Second)
	setDefault(&o.FlushEvery, 30*time.Second)
	setDefault(&o.ProbeEvery, time.Minute)
	setDefault(&o.RetryMin, 100*time.Millisecond)
	setDefault(&o.RetryMax, 30*time.Second)
	setDefault(&o.StopTimeout, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("sink", o.SinkName, "view", o.View.Name)
	return o
}

func setDefault[T int | time.Duration](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}

// CheckpointName is the name under which the log keeps the cursor of a view in a sink.
func CheckpointName(sink, view string) string {
	return "sink/" + change.EscapeName(sink) + "/" + change.EscapeName(view)
}
