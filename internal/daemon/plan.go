package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// Step is one thing that a run would do.
type Step struct {
	Action, Target, Detail string
	Fix                    string // what mends it: SQL, one statement a line; "" for most
}

// Plan says what a run with cfg would do now. It connects to the sources and changes nothing.
func Plan(ctx context.Context, cfg *config.Config, logger *slog.Logger) ([]Step, error) {
	p := planner{cfg: cfg, logger: logger, catalog: map[string]*change.Schema{}, done: map[string]bool{}, built: map[string]string{}, cursors: map[string]bool{}}
	if err := p.readDataDir(); err != nil {
		return nil, err
	}
	for _, s := range cfg.Sources {
		if err := p.source(ctx, s); err != nil {
			return nil, err
		}
	}
	var problems config.Problems
	for _, v := range cfg.Views {
		problems = append(problems, compileProblems(cfg, v, p.catalog)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	for _, v := range cfg.Views {
		if err := p.view(v); err != nil {
			return nil, err
		}
	}
	p.unused()
	return p.steps, nil
}

type planner struct {
	cfg     *config.Config
	logger  *slog.Logger
	catalog map[string]*change.Schema
	done    map[string]bool   // topics whose snapshot is done
	sources map[string]bool   // sources that the log has a position of
	built   map[string]string // fingerprint by view
	cursors map[string]bool   // of views in sinks
	steps   []Step
}

func (p *planner) add(action, target, format string, args ...any) {
	p.steps = append(p.steps, Step{Action: action, Target: target, Detail: fmt.Sprintf(format, args...)})
}

// readDataDir notes what an earlier run has left; there may be nothing.
func (p *planner) readDataDir() error {
	p.sources = map[string]bool{}
	path := filepath.Join(p.cfg.DataDir, "log")
	if !exists(path) {
		p.add("make", p.cfg.DataDir, "a new data directory")
		return nil
	}
	log, err := seglog.OpenReadOnly(path, seglog.Options{})
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	for _, s := range p.cfg.Sources {
		h := &connectors.LogHistory{Log: log, Source: s.Name}
		_, p.sources[s.Name] = h.Last()
		marks, err := h.Marks()
		if err != nil {
			return err
		}
		for _, m := range marks {
			if m.State != change.SnapshotStopped || m.Floor { // an ad-hoc run that was given up leaves nothing due
				p.done[m.Topic] = m.State == change.SnapshotDone || p.done[m.Topic] && !m.Floor
			}
		}
	}
	marks, err := log.Checkpoints()
	if err != nil {
		return err
	}
	for name := range marks {
		p.cursors[name] = true
	}
	if p.askDaemon() {
		return nil
	}
	return p.readViews()
}

// askDaemon takes the views' fingerprints from the daemon that runs on the data
// directory; ok is false if none does.
func (p *planner) askDaemon() (ok bool) {
	socket := p.cfg.SocketPath()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://tailwater/v1/views")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var views []server.ViewStatus
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&views) != nil {
		return false
	}
	for _, v := range views {
		p.built[v.Name] = v.Fingerprint
	}
	return true
}

func (p *planner) readViews() error {
	state := filepath.Join(p.cfg.DataDir, "state")
	if !exists(state) {
		return nil
	}
	r, err := derive.OpenReadOnly(state, join.Restore)
	if err != nil {
		return fmt.Errorf("open the views' state: %w", err)
	}
	defer r.Close()
	for _, s := range r.Stats() {
		p.built[s.Name] = s.Fingerprint
	}
	return nil
}

func (p *planner) source(ctx context.Context, s *config.Source) error {
	c, err := newConnector(s, p.logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	d, err := c.Describe(ctx)
	if err != nil {
		return err
	}
	for _, problem := range d.Problems {
		action := "mend first"
		if problem.Warning {
			action = "note"
		}
		p.steps = append(p.steps, Step{action, strings.TrimSpace("source " + s.Name + " " + problem.Table), problem.Message, problem.Fix})
	}
	if !p.sources[s.Name] {
		p.add("create", "source "+s.Name, "publication %s and replication slot %s at %s", s.Publication, s.Slot, s.Address)
	}
	for _, t := range d.Tables {
		p.catalog[t.Topic] = t
		if !p.done[t.Topic] {
			p.add("snapshot", t.Topic, "%s", rowsText(d.Rows[t.Topic]))
		}
	}
	return nil
}

// rowsText is the planner's estimate; a table that was never analyzed has none.
func rowsText(n int64) string {
	if n <= 0 {
		return "of unknown size"
	}
	return fmt.Sprintf("about %d rows", n)
}

// view says whether a view is built, and how its relations are resolved.
func (p *planner) view(v *config.View) error {
	compiled, err := join.Compile(definition(v), func(topic string) (*change.Schema, bool) { s, ok := p.catalog[topic]; return s, ok })
	if err != nil {
		return err
	}
	info := compiled.Info()
	fingerprint, old := p.built[v.Name]
	switch {
	case !old:
		p.add("build view", v.Name, "one document per row of %s", info.Root)
	case fingerprint != info.Fingerprint:
		p.add("rebuild view", v.Name, "its definition or its columns changed; built from the log beside the old one")
	}
	if !old || fingerprint != info.Fingerprint {
		for _, r := range info.Relations {
			p.add("relation", v.Name+"."+strings.Join(r.Path, "."), "%s", relationText(r))
		}
	}
	for _, t := range v.To {
		if !p.cursors[sink.CheckpointName(t.Sink, v.Name)] {
			p.add("fill", "sink "+t.Sink, "with view %s (%s)", v.Name, p.cfg.Sink(t.Sink).Kind)
		}
	}
	return nil
}

func relationText(r derive.Relation) string {
	if r.Through != "" {
		return fmt.Sprintf("%s %s through %s, near %s, far %s", r.Kind, r.Topic, r.Through, pairsText(r.Near), pairsText(r.Far))
	}
	return fmt.Sprintf("%s %s by %s", r.Kind, r.Topic, pairsText(r.By))
}

func pairsText(pairs []derive.ColumnPair) string {
	var parts []string
	for _, c := range pairs {
		parts = append(parts, c.Holder+" -> "+c.Refers)
	}
	return strings.Join(parts, ", ")
}

func (p *planner) unused() {
	for name := range p.built {
		if p.cfg.View(name) == nil {
			p.add("keep unused", "view "+name, "its state stays until: tailwater drop --unused --yes")
		}
	}
}
