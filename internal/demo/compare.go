package demo

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

const closeTimeout = 5 * time.Second

// Expected returns what the query of the view says at the source now, by id.
func Expected(ctx context.Context, dsn string) (map[string]json.RawMessage, error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer closeConn(c)
	results, err := c.PgConn().Exec(ctx, ViewSQL).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("query the expected documents: %w", err)
	}
	docs := make(map[string]json.RawMessage)
	for _, r := range results {
		for _, row := range r.Rows {
			docs[string(row[0])] = row[1]
		}
	}
	return docs, nil
}

// Compare compares documents, by id, with what the source says now. It returns
// one line for each that differs, is missing or should not be there, in order
// of id; no line means that all are equal.
func Compare(ctx context.Context, dsn string, docs map[string]json.RawMessage) ([]string, error) {
	want, err := Expected(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return compareDocs(want, docs)
}

func compareDocs(want, got map[string]json.RawMessage) ([]string, error) {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(want)) {
		doc, there := got[id]
		if !there {
			out = append(out, id+": missing")
			continue
		}
		diff, err := jsoncmp.Diff(want[id], doc, 3)
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", id, err)
		}
		if len(diff) > 0 {
			out = append(out, id+": "+strings.Join(diff, "; "))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, wanted := want[id]; !wanted {
			out = append(out, id+": should not be there")
		}
	}
	return out, nil
}
