package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// config decodes the root of the tree.
func (d *decoder) config(root *node) *Config {
	d.places = map[string]Pos{"": root.pos}
	d.collectPlaces(root)
	cfg := &Config{File: d.file, places: d.places, root: root}
	o := d.object(root, root.pos)
	o.later("streams", "tables", "relations")
	d.dataDir(o, cfg)
	o.boolean("insecure_plaintext", &cfg.InsecurePlaintext)
	d.version(o)
	cfg.Sources = d.sources(o.child("sources"), cfg)
	cfg.Log = d.log(o.child("log"), o.at("log"))
	cfg.Sinks = d.sinks(o.child("sinks"), cfg)
	cfg.Views = d.views(o.child("views"), cfg)
	cfg.Server = d.server(o.child("server"), o.at("server"), cfg)
	o.done()
	d.check(cfg, o)
	return cfg
}

// located decodes what Locate promises.
func (d *decoder) located(root *node) *Config {
	cfg, o := d.partial(root)
	cfg.Server = d.server(o.child("server"), o.at("server"), cfg)
	d.problems = slices.DeleteFunc(d.problems, func(p Problem) bool { return strings.HasPrefix(p.Path+".", "server.") })
	return cfg
}

// stopped decodes what LoadStopped promises.
func (d *decoder) stopped(root *node) *Config {
	cfg, o := d.partial(root)
	cfg.Log = d.log(o.child("log"), o.at("log"))
	if sources := o.child("sources"); sources != nil {
		for _, e := range sources.entries {
			for _, k := range e.value.entries {
				if contains(sourceKinds, k.key) {
					cfg.Sources = append(cfg.Sources, &Source{Name: e.key, Pos: e.pos, Kind: SourceKind(k.key)})
				}
			}
		}
	}
	return cfg
}

// partial begins a Config that is read in part, with its DataDir.
func (d *decoder) partial(root *node) (*Config, *object) {
	cfg := &Config{File: d.file, root: root}
	var top Pos
	if root != nil {
		top = root.pos
	}
	o := d.object(root, top)
	d.dataDir(o, cfg)
	return cfg, o
}

func (d *decoder) dataDir(o *object, cfg *Config) {
	cfg.DataDir = filepath.Join(d.baseDir, "tailwater-data")
	o.path("data_dir", &cfg.DataDir)
}

// version accepts the number of this layout, for files that state it.
func (d *decoder) version(o *object) {
	v := 1
	o.integer("version", &v, 1, 1)
}

func (d *decoder) collectPlaces(n *node) {
	for _, e := range n.entries {
		d.places[e.pos.Path] = e.pos
		d.collectPlaces(e.value)
	}
	for _, it := range n.items {
		d.places[it.pos.Path] = it.pos
		d.collectPlaces(it)
	}
}

func (d *decoder) log(n *node, pos Pos) Log {
	l := Log{Journal: 1 << 30, Pos: pos}
	o := d.object(n, pos)
	o.later("kafka")
	o.size("quota", &l.Quota, 64<<20)
	o.size("journal", &l.Journal, 1<<20)
	topics := d.object(o.child("topics"), o.at("topics"))
	if topics.n != nil {
		for _, e := range topics.n.entries {
			l.Topics = append(l.Topics, d.topicRule(e))
		}
	}
	o.done()
	return l
}

func (d *decoder) topicRule(e entry) TopicRule {
	r := TopicRule{Pattern: e.key, Pos: e.pos}
	o := d.object(e.value, e.pos)
	o.later("history")
	o.integer("partitions", &r.Partitions, 1, 1024)
	o.enum("cleanup", &r.Cleanup, CleanupCompact, CleanupDelete, CleanupNone)
	o.duration("tombstone_retention", &r.TombstoneRetention, 0)
	d.retention(o, &r)
	switch kept := r.Retention > 0 || r.RetentionBytes > 0; {
	case kept && r.Cleanup == "":
		d.problem(o.at("retention"), "retention has an effect with cleanup: delete only", "add cleanup: delete beside it, or leave retention out")
	case kept && r.Cleanup != CleanupDelete:
		d.problem(o.at("retention"), "retention has no effect with cleanup: "+r.Cleanup, "use cleanup: delete, or leave retention out")
	case !kept && r.Cleanup == CleanupDelete:
		d.problem(o.at("cleanup"), "cleanup: delete without a retention would delete nothing", "add retention: 30d, 10GiB or { time: 30d, size: 10GiB }")
	}
	o.done()
	return r
}

// retention takes "30d", "10GiB" or {time: 30d, size: 10GiB}.
func (d *decoder) retention(o *object, r *TopicRule) {
	n := o.child("retention")
	switch {
	case n == nil:
	case n.kind == mapNode:
		m := d.object(n, o.at("retention"))
		m.duration("time", &r.Retention, 0)
		m.size("size", &r.RetentionBytes, 1)
		m.done()
	default:
		text, ok := d.value(n)
		if !ok {
			return
		}
		if v, err := ParseDuration(text); err == nil {
			r.Retention = v
		} else if v, err := ParseSize(text); err == nil {
			r.RetentionBytes = v
		} else {
			d.problem(n.pos, "retention must be a duration or a size, not "+shown(n, text), "as in 30d, 10GiB or { time: 30d, size: 10GiB }")
		}
	}
}

func (d *decoder) server(n *node, pos Pos, cfg *Config) Server {
	s := Server{Listen: "127.0.0.1:7171", Pos: pos, ListenPos: pos, InsecurePlaintext: cfg.InsecurePlaintext}
	o := d.object(n, pos)
	if ln, text, ok := o.scalar("listen"); ok {
		s.Listen, s.ListenPos = text, ln.pos
		d.hostPort(ln, text)
	}
	o.secret("token", &s.Token)
	if o.has("token") && s.Token.IsZero() && o.child("token").kind == scalarNode {
		d.problem(o.at("token"), "the token is empty", "give it a value, or leave the key out")
	}
	t := d.object(o.child("tls"), o.at("tls"))
	t.path("cert", &s.TLSCert)
	t.path("key", &s.TLSKey)
	t.done()
	if (s.TLSCert == "") != (s.TLSKey == "") {
		d.problem(o.at("tls"), "tls needs both cert and key", "")
	}
	o.boolean("insecure_plaintext", &s.InsecurePlaintext)
	o.boolean("insecure_no_auth", &s.InsecureNoAuth)
	o.done()
	d.checkExposed(&s)
	return s
}
