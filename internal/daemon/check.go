package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/derive/join"
)

// Finding is one thing that CheckLive says.
type Finding struct {
	Part        string // "source shop", "view products", "sink search"
	OK          bool
	Warning     bool
	Message     string
	Fix         string // SQL or another way out
	Unreachable bool
}

// checkTimeout bounds the questions to one source or sink.
const checkTimeout = 20 * time.Second

// CheckLive tries connections, privileges, settings and the views' columns. It changes nothing.
func CheckLive(ctx context.Context, cfg *config.Config, logger *slog.Logger) ([]Finding, error) {
	var found []Finding
	catalog := map[string]*change.Schema{}
	reached := true
	for _, s := range cfg.Sources {
		list, d, err := checkSource(ctx, s, logger)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
		if d == nil {
			reached = false
			continue
		}
		for _, t := range d.Tables {
			catalog[t.Topic] = t
		}
	}
	if reached {
		for _, v := range cfg.Views {
			found = append(found, checkView(cfg, v, catalog)...)
		}
	}
	sinks, err := checkSinks(ctx, cfg, logger)
	return append(found, sinks...), err
}

func checkSource(ctx context.Context, s *config.Source, logger *slog.Logger) ([]Finding, *connectors.Description, error) {
	c, err := newConnector(s, logger)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	part := "source " + s.Name
	d, err := c.Describe(ctx)
	if err != nil {
		return []Finding{{Part: part, Message: err.Error(), Unreachable: !errors.Is(err, connectors.ErrPrerequisite)}}, nil, nil
	}
	found := []Finding{{Part: part, OK: true, Message: fmt.Sprintf("%s at %s, %s", d.Server, s.Address, plural(len(d.Tables), "table", "tables"))}}
	for _, p := range d.Problems {
		message := p.Message
		if p.Table != "" {
			message = "table " + p.Table + ": " + message
		}
		found = append(found, Finding{Part: part, OK: p.Warning, Warning: p.Warning, Message: message, Fix: p.Fix})
	}
	return found, d, nil
}

// checkView compiles a view against the catalogue.
func checkView(cfg *config.Config, v *config.View, catalog map[string]*change.Schema) []Finding {
	part := "view " + v.Name
	problems := compileProblems(cfg, v, catalog)
	if len(problems) == 0 {
		return []Finding{{Part: part, OK: true, Message: "fits the tables"}}
	}
	var found []Finding
	for _, p := range problems {
		fix := p.Hint
		p.Hint = ""
		found = append(found, Finding{Part: part, Message: p.Error(), Fix: fix})
	}
	return found
}

// compileProblems compiles a view against layouts and returns what is wrong, at its places in the file.
func compileProblems(cfg *config.Config, v *config.View, catalog map[string]*change.Schema) config.Problems {
	if ps := uncaptured(cfg, v); len(ps) > 0 {
		return ps
	}
	_, err := join.Compile(definition(v), func(topic string) (*change.Schema, bool) { s, ok := catalog[topic]; return s, ok })
	var problems join.Problems
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problems):
		return viewProblems(cfg, v.Name, problems)
	}
	return config.Problems{v.Pos.Problem(err.Error(), "")}
}
