package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/derive/sink/cache"
	"github.com/tailwater/tailwater/derive/sink/elastic"
	"github.com/tailwater/tailwater/derive/sink/local"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/server"
)

// sinkSet is the configured sinks, connected at their first use.
type sinkSet struct {
	byName map[string]sink.Sink
	local  map[string]*local.Sink
}

func newSinkSet(cfg *config.Config, localDir string, log eventlog.Log, logger *slog.Logger) (*sinkSet, error) {
	set := &sinkSet{byName: map[string]sink.Sink{}, local: map[string]*local.Sink{}}
	for _, s := range cfg.Sinks {
		made, err := newSink(s, localDir, log, logger.With("sink", s.Name))
		if err != nil {
			return nil, fmt.Errorf("sink %q: %w", s.Name, err)
		}
		set.byName[s.Name] = made
		if l, ok := made.(*local.Sink); ok {
			set.local[s.Name] = l
		}
	}
	return set, nil
}

func newSink(s *config.Sink, localDir string, log eventlog.Log, logger *slog.Logger) (sink.Sink, error) {
	switch s.Kind {
	case config.Local:
		return local.New(local.Options{Dir: localDir, Analyzer: s.Local.Analyzer, Logger: logger}), nil
	case config.Elasticsearch, config.OpenSearch:
		return newElastic(s, log, logger)
	case config.Redis:
		return newCache(s, log, logger)
	}
	return nil, fmt.Errorf("%s is not built in this version", s.Kind)
}

func newElastic(s *config.Sink, log eventlog.Log, logger *slog.Logger) (sink.Sink, error) {
	e := s.Elastic
	t, err := tlsConfig(e.TLS, e.InsecureSkipVerify)
	if err != nil {
		return nil, err
	}
	o := elastic.Options{URLs: e.URLs, Username: e.Username, Password: e.Password.Reveal(), APIKey: e.APIKey.Reveal(), TLS: t, Timeout: e.Timeout,
		InFlight: s.Batch.InFlight, BulkBytes: int(s.Batch.Bytes), Logger: logger}
	if log != nil {
		o.Frontier = func() uint64 { return uint64(log.Frontier()) }
	}
	return elastic.New(o), nil
}

func newCache(s *config.Sink, log eventlog.Log, logger *slog.Logger) (sink.Sink, error) {
	r := s.Redis
	if len(r.Addrs) > 1 {
		return nil, fmt.Errorf("%d addresses name a cluster, which this version does not write to; give one server", len(r.Addrs))
	}
	t, err := tlsConfig(r.TLS, r.InsecureSkipVerify)
	if err != nil {
		return nil, err
	}
	if t == nil && r.UseTLS {
		t = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return cache.New(cache.Options{Name: s.Name, Addr: r.Addrs[0], Username: r.Username, Password: r.Password.Reveal(), DB: r.DB, TLS: t, Timeout: r.Timeout,
		State: log, Logger: logger}), nil
}

// viewOptions are the target's options in the words of its sink.
func viewOptions(s *config.Sink, t *config.Target) any {
	switch s.Kind {
	case config.Local:
		var o local.ViewOptions
		for _, m := range t.Mapping {
			o.Mapping = append(o.Mapping, local.MappingField{Field: m.Field, Type: m.Type, Keyword: m.Keyword})
		}
		return o
	case config.Elasticsearch, config.OpenSearch:
		o := elastic.ViewOptions{Index: t.Index, Settings: t.Settings}
		for _, m := range t.Mapping {
			o.Mapping = append(o.Mapping, elastic.MappingField{Field: m.Field, Type: m.Type, Keyword: m.Keyword, Params: m.Params})
		}
		return o
	case config.Redis:
		return cache.ViewOptions{Key: t.Key.Text, TTL: t.TTL}
	}
	return nil
}

// searcher returns the first local index that takes the view.
func (set *sinkSet) searcher(v *config.View) *local.Sink {
	for _, t := range v.To {
		if l := set.local[t.Sink]; l != nil {
			return l
		}
	}
	return nil
}

func searchError(err error) error {
	switch {
	case errors.Is(err, local.ErrNotOpen):
		return fmt.Errorf("%w: %v", server.ErrUnavailable, err)
	case errors.Is(err, local.ErrQuery):
		return fmt.Errorf("%w: %v", server.ErrBadRequest, err)
	}
	return err
}

func (set *sinkSet) close() {
	for _, s := range set.byName {
		s.Close()
	}
}

// checkSinks connects to every sink.
func checkSinks(ctx context.Context, cfg *config.Config, logger *slog.Logger) ([]Finding, error) {
	var found []Finding
	for _, s := range cfg.Sinks {
		if s.Kind == config.Local { // nothing outside to reach; its folder is made by run
			found = append(found, Finding{Part: "sink " + s.Name, OK: true, Message: "local index in the data directory"})
			continue
		}
		made, err := newSink(s, "", nil, logger)
		if err != nil {
			return nil, err
		}
		part := "sink " + s.Name
		cctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err = made.Check(cctx)
		cancel()
		made.Close()
		if err != nil {
			found = append(found, Finding{Part: part, Message: err.Error(), Unreachable: !errors.Is(err, sink.ErrStopped)})
			continue
		}
		found = append(found, Finding{Part: part, OK: true, Message: string(s.Kind) + " answers"})
	}
	return found, nil
}
