package derive

import (
	"context"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// Update is one output of a Stage: a document of a view at a version.
type Update struct {
	Key change.Key // of the root row
	Doc []byte     // JSON object; nil: the document is no more
}

// Change is one row change as stages see it: both sides whole, already in the
// images (old is what was there before).
type Change struct {
	Topic    string
	Op       change.Op
	Key      change.Key
	Old, New *change.Row // nil: absent
	CSN      eventlog.CSN
}

// Stage derives one view. The Runner that owns it calls it from one goroutine:
// for each record Before (images still old) and After (images already new),
// then Outputs at the batch's end.
type Stage interface {
	Name() string
	// Tables returns the topics that the stage reads.
	Tables() []string
	Before(ctx context.Context, c *Change) error
	After(ctx context.Context, c *Change) error
	// Outputs returns the documents that differ from what was last output, as of CSN b.
	Outputs(ctx context.Context, b eventlog.CSN) ([]Update, error)
}
