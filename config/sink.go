package config

import (
	"time"

	"github.com/tailwater/tailwater/internal/keytemplate"
)

// SinkKind says what a sink writes to.
type SinkKind string

// The kinds of sinks.
const (
	Elasticsearch SinkKind = "elasticsearch"
	OpenSearch    SinkKind = "opensearch"
	Redis         SinkKind = "redis"
	Local         SinkKind = "local"
)

// What happens to a document that a sink rejects.
const (
	OnRejectDeadLetter = "dead_letter" // recorded in _dlq.SINK; the others go on
	OnRejectStop       = "stop"        // the sink stops
)

// Sink is one place that views are written to. Exactly the struct of its kind
// is set; Elastic serves elasticsearch and opensearch.
type Sink struct {
	Name     string
	Pos      Pos
	Kind     SinkKind
	OnReject string // OnRejectDeadLetter by default
	Batch    Batch

	Elastic *ElasticSink
	Redis   *RedisSink
	Local   *LocalSink
}

// Batch bounds one write.
type Batch struct {
	Docs     int           // default 1000
	Bytes    Size          // default 8MiB
	Wait     time.Duration // for more documents; default 50ms
	InFlight int           // batches under way at a time; default 4, Redis and local always 1
}

// ElasticSink is an Elasticsearch or OpenSearch cluster.
type ElasticSink struct {
	URLs               []string // without user and password, no trailing slash
	Username           string
	Password           Secret
	APIKey             Secret
	TLS                TLS
	InsecureSkipVerify bool          // default false
	InsecurePlaintext  bool          // default false
	Timeout            time.Duration // of one request; default 60s
}

// RedisSink is a Redis or Valkey server, or a cluster of them.
type RedisSink struct {
	Addrs              []string // host:port; more than one are nodes of one cluster
	Username           string
	Password           Secret
	DB                 int  // default 0
	UseTLS             bool // rediss:// or tls: given
	TLS                TLS
	InsecureSkipVerify bool          // default false
	InsecurePlaintext  bool          // default false
	Timeout            time.Duration // of one command; default 10s
}

// LocalSink is the full-text index inside the data directory.
type LocalSink struct {
	Analyzer string // default of text fields; "standard"
}

// Target is what one view does with one sink.
type Target struct {
	Sink string
	Pos  Pos

	Index    string         // search sinks: the alias; default the view's name in lower case
	Mapping  []MappingField // search and local sinks: what differs from the derived mapping
	Settings map[string]any // search sinks: index settings, values as in Any; nil = none
	Key      Template       // redis; default "VIEW:{id}"
	TTL      time.Duration  // redis; 0 = none

	definition string
}

// MappingField overrides the mapping of one field.
type MappingField struct {
	Field   string         // path in the document, "reviews.title"
	Type    string         // "" = derived
	Keyword bool           // text with a .keyword beside it
	Params  map[string]any // further parameters: string, bool, int64, json.Number, []any, map[string]any
	Pos     Pos
}

// Template is a text with {names} in it; {{ and }} are literal braces.
type Template struct {
	Text  string
	Parts []TemplatePart
	Pos   Pos
}

// TemplatePart is a literal text or a field's name; exactly one is set.
type TemplatePart = keytemplate.Part
