package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/internal/jsoncmp"
)

// maxShown bounds the differences that one comparison prints.
const maxShown = 10

// CompareJSON fails the test unless both documents are equal by jsoncmp's
// rules: no float anywhere, 1.0 differs from 1.00.
func CompareJSON(t T, what string, want, got []byte) {
	t.Helper()
	diff, err := jsoncmp.Diff(want, got, maxShown)
	if err != nil {
		t.Fatalf("compare %s: %v\nwant %s\ngot  %s", what, err, want, got)
	}
	if len(diff) > 0 {
		t.Fatalf("%s differs:\n  %s\nwant %s\ngot  %s", what, strings.Join(diff, "\n  "), want, got)
	}
}

// CompareView fails the test unless docs, by document id, are exactly the
// rows (id text, doc json) of a query on the source.
func CompareView(t T, docs map[string]json.RawMessage, dsn, query string) {
	t.Helper()
	want := QueryDocs(t, dsn, query)
	if diff := DiffDocs(want, docs); len(diff) > 0 {
		t.Fatalf("the view has %d documents, the query %d:\n  %s", len(docs), len(want), strings.Join(diff, "\n  "))
	}
}

// QueryDocs runs a query of two columns, id and document, with the session's
// zone UTC.
func QueryDocs(t T, dsn, query string) map[string]json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	docs, err := queryDocs(ctx, dsn, query)
	if err != nil {
		t.Fatalf("query the expected documents: %v", err)
	}
	return docs
}

func queryDocs(ctx context.Context, dsn, query string) (map[string]json.RawMessage, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["timezone"] = "UTC"
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer closeConn(c)
	// The simple protocol sends everything as text, whatever the columns' types are.
	results, err := c.PgConn().Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	docs := make(map[string]json.RawMessage)
	for _, r := range results {
		for _, row := range r.Rows {
			if len(row) != 2 {
				return nil, fmt.Errorf("the query has %d columns and not id and document", len(row))
			}
			docs[string(row[0])] = json.RawMessage(row[1])
		}
	}
	return docs, nil
}

// DiffDocs lists how two sets of documents differ, in order of id, at most ten
// lines; nil means that they are equal.
func DiffDocs(want, got map[string]json.RawMessage) []string {
	var out []string
	ids := make(map[string]struct{}, len(want))
	for id := range want {
		ids[id] = struct{}{}
	}
	for id := range got {
		ids[id] = struct{}{}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		line := diffDoc(id, want, got)
		if line == "" {
			continue
		}
		if len(out) == maxShown {
			return append(out, "... and more")
		}
		out = append(out, line)
	}
	return out
}

func diffDoc(id string, want, got map[string]json.RawMessage) string {
	w, inWant := want[id]
	g, inGot := got[id]
	switch {
	case !inGot:
		return id + ": missing"
	case !inWant:
		return id + ": should not be there"
	}
	diff, err := jsoncmp.Diff(w, g, 3)
	if err != nil {
		return id + ": " + err.Error()
	}
	if len(diff) == 0 {
		return ""
	}
	return id + ": " + strings.Join(diff, "; ")
}
