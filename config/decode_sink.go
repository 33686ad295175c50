package config

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"
)

var (
	sinkKinds      = []string{string(Elasticsearch), string(OpenSearch), string(Redis), string(Local)}
	laterSinkKinds = []string{"kafka", "postgres", "mysql", "mariadb", "webhook", "smtp", "exec", "file", "sse"}
	sinkAliases    = map[string]string{"elastic": "elasticsearch", "es": "elasticsearch", "valkey": "redis", "bleve": "local"}
)

func (d *decoder) sinks(n *node, cfg *Config) []*Sink {
	o := d.object(n, cfg.pos("sinks"))
	if o.n == nil {
		return nil
	}
	var out []*Sink
	for _, e := range o.n.entries {
		d.checkName("sink", e.key, e.pos)
		if s := d.sink(e, cfg); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// sink decodes { KIND: { … }, options }; the options may stand inside as well.
func (d *decoder) sink(e entry, cfg *Config) *Sink {
	if d.sinkKindLater(e) {
		return nil
	}
	kind, body, ok := d.oneOf(e, "a sink", sinkKinds)
	if !ok {
		return nil
	}
	s := &Sink{
		Name: e.key, Pos: e.pos, Kind: SinkKind(kind), OnReject: OnRejectDeadLetter,
		Batch: Batch{Docs: 1000, Bytes: 8 << 20, Wait: 50 * time.Millisecond, InFlight: 4},
	}
	outer := d.object(e.value, e.pos)
	outer.child(kind)
	d.sinkOptions(outer, s)
	outer.done()
	o := d.object(body.value, body.pos)
	d.sinkOptions(o, s)
	switch s.Kind {
	case Elasticsearch, OpenSearch:
		s.Elastic = d.elastic(o, s, cfg)
	case Redis:
		s.Redis = d.redis(o, s, cfg)
	case Local:
		s.Local = d.local(o)
	}
	if s.Kind == Redis || s.Kind == Local {
		s.Batch.InFlight = 1
	}
	o.done()
	return s
}

func (d *decoder) sinkKindLater(e entry) bool {
	if e.value.kind != mapNode {
		return false
	}
	for _, k := range e.value.entries {
		if contains(laterSinkKinds, k.key) {
			d.problem(k.pos, k.key+" sinks are not in this version yet", "this version writes to "+strings.Join(sinkKinds, ", "))
			return true
		}
		if to := sinkAliases[k.key]; to != "" {
			d.problem(k.pos, fmt.Sprintf("unknown kind %s of sink", quote(k.key)), "did you mean "+quote(to)+"?")
			return true
		}
	}
	return false
}

func (d *decoder) sinkOptions(o *object, s *Sink) {
	o.enum("on_reject", &s.OnReject, OnRejectDeadLetter, OnRejectStop)
	b := d.object(o.child("batch"), o.at("batch"))
	b.integer("docs", &s.Batch.Docs, 1, 100_000)
	b.size("bytes", &s.Batch.Bytes, 1<<10)
	b.duration("wait", &s.Batch.Wait, 0)
	b.integer("in_flight", &s.Batch.InFlight, 1, 64)
	b.done()
}

func (d *decoder) elastic(o *object, s *Sink, cfg *Config) *ElasticSink {
	x := &ElasticSink{Timeout: time.Minute, InsecurePlaintext: cfg.InsecurePlaintext}
	o.str("username", &x.Username)
	o.secret("password", &x.Password)
	o.secret("api_key", &x.APIKey)
	o.duration("timeout", &x.Timeout, 100*time.Millisecond)
	o.boolean("insecure_skip_verify", &x.InsecureSkipVerify)
	o.boolean("insecure_plaintext", &x.InsecurePlaintext)
	t := d.object(o.child("tls"), o.at("tls"))
	x.TLS = d.tlsFiles(t)
	t.done()
	n := o.child("url")
	if n == nil {
		d.problem(o.pos, fmt.Sprintf("the %s sink has no url", s.Kind), `add url: "http://127.0.0.1:9200", or a list of them`)
	}
	for _, it := range d.list(n) {
		d.elasticURL(it, x)
	}
	if !x.APIKey.IsZero() && (x.Username != "" || !x.Password.IsZero()) {
		d.problem(o.at("api_key"), "the sink has both api_key and a user", "keep one")
	}
	return x
}

func (d *decoder) elasticURL(n *node, x *ElasticSink) {
	text, ok := d.value(n)
	if !ok {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		d.problem(n.pos, "the url must be http:// or https:// with host and port", "as in https://search.example.org:9200; user and password have keys of their own")
		return
	}
	if u.User != nil {
		x.Username = u.User.Username()
		if p, has := u.User.Password(); has {
			x.Password = NewSecret(p)
		}
		u.User = nil
	}
	x.URLs = append(x.URLs, strings.TrimRight(u.String(), "/"))
	if u.Scheme == "http" && !isLoopback(u.Hostname()) && !x.InsecurePlaintext {
		if x.Username != "" || !x.Password.IsZero() || !x.APIKey.IsZero() {
			d.problem(n.pos, "the sink's password would cross the network unencrypted", "use https://, or say insecure_plaintext: true")
			return
		}
		d.warn(n.pos, "documents cross the network unencrypted", "use https://, or say insecure_plaintext: true")
	}
}

func (d *decoder) redis(o *object, s *Sink, cfg *Config) *RedisSink {
	x := &RedisSink{Timeout: 10 * time.Second, InsecurePlaintext: cfg.InsecurePlaintext}
	o.str("username", &x.Username)
	o.secret("password", &x.Password)
	o.integer("db", &x.DB, 0, math.MaxInt32)
	o.duration("timeout", &x.Timeout, 100*time.Millisecond)
	o.boolean("insecure_skip_verify", &x.InsecureSkipVerify)
	o.boolean("insecure_plaintext", &x.InsecurePlaintext)
	t := d.object(o.child("tls"), o.at("tls"))
	x.TLS = d.tlsFiles(t)
	x.UseTLS = t.n != nil || o.has("tls")
	t.done()
	n := o.child("addr")
	if n == nil {
		d.problem(o.pos, "the redis sink has no addr", `add addr: "127.0.0.1:6379", or a list of a cluster's nodes`)
	}
	items := d.list(n)
	for _, it := range items {
		d.redisAddr(it, x)
	}
	if len(items) > 1 && x.DB != 0 {
		d.problem(o.at("db"), "a cluster has no database but 0", "leave db out")
	}
	return x
}

func (d *decoder) redisAddr(n *node, x *RedisSink) {
	text, ok := d.value(n)
	if !ok {
		return
	}
	addr := text
	if strings.Contains(text, "://") {
		if addr, ok = d.redisURL(n, text, x); !ok {
			return
		}
	}
	host, ok := d.hostPort(n, addr)
	if !ok {
		return
	}
	x.Addrs = append(x.Addrs, addr)
	if !x.UseTLS && !isLoopback(host) && !x.InsecurePlaintext {
		if !x.Password.IsZero() {
			d.problem(n.pos, "the sink's password would cross the network unencrypted", "use rediss://, or say insecure_plaintext: true")
			return
		}
		d.warn(n.pos, "documents cross the network unencrypted", "use rediss://, or say insecure_plaintext: true")
	}
}

func (d *decoder) redisURL(n *node, text string, x *RedisSink) (addr string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Host == "" || u.RawQuery != "" {
		d.problem(n.pos, "the addr must be host:port, redis://host:port or rediss://host:port", "")
		return "", false
	}
	x.UseTLS = x.UseTLS || u.Scheme == "rediss"
	if u.User != nil {
		x.Username = firstOf(u.User.Username(), x.Username)
		if p, has := u.User.Password(); has {
			x.Password = NewSecret(p)
		}
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if _, err := fmt.Sscanf(db, "%d", &x.DB); err != nil {
			d.problem(n.pos, "the database behind the address must be a number", "")
			return "", false
		}
	}
	if u.Port() == "" {
		return u.Host + ":6379", true
	}
	return u.Host, true
}

var analyzers = []string{"standard", "simple", "web", "keyword"}

func (d *decoder) local(o *object) *LocalSink {
	x := &LocalSink{Analyzer: "standard"}
	o.enum("analyzer", &x.Analyzer, analyzers...)
	return x
}
