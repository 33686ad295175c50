package elastic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"golang.org/x/sync/errgroup"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

// Write writes the updates in several bulk requests at a time. No two updates
// have the same id, so their order does not matter. The stamp is Flush's.
func (t *target) Write(ctx context.Context, updates []sink.Update, _ sink.Stamp) ([]sink.Result, error) {
	g := t.writing()
	if g == nil {
		return nil, fmt.Errorf("%w: view %q has no index", sink.ErrWentBack, t.view)
	}
	t.unseen = true
	results := make([]sink.Result, len(updates))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(t.sink.opts.InFlight)
	for start := 0; start < len(updates); {
		end := t.cut(updates, start)
		part, out := updates[start:end], results[start:end]
		group.Go(func() error {
			r, err := t.bulk(gctx, g, part)
			copy(out, r)
			return err
		})
		start = end
	}
	if err := group.Wait(); err != nil {
		t.exact = false
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return results, nil
}

// cut returns where the bulk request ends that begins at start.
func (t *target) cut(updates []sink.Update, start int) int {
	size, share := 0, (len(updates)+t.sink.opts.InFlight-1)/t.sink.opts.InFlight
	share = max(share, 250) // small batches go in one request
	for end := start; end < len(updates); end++ {
		size += len(updates[end].ID) + len(updates[end].Doc) + 100
		if end > start && (size > t.sink.opts.BulkBytes || end-start >= share) {
			return end
		}
	}
	return len(updates)
}

// appendItem appends the lines of one update.
func appendItem(b []byte, u *sink.Update) []byte {
	if u.Doc == nil {
		b = append(b, `{"delete":{"_id":`...)
	} else {
		b = append(b, `{"index":{"_id":`...)
	}
	b = change.AppendJSONString(b, u.ID)
	b = append(b, `,"version":`...)
	b = strconv.AppendUint(b, u.Version, 10)
	b = append(b, `,"version_type":"external_gte"}}`...)
	b = append(b, '\n')
	if u.Doc == nil {
		return b
	}
	start := len(b)
	b = append(b, u.Doc...)
	if doc := b[start:]; bytes.ContainsAny(doc, "\r\n") {
		for i, c := range doc {
			if c == '\n' || c == '\r' { // between tokens: inside texts they are escaped
				doc[i] = ' '
			}
		}
	}
	return append(b, '\n')
}

// item is the answer for one update.
type item struct {
	Status int        `json:"status"`
	Result string     `json:"result"`
	Error  *itemError `json:"error"`
}

type bulkAnswer struct {
	Errors bool              `json:"errors"`
	Items  []map[string]item `json:"items"`
}

// bulk sends one request. A request that is refused as a whole is sent again in
// halves, so that one document cannot hold up the others.
func (t *target) bulk(ctx context.Context, g *generation, updates []sink.Update) ([]sink.Result, error) {
	var body []byte
	for i := range updates {
		body = appendItem(body, &updates[i])
	}
	yes := true
	var answer bulkAnswer
	err := t.sink.do(ctx, esapi.BulkRequest{
		Index: g.writeAlias(), Body: reader(body), RequireAlias: &yes,
		FilterPath: []string{"errors", "items.*.status", "items.*.result", "items.*.error.type", "items.*.error.reason"},
	}, &answer)
	var a *answerError
	switch {
	case errors.As(err, &a) && (a.status == http.StatusRequestEntityTooLarge || a.status == http.StatusBadRequest):
		return t.halves(ctx, g, updates, a)
	case notFound(err):
		return nil, fmt.Errorf("%w: the index %q is gone", sink.ErrWentBack, g.name)
	case err != nil:
		return nil, fmt.Errorf("write to the index %q: %w", g.name, err)
	case len(answer.Items) != len(updates):
		return nil, fmt.Errorf("write to the index %q: the server answered for %d of %d documents", g.name, len(answer.Items), len(updates))
	}
	return t.judge(ctx, g, updates, answer.Items)
}

func (t *target) halves(ctx context.Context, g *generation, updates []sink.Update, a *answerError) ([]sink.Result, error) {
	if len(updates) == 1 {
		reason := a.Error()
		if a.status == http.StatusRequestEntityTooLarge {
			reason = fmt.Sprintf("the document has %d bytes, more than the server takes in one request", len(updates[0].Doc))
		}
		return []sink.Result{{Outcome: sink.Rejected, Reason: reason}}, nil
	}
	half := len(updates) / 2
	first, err := t.bulk(ctx, g, updates[:half])
	if err != nil {
		return nil, err
	}
	second, err := t.bulk(ctx, g, updates[half:])
	return append(first, second...), err
}

// judge gives each item its outcome.
func (t *target) judge(ctx context.Context, g *generation, updates []sink.Update, items []map[string]item) ([]sink.Result, error) {
	results := make([]sink.Result, len(updates))
	var conflicts []conflict
	for i, m := range items {
		for _, it := range m { // one entry: index or delete
			switch {
			case it.Status == http.StatusConflict:
				conflicts = append(conflicts, conflict{at: i, named: namedVersion(it.Error)})
			case it.Error != nil && (it.Status == http.StatusNotFound || it.Error.Type == "invalid_index_name_exception"):
				return nil, fmt.Errorf("%w: the index %q is gone", sink.ErrWentBack, g.name)
			default:
				results[i] = outcome(it)
				t.tally(it)
			}
		}
		if len(m) != 1 {
			return nil, fmt.Errorf("write to the index %q: an item of the answer is empty", g.name)
		}
	}
	return results, t.resolve(ctx, g, updates, conflicts, results)
}

// tally counts documents for checkBuild.
func (t *target) tally(it item) {
	switch it.Result {
	case "created":
		t.count.Add(1)
	case "deleted":
		t.count.Add(-1)
	}
}

func outcome(it item) sink.Result {
	kind, reason := "", ""
	if it.Error != nil {
		kind, reason = it.Error.Type, withoutValues(it.Error.Reason)
	}
	text := strings.TrimRight(fmt.Sprintf("%d %s: %s", it.Status, kind, reason), ": ")
	switch {
	case it.Status < 300, it.Status == http.StatusNotFound: // 404: nothing there to delete
		return sink.Result{Outcome: sink.Written}
	case it.Status == http.StatusTooManyRequests, it.Status == http.StatusRequestTimeout, it.Status >= 500,
		strings.Contains(kind, "cluster_block"), strings.Contains(kind, "rejected_execution"):
		return sink.Result{Outcome: sink.Retry, Reason: text}
	}
	return sink.Result{Outcome: sink.Rejected, Reason: text}
}
