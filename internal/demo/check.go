package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is how many documents the check reads by HTTP, one request each;
// `view dump` and `verify` compare all.
const sample = 500

// check is the demo without a person: kill -9 in the snapshot, kill -9 in the
// stream, and then every document is compared.
func (r *runner) check(ctx context.Context) error {
	inSnapshot, err := r.killInSnapshot(ctx)
	if err != nil {
		return err
	}
	if err := r.restart(ctx); err != nil {
		return err
	}
	if _, err := r.awaitFirst(ctx); err != nil {
		return err
	}
	if err := r.pass(ctx, r.opts.CheckTime/2); err != nil {
		return err
	}
	r.daemon.kill()
	r.say("Killed the daemon (-9) in the stream after %d transactions.", r.traffic.Committed())
	if err := r.restart(ctx); err != nil {
		return err
	}
	if err := r.pass(ctx, r.opts.CheckTime); err != nil {
		return err
	}
	if err := r.stop(); err != nil {
		return err
	}
	return r.compare(ctx, inSnapshot)
}

func (r *runner) restart(ctx context.Context) error {
	if err := r.daemon.start(); err != nil {
		return err
	}
	return r.daemon.awaitReady(ctx)
}

// pass lets the demo run until so long after its start.
func (r *runner) pass(ctx context.Context, until time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.daemon.done:
		return r.daemon.alive()
	case <-time.After(time.Until(r.began.Add(until))):
		return nil
	}
}

// killInSnapshot starts the daemon and kills it as soon as it has counted some
// rows of the first snapshot; it tells whether the snapshot was still under way.
func (r *runner) killInSnapshot(ctx context.Context) (bool, error) {
	if err := r.daemon.start(); err != nil {
		return false, err
	}
	var rows float64
	err := poll(ctx, time.Minute, func() error {
		if err := r.daemon.alive(); err != nil {
			return &finalError{err}
		}
		text, err := r.fetch(ctx, "/metrics")
		if err != nil {
			return err
		}
		if rows = sumMetric(text, "tailwater_snapshot_rows_total"); rows == 0 {
			return errNoSnapshot
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("wait for the snapshot: %w", err)
	}
	r.daemon.kill()
	loaded := float64(r.opts.Load.Size.Products + r.opts.Load.Size.Reviews)
	r.say("Killed the daemon (-9) after %.0f rows of the snapshot.", rows)
	return rows < loaded, nil
}

// sumMetric sums the samples of a metric over its labels.
func sumMetric(text []byte, name string) float64 {
	var sum float64
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		fields := strings.Fields(string(rest[bytes.LastIndexByte(rest, '}')+1:])) // the value, and maybe a time
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			sum += v
		}
	}
	return sum
}

var (
	errNoSnapshot = errors.New("the snapshot has not begun")
	errDiffers    = errors.New("documents differ from the source")
)

// compare waits until the last transaction has arrived and compares the view,
// the local index and what HTTP serves with the source.
func (r *runner) compare(ctx context.Context, inSnapshot bool) error {
	if _, err := r.daemon.command(ctx, "wait", "--timeout", "60s"); err != nil {
		return err
	}
	want, err := Expected(ctx, r.opts.DSN)
	if err != nil {
		return err
	}
	diff, err := r.compareView(ctx, want)
	if err != nil {
		return err
	}
	inIndex, err := r.compareIndex(ctx, len(want))
	if err != nil {
		return err
	}
	served, err := r.compareServed(ctx, want)
	if err != nil {
		return err
	}
	for _, list := range [][]string{diff, inIndex, served} {
		for i, line := range list {
			if i == 10 {
				r.say("  ... and %d more", len(list)-i)
				break
			}
			r.say("  %s", line)
		}
	}
	total := len(diff) + len(inIndex) + len(served)
	verdict := map[bool]string{true: "ok", false: "FAILED"}[total == 0]
	r.say("demo documents=%d view=%d index=%d served=%d kills=2 killed_in_snapshot=%t transactions=%d seed=%d %s",
		len(want), len(diff), len(inIndex), len(served), inSnapshot, r.traffic.Committed(), r.opts.Load.Seed, verdict)
	if total > 0 {
		return fmt.Errorf("%w: %d", errDiffers, total)
	}
	return nil
}

// compareView compares every document of `view dump`.
func (r *runner) compareView(ctx context.Context, want map[string]json.RawMessage) ([]string, error) {
	out, err := r.daemon.command(ctx, "view", "dump", View, "--json")
	if err != nil {
		return nil, err
	}
	docs := make(map[string]json.RawMessage, len(want))
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var line struct {
			ID  string          `json:"id"`
			Doc json.RawMessage `json:"doc"`
		}
		if err := dec.Decode(&line); err != nil {
			return nil, fmt.Errorf("read view dump: line %d: %w", len(docs)+1, err)
		}
		if _, twice := docs[line.ID]; twice {
			return nil, fmt.Errorf("read view dump: document %s comes twice", line.ID)
		}
		docs[line.ID] = line.Doc
	}
	return compareDocs(want, docs)
}

// compareIndex has every document in the local index compared with the view.
// verify exits with 1 if it finds differences, and its lists say which.
func (r *runner) compareIndex(ctx context.Context, documents int) ([]string, error) {
	out, err := r.daemon.command(ctx, "verify", View, "--sink", Sink, "--json")
	var found struct {
		Compared       int
		Missing, Extra []string
		Different      []struct{ ID string }
	}
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil {
		return nil, errors.Join(err, fmt.Errorf("read the answer of verify: %w", jsonErr))
	}
	var lines []string
	for _, id := range found.Missing {
		lines = append(lines, id+": missing in the index")
	}
	for _, id := range found.Extra {
		lines = append(lines, id+": should not be in the index")
	}
	for _, d := range found.Different {
		lines = append(lines, d.ID+": differs in the index")
	}
	if len(lines) == 0 && err != nil {
		return nil, err
	}
	if found.Compared < documents {
		lines = append(lines, fmt.Sprintf("verify compared %d documents of %d", found.Compared, documents))
	}
	return lines, nil
}

// compareServed compares an even sample of the documents as HTTP serves them.
func (r *runner) compareServed(ctx context.Context, want map[string]json.RawMessage) ([]string, error) {
	ids := slices.Sorted(maps.Keys(want))
	step := max(1, len(ids)/sample)
	some, got := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for i := 0; i < len(ids); i += step {
		doc, err := r.document(ctx, ids[i])
		if err != nil {
			return nil, err
		}
		some[ids[i]], got[ids[i]] = want[ids[i]], doc
	}
	return compareDocs(some, got)
}
