package elastic

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tailwater/tailwater/derive/sink"
)

// generation is one index of a view.
type generation struct {
	name    string
	number  int
	uuid    string
	aliased bool // the public alias names it
	ours    bool // it has a stamp of this view
	stamp   sink.Stamp
	tried   []sink.Stamp // written after stamp, without an answer
}

// adopt takes a stamp that was found for one that we wrote without hearing of it.
func (g *generation) adopt(found sink.Stamp) {
	if slices.Contains(g.tried, found) {
		g.stamp, g.tried = found, nil
	}
}

// writeAlias is the alias through which a generation is written. An alias may
// have capitals and an index may not: where the alias is gone, no write can make
// an index of its name, not even a versioned delete, which require_alias does not stop.
func (g *generation) writeAlias() string { return g.name + ".TAILWATER" }

// meta is a stamp as it is in _meta. Numbers are texts: they must not pass through a float.
type meta struct {
	View        string `json:"view"`
	Log         string `json:"log"`
	CSN         string `json:"csn"`
	Seq         string `json:"seq"`
	Time        string `json:"time"`
	Fingerprint string `json:"fingerprint"`
	Complete    bool   `json:"complete"`
}

func metaOf(view string, s sink.Stamp) map[string]any {
	return map[string]any{"tailwater": meta{
		View: view, Log: hex.EncodeToString(s.Log[:]), CSN: strconv.FormatUint(s.CSN, 10), Seq: strconv.FormatUint(s.Seq, 10),
		Time: strconv.FormatInt(s.Time, 10), Fingerprint: s.Fingerprint, Complete: s.Complete,
	}}
}

func (m *meta) stamp() (s sink.Stamp, err error) {
	s = sink.Stamp{Fingerprint: m.Fingerprint, Complete: m.Complete}
	var errs [4]error
	var n int
	n, errs[0] = hex.Decode(s.Log[:], []byte(m.Log)[:min(len(m.Log), 32)])
	s.CSN, errs[1] = strconv.ParseUint(m.CSN, 10, 64)
	s.Seq, errs[2] = strconv.ParseUint(m.Seq, 10, 64)
	s.Time, errs[3] = strconv.ParseInt(m.Time, 10, 64)
	if n != len(s.Log) {
		return s, errors.New("log id is short")
	}
	return s, errors.Join(errs[:]...)
}

// described is an index as GET /INDEX shows it.
type described struct {
	Aliases  map[string]json.RawMessage `json:"aliases"`
	Mappings struct {
		Meta struct {
			Tailwater *meta `json:"tailwater"`
		} `json:"_meta"`
	} `json:"mappings"`
	Settings struct {
		Index struct {
			UUID string `json:"uuid"`
		} `json:"index"`
	} `json:"settings"`
}

var generationSuffix = regexp.MustCompile(`^-([0-9]{6})$`)

// generations returns the indexes of the view, by number. Others that stand in the way are an error.
func (t *target) generations(ctx context.Context) ([]*generation, error) {
	yes := true
	found := map[string]described{}
	err := t.sink.do(ctx, esapi.IndicesGetRequest{
		Index: []string{t.alias, t.alias + "-*"}, IgnoreUnavailable: &yes, AllowNoIndices: &yes, ExpandWildcards: "open",
		FilterPath: []string{"*.aliases", "*.mappings._meta.tailwater", "*.settings.index.uuid"},
	}, &found)
	if err != nil && !notFound(err) {
		return nil, fmt.Errorf("look for the index %q: %w", t.alias, err)
	}
	var gens []*generation
	for _, name := range slices.Sorted(maps.Keys(found)) {
		d := found[name]
		_, aliased := d.Aliases[t.alias]
		g, err := t.generation(name, d, aliased)
		if err != nil {
			return nil, err
		}
		if g != nil {
			gens = append(gens, g)
		}
	}
	return gens, nil
}

func (t *target) generation(name string, d described, aliased bool) (*generation, error) {
	if name == t.alias {
		return nil, fmt.Errorf("%w: %q is an index and not an alias, and Tailwater did not make it: give the view another 'index:', or move that index away (reindex it under another name, then delete it)", sink.ErrStopped, name)
	}
	m := generationSuffix.FindStringSubmatch(strings.TrimPrefix(name, t.alias))
	if m == nil && !aliased {
		return nil, nil // products-old
	}
	g := &generation{name: name, aliased: aliased, uuid: d.Settings.Index.UUID}
	if m != nil {
		g.number, _ = strconv.Atoi(m[1])
	}
	tw := d.Mappings.Meta.Tailwater
	switch {
	case tw != nil && tw.View != t.view:
		return nil, fmt.Errorf("%w: the index %q belongs to the view %q: give one of the two another 'index:'", sink.ErrStopped, name, tw.View)
	case tw != nil && m != nil:
		s, err := tw.stamp()
		if err != nil {
			return nil, fmt.Errorf("%w: the stamp in the mapping of %q is damaged (%w): delete that index", sink.ErrStopped, name, err)
		}
		g.ours, g.stamp = true, s
	case aliased:
		return nil, fmt.Errorf("%w: the alias %q names the index %q, which Tailwater did not make: give the view another 'index:', or remove the alias", sink.ErrStopped, t.alias, name)
	}
	return g, nil
}

// create makes the next generation. The first one has the public alias at once: there is nothing better to search.
func (t *target) create(ctx context.Context, number int, public bool, s sink.Stamp) (*generation, error) {
	g := &generation{name: fmt.Sprintf("%s-%06d", t.alias, number), number: number, ours: true, aliased: public, stamp: s}
	err := t.createIndex(ctx, g, public)
	var a *answerError
	if errors.As(err, &a) && strings.Contains(a.reason, "type [unsigned_long]") {
		// A server without the free features that does not say so.
		if err := t.remap(&serverInfo{oss: true}); err != nil {
			return nil, err
		}
		err = t.createIndex(ctx, g, public)
	}
	if errors.As(err, &a) && a.status == http.StatusBadRequest && a.kind != "resource_already_exists_exception" {
		return nil, fmt.Errorf("%w: make the index %q: %w; look at the view's mapping and settings", sink.ErrStopped, g.name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("make the index %q: %w", g.name, err)
	}
	now, err := t.read(ctx, g)
	if err != nil {
		return nil, err
	}
	g.uuid = now.uuid
	return g, nil
}

func (t *target) createIndex(ctx context.Context, g *generation, public bool) error {
	mapping := maps.Clone(t.mapping)
	mapping["_meta"] = metaOf(t.view, g.stamp)
	aliases := map[string]any{g.writeAlias(): map[string]any{}}
	if public {
		aliases[t.alias] = map[string]any{}
	}
	body, err := json.Marshal(map[string]any{"settings": t.indexSettings(), "mappings": mapping, "aliases": aliases})
	if err != nil {
		return err
	}
	return t.sink.do(ctx, esapi.IndicesCreateRequest{Index: g.name, Body: reader(body)}, nil)
}

// indexSettings are the user's, and gc_deletes where they do not say it.
func (t *target) indexSettings() map[string]any {
	out := map[string]any{}
	for k, v := range t.settings {
		out[k] = v
	}
	nested, _ := out["index"].(map[string]any)
	for _, has := range []any{out["gc_deletes"], out["index.gc_deletes"], nested["gc_deletes"]} {
		if has != nil {
			return out
		}
	}
	out["index.gc_deletes"] = "1h"
	return out
}

// read looks at a generation as it is now; nil without an error: it is gone.
func (t *target) read(ctx context.Context, g *generation) (*generation, error) {
	found := map[string]described{}
	err := t.sink.do(ctx, esapi.IndicesGetRequest{
		Index: []string{g.name}, FilterPath: []string{"*.aliases", "*.mappings._meta.tailwater", "*.settings.index.uuid"},
	}, &found)
	if notFound(err) {
		return nil, fmt.Errorf("%w: the index %q is gone", sink.ErrWentBack, g.name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stamp of %q: %w", g.name, err)
	}
	d, ok := found[g.name]
	if !ok {
		return nil, fmt.Errorf("%w: the index %q is gone", sink.ErrWentBack, g.name)
	}
	_, aliased := d.Aliases[t.alias]
	return t.generation(g.name, d, aliased)
}

// writeStamp replaces the stamp of a generation.
func (t *target) writeStamp(ctx context.Context, g *generation, s sink.Stamp) error {
	s.Seq = g.stamp.Seq + 1
	body, err := json.Marshal(map[string]any{"_meta": metaOf(t.view, s)})
	if err != nil {
		return err
	}
	if !slices.Contains(g.tried, s) {
		g.tried = append(g.tried, s)
	}
	if err := t.sink.do(ctx, esapi.IndicesPutMappingRequest{Index: []string{g.name}, Body: reader(body)}, nil); err != nil {
		return fmt.Errorf("write the stamp of %q: %w", g.name, err)
	}
	g.stamp, g.tried = s, nil
	return nil
}

// publish points the public alias at a generation, away from all others, in one step.
func (t *target) publish(ctx context.Context, g *generation, gens []*generation) error {
	actions := []any{map[string]any{"add": map[string]any{"index": g.name, "alias": t.alias}}}
	for _, o := range gens {
		if o.aliased && o.name != g.name {
			actions = append(actions, map[string]any{"remove": map[string]any{"index": o.name, "alias": t.alias}})
		}
	}
	body, err := json.Marshal(map[string]any{"actions": actions})
	if err != nil {
		return err
	}
	if err := t.sink.do(ctx, esapi.IndicesUpdateAliasesRequest{Body: reader(body)}, nil); err != nil {
		return fmt.Errorf("point the alias %q at %q: %w", t.alias, g.name, err)
	}
	g.aliased = true
	return nil
}

func (t *target) remove(ctx context.Context, g *generation) error {
	err := t.sink.do(ctx, esapi.IndicesDeleteRequest{Index: []string{g.name}}, nil)
	if err != nil && !notFound(err) {
		return fmt.Errorf("delete the index %q: %w", g.name, err)
	}
	return nil
}
