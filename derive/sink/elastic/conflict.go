package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tailwater/tailwater/derive/sink"
)

// conflict is an update that the server refused because it has a higher version.
type conflict struct {
	at    int    // index of the update
	named uint64 // the version that the server named; 0: none
}

var currentVersion = regexp.MustCompile(`current version \[(-?[0-9]+)\]`)

// namedVersion reads the stored version out of an item's error.
func namedVersion(e *itemError) uint64 {
	if e == nil {
		return 0
	}
	m := currentVersion.FindStringSubmatch(e.Reason)
	if m == nil {
		return 0
	}
	v, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// resolve decides about conflicts. One is success only if what the server has is
// of this log: a version not above the frontier. A deleted document has no
// version to be read; then the one named in the error counts (V32).
func (t *target) resolve(ctx context.Context, g *generation, updates []sink.Update, conflicts []conflict, results []sink.Result) error {
	if len(conflicts) == 0 {
		return nil
	}
	stored, err := t.versions(ctx, g, updates, conflicts)
	if err != nil {
		return err
	}
	frontier := t.sink.opts.Frontier()
	for _, c := range conflicts {
		u := &updates[c.at]
		v, found := stored[u.ID]
		if !found {
			v = c.named
		}
		switch {
		case v > frontier:
			return fmt.Errorf("%w: a document of the index %q has version %d and the log ends at %d: something else writes to it, or the data directory is older. 'tailwater view rebuild %s' makes a new index",
				sink.ErrAhead, g.name, v, frontier, t.view)
		case found && v < u.Version, !found && v == 0:
			results[c.at] = sink.Result{Outcome: sink.Retry, Reason: "409: the conflict is over"}
		default:
			results[c.at] = sink.Result{Outcome: sink.Stale}
		}
	}
	return nil
}

// versions reads the stored versions of documents, from the translog where need be.
func (t *target) versions(ctx context.Context, g *generation, updates []sink.Update, conflicts []conflict) (map[string]uint64, error) {
	ids := make([]string, len(conflicts))
	for i, c := range conflicts {
		ids[i] = updates[c.at].ID
	}
	body, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Docs []struct {
			ID      string `json:"_id"`
			Found   bool   `json:"found"`
			Version uint64 `json:"_version"`
		} `json:"docs"`
	}
	if err := t.sink.do(ctx, esapi.MgetRequest{Index: g.name, Body: reader(body), Source: []string{"false"}}, &answer); err != nil {
		return nil, fmt.Errorf("read versions from the index %q: %w", g.name, err)
	}
	stored := map[string]uint64{}
	for _, d := range answer.Docs {
		if d.Found {
			stored[d.ID] = d.Version
		}
	}
	return stored, nil
}
