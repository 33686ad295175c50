package connectors

import "errors"

// ErrReopen ends a Source that is sound but must be opened again, at once: the
// set of its tables changed.
var ErrReopen = errors.New("source is to be opened again")
